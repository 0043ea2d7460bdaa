"""The startup cost of installed packs and of other distributions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks import answers
from benchmarks.lab import BenchmarkError, Lab, interleaved, median
from benchmarks.table import Row

_COUNTS = (1, 20, 100)
_DISTRIBUTIONS = 200
_BROKEN = 10
HOOKS = """
from marvin_core import Hook, hookimpl


class Watch(Hook):
    pass


@hookimpl
def marvin_register_hooks():
    return [Watch()]
"""
TOOLS = """
from marvin_core import hookimpl, tool


@tool(access=["read"])
async def {name}(times: int = 1) -> str:
    '''Wave.'''
    return "waved"


@hookimpl
def marvin_register_tools():
    return [{name}]
"""
_ENDS = "import os\nos._exit(3)\n"
_SLOW = f"import time\ntime.sleep(0.5)\n{HOOKS}"
_SLOWNESS = re.compile(r"^slow_0  .*\n  note: takes ([0-9.]+) s of each start$", re.MULTILINE)
# Comparisons import this name from other commits.
_LOAD = """
import json, sys, time
from pathlib import Path
from marvin_core.plugins import index
folder = Path(sys.argv[1])
begun = time.perf_counter()
index.load_index(folder, folder)
print(json.dumps((time.perf_counter() - begun) * 1e3))
"""


def rows(lab: Lab, rounds: int) -> Iterator[Row]:
    """The rows of the table on packs."""
    yield from _packs(lab, rounds)
    yield _index(lab, rounds)
    yield from _discovery(lab)
    yield _slow(lab)


def _packs(lab: Lab, rounds: int) -> Iterator[Row]:
    folders = {f"{count} with hooks": installed(lab.folder / f"hooks-{count}", count, HOOKS) for count in _COUNTS}
    most = max(_COUNTS)
    folders["tools"] = installed(lab.folder / "tools", most, TOOLS)
    folders["none"] = installed(lab.folder / "none", 0, "")

    def taken(folder: Path) -> float:
        return lab.run(lab.marvin(), [answers.text(1)], packages=folder).to_first_request

    times = interleaved({name: partial(taken, folder) for name, folder in folders.items()}, rounds)
    middle = {name: median(values) for name, values in times.items()}
    none = middle["none"]
    first = middle["1 with hooks"]
    yield Row("the first pack with hooks", first - none, None, "ms", f"{first:.0f} ms; {none:.0f} ms without packs")
    for count in _COUNTS[1:]:
        value = middle[f"{count} with hooks"]
        how = f"{value:.0f} ms; with one pack {first:.0f} ms"
        yield Row(f"  each of {count}", (value - first) / (count - 1), 1.0, "ms", how)
    how = f"{middle['tools']:.0f} ms; {none:.0f} ms without packs. Their schemas are read from the index"
    yield Row(f"each of {most} packs with tools only", (middle["tools"] - none) / most, 0.1, "ms", how)


def _index(lab: Lab, rounds: int) -> Row:
    folder = distributions(lab.folder / "distributions")
    taken = partial(load_index, lab, _LOAD, folder)
    cold = taken()
    value = median(interleaved({"warm": taken}, rounds)["warm"])
    how = f"beside those of this environment; {cold:.0f} ms where it is built"
    return Row(f"the index, {_DISTRIBUTIONS} distributions", value, 10.0, "ms", how)


def _discovery(lab: Lab) -> Iterator[Row]:
    """The first start, once: later ones read the index."""
    sound = installed(lab.folder / "many", _DISTRIBUTIONS, TOOLS)
    how = "once, at the first start, in a process of their own"
    yield Row(f"loading {_DISTRIBUTIONS} packs", load_index(lab, _LOAD, sound), 5_000.0, "ms", how)
    broken = installed(lab.folder / "broken", _DISTRIBUTIONS, TOOLS)
    for number in range(_BROKEN):
        (broken / f"pack_{number * _DISTRIBUTIONS // _BROKEN}.py").write_text(_ENDS)
    what = f"  where {_BROKEN} of them end the process"
    yield Row(what, load_index(lab, _LOAD, broken), 5_000.0, "ms", how)


def _slow(lab: Lab) -> Row:
    folder = installed(lab.folder / "slow", 1, _SLOW, "slow")
    output = lab.run([lab.program.marvin, "packs", "list"], piped=True, packages=folder).output.decode()
    named = _SLOWNESS.search(output)
    if named is None:
        raise BenchmarkError(f"`marvin packs list` does not name the pack that slows each start:\n{output}")
    return Row(
        "a pack that waits 500 ms", float(named[1]) * 1e3, None, "ms", "of each start, as `marvin packs list` says"
    )


def load_index(lab: Lab, script: str, packages: Path) -> float:
    """Milliseconds that the index takes to load, as this script does it; the first time builds it."""
    command = [lab.program.python, "-c", script, str(lab.folder / "cache")]
    return float(json.loads(lab.run(command, piped=True, packages=packages).output))


def distributions(folder: Path) -> Path:
    """A folder with 200 distributions that are not packs."""
    for number in range(_DISTRIBUTIONS):
        _distribution(folder, f"other-{number}", "[console_scripts]\nother = other:main\n")
    return folder


def installed(folder: Path, count: int, source: str, called: str = "pack") -> Path:
    """A folder with this many packs of this source."""
    folder.mkdir()
    for number in range(count):
        name = f"{called}_{number}"
        (folder / f"{name}.py").write_text(source.format(name=name))
        _distribution(folder, name, f"[marvin]\n{name} = {name}\n")
    return folder


def _distribution(folder: Path, name: str, entry_points: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
