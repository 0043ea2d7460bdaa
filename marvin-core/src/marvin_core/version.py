"""The version of marvin-core, and that of the interface for packs."""

__version__ = "0.1.0"
API = 1
"""Counts the interface for packs: it grows by one when something is added or changed."""
