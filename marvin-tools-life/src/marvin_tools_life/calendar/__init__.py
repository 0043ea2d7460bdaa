"""The group calendar: one iCalendar file (RFC 5545) of the profile, which other programs may edit as well."""
