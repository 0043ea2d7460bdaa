"""The group git: the tools that inspect a repository and commit to it."""
