"""The group shell: the tools that run commands and manage background jobs."""
