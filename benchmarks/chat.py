"""The cost of the chat on a terminal: time to its prompt, from key to echo, and of drawing an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks import answers
from benchmarks.lab import PYTHON, Lab, interleaved, median, per_thousand
from benchmarks.table import Row

_BARE = str(Path(__file__).with_name("bare_prompt.py"))
SIGN = b">\x08\x1b[2C"
"""The prompt as prompt_toolkit draws it: it moves the cursor instead of printing the space."""
READY = (b"works.", SIGN)
"""How Marvin's chat is drawn: the end of its greeting, and the prompt."""
_KEYS = b"qwertyuiopasdfgjkzxcvbn"
"""No letters of escape sequences: an h would be found in the output before it."""
_STILL = 0.015
"""Seconds without output after which a program counts as waiting for the next key."""
SHORT, LONG = 24, 1_024
_EVERY = 0.002
"""Seconds from token to token: 500 a second, which is a fast service."""


def keys(lab: Lab, command: Sequence[str], *ready: bytes) -> tuple[float, float]:
    """Milliseconds from exec until this was drawn, and from a key to its echo, the median of 23 keys."""
    with lab.on_terminal(command) as terminal:
        started = (terminal.until(*ready) - terminal.begun) / 1e6
        echoes = []
        for key in _KEYS:
            terminal.settle(_STILL)
            begun = terminal.type(bytes([key]))
            echoes.append((terminal.until(bytes([key])) - begun) / 1e6)
        return started, median(echoes)


def drawing(lab: Lab, command: Sequence[str], tokens: int, *ready: bytes) -> tuple[float, int]:
    """Processor time in seconds of a chat with one answer of this many tokens, and the bytes that it wrote."""
    with lab.on_terminal(command, [answers.paced(tokens, _EVERY)]) as terminal:
        terminal.until(*ready)
        terminal.type(b"go\r")
        terminal.until(answers.LAST.encode())
        terminal.settle(0.1)
        return terminal.leave(), terminal.drawn


def rows(lab: Lab, starts: int, streams: int) -> Iterator[Row]:
    """The rows of the table on the chat."""
    yield from _keys(lab, starts)
    yield from _drawing(lab, streams)


def _keys(lab: Lab, starts: int) -> Iterator[Row]:
    runs = interleaved(
        {
            "bare": partial(keys, lab, [PYTHON, _BARE], SIGN),
            "marvin": partial(keys, lab, [lab.program.marvin], *READY),
        },
        starts,
    )
    marvin, bare = (median([started for started, _ in runs[name]]) for name in ("marvin", "bare"))
    how = f"{marvin:.0f} ms from exec; a bare prompt of prompt_toolkit {bare:.0f} ms"
    yield Row("chat: start to prompt", marvin / bare, 2.0, "x", how)
    marvin, bare = (median([echo for _, echo in runs[name]]) for name in ("marvin", "bare"))
    how = f"{marvin:.2f} ms; a bare prompt of prompt_toolkit {bare:.2f} ms"
    yield Row("chat: key to echo", marvin / bare, 1.5, "x", how)


def _drawing(lab: Lab, rounds: int) -> Iterator[Row]:
    commands = {
        "bare": ([PYTHON, _BARE, lab.url], (SIGN,)),
        "marvin": ([lab.program.marvin], READY),
    }
    runs = interleaved(
        {
            f"{name} {tokens}": partial(drawing, lab, command, tokens, *ready)
            for tokens in (SHORT, LONG)
            for name, (command, ready) in commands.items()
        },
        rounds,
    )
    middle = {name: median([seconds for seconds, _ in found]) for name, found in runs.items()}
    each = {name: per_thousand(LONG - SHORT, middle[f"{name} {SHORT}"], middle[f"{name} {LONG}"]) for name in commands}
    how = (
        f"{each['marvin']:.0f} ms, each word as it comes, 1 / {_EVERY:g} s; "
        f"bare patch_stdout, each line when it is complete, {each['bare']:.0f} ms"
    )
    yield Row("chat: CPU per 1,000 tokens", each["marvin"] / 1e3, 0.4, "s", how)
    yield Row("  against the bare prompt", each["marvin"] / each["bare"], 2.0, "x", "the same")
    drawn = {tokens: median([count for _, count in runs[f"marvin {tokens}"]]) for tokens in (SHORT, LONG)}
    written, text = drawn[LONG] - drawn[SHORT], (LONG - SHORT) * len(answers.PIECE)
    how = f"{written:,.0f} bytes to the terminal for {text:,} of text"
    yield Row("chat: bytes to the terminal", written / text, 4.5, "x", how)
