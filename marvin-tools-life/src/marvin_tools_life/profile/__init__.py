"""The group profile: the active profile, the user's preferences, and the address book."""
