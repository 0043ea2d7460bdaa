"""How much of something there may be: counts and sizes that config.yaml can change."""

from __future__ import annotations

from .record import Record


class Limits(Record):
    """Ceilings; `limits:` in config.yaml changes them. Each is a whole number from 1 on."""

    event: int = 4_000_000
    """Bytes of one event of a streamed answer, and of what stands between two events."""
    document: int = 4_000_000
    """Bytes of an answer that is one JSON document and no stream."""
    values: int = 200_000
    """Objects and lists in one event or document: each takes far more memory than it takes bytes."""
    answer: int = 4_000_000
    """Characters of the text and the thinking of an answer, and of the data that goes back with them."""
    arguments: int = 4_000_000
    """Characters of the arguments of all calls of an answer."""
    stream: int = 400_000_000
    """Bytes of a streamed answer as a whole, decompressed, with all that is no content."""
    body: int = 50_000_000
    """Bytes of what a tool reads from one address, decompressed."""
    download: int = 20_000_000_000
    """Bytes of one file that a tool saves, as they come."""
    shown: int = 200_000
    """Characters of what a tool shows people beside its output; rows of tables beyond that are left out."""
    parallel_calls: int = 8
    """Calls of one answer that run side by side."""
    session_line: int = 32_000_000
    """Bytes of a line of a session file. What is larger is cut when written, and passed over when read."""
    backup_days: int = 90
    """The age, in days, beyond which backups of conversations are removed."""
    backup_bytes: int = 100_000_000
    """The size of all backups of conversations in a folder, beyond which the oldest ones are removed."""
    pack_memory: int = 2_000_000_000
    """Bytes of memory that `marvin packs check` lets a pack take."""
    pack_file: int = 100_000_000
    """Bytes of a file that `marvin packs check` lets a pack write."""
