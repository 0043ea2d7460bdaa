"""Phase 4c: if the project serves a frontend, it is built and served, and its pages are loaded with their assets.

No browser is used: Marvin does not require one, and web tools may not reach this machine. So scripts are loaded but not
run, and pages are not rendered; the report says so.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from marvin_core import Processes, Record, ToolError, counted, in_thread, output_text

from ..run.ends import PhaseEnd
from .commands import PORT, ProjectCommand, ProjectCommands
from .debug import Suite
from .files import files_below, is_file
from .repair import Finding, RepairPlan, repair, time_for_command
from .running import commands_of, run_until_failure

if TYPE_CHECKING:
    from ..run.context import Run

_PROGRAM = f"{__package__}.frontend_program"
_STATIC = ("dist", "build", "public", "static", "docs", ".")
_PAGES = (".html", ".htm", ".jsx", ".tsx", ".vue", ".svelte", ".astro", ".jinja", ".j2")
_OUTPUT = 200_000
_PROBLEMS = 40
_NO_BROWSER = "No browser was used, so no script on the pages was run."


async def run_frontend(run: Run) -> PhaseEnd:
    """Build, serve and check, and fix failures, for `fe_rounds` rounds at most. Skipped without a frontend.

    Raises:
        BudgetExceeded: the budget or the time is used up.
    """
    from ..evidence.held import held_tests

    processes = run.control.session.processes
    commands = await commands_of(run.folder, processes, run.settings.test_command)
    if await in_thread(lambda: serving(run.folder, commands)) is None:
        return PhaseEnd(outcome="skipped", reason="The project has no frontend.")
    suite, held = Suite(run, "4c"), await held_tests(run, "4c")
    plan = RepairPlan(phase="4c", role="frontend", rounds=run.settings.fe_rounds, commands=commands.told)

    async def check() -> Finding:
        found = await commands_of(run.folder, processes, run.settings.test_command)
        built = await run_until_failure(processes, run.folder, found.of("install", "build"), time_for_command(run))
        if built and not built[-1].passed:
            last = built[-1]
            return Finding(
                failure=last.fingerprint, text=last.told, lines=(f"{last.command.shown}: {last.ending}",), failed=1
            )
        seen = await _seen(run, found)
        if seen.failure:
            return seen
        tested = await suite.run(found.of("test")) if found.of("test") else Finding()
        return tested.replace(summary=f"{seen.summary} {tested.summary}")

    return (await repair(run, plan, held.watched(check))).then(held.left_over())


def serving(root: Path, commands: ProjectCommands) -> ProjectCommand | None:
    """The command that serves the frontend of a project; None if it has none. Blocks."""
    if not any(path.suffix in _PAGES for path in files_below(root)):
        return None
    if commands.of("serve"):
        return commands.of("serve")[0]
    folder = next((name for name in _STATIC if is_file(root / name / "index.html")), "")
    if not folder:
        return None
    argv = (sys.executable, "-m", "http.server", PORT, "--bind", "127.0.0.1", "--directory", folder)
    return ProjectCommand(kind="serve", argv=argv, why=f"{folder}/index.html")


async def _seen(run: Run, commands: ProjectCommands) -> Finding:
    """The finding about the pages."""
    command = await in_thread(lambda: serving(run.folder, commands))
    if command is None:
        line = "The project no longer serves its frontend."
        return Finding(failure="not served", text=line, lines=(line,), failed=1)
    settings = run.settings
    limits = ProbeLimits(
        start=settings.serve_timeout,
        request=run.control.config.timeouts.http,
        poll=run.control.config.timeouts.job_poll,
        all=time_for_command(run),
    )
    seen = await probe(run.control.session.processes, run.folder, command, limits)
    if not seen.problems:
        summary = f"{command.shown}: {counted(seen.pages, 'page')}, {counted(seen.assets, 'asset')}. {_NO_BROWSER}"
        return Finding(passed=seen.pages, summary=summary)
    listed = "\n".join(f"- {problem}" for problem in seen.problems)
    return Finding(
        failure=sha256("\n".join(seen.problems).encode("utf-8", "replace")).hexdigest()[:16],
        text=f"$ {command.shown}\n{listed}\n\nThe server printed:\n{seen.log}",
        lines=seen.problems,
        failed=len(seen.problems),
    )


class ProbeLimits(Record):
    """Seconds: for the server's start, for one request, between two connection attempts, and in total."""

    start: float
    request: float
    poll: float
    all: float


class Seen(Record):
    """The result of checking a frontend."""

    problems: tuple[str, ...]
    pages: int = 0
    assets: int = 0
    log: str = ""


async def probe(processes: Processes, root: Path, command: ProjectCommand, limits: ProbeLimits) -> Seen:
    """Serve a frontend and check it. Both run in the sandbox, which may have a network of its own."""
    folder = root / command.folder
    argv = list(command.argv)
    if "/" in argv[0] and not argv[0].startswith("/"):
        argv[0] = str(folder / argv[0])
    order = json.dumps(
        {
            "argv": argv,
            "folder": str(folder),
            "environment": command.environment,
            "start": limits.start,
            "request": limits.request,
            "poll": limits.poll,
        }
    )
    try:
        done = await processes.run(
            [sys.executable, "-P", "-m", _PROGRAM, order],
            cwd=folder,
            timeout=limits.all,
            output_limit=_OUTPUT,
            title=command.shown,
        )
    except ToolError as error:
        return Seen(problems=(str(error),))
    try:
        said = json.loads(done.output)
        return Seen(
            problems=tuple(str(problem) for problem in said["problems"][:_PROBLEMS]),
            pages=int(said["pages"]),
            assets=int(said["assets"]),
            log=str(said["log"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        why = "took too long" if done.timed_out else "failed"
        return Seen(problems=(f"The check of the frontend {why}. {output_text(done.stderr)[-500:]}".strip(),))
