"""Lines of text files: a small file is read as a whole, and shows what it would show in pieces."""

from __future__ import annotations

import asyncio
from io import BytesIO
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from marvin_core import TextSource
from marvin_core.kit.files.sections import LINE_LIMIT, Wanted, as_text, collect, seek_line, whole_lines
from tests.support.examples import examples

TEXTS = st.lists(
    st.one_of(
        st.sampled_from(["", "a", "b\r", "\r", "\ufeffmarked", "ä€😀", "\x85\u2028", "x" * LINE_LIMIT, "x" * 2_001]),
        st.text(max_size=12),
    ),
    max_size=9,
).map("\n".join)
NUMBERS = st.integers(1, 11)


@examples(300)
@given(text=TEXTS, first=NUMBERS, last=st.none() | NUMBERS, most=NUMBERS, limit=st.integers(0, 9_000))
@example(text="a\nb\nc", first=2, last=3, most=1, limit=100)
@example(text="\ufeffa\r\nb", first=1, last=None, most=9, limit=100)
def test_a_text_in_memory_shows_the_lines_that_its_file_shows(
    text: str, first: int, last: int | None, most: int, limit: int
) -> None:
    data = text.encode("utf-8", "surrogatepass")
    wanted, encoding = Wanted(first, last, limit, most), ("utf-8", "strict")
    shown = whole_lines(text, wanted)
    if shown is None or "\ud800" <= max(text, default="") <= "\udfff":
        return
    file = BytesIO(data)
    assert seek_line(file, first, lambda: False) is None
    raw = collect(file, wanted, lambda: False)
    total = data.count(b"\n") + (not data.endswith(b"\n"))
    assert as_text(wanted, raw, total, encoding) == shown


def test_a_file_that_grows_while_it_is_open_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("one\ntwo\n")

    async def read() -> tuple[str, ...]:
        with path.open("rb") as file:
            source = TextSource("log.txt", file)
            with path.open("a") as more:
                more.write("three\n")
            return (await source.section(1, None, limit=1_000)).lines

    assert asyncio.run(read()) == ("one", "two", "three")
