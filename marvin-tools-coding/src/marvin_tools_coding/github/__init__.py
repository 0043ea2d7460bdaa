"""The group github: searching GitHub, and clones of its repositories to read."""
