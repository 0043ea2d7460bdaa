"""What a request needs under a cost ceiling, and what it gets."""

from __future__ import annotations

from ..api.record import Record


class Rate(Record):
    """The maximum cost of a request in micro-dollars: of its input, and of each token of its output."""

    input: int
    output: float


class Wanted(Record):
    """The needs of a request: its input, from `least` to `most` tokens of output, and the reserve to keep besides."""

    rate: Rate
    least: int
    most: int
    keep: int


class Taken(Record):
    """The reservation: tokens of output, micro-dollars in total, and its name."""

    output: int
    amount: int
    key: str
