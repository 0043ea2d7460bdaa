"""The group files: the tools that read, write and find files, beside what they are made of."""
