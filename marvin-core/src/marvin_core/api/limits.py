"""How much of something there may be: counts and sizes that config.yaml can change."""

from __future__ import annotations

from .record import Record


class Limits(Record):
    """Ceilings; `limits:` in config.yaml changes them. Each is a whole number from 1 on."""

    parallel_calls: int = 8
    """Calls of one answer that run side by side."""
    session_line: int = 32_000_000
    """Bytes of a line of a session file. What is larger is cut when written, and passed over when read."""
    backup_days: int = 90
    """The age, in days, beyond which backups of conversations are removed."""
    backup_bytes: int = 100_000_000
    """The size of all backups of conversations in a folder, beyond which the oldest ones are removed."""
