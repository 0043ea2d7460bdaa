"""The version of marvin-core, and the version of the interface for packs."""

__version__ = "0.1.0"
API = 1
"""The version of the interface for packs: it grows by one with each addition or change."""
