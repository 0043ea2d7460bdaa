"""Everyday tools for Marvin: notes, calendar, alarms, notifications, tickets and more."""

__version__ = "0.1.0"
