"""The list to pick from: each row fits into the window, and nothing in it steers the terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth

from marvin_core.api.controls import Choice, Picking
from marvin_core.ui.plain.lent.picker import Picker
from marvin_core.ui.rendering import Paint
from tests.support.examples import examples

HOSTILE = "A\x1b]0;PWNED\x07B\x1b[2J\x9b31m\r\n\u202eC"


async def find(words: str) -> Sequence[Choice]:
    return ()


async def rename(key: str, title: str) -> str:
    return title


def rows_of(choices: Sequence[Choice], columns: int, rows: int) -> list[str]:
    output = Vt100_Output(io.StringIO(), lambda: Size(rows=rows, columns=columns))
    picker = Picker(Picking(title="Which?", find=find, rename=rename), Paint(False), get_cwidth, output, "xterm")
    picker._choices = choices
    picker._typed = "what is looked for " * 5
    return ["".join(part[1] for part in row) for row in picker._rows(columns - 1)]


TEXT = st.one_of(st.text(max_size=80), st.just(HOSTILE), st.just("日本語" * 30))


@examples(200)
@given(st.lists(st.tuples(TEXT, TEXT), max_size=30), st.integers(20, 200), st.integers(6, 60))
def test_every_row_fits_and_there_are_fewer_than_the_window_has(
    texts: list[tuple[str, str]], columns: int, rows: int
) -> None:
    shown = rows_of([Choice(key="", text=text, facts=facts) for text, facts in texts], columns, rows)
    assert len(shown) < rows
    for row in shown:
        assert get_cwidth(row) < columns
        assert row.isprintable()


def test_a_title_and_its_facts_share_the_row() -> None:
    (_, first, *_) = rows_of([Choice(key="", text="A long title " * 9, facts="2026-11-23 16:12, 2 messages")], 80, 24)
    assert first.endswith("…  2026-11-23 16:12, 2 messages")
    (_, narrow, *_) = rows_of([Choice(key="", text=HOSTILE, facts="2026-11-23 16:12, 2 messages")], 40, 24)
    assert narrow == "> AB C  2026-11-23 16:12,…"
