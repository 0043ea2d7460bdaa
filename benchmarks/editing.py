"""The duration of an edit in a file of 100,000 lines: the text matches exactly, nearly, or not at all."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks.table import Row
from marvin_core import EditFailed, FilePatch, Hunk, KnownFiles, edit_files, read_patch, write_text_file
from marvin_core.guard.files.sandbox import SandboxPaths

_LINES = 100_000
_LINE = "    value_{0} = compute(value_{0}, {0})  # of module {1}\n"
_AT = 77_777


def rows(count: int) -> Iterator[Row]:
    """Edits by the engine of the kit, each measured `count` times."""
    with tempfile.TemporaryDirectory() as folder:
        paths = SandboxPaths(Path(folder))
        text = "".join(_LINE.format(number, number % 97) for number in range(_LINES))
        line, next_line = _LINE.format(_AT, _AT % 97), _LINE.format(_AT + 1, (_AT + 1) % 97)
        context = f" {line}-{next_line}+    pass\n"
        codex = f"*** Begin Patch\n*** Update File: big.py\n@@\n{context}*** End Patch\n"
        cases: dict[str, list[FilePatch]] = {
            "exact": [_replacing(line)],
            "a Codex patch": read_patch(codex),
            "other indentation": [_replacing(f"{line.strip()}\n{next_line.strip()}\n")],
            "not there": [_replacing(line.replace("compute", "comptue"))],
        }
        known = KnownFiles({})
        bare = _median(count, lambda: _bare(paths.root / "big.py", text, line), lambda: None)
        yield Row("100,000 lines: read, replace, write", bare, None, "ms", f"bare Python, {len(text):,} characters")
        for what, patches in cases.items():

            def begin() -> None:
                (paths.root / "big.py").unlink(missing_ok=True)  # a file of another program has to be read first
                write_text_file(paths, "big.py", text, known=known)

            def edit(patches: list[FilePatch] = patches) -> None:
                with suppress(EditFailed):
                    edit_files(paths, patches, known=known)

            value = _median(count, edit, begin)
            yield Row(f"apply_patch, 100,000 lines: {what}", value, 250.0, "ms", f"median of {count}")


def _replacing(old: str) -> FilePatch:
    return FilePatch(path="big.py", hunks=(Hunk(old=old, new="pass\n"),))


def _bare(path: Path, text: str, line: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace(line, "pass\n", 1), encoding="utf-8")


def _median(count: int, work: Callable[[], None], begin: Callable[[], None]) -> float:
    """The median in milliseconds, without the preparation."""
    taken = []
    for _ in range(count):
        begin()
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken) * 1e3
