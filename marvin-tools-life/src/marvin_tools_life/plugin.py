"""The entry point that Marvin loads: will register the groups of everyday tools.

Notes, calendar, alarms, notifications, tickets, profile, utilities and Blender. It imports only
`marvin_core`; a group's own module is imported when one of its tools is first used.
"""
