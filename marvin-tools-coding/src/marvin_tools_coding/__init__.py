"""Coding tools for Marvin: files, git, shell, tickets, sub-agents, GitHub and language servers."""

__version__ = "0.1.0"
