"""The group files: the tools that read, write and find files, and their helpers."""
