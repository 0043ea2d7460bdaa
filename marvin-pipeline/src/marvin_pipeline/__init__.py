"""The design-first, test-first coding pipeline and the code review jobs for Marvin."""

__version__ = "0.1.0"
