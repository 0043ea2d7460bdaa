"""Server-sent events: what a byte stream means never depends on how it was cut into reads."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.providers.http.sse import SSEParser


def events(*reads: bytes) -> list[bytes]:
    parser = SSEParser(1_000_000_000)
    found = [event for read in reads for event in parser.feed(read)]
    return found + parser.finish()


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\n\r\ndata: b\r\n\r", [b"a", b"b"]),
        (b"data:a\n\ndata:  b\n\n", [b"a", b" b"]),
        (b"data: one\ndata: two\ndata:\ndata\n\n", [b"one\ntwo\n\n"]),
        (b": keep-alive\n\n:\n\ndata: a\n: in between\ndata: b\n\n", [b"a\nb"]),
        (b"event: x\nid: 1\nretry: 5\ndatabase: y\ndata: a\n\nevent: alone\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: a\n\ndata: last, without a blank line", [b"a", b"last, without a blank line"]),
        (b"data: a\n\ndata: b\n", [b"a", b"b"]),
        (b"\n\n\r\n\r\n", []),
        (b"", []),
    ],
)
def test_events_of_a_stream(stream: bytes, expected: Sequence[bytes]) -> None:
    assert events(stream) == expected


def test_other_line_separators_of_unicode_are_data() -> None:
    """U+2028, U+2029, U+0085 and form feeds may stand in JSON strings as they are."""
    data = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg".encode()
    assert events(b"data: " + data + b"\n\n") == [data]


def test_an_event_is_handed_on_with_its_last_byte() -> None:
    """Nothing waits for the next read: not the LF of a CRLF, not the next event."""
    parser = SSEParser(1_000_000_000)
    assert parser.feed(b"data: a\r\n\r") == [b"a"]
    assert parser.feed(b"\ndata: b\n") == []
    assert parser.feed(b"\n") == [b"b"]


PIECES = st.sampled_from(
    [b"data: ", b"data:", b"data", b"x", b" ", b":", b"\n", b"\r", b"\r\n", b"\n\n", b"event: y", "é\u2028".encode()]
)


@given(st.lists(PIECES, max_size=25).map(b"".join), st.booleans())
def test_cutting_a_stream_anywhere_changes_nothing(stream: bytes, with_bom: bool) -> None:
    """One read, two reads cut at every byte, and single bytes all give the same events."""
    stream = b"\xef\xbb\xbf" + stream if with_bom else stream
    whole = events(stream)
    assert events(*(stream[i : i + 1] for i in range(len(stream)))) == whole
    for cut in range(len(stream) + 1):
        assert events(stream[:cut], stream[cut:]) == whole


def test_a_large_event_in_tiny_reads_is_linear() -> None:
    """Four times the size takes about four times as long, not sixteen."""

    def seconds(size: int) -> float:
        parser = SSEParser(1_000_000_000)
        reads = [b"data: ", *([b"0123"] * (size // 4)), b"\n\n"]
        started = time.process_time()
        found = [event for read in reads for event in parser.feed(read)]
        taken = time.process_time() - started
        assert len(found) == 1
        assert len(found[0]) == size
        return taken

    small = min(seconds(256 * 1024) for _ in range(3))
    large = min(seconds(1024 * 1024) for _ in range(3))
    assert large < 10 * small
