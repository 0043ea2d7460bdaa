"""Compressed bodies, however they are cut on their way."""

from __future__ import annotations

import gzip
from itertools import combinations

from marvin_core.http.decoding import Inflater

PLAIN = b"hello world, this is text " * 20
TWO_MEMBERS = gzip.compress(PLAIN[:50]) + gzip.compress(PLAIN[50:])


def test_a_body_of_two_members_may_be_cut_anywhere() -> None:
    for cuts in combinations(range(len(TWO_MEMBERS) + 1), 2):
        first, second = cuts
        inflater = Inflater(gzip=True)
        parts = (TWO_MEMBERS[:first], TWO_MEMBERS[first:second], TWO_MEMBERS[second:])
        assert b"".join(piece for part in parts for piece in inflater.pieces(part)) == PLAIN, cuts


def test_what_stands_behind_the_end_is_nothing() -> None:
    for rest in (b"\x1f", b"\x1fx", b"\x00" * 10, b"more"):
        inflater = Inflater(gzip=True)
        assert b"".join(inflater.pieces(gzip.compress(PLAIN) + rest)) == PLAIN
