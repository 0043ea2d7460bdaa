"""Web tools for Marvin: search, pages, knowledge, places, travel and media."""

__version__ = "0.1.0"
