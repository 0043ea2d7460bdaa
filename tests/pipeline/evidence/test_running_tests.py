"""Test commands are run for their reports, whatever the tests do to these."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_pipeline.checks.commands import ProjectCommand
from marvin_pipeline.evidence.judging import Before, judge_green, judge_red
from marvin_pipeline.evidence.own_modules import OwnModules
from marvin_pipeline.evidence.records import TestReport as Report
from marvin_pipeline.evidence.reports.running import remove_reports, run_tests
from tests.support.folders import Folders

PYTEST = (sys.executable, "-m", "pytest")
TEST = "def test_a():\n    assert 1 == 2\n"


def run(folder: Path, files: Mapping[str, str], *argv: str, timeout: float = 60, inside: str = ".") -> Report:
    """Run a test command of a project, in a folder of it."""
    (folder / ".marvin").mkdir()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    async def go() -> Report:
        environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
        runner = ProcessRunner(Folders(root=folder, base=folder), environment, Timeouts())
        try:
            return await run_tests(runner, folder, ProjectCommand(kind="test", argv=argv, folder=inside), timeout)
        finally:
            await runner.close()

    report = asyncio.run(go())
    assert list((folder / ".marvin").iterdir()) == [], "nothing is left over"
    return report


@pytest.mark.slow
def test_a_report_names_the_command_as_it_would_be_typed(tmp_path: Path) -> None:
    report = run(tmp_path, {"test_a.py": TEST}, *PYTEST)
    assert (report.runner, report.exit_code, report.fault) == ("pytest", 1, "")
    assert report.command == f"{sys.executable} -m pytest"
    assert [(one.name, one.outcome) for one in report.results] == [("test_a.py::test_a", "failed")]
    assert report.is_structured


def test_of_an_unknown_runner_the_exit_code_is_told(tmp_path: Path) -> None:
    report = run(tmp_path, {}, "bash", "-c", "exit 3")
    assert (report.runner, report.exit_code, report.results, report.is_structured) == ("", 3, (), False)


@pytest.mark.slow
def test_what_a_runner_says_that_cannot_report_is_told(tmp_path: Path) -> None:
    report = run(tmp_path, {"test_a.py": TEST}, *PYTEST, "--no-such-flag")
    assert "--no-such-flag" in report.fault


@pytest.mark.slow
def test_files_are_named_from_the_project_where_the_settings_of_pytest_lie_above_it(tmp_path: Path) -> None:
    """As in a repository of several projects."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    project = tmp_path / "back"
    project.mkdir()
    report = run(project, {"tests/test_a.py": TEST, "tests/test_b.py": "import nothing_of_it\n"}, *PYTEST)
    assert {(one.name, one.file) for one in report.results} == {
        ("tests/test_a.py::test_a", "tests/test_a.py"),
        ("tests/test_b.py", "tests/test_b.py"),
    }


@pytest.mark.slow
def test_a_test_that_pytest_cannot_begin_is_not_red(tmp_path: Path) -> None:
    """As one that is async without a plugin for such; one that says itself that it fails is."""
    text = "import pytest\n\n\nasync def test_a():\n    assert 1 == 2\n\n\ndef test_b():\n    pytest.fail('no')\n\n\n"
    text += "def test_c():\n    with pytest.raises(ValueError):\n        pass\n"
    argv = (*PYTEST, "-p", "no:asyncio", "-p", "no:anyio")
    report = run(tmp_path, {"test_a.py": text}, *argv)
    assert report.fault == ""
    judged = judge_red([report], Before(changed=frozenset({"test_a.py"})), OwnModules(names=frozenset()))
    assert judged.tests == ("test_a.py::test_b", "test_a.py::test_c")
    (place,) = judged.places
    assert place.startswith("test_a.py::test_a: its setup fails")


UNITTEST = "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.fail()\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argv", "text", "name"),
    [
        (PYTEST, TEST, "back/test_a.py::test_a"),
        ((sys.executable, "-m", "unittest"), UNITTEST, "back.test_a.A.test_a"),
    ],
)
def test_tests_of_a_folder_are_not_those_of_another_one(
    tmp_path: Path, argv: tuple[str, ...], text: str, name: str
) -> None:
    report = run(tmp_path, {"back/test_a.py": text, "front/test_a.py": text}, *argv, inside="back")
    assert [(one.name, one.file) for one in report.results] == [(name, "back/test_a.py")]
    broken = report.results[0].replace(name="back/test_a.py", outcome="error")
    judged = judge_green([report.replace(results=(broken,))], [name])
    assert not judged.is_missing, "it is there, and cannot be imported"


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


@pytest.mark.slow
@pytest.mark.parametrize("code", SPOILING.values(), ids=SPOILING)
def test_tests_that_spoil_their_report_have_none(tmp_path: Path, code: str) -> None:
    report = run(
        tmp_path,
        {"test_a.py": TEST, "test_b.py": f"def test_b():\n    {code.replace(chr(10), chr(10) + '    ')}"},
        *PYTEST,
    )
    assert report.fault
    assert not report.is_structured


@pytest.mark.parametrize(
    ("text", "code", "fault"),
    [
        (TEST, 0, "The report has 1 failure, and yet the command ended with exit code 0."),
        (TEST, 7, ""),
        (TEST.replace("2", "1"), 0, ""),
        (TEST.replace("2", "1"), 7, "The report has no failure, and yet the command ended with exit code 7."),
    ],
)
def test_a_report_and_the_exit_code_have_to_agree(tmp_path: Path, text: str, code: int, fault: str) -> None:
    """As where a hook changes one of them, and where something else than a test fails."""
    hook = f"import pytest\n\n\ndef pytest_unconfigure():\n    import os\n    os._exit({code})\n"
    report = run(tmp_path, {"test_a.py": text, "conftest.py": hook}, *PYTEST)
    assert report.fault.startswith(fault)
    assert bool(report.fault) == bool(fault)


def test_a_module_of_the_project_does_not_stand_in_for_a_reporter(tmp_path: Path) -> None:
    report = run(tmp_path, {"test_a.py": TEST, "marvin_reporters.py": "raise SystemExit(0)\n"}, *PYTEST)
    assert "which is also the name of Marvin's reporters" in report.fault


@pytest.mark.slow
def test_a_command_that_does_not_end_has_no_report(tmp_path: Path) -> None:
    report = run(tmp_path, {"test_a.py": f"{TEST}\nimport time\ntime.sleep(600)\n"}, *PYTEST, timeout=3)
    assert report.exit_code is None
    assert "did not finish" in report.fault


CARGO = {"Cargo.toml": '[package]\nname = "ada-adder"\nversion = "1.0.0"\nedition = "2021"\n', "src/lib.rs": ""}
needs_cargo = pytest.mark.skipif(not shutil.which("cargo"), reason="cargo is missing")
RUST = "#[test]\nfn adds() {\n    assert_eq!(ada_adder::add(2, 3), 5);\n}\n"
OWN = OwnModules(names=frozenset({"ada_adder"}))
CHANGED = Before(changed=frozenset({"tests/add.rs"}))


@needs_cargo
@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (RUST, "passed"),
        (f"use ada_adder::Adder;\n{RUST}", "passed"),
        (f"use ada_adder::core::add;\n{RUST}", "passed"),
        (f"use nobodys_crate::thing;\n{RUST}", "failed"),
        (f"{RUST}fn (\n", "failed"),
        ("#[test]\nfn adds() {\n    assert_eq!(1, 2);\n}\n", "not_measured"),
        ("#[test]\nfn adds() {}\n", "failed"),
    ],
    ids=range(7),
)
def test_cargo_tells_why_tests_do_not_compile(tmp_path: Path, text: str, outcome: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    report = run(tmp_path, {**CARGO, "tests/add.rs": text}, "cargo", "test", "--quiet", "--offline")
    assert report.fault == ""
    judged = judge_red([report], CHANGED, OWN)
    assert judged.outcome == outcome, (judged, report)
    assert judge_green([report], []).outcome == ("passed" if "{}" in text else "failed")


def test_reports_of_runs_that_were_killed_are_removed(tmp_path: Path) -> None:
    for name in ("evidence-abcd1234", "evidence-of-mine", "logs"):
        (tmp_path / ".marvin" / name).mkdir(parents=True)
    remove_reports(tmp_path)
    assert {one.name for one in (tmp_path / ".marvin").iterdir()} == {"evidence-of-mine", "logs"}
