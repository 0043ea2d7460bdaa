"""What the chat on a terminal costs: until its prompt is there, from key to echo, while an answer is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks import answers
from benchmarks.lab import MARVIN, PYTHON, Lab, interleaved, median
from benchmarks.table import Row

_BARE = str(Path(__file__).with_name("bare_prompt.py"))
_SIGN = b">\x08\x1b[2C"
"""The prompt as prompt_toolkit draws it: its space is a step of the cursor."""
_GREETING = b"works."
_KEYS = b"qwertyuiopasdfgjkzxcvbn"
"""No letter that steers a terminal: an h would be found in what is drawn before it."""
_STILL = 0.015
"""Seconds without output after which a program only waits for the next key."""
_SHORT, _LONG = 24, 1_024
_EVERY = 0.002
"""Seconds from token to token: 500 a second, which is a fast service."""


def rows(lab: Lab, starts: int, streams: int) -> Iterator[Row]:
    """The rows of the table on the chat."""
    yield from _keys(lab, starts)
    yield from _drawing(lab, streams)


def _keys(lab: Lab, starts: int) -> Iterator[Row]:
    def taken(command: Sequence[str], *ready: bytes) -> tuple[float, float]:
        with lab.on_terminal(command) as terminal:
            started = (terminal.until(*ready) - terminal.begun) / 1e6
            echoes = []
            for key in _KEYS:
                terminal.settle(_STILL)
                begun = terminal.type(bytes([key]))
                echoes.append((terminal.until(bytes([key])) - begun) / 1e6)
            return started, median(echoes)

    runs = interleaved(
        {
            "bare": partial(taken, [PYTHON, _BARE], _SIGN),
            "marvin": partial(taken, [MARVIN], _GREETING, _SIGN),
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
    def taken(command: Sequence[str], tokens: int, *ready: bytes) -> float:
        with lab.on_terminal(command, [answers.paced(tokens, _EVERY)]) as terminal:
            terminal.until(*ready)
            terminal.type(b"go\r")
            terminal.until(answers.LAST.encode())
            terminal.settle(0.1)
            return terminal.leave()

    commands = {
        "bare": ([PYTHON, _BARE, lab.url], (_SIGN,)),
        "marvin": ([MARVIN], (_GREETING, _SIGN)),
    }
    cpu = interleaved(
        {
            f"{name} {tokens}": partial(taken, command, tokens, *ready)
            for tokens in (_SHORT, _LONG)
            for name, (command, ready) in commands.items()
        },
        rounds,
    )
    # The difference of a long and a short answer: what starting costs is in both.
    each = {
        name: (median(cpu[f"{name} {_LONG}"]) - median(cpu[f"{name} {_SHORT}"])) * 1e6 / (_LONG - _SHORT)
        for name in commands
    }
    how = (
        f"{each['marvin']:.0f} ms, each word as it comes, 1 / {_EVERY:g} s; "
        f"bare patch_stdout, each line when it is complete, {each['bare']:.0f} ms"
    )
    yield Row("chat: CPU per 1,000 tokens", each["marvin"] / each["bare"], 2.0, "x", how)
