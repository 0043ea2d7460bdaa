"""The sub-command `marvin packs check`: grades an installed pack by measurements."""

from __future__ import annotations

import asyncio
import json
import site
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...api.errors import UsageError
from ...config.program import command_name
from ...plugins.model import USER
from ...util.terminal_text import json_for_terminals
from ...util.text import unknown_name

if TYPE_CHECKING:
    from ...api.processes import ProcessResult
    from ...plugins.model import Pack
    from ..run import CommandContext

GRADES = ("bronze", "silver", "gold")
_NO_GRADE = "no grade"
_CHILD = "marvin_core.testing.grading"
_PARTS = ("registration", "calls")
_SHOWN = 8
_LAST_LINES = 3


def check_pack(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="The name of a pack or of its distribution. Default: all packs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    grade: Annotated[
        str, typer.Option(help="Exit with code 1 if a pack is below this grade: bronze, silver or gold.")
    ] = "bronze",
    programs: Annotated[
        bool, typer.Option("--programs", help="Let its tools start programs without a sandbox.")
    ] = False,
) -> None:
    """Grade an installed pack, and say what is missing. Its tools are called in throwaway folders, offline."""
    run: CommandContext = context.obj
    if grade not in GRADES:
        raise UsageError(unknown_name("grade", grade, GRADES))
    packs = _chosen(run, name)
    reports = [_report(run, pack, programs) for pack in packs]
    if as_json:
        run.write(json_for_terminals(json.dumps(reports, ensure_ascii=False, indent=2)) + "\n")
    else:
        for report in reports:
            run.write(_text(report))
    if any(_level(report["grade"]) < _level(grade) for report in reports):
        raise typer.Exit(1)


def _chosen(run: CommandContext, name: str | None) -> list[Pack]:
    """The packs to grade. The core's own pack and the one of the configuration folder are not graded."""
    there = run.app().plugins.packs
    meant = [pack for pack in there if name is None or name in (pack.name, pack.distribution)]
    packs = [pack for pack in there if pack.distribution not in (USER, "marvin-core")]
    chosen = [pack for pack in meant if pack in packs]
    if not packs:
        raise UsageError(f"No pack is installed. Create one: {command_name()} packs new NAME")
    if meant and not chosen:
        raise UsageError(
            f"{name} gets no grade: only packs that are distributed to others are graded, not parts of "
            "Marvin or your own files."
        )
    if not chosen:
        raise UsageError(unknown_name("pack", name or "", [pack.name for pack in packs]))
    return chosen


def _level(grade: str) -> int:
    return (_NO_GRADE, *GRADES).index(grade)


def _report(run: CommandContext, pack: Pack, programs: bool) -> dict[str, Any]:
    """The measurements of one pack as JSON data, with its grade."""
    findings = [finding for part in _PARTS for finding in _measured(run, pack, part, programs)]
    reached = _NO_GRADE
    for grade in GRADES:
        if any(each["grade"] == grade and (each["problems"] or each["unmeasured"]) for each in findings):
            break
        reached = grade
    findings.sort(key=lambda each: GRADES.index(each["grade"]))
    named = {"pack": pack.name, "distribution": pack.distribution, "version": pack.version}
    return {**named, "grade": reached, "findings": findings}


def _measured(run: CommandContext, pack: Pack, part: str, programs: bool) -> list[dict[str, Any]]:
    """The findings of one part, from a child process with its own home and working directory."""
    from tempfile import TemporaryDirectory

    timeouts, limits = run.config.timeouts, run.config.limits
    with TemporaryDirectory(prefix="marvin-check-") as folder:
        place, out = Path(folder) / "place", Path(folder) / "findings"
        place.mkdir()
        order = {
            "part": part,
            "pack": pack.name,
            "distribution": pack.distribution,
            "problems": pack.problems,
            "place": str(place),
            "out": str(out),
            "programs": programs,
            "seconds": timeouts.pack_call,
            "beat": timeouts.pack_beat,
            "memory": limits.pack_memory,
            "file": limits.pack_file,
        }
        ended = asyncio.run(_child(run, order, place))
        records = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    if records and "findings" in records[-1]:
        return list(records[-1]["findings"])
    return [_broken_off(part, records, ended)]


async def _child(run: CommandContext, order: Mapping[str, Any], place: Path) -> ProcessResult:
    from ...guard.processes.runner import ProcessRunner  # other sub-commands start no processes

    # Without these variables the child cannot find the user's own folders.
    environment = run.secrets.child_environment()
    kept = {name: value for name, value in environment.items() if not name.startswith(("MARVIN_", "XDG_"))}
    scratch = place.with_name("scratch")
    scratch.mkdir()
    # Packages that were installed with --user are below the real home folder.
    kept |= {"HOME": str(place), "TMPDIR": str(scratch), "PYTHONUSERBASE": site.getuserbase()}
    runner = ProcessRunner(_OnePlace(place), kept, run.config.timeouts)
    argv = [sys.executable, "-P", "-B", "-m", _CHILD, json.dumps(order)]
    try:
        return await runner.run(argv, cwd=place, timeout=run.config.timeouts.pack_check, merge_stderr=True)
    finally:
        await runner.close()


class _OnePlace:
    """The folders of the child process."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, name: str) -> Path:
        """A folder for logs."""
        return self.root / name


def _broken_off(part: str, records: Sequence[Mapping[str, Any]], ended: ProcessResult) -> dict[str, Any]:
    """The finding about a pack that crashed the child process, or ran into its timeout."""
    at = records[-1]["at"] if records else "its registration" if part == "registration" else "its tools"
    how = "did not end in time" if ended.timed_out else f"ended the process with status {ended.exit_code}"
    said = " ".join(ended.output.decode("utf-8", "replace").strip().splitlines()[-_LAST_LINES:])
    return {
        "criterion": "survives",
        "grade": "bronze",
        "meaning": "the check ends",
        "mend": "Fix this first: nothing after it could be checked.",
        "problems": [f"{at} {how}: {said}".rstrip(": ")],
        "unmeasured": "",
        "note": "",
    }


def _text(report: Mapping[str, Any]) -> str:
    """A report as text."""
    findings = report["findings"]
    met = sum(not (each["problems"] or each["unmeasured"]) for each in findings)
    head = f"{report['distribution']} {report['version']}: {report['grade']} ({met} of {len(findings)} are met)"
    return "\n".join([head, *(line for each in findings for line in _lines(each)), "", ""])


def _lines(finding: Mapping[str, Any]) -> list[str]:
    problems: list[str] = finding["problems"]
    mark = "missing" if problems else "unknown" if finding["unmeasured"] else "ok"
    note = f" ({finding['note']})" if finding["note"] else ""
    lines = [f"  {mark:7}  {finding['grade']:6}  {finding['criterion']}: {finding['meaning']}{note}"]
    lines += [f"           - {problem}" for problem in problems[:_SHOWN]]
    if len(problems) > _SHOWN:
        lines.append(f"           - and {len(problems) - _SHOWN} more; --json has them all")
    if finding["unmeasured"]:
        lines.append(f"           - {finding['unmeasured']}")
    if problems:
        lines.append(f"           -> {finding['mend']}")
    return lines
