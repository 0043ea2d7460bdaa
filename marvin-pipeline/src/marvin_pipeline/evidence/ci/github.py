"""Output for GitHub Actions: annotations, as workflow commands, and the job summary.

The runner takes any line of the output that starts with `::`, or that contains `##[`, for a command, whoever wrote it.
So texts of agents are escaped in annotations, and neutralized everywhere else.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping

from marvin_core import one_line

from ...review.findings import Severity
from .junit import cases_of
from .results import Results
from .sarif import inside

_MOST = 10
"""Annotations of one kind that GitHub shows for a step."""
_TEXT = 1_000
_SUMMARY = 1_000_000
"""Bytes of a job summary; GitHub allows 1 MiB for a step, and drops larger ones."""
_KINDS: Mapping[Severity, str] = {"critical": "error", "high": "error", "medium": "warning", "low": "notice"}
_BREAKS = r"\r\n\v\f\x1c-\x1e\x85\u2028\u2029"
_COMMAND = re.compile(rf"(^|[{_BREAKS}])([^\S{_BREAKS}]*):(?=:)")
"""Two colons at the start of a line, for any kind of line break."""
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def annotation_lines(results: Results) -> str:
    """The annotations, one a line, the worst first, and at most as many as GitHub shows."""
    lines: dict[str, list[str]] = {"error": [], "warning": [], "notice": []}
    for kind, line in [*_of_cases(results), *_of_findings(results)]:
        lines[kind].append(line)
    return "".join(f"{line}\n" for kind in lines.values() for line in kind[:_MOST])


def _of_cases(results: Results) -> Iterator[tuple[str, str]]:
    """The failures: the run, gates, criteria; of a successful run what is reported without failing it."""
    for case in cases_of(results):
        is_told = case.verdict == "failed" or case.text.startswith("Reported")
        if is_told and case.suite != "phases":  # the run says which phase stopped it
            kind = "error" if case.verdict == "failed" else "warning"
            yield kind, f"::{kind} title={_property(f'Marvin: {case.name}')}::{_data(case.text)}"


def _of_findings(results: Results) -> Iterator[tuple[str, str]]:
    for finding in results.open_findings:
        kind = _KINDS[finding.severity]
        file = inside(finding.file)
        place = f"file={_property(file)}," if file else ""
        place += f"line={finding.line}," if file and finding.line else ""
        title = _property(f"Marvin: {finding.severity}, review of {finding.phase}")
        yield kind, f"::{kind} {place}title={title}::{_data(finding.claim)}"


def harmless(text: str) -> str:
    """A text in which the runner finds no commands."""
    return _COMMAND.sub(r"\1\2: ", text).replace("##[", "## [")


def write_summary(path: str, summary: str) -> str:
    """Append to the job summary; returns why that failed, empty for success. Blocks.

    Args:
        path: the value of GITHUB_STEP_SUMMARY.
    """
    data = summary.encode("utf-8", "replace")
    if len(data) > _SUMMARY:
        data = data[:_SUMMARY].rpartition(b"\n")[0] + b"\n\nIt goes on in `.marvin/report/summary.md`.\n"
    try:
        descriptor = os.open(path, _APPEND, 0o644)
        with open(descriptor, "ab") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return f"The job summary {path} is not a file."
            file.write(data)
    except OSError as error:
        return f"The job summary {path} cannot be written: {error.strerror}."
    return ""


def _data(text: str) -> str:
    """The text of a workflow command, as GitHub's own toolkit escapes it."""
    return one_line(text, _TEXT).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property value of a workflow command, escaped."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
