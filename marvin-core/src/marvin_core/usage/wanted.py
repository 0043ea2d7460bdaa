"""What a request under a cost ceiling wants, and what it is given."""

from __future__ import annotations

from ..api.record import Record


class Rate(Record):
    """What a request costs in micro-dollars at most: its input, and each token of its output."""

    input: int
    output: float


class Wanted(Record):
    """What a request needs: its input, from `least` to `most` tokens of output, and what is held back beside it."""

    rate: Rate
    least: int
    most: int
    keep: int


class Taken(Record):
    """What was reserved: tokens of output, micro-dollars in all, and the name of the reservation."""

    output: int
    amount: int
    key: str
