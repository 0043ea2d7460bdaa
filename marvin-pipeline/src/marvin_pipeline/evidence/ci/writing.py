"""Writes all formats of the report, from one set of results, to `.marvin/report/`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from marvin_core import in_thread

from ... import __version__
from ...run.files import ProjectFiles
from .results import Ending, Results, gather

if TYPE_CHECKING:
    from ...run.context import Run

FOLDER = "report"


async def write_report(run: Run, ending: Ending) -> Results:
    """Collect the results and write the report; returns the results.

    Raises:
        FileFault: a log cannot be read, or the report cannot be written.
        GitFault: git fails.
    """
    results = await gather(run.files, run.git, run.settings.review_floor, ending)
    await in_thread(lambda: _write(run.files, results))
    return results


def _write(files: ProjectFiles, results: Results) -> None:
    for name, data in forms_of(results).items():
        files.write(f"{FOLDER}/{name}", data)


def forms_of(results: Results) -> Mapping[str, bytes]:
    """All files of the report by name."""
    from .as_json import matrix_json, report_json
    from .junit import junit_xml
    from .markdown import matrix_markdown, summary_markdown
    from .sarif import sarif_json

    return {
        "summary.md": summary_markdown(results).encode("utf-8", "replace"),
        "report.json": report_json(results),
        "junit.xml": junit_xml(results),
        "findings.sarif": sarif_json(results, __version__),
        "matrix.md": matrix_markdown(results).encode("utf-8", "replace"),
        "matrix.json": matrix_json(results),
    }
