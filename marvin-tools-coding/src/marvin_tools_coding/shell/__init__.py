"""The group shell: the tools that run commands and look after what they left running."""
