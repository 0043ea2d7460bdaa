"""The group bookmarks: URLs with tags, for all profiles."""
