"""Test commands are run for their reports, whatever the tests do to these."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_pipeline.checks.commands import ProjectCommand
from marvin_pipeline.evidence.records import TestReport
from marvin_pipeline.evidence.reports.running import remove_reports, run_tests
from tests.support.folders import Folders

PYTEST = (sys.executable, "-m", "pytest")
TEST = "def test_a():\n    assert 1 == 2\n"


def run(folder: Path, files: Mapping[str, str], *argv: str, timeout: float = 60) -> TestReport:
    """Run a test command of a project."""
    (folder / ".marvin").mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)

    async def go() -> TestReport:
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        runner = ProcessRunner(Folders(root=folder, base=folder), environment, Timeouts())
        try:
            (report,) = await run_tests(runner, folder, [ProjectCommand(kind="test", argv=argv)], timeout)
            return report
        finally:
            await runner.close()

    report = asyncio.run(go())
    assert list((folder / ".marvin").iterdir()) == [], "nothing is left over"
    return report


def test_a_report_names_the_command_as_it_would_be_typed(tmp_path: Path) -> None:
    report = run(tmp_path, {"test_a.py": TEST}, *PYTEST)
    assert (report.runner, report.exit_code, report.fault) == ("pytest", 1, "")
    assert report.command == f"{sys.executable} -m pytest"
    assert [(one.name, one.outcome) for one in report.results] == [("test_a.py::test_a", "failed")]
    assert report.is_structured


def test_of_an_unknown_runner_the_exit_code_is_told(tmp_path: Path) -> None:
    report = run(tmp_path, {}, "bash", "-c", "exit 3")
    assert (report.runner, report.exit_code, report.results, report.is_structured) == ("", 3, (), False)


def test_what_a_runner_says_that_cannot_report_is_told(tmp_path: Path) -> None:
    report = run(tmp_path, {"test_a.py": TEST}, *PYTEST, "--no-such-flag")
    assert "--no-such-flag" in report.fault


SPOILING = {
    "ends the process": "import os\nos._exit(0)\n",
    "puts a pipe in the place of the report": "import glob, os\nfor one in glob.glob('.marvin/evidence-*/*'):\n"
    "    os.remove(one)\n    os.mkfifo(one)\n",
    "puts a link in the place of the report": "import glob, os\nfor one in glob.glob('.marvin/evidence-*/*'):\n"
    "    os.remove(one)\n    os.symlink('/etc/passwd', one)\n",
    "removes the report": "import glob, os\nfor one in glob.glob('.marvin/evidence-*/*'):\n    os.remove(one)\n",
    "writes garbage": "import glob\nfor one in glob.glob('.marvin/evidence-*/*'):\n    open(one, 'ab').write(b'{')\n",
    "writes an end of its own": "import glob\nfor one in glob.glob('.marvin/evidence-*/*'):\n"
    '    open(one, \'a\').write(\'{"event": "end", "exit_code": 0, "count": 0}\\n\')\n',
}


@pytest.mark.parametrize("code", SPOILING.values(), ids=SPOILING)
def test_tests_that_spoil_their_report_have_none(tmp_path: Path, code: str) -> None:
    report = run(
        tmp_path,
        {"test_a.py": TEST, "test_b.py": f"def test_b():\n    {code.replace(chr(10), chr(10) + '    ')}"},
        *PYTEST,
    )
    assert report.fault
    assert not report.is_structured


def test_a_module_of_the_project_does_not_stand_in_for_a_reporter(tmp_path: Path) -> None:
    report = run(tmp_path, {"test_a.py": TEST, "marvin_reporters.py": "raise SystemExit(0)\n"}, *PYTEST)
    assert "which is the name of Marvin's reporters" in report.fault


def test_a_command_that_does_not_end_has_no_report(tmp_path: Path) -> None:
    report = run(tmp_path, {"test_a.py": f"{TEST}\nimport time\ntime.sleep(600)\n"}, *PYTEST, timeout=3)
    assert report.exit_code is None
    assert "did not come to its end" in report.fault


def test_reports_of_runs_that_were_killed_are_removed(tmp_path: Path) -> None:
    for name in ("evidence-abcd1234", "evidence-of-mine", "logs"):
        (tmp_path / ".marvin" / name).mkdir(parents=True)
    remove_reports(tmp_path)
    assert {one.name for one in (tmp_path / ".marvin").iterdir()} == {"evidence-of-mine", "logs"}
