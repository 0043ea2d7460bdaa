"""The version of marvin-core, and that of the interface for packs."""

__version__ = "0.1.0"
API = 1
