"""The group github: searching GitHub, and cloning its repositories to read them."""
