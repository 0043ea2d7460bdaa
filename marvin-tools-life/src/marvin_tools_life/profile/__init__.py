"""The group profile: which profile is used, what the user prefers, and the address book."""
