"""The group bookmarks: addresses to come back to, with tags, for all profiles."""
