"""The entry point that Marvin loads: will register the groups of web tools.

Search, pages, knowledge, places, travel and media. It imports only `marvin_core`; a group's own module
is imported when one of its tools is first used.
"""
