"""Mutations of JavaScript and TypeScript by the project's own Stryker; its report is JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marvin_core import in_thread, output_text

from ..ci.files import text_below
from .copying import add_file, check_copy, copied, in_copy
from .tried import Limit, Mutation, NotMeasured, Part, Tried

if TYPE_CHECKING:
    from ...checks.commands import ProjectCommand
    from ...run.context import Run

TOOL = "Stryker"
SUFFIXES = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
PROGRAMS = ("npm", "npx", "pnpm", "yarn", "bun", "node")
_MISSING = (
    "Stryker is not installed in the project: there is no node_modules/@stryker-mutator/core. Add it: "
    "npm install --save-dev @stryker-mutator/core"
)
_PROGRAM = "node_modules/@stryker-mutator/core/bin/stryker.js"
_FOLDER, _CONFIG, _REPORT = ".stryker-of-marvin", "stryker.json", "report.json"
_OUTPUT, _SHOWN = 100_000, 300
_LEAST = 5_000
"""Milliseconds that tests with a mutation may take longer."""
_CAUGHT = {"Killed": True, "Timeout": True, "Survived": False, "NoCoverage": False}


async def try_javascript(run: Run, part: Part, limit: Limit) -> Tried:
    """Try mutations in a sample of the new lines.

    Raises:
        NotMeasured: the tool is missing or fails, or the tests do not run.
        GitFault: git fails.
    """
    command, folder, seconds = part.command, part.prefix, limit.seconds
    program = _program(run.folder, command.folder)
    drawn = _drawn({file.removeprefix(folder): lines for file, lines in part.new.items()}, limit.mutations)
    async with copied(run) as copy:
        clock = run.control.clock
        begun = clock.monotonic()
        moved = in_copy(command, run.folder, copy)
        files = tuple(dict.fromkeys(f"{folder}{file}" for file, _ in drawn))
        await check_copy(run, copy, moved, files, seconds)
        place = copy / command.folder
        await in_thread(lambda: _prepare(copy, moved, drawn))
        left = seconds - (clock.monotonic() - begun)
        await _run(run, moved.replace(argv=("node", str(program), "run", f"{_FOLDER}/{_CONFIG}")), place, left)
        report = await in_thread(lambda: text_below(place, f"{_FOLDER}/{_REPORT}"))
    mutations = tuple(_mutations(report, folder))
    if not mutations:
        raise NotMeasured(f"{TOOL} tested no mutation.", is_fault=False)
    return Tried(tool=TOOL, mutations=mutations, found=len(mutations))


def _program(root: Path, folder: str) -> Path:
    """The path of Stryker, in the package, or in a folder above it up to the project's own.

    Raises:
        NotMeasured: it is not installed.
    """
    package = root / folder
    for place in (package, *package.parents):
        if (place / _PROGRAM).is_file():
            return place / _PROGRAM
        if place == root:
            break
    raise NotMeasured(_MISSING)


def _drawn(new: Mapping[str, Sequence[int]], most: int) -> Sequence[tuple[str, int]]:
    """A sample of the lines, always the same for the same lines."""
    lines = sorted((file, line) for file, numbers in new.items() for line in numbers)
    return sorted(random.Random("marvin").sample(lines, min(most, len(lines))))


def _prepare(copy: Path, command: ProjectCommand, drawn: Sequence[tuple[str, int]]) -> None:
    import shlex

    config = {
        "testRunner": "command",
        "commandRunner": {"command": shlex.join(command.argv)},
        "coverageAnalysis": "off",
        "mutate": [f"{file}:{line}-{line}" for file, line in drawn],
        "reporters": ["json"],
        "jsonReporter": {"fileName": f"{_FOLDER}/{_REPORT}"},
        "plugins": [],
        "concurrency": 1,
        "timeoutMS": _LEAST,
        "inPlace": True,
        "tempDirName": f"{_FOLDER}/temporary",
        "allowConsoleColors": False,
    }
    add_file(copy, f"{command.folder}/{_FOLDER}/{_CONFIG}", json.dumps(config))


async def _run(run: Run, command: ProjectCommand, place: Path, seconds: float) -> None:
    done = await run.control.session.processes.run(
        command.argv,
        cwd=place,
        timeout=max(1.0, seconds),
        output_limit=_OUTPUT,
        merge_stderr=True,
        env=dict(command.environment),
    )
    if done.timed_out:
        raise NotMeasured(f"{TOOL} did not end in {seconds:.0f} s.")
    if done.exit_code != 0:
        raise NotMeasured(f"{TOOL} failed: {output_text(done.output).strip()[-_SHOWN:]}")


def _mutations(report: str, folder: str) -> Iterator[Mutation]:
    """The mutations in a report of the mutation testing schema; others are ignored."""
    try:
        files = json.loads(report)["files"].items()
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return
    for file, held in files:
        for one in held.get("mutants", ()) if isinstance(held, dict) else ():
            if isinstance(one, dict) and one.get("status") in _CAUGHT:
                what = f"{one.get('mutatorName', '')}: {one.get('replacement', '')}"[:_SHOWN]
                yield Mutation(file=f"{folder}{file}", line=_line(one), what=what, caught=_CAUGHT[one["status"]])


def _line(mutant: Mapping[str, Any]) -> int:
    try:
        return int(mutant["location"]["start"]["line"])
    except (KeyError, TypeError, ValueError):
        return 1
