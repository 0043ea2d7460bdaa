"""The group git: the tools that look at a repository and commit to it."""
