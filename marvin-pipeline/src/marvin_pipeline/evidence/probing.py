"""A check of passing tests: in a copy of the project whose new code does nothing, they must fail.

Code in the runner's process can fake any result: a hook in conftest.py that lets each test pass, a module
that Python loads by itself, a plugin in a virtual environment. Most of them fake the same result without the code.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from marvin_core import Record, ToolError, in_thread

from ..checks.repair import time_for_command
from ..checks.running import commands_of
from ..run.git.project_git import GitFault
from .ci.files import text_below
from .mutations.copying import NO_CODE, copied, in_copy, write_inside
from .new_code import new_files
from .records import TestReport
from .reports.running import commands_with_tests, run_tests
from .syntax.files import is_among_tests, is_settings, language_of

if TYPE_CHECKING:
    from ..run.context import Run

_PROGRAM = f"{__package__}.syntax.gutting"
_OUTPUT = 40_000_000
_FILES, _NAMED = 500, 5
_HELD_BACK = re.compile(
    r".*\.lock|.*-lock\.\w+|go\.(?:mod|sum)|.*\.config\.\w+|tsconfig.*\.json|setup\.py|build\.rs|requirements.*\.txt"
)
"""Files that builds need: without them no test would run, with or without code."""


class Probe(Record):
    """The test results without the code. Empty if there was no code to remove."""

    reports: tuple[TestReport, ...] = ()
    told: str = ""
    """What it means if the tests pass."""
    is_loaded: bool = False
    """Whether the copy was used: some of its new code was loaded."""
    fault: str = ""
    """Why there is no result although there is new code; empty if there is one."""


async def without_code(run: Run) -> Probe:
    """Run the tests in a copy of the project whose new code only raises errors.

    The last checkpoint must contain the new code.

    Raises:
        BudgetExceeded: the money or the time is used up.
        GitFault: git does not tell which code is new.
    """
    names = [name for name in await new_files(run) or () if _is_code(name)]
    if not names:
        return Probe()
    if len(names) > _FILES:
        return Probe(fault=f"More than {_FILES} files are new, so that the tests were not run without them.")
    try:
        async with copied(run) as copy:
            await in_thread(lambda: (copy / ".marvin").mkdir(exist_ok=True))
            marker = copy / ".marvin" / f"loaded-{copy.name}"
            changed = await _taken_out(run, copy, names, marker)
            if not changed:
                return Probe()
            reports = await _reports(run, copy)
            is_loaded = await in_thread(marker.exists)
    except (OSError, GitFault) as error:  # the disk is full, or the copy too large: the tests are known to pass
        return Probe(fault=f"The tests could not be run without the code: {error}.")
    run.limits.check_time()
    return Probe(reports=tuple(reports), told=_told(changed, is_loaded=is_loaded), is_loaded=is_loaded)


async def _reports(run: Run, copy: Path) -> Sequence[TestReport]:
    """The test results in the copy, up to the first failing command, which is enough."""
    processes = run.control.session.processes
    commands = await commands_of(run.folder, processes, run.settings.test_command)
    reports: list[TestReport] = []
    for command in commands_with_tests(commands):
        moved = in_copy(command, run.folder, copy)
        reports.append(await run_tests(processes, copy, moved, time_for_command(run)))
        if reports[-1].fault or reports[-1].exit_code:
            break
    return reports


def _told(changed: Sequence[str], *, is_loaded: bool) -> str:
    more = f" and {len(changed) - _NAMED} more files" if len(changed) > _NAMED else ""
    where = f"{', '.join(changed[:_NAMED])}{more}"
    if is_loaded:
        return (
            f"The same tests pass in a copy in which {where} do nothing but raise errors. So the tests do not use "
            "that code, or something falsifies their report: a hook, a plugin, or a module that Python loads by itself."
        )
    return (
        f"They pass as well in a copy of the project in which {where} do nothing but raise errors, and nothing of that "
        "was loaded there: nobody can say whether they use it."
    )


def _is_code(name: str) -> bool:
    is_beside_tests = is_among_tests(name) and language_of(name) != "rust"
    return not is_beside_tests and not is_settings(name) and not _HELD_BACK.fullmatch(PurePosixPath(name).name)


async def _taken_out(run: Run, copy: Path, names: Sequence[str], marker: Path) -> Sequence[str]:
    """Remove the code from files of the copy; returns the files that had some."""
    texts = await in_thread(lambda: {name: text_below(copy, name) for name in names if (copy / name).is_file()})
    gutted = await _gutted(run, {name: text for name, text in texts.items() if language_of(name)}, marker)
    made = {name: gutted[name].encode("utf-8", "replace") or NO_CODE for name in gutted if texts[name].strip()}
    made |= {name: NO_CODE for name, text in texts.items() if not language_of(name) and text.strip()}
    return await in_thread(lambda: [name for name, data in made.items() if write_inside(copy, name, data)])


async def _gutted(run: Run, texts: Mapping[str, str], marker: Path) -> Mapping[str, str]:
    """The texts without their code; empty ones if that fails."""
    try:
        done = await run.control.session.processes.run(
            [sys.executable, "-P", "-m", _PROGRAM],
            cwd=run.folder,
            stdin=json.dumps({"files": texts, "marker": str(marker)}).encode(),
            timeout=time_for_command(run),
            output_limit=_OUTPUT,
            title="take the code out of a copy",
        )
        if done.exit_code == 0 and not done.omitted:
            value = json.loads(done.output)
            return {name: str(value[name]) for name in texts if name in value}
    except (ToolError, ValueError, RecursionError):
        pass
    return dict.fromkeys(texts, "")
