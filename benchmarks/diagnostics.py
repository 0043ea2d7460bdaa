"""What language servers cost: an edit with their diagnostics beside the servers alone, their memory, and a start."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from benchmarks import answers
from benchmarks.bare_language_server import BareServer
from benchmarks.lab import Lab, interleaved, median
from benchmarks.table import Row
from marvin_core.testing import ToolRunner
from marvin_core.testing.environment import own_home, own_working_dir
from marvin_tools_coding.lsp.catalog import ServerKind, by_name

_GOAL = 1.3
_START_GOAL = 1.05
_SERVERS = ("ruff", "basedpyright")
_TEXT = "import os\nvalue: int = 'text {}'\n"
_PATH = "/usr/bin:/bin"


def rows(lab: Lab, count: int) -> Iterator[Row]:
    """Each measured `count` times, by turns with what it is compared to."""
    for name in _SERVERS:
        kind = by_name(name)
        program = Path(sys.executable).with_name(kind.program if kind is not None else name)
        if kind is not None and program.exists():
            yield from _of(kind, program, count)
    yield _start(lab, count)


def _of(kind: ServerKind, program: Path, count: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, own_home(Path(folder) / "home") as home:
        programs, bare_work = Path(folder) / "programs", Path(folder) / "bare"
        for each in (programs, bare_work):
            each.mkdir()
        (programs / kind.program).symlink_to(program)
        with own_working_dir(Path(folder) / "work") as work:
            begin = partial(_runner, home, work, programs)
            alone = partial(BareServer, [str(program), *kind.arguments], bare_work, kind.settings)
            with begin() as runner, alone() as bare:
                edits = {
                    "ours": _timed(lambda number: _edit(runner, "a.py", number)),
                    "edit": _timed(lambda number: _edit(runner, "a.txt", number)),
                    "bare": _timed(lambda number: bare.look_at(_TEXT.format(number))),
                }
                times = interleaved(edits, 3 * count)
                yield _row(f"edit to diagnostics, {kind.name}", {name: median(of) for name, of in times.items()})
                edit = median(times["edit"])
                ours, its_own = _memory(_with_word(str(programs / kind.program))), _memory(bare.pid)
                how = f"alone {its_own:.0f} MB; all its processes, shared memory in parts"
                yield Row(f"memory of {kind.name} for a root", ours, None, "MB", how)
            cold = interleaved({"ours": partial(_cold, begin), "bare": partial(_cold_bare, alone)}, max(3, count // 3))
            middle = {"edit": edit, **{name: median(of) for name, of in cold.items()}}
            yield _row(f"first edit to diagnostics, {kind.name} started", middle)


def _row(what: str, times: Mapping[str, float]) -> Row:
    """What there is beyond an edit without servers and the server without Marvin."""
    ours, edit, bare = times["ours"], times["edit"], times["bare"]
    how = f"{ours:.1f} ms; the server alone {bare:.1f} ms, an edit without servers {edit:.1f} ms"
    return Row(f"{what} / the server and the edit alone", ours / (edit + bare), _GOAL, "x", how)


def _runner(home: Path, work: Path, programs: Path) -> ToolRunner:
    settings = {"coding": {"lsp": {"wait": 30, "install": "never"}}}
    return ToolRunner(home, work, env={"PATH": f"{programs}:{_PATH}"}, settings=settings)


def _edit(runner: ToolRunner, path: str, number: int) -> None:
    said = runner.call("write_file", path=path, content=_TEXT.format(number)).text
    assert ("Diagnostics (" in said) is path.endswith(".py"), said


def _cold(begin: Callable[[], ToolRunner]) -> float:
    with begin() as runner:
        _edit(runner, "a.txt", 0)  # the session itself is there before
        return _timed(lambda number: _edit(runner, "a.py", number))()


def _cold_bare(alone: Callable[[], BareServer]) -> float:
    begun = time.perf_counter()
    with alone() as bare:
        assert bare.look_at(_TEXT.format(0))
        return (time.perf_counter() - begun) * 1e3


def _timed(work: Callable[[int], object]) -> Callable[[], float]:
    """What measures a piece of work, which is told how often it was done; milliseconds."""
    done = 0

    def measured() -> float:
        nonlocal done
        done += 1
        begun = time.perf_counter()
        work(done)
        return (time.perf_counter() - begun) * 1e3

    return measured


def _with_word(word: str) -> int:
    """The newest process that has a word on its command line."""
    found = [0]
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if word.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return max(found)


def _memory(top: int) -> float:
    """Megabytes of a process and of those below it, shared ones in parts; 0 where the system does not tell."""
    parents, kilobytes = {}, 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
    for pid in parents:
        above = pid
        while above not in (0, top):
            above = parents.get(above, 0)
        if above == top:
            with suppress(OSError):
                found = Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\nPss:")[2].split()
                kilobytes += int(found[0]) if found else 0
    return kilobytes / 1024


def _start(lab: Lab, count: int) -> Row:
    """A start to its first request, with language servers and with them switched off."""
    config = lab.folder / "home" / ".config" / "marvin" / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)

    def taken(use: str) -> float:
        config.write_text(f"packs: {{coding: {{lsp: {{use: {use}}}}}}}\n")
        lab.run(lab.marvin(), [answers.text(1)])  # a file that was changed is checked, once
        return lab.run(lab.marvin(), [answers.text(1)]).to_first_request

    try:
        times = interleaved({use: partial(taken, use) for use in ("true", "false")}, count)
    finally:
        config.unlink(missing_ok=True)
    on, off = median(times["true"]), median(times["false"])
    how = f"{on:.0f} ms; {off:.0f} ms with them switched off"
    return Row("exec to first request, language servers / none", on / off, _START_GOAL, "x", how)
