"""Mutations of Python by Cosmic Ray, which works with any test command and dumps its session as JSON."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marvin_core import in_thread, output_text

from .copying import add_file, check_copy, copied, in_copy
from .tried import Limit, Mutation, NotMeasured, Part, Tried

if TYPE_CHECKING:
    from ...checks.commands import ProjectCommand
    from ...run.context import Run

TOOL = "Cosmic Ray"
SUFFIXES = (".py",)
PROGRAMS = ("python", "pypy", "pytest")
_MISSING = 'Cosmic Ray is not installed. Install it: pip install "marvin-pipeline[mutation]"'
_DUMP = 20_000_000
_SHOWN = 300
_LEAST, _FACTOR = 10.0, 3.0
"""Seconds that tests with a mutation may always take, and the factor of their time without one."""
_CAUGHT = {"killed": True, "incompetent": True, "survived": False}
_PROGRAM = ("-P", "-m", "cosmic_ray.cli")
_FAST: Mapping[str, tuple[str, ...]] = {"pytest": ("-x", "-q", "-p", "no:cacheprovider"), "unittest": ("-f",)}
"""Options with which a runner stops at the first failure."""


async def try_python(run: Run, part: Part, limit: Limit) -> Tried:
    """Try a sample of the mutations of some new lines.

    Raises:
        NotMeasured: the tool is missing or fails, or the tests do not run.
        GitFault: git fails.
    """
    if find_spec("cosmic_ray") is None:
        raise NotMeasured(_MISSING)
    async with copied(run) as copy:
        return await _Session(run, copy, in_copy(part.command, run.folder, copy)).run(part.new, limit)


class _Session:
    """One session of Cosmic Ray in a copy of the project."""

    def __init__(self, run: Run, copy: Path, command: ProjectCommand) -> None:
        self._run = run
        self._copy = copy
        self._command = command
        self._own = Path(tempfile.mkdtemp(prefix="cosmic-ray-", dir=copy))  # a name that no link can have

    async def run(self, new: Mapping[str, Sequence[int]], given: Limit) -> Tried:
        clock, seconds = self._run.control.clock, given.seconds
        begun = clock.monotonic()
        well = await check_copy(self._run, self._copy, self._command, tuple(new), seconds)
        limit = max(_LEAST, _FACTOR * well.seconds)
        await in_thread(lambda: self._prepare(new, limit))
        await self._do(*_PROGRAM, "init", "config.toml", "all.sqlite", seconds=seconds)
        sample = str(Path(__file__).with_name("sample.py"))
        named = ("all.sqlite", "sample.sqlite", "lines.json", f"{given.mutations}", "marvin")
        drawn = json.loads(await self._do("-P", sample, *named))
        if not drawn["drawn"]:
            raise NotMeasured("The tool found nothing to mutate in the new code.", is_fault=False)
        left = seconds - (clock.monotonic() - begun)
        ended = await self._do(*_PROGRAM, "exec", "config.toml", "sample.sqlite", seconds=left, may_be_cut=True)
        dumped = await self._do(*_PROGRAM, "dump", "sample.sqlite")
        mutations = tuple(_mutations(dumped.splitlines()))
        if not mutations:
            raise NotMeasured(f"No mutation was tested in {seconds:.0f} s.")
        return Tried(tool=TOOL, mutations=mutations, found=int(drawn["found"]), is_cut_off=ended == _CUT)

    def _prepare(self, new: Mapping[str, Sequence[int]], limit: float) -> None:
        """Write the tool's configuration. Paths are relative to the folder in which the tests run."""
        at = {self._from_here(file): list(lines) for file, lines in new.items()}
        add_file(self._copy, f"{self._own.name}/lines.json", json.dumps(at))
        runner = next((name for name in _FAST if name in self._command.argv), "")
        command = shlex.join([*self._command.argv, *_FAST.get(runner, ())])
        text = (
            "[cosmic-ray]\n"
            f"module-path = {json.dumps(list(at))}\ntimeout = {limit:.1f}\nexcluded-modules = []\n"
            f'test-command = {json.dumps(command)}\n\n[cosmic-ray.distributor]\nname = "local"\n'
        )
        add_file(self._copy, f"{self._own.name}/config.toml", text)

    def _from_here(self, file: str) -> str:
        folder = self._command.folder
        return file if folder == "." else file.removeprefix(f"{folder}/")

    async def _do(self, *words: str, seconds: float = 120.0, may_be_cut: bool = False) -> str:
        argv = [sys.executable, *(self._named(word) for word in words)]
        done = await self._run.control.session.processes.run(
            argv,
            cwd=self._copy / self._command.folder,
            timeout=max(1.0, seconds),
            output_limit=_DUMP,
            env=dict(self._command.environment),
        )
        if done.timed_out and may_be_cut:
            return _CUT
        if done.exit_code != 0 or done.omitted:
            said = output_text(done.stderr or done.output).strip()[-_SHOWN:]
            raise NotMeasured(f"{TOOL} failed{' in time' if done.timed_out else ''}: {said}")
        return output_text(done.output)

    def _named(self, word: str) -> str:
        return str(self._own / word) if word.endswith((".toml", ".sqlite", ".json")) else word


_CUT = "[its time limit was reached]"


def _mutations(lines: Sequence[str]) -> Iterator[Mutation]:
    """The mutations that were tried, from the dump of a session. Malformed lines are ignored."""
    for line in lines:
        try:
            item, result = json.loads(line)
            (one,) = item["mutations"]
            caught = _CAUGHT[result["test_outcome"]]
        except (ValueError, RecursionError, KeyError, TypeError):
            continue
        yield Mutation(file=_text(one["module_path"]), line=_line(one), what=_text(one["operator_name"]), caught=caught)


def _text(value: Any) -> str:
    return str(value)[:_SHOWN]


def _line(mutation: Mapping[str, Any]) -> int:
    try:
        return int(mutation["start_pos"][0])
    except (KeyError, IndexError, TypeError, ValueError):
        return 1
