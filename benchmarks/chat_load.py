"""The chat under load: keys while an answer streams, a slow line, a long session, many files, another chat."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import answers, sessions
from benchmarks.chat import READY
from benchmarks.lab import Lab, interleaved, median
from benchmarks.table import Row
from benchmarks.terminal import Terminal

_KEYS = b"QVXYZUTSRPONMLIGFE"
"""Letters that occur in no answer and in no escape sequence."""
_EVERY = 0.002
"""Seconds from token to token: 500 a second."""
_BETWEEN = 0.08
"""Seconds from key to key."""
_DELAY = 0.1
"""Seconds in each direction: a round trip takes 200 ms."""
_GOAL = 20.0
_STILL = 0.15
"""Seconds without output after which the reaction to a key counts as complete."""
_FOLDERS, _FILES = 1_000, 100
_WORDS = (b"quux", b"i5qx")
"""The name of one file of them, and letters that stand apart in its path."""
_LISTED = 5.0
"""Seconds that listing the files may take."""
_MB = 1_000_000


def rows(lab: Lab, rounds: int, folders: int = _FOLDERS) -> Iterator[Row]:
    """The rows of the table; `folders` has 100 files each."""
    yield from _echoes(lab, rounds)
    yield _memory(lab, rounds)
    yield from _files(lab, folders)
    yield from _peers(lab, rounds)


def echoes(lab: Lab, *, streaming: bool, delay: float) -> float:
    """Milliseconds from a key to its echo without the line's delay, the median of 18 keys one after the other."""
    tokens = int(len(_KEYS) * (_BETWEEN + 2 * delay + 0.1) / _EVERY)
    script = [answers.paced(tokens, _EVERY)] if streaming else []
    with lab.on_terminal([lab.program.marvin], script, delay=delay) as terminal:
        terminal.until(*READY)
        if streaming:
            terminal.type(b"go\r")
            terminal.until(b"word")
        return median([_echo(terminal, bytes([key])) for key in _KEYS]) - 2e3 * delay


def _echo(terminal: Terminal, key: bytes) -> float:
    begun = terminal.type(key)
    taken = (terminal.until(key) - begun) / 1e6
    terminal.read_for(_BETWEEN)
    return taken


def _echoes(lab: Lab, rounds: int) -> Iterator[Row]:
    found = interleaved(
        {
            f"{what}{line}": partial(echoes, lab, streaming=what != "idle", delay=delay)
            for what in ("idle", "while 500 tokens a second stream")
            for line, delay in (("", 0.0), (", behind 200 ms", _DELAY))
        },
        rounds,
    )
    for name, taken in found.items():
        how = f"medians of 18 keys: {', '.join(f'{each:.1f}' for each in taken)}"
        yield Row(f"chat: key to echo, {name}", median(taken), _GOAL, "ms", how)


def resident(lab: Lab, *flags: str) -> float:
    """Megabytes of resident memory of a chat at its prompt."""
    with lab.on_terminal([lab.program.marvin, *flags]) as terminal:
        terminal.until(*READY)
        terminal.settle(_STILL)
        return terminal.resident / _MB


def _memory(lab: Lab, rounds: int) -> Row:
    path = sessions._session(sessions.sessions_folder(lab), "whole", lab.work)
    try:
        size = path.stat().st_size / _MB
        found = interleaved(
            {"new": partial(resident, lab), "long": partial(resident, lab, "--resume", path.stem)}, min(rounds, 3)
        )
    finally:
        path.unlink()
    new, long = median(found["new"]), median(found["long"])
    how = f"{long:.0f} MB, a new chat {new:.0f} MB; the file of the session has {size:.1f} MB"
    return Row("chat: memory at 10,000 messages, beyond a new one", long - new, 100.0, "MB", how)


def _files(lab: Lab, folders: int) -> Iterator[Row]:
    with TemporaryDirectory(prefix="marvin-bench-files-") as made:
        root = Path(made)
        _make(root, folders)
        with lab.on_terminal([lab.program.marvin], folder=root) as terminal:
            terminal.until(*READY)
            terminal.type(b"@")
            terminal.until(b"part0")
            terminal.read_for(_LISTED)
            for word in _WORDS:
                taken = _completed(terminal, word)
                how = f"from a key to the last of the menu, {word.decode()}: {', '.join(f'{one:.0f}' for one in taken)}"
                yield Row(f"chat: @ among {folders * _FILES:,} files", max(taken), 50.0, "ms", how)


def _completed(terminal: Terminal, word: bytes) -> list[float]:
    """Milliseconds from each key of a word to the end of the output."""
    terminal.type(b"\x15@")
    terminal.last_drawn(1.0)
    taken = []
    for key in word:
        begun = terminal.type(bytes([key]))
        terminal.until(bytes([key]))
        taken.append((terminal.last_drawn(_STILL) - begun) / 1e6)
    return taken


def _make(root: Path, folders: int) -> None:
    for number in range(folders):
        folder = root / f"part{number // 100}" / f"inner{number % 100}"
        folder.mkdir(parents=True)
        for file in range(_FILES):
            (folder / f"file{file}.py").touch()
    (root / "part0" / "inner50" / "quux.txt").touch()
    for words in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *words], cwd=root, check=True)


# --- other chats -----------------------------------------------------------------------------------------


def started(lab: Lab, command: Sequence[str], env: dict[str, str], *ready: bytes) -> float:
    """Milliseconds from exec to the prompt of a chat."""
    with lab.on_terminal(command, env=env) as terminal:
        return (terminal.until(*ready) - terminal.begun) / 1e6


def _peers(lab: Lab, rounds: int) -> Iterator[Row]:
    """Other chats that are installed here, without a goal, as their start does other work."""
    program = shutil.which("llm")
    if program is None:
        return
    home = lab.folder / "llm"
    home.mkdir()
    models = f"- model_id: scripted\n  model_name: scripted\n  api_base: {lab.url}\n  api_key_name: none\n"
    (home / "extra-openai-models.yaml").write_text(models)
    env = {"LLM_USER_PATH": os.fspath(home)}
    command = [program, "chat", "-m", "scripted"]
    found = interleaved(
        {
            "llm": partial(started, lab, command, env, b"Chatting with", b"> "),
            "marvin": partial(started, lab, [lab.program.marvin], {}, *READY),
        },
        rounds,
    )
    llm, marvin = median(found["llm"]), median(found["marvin"])
    how = f"Marvin {marvin:.0f} ms, `llm chat` {llm:.0f} ms"
    yield Row("chat: start to prompt, against llm", marvin / llm, None, "x", how)
