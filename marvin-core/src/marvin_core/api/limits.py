"""How large what comes from outside may be: answers of model services, and what tools fetch."""

from __future__ import annotations

from .record import Record


class Limits(Record):
    """How large things from outside may be; `limits:` in config.yaml changes them. An answer past one of them ends."""

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
