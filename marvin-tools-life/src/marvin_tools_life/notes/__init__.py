"""The group notes: Markdown files of the user, or of a project in coding mode."""
