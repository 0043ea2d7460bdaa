"""The log of review findings, `.marvin/logs/findings.jsonl`, which is only appended to.

Each line has all findings of one loop after a step. The last line of a loop counts, so that the findings of a run that
is killed, or reaches its limit, are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from marvin_core import Record

from ..review.convergence import Convergence
from ..review.findings import SEVERITIES, Finding, Severity
from ..run.files import ProjectFiles

NAME = "logs/findings.jsonl"
_LARGEST = 50_000_000
"""Bytes of the log that are read, from its start."""
_PLACE = re.compile(r"(?P<file>.{1,180}?):(?P<line>[1-9]\d{0,6})(?:[-:,]\d{1,7})?")
_QUOTED = re.compile(r"(?:^|[\s`(])(?P<file>[\w./-]{1,180}\.\w{1,8}):(?P<line>[1-9]\d{0,6})\b")

Standing: TypeAlias = Literal["open", "mended"]
"""open: not resolved. mended: a fixer worked on it, and its reviewer did not report it again."""


class NotedFinding(Record):
    """A finding, its source, and its state."""

    phase: str
    subject: str
    """What was reviewed, such as `spec` or `code-2a`."""
    id: str
    severity: Severity
    claim: str
    file: str
    """Relative to the project; empty if the reviewer gave none."""
    line: int | None
    """From 1; None if the reviewer gave none."""
    evidence: str
    standing: Standing
    commit: str
    """The commit that was reviewed when it was last recorded."""


class FindingsLog:
    """The findings of a project's runs.

    Args:
        files: the pipeline's own files of the project.
    """

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files

    def note(self, loop: Convergence, phase: str, subject: str, commit: str) -> None:
        """Record all findings of a loop so far. Raises `FileFault` if the log is not writable."""
        still_open = {finding.id: finding for finding in loop.open_findings()}
        noted = [
            {**still_open.get(id, known.finding).as_dict(), "standing": "open" if id in still_open else "mended"}
            for id, known in loop.known.items()
        ]
        line = {"phase": phase, "subject": subject, "commit": commit, "findings": noted}
        self._files.append(NAME, f"\n{json.dumps(line)}\n".encode())

    def read(self) -> Sequence[NotedFinding]:
        """The findings of all loops, in their last recorded state.

        Truncated and malformed lines are ignored.

        Raises:
            FileFault: the log cannot be read.
        """
        loops: dict[tuple[str, str], Sequence[NotedFinding]] = {}
        for line in (self._files.read(NAME, _LARGEST) or b"").splitlines():
            try:
                value: Any = json.loads(line)
                loops[str(value["phase"]), str(value["subject"])] = _findings(value)
            except (ValueError, RecursionError, KeyError, TypeError, StopIteration):
                continue
        return tuple(finding for found in loops.values() for finding in found)


def _findings(value: Any) -> Sequence[NotedFinding]:
    return tuple(
        noted_finding(_finding(one), str(value["phase"]), str(value["subject"]), str(value["commit"])).replace(
            standing="mended" if one["standing"] == "mended" else "open"
        )
        for one in value["findings"]
    )


def _finding(value: Any) -> Finding:
    severity = next(one for one in SEVERITIES if one == value["severity"])
    claim, file, evidence, id = (str(value[name]) for name in ("claim", "file", "evidence", "id"))
    return Finding(severity=severity, claim=claim, file=file, evidence=evidence, id=id)


def noted_finding(finding: Finding, phase: str, subject: str, commit: str) -> NotedFinding:
    """An open finding with its file and line. Reviewers give the line as `FILE:LINE`, in the file or the evidence."""
    file, line = finding.file.strip().strip("`"), None
    if matched := _PLACE.fullmatch(file):
        file, line = matched["file"], int(matched["line"])
    elif (matched := _QUOTED.search(finding.evidence)) and _is_same(file, matched["file"]):
        file, line = file or matched["file"], int(matched["line"])
    return NotedFinding(
        phase=phase,
        subject=subject,
        id=finding.id,
        severity=finding.severity,
        claim=finding.claim,
        file=file,
        line=line,
        evidence=finding.evidence,
        standing="open",
        commit=commit,
    )


def _is_same(file: str, quoted: str) -> bool:
    """Whether a location in the evidence may be in the file that a finding names, if it names one."""
    return not file or quoted.endswith(file) or file.endswith(quoted)
