"""The entry point that Marvin loads: will register the pipeline and the code review jobs.

Their tools, hooks and commands. It imports only `marvin_core`;
a group's own module is imported when one of its tools is first used.
"""
