"""What a real Go reports of tests, and what the gates make of it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_pipeline.checks.commands import ProjectCommand
from marvin_pipeline.evidence.judging import Before, judge_green, judge_red
from marvin_pipeline.evidence.own_modules import OwnModules
from marvin_pipeline.evidence.records import TestReport as Report
from marvin_pipeline.evidence.reports.running import run_tests
from marvin_pipeline.evidence.syntax.gutting import gutted
from tests.support.folders import Folders

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("go"),
    pytest.mark.skipif(not shutil.which("go"), reason="go is missing"),
]
MODULE = "module example.org/adder\n\ngo 1.19\n"
OWN = OwnModules(names=frozenset())
HEAD = 'package adder\n\nimport (\n\t"fmt"\n\t"testing"\n)\n\nvar _ = fmt.Sprint\n\n'
CODE = "package adder\n\nfunc Add(a, b int) int { return a + b }\n"
WRONG = CODE.replace("a + b", "a - b")
TEST = 'func TestAdd(t *testing.T) {\n\tif got := Add(2, 3); got != 5 {\n\t\tt.Fatalf("got %d", got)\n\t}\n}\n'
INNER = 'package tests\n\nimport (\n\t"testing"\n\n\t"PATH"\n)\n\nfunc TestInner(t *testing.T) { inner.Add() }\n'


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Go has built, in a folder of its own."""
    return tmp_path_factory.mktemp("cache")


class Project:
    """A module of Go without a network."""

    def __init__(self, root: Path, cache: Path, inside: str = ".", flags: str = "") -> None:
        self.root = root
        self.inside = inside
        environment = {"PATH": os.environ["PATH"], "HOME": str(cache), "GOCACHE": str(cache / "build")}
        self._environment = environment | {"GOPROXY": "off", "GOFLAGS": flags}
        (root / ".marvin").mkdir(parents=True)
        self.lay({"go.mod": MODULE})

    def lay(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / self.inside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def run(self, *words: str) -> Report:
        async def all_of_it() -> Report:
            runner = ProcessRunner(Folders(root=self.root, base=self.root), self._environment, Timeouts())
            try:
                argv = ("go", "test", *(words or ("./...",)))
                return await run_tests(
                    runner, self.root, ProjectCommand(kind="test", argv=argv, folder=self.inside), 120
                )
            finally:
                await runner.close()

        return asyncio.run(all_of_it())


@pytest.fixture
def project(tmp_path: Path, cache: Path) -> Project:
    return Project(tmp_path / "project", cache)


def outcomes(report: Report) -> dict[str, str]:
    return {one.name.removeprefix("example.org/"): one.outcome for one in report.results}


def test_a_failing_assertion_is_red_and_then_green(project: Project) -> None:
    project.lay({"adder.go": WRONG, "adder_test.go": HEAD + TEST})
    red = judge_red([project.run()], Before(), OWN)
    assert (red.outcome, red.tests) == ("passed", ("example.org/adder.TestAdd",))
    assert judge_green([project.run()], red.tests).outcome == "failed"
    project.lay({"adder.go": CODE})
    green = judge_green([project.run()], red.tests)
    assert (green.outcome, green.tests) == ("passed", red.tests)
    assert judge_red([project.run()], Before(), OWN).outcome == "failed", "it passes before there is any code"


def test_a_panic_is_red(project: Project) -> None:
    project.lay({"adder.go": CODE.replace("return a + b", 'panic("not implemented")'), "adder_test.go": HEAD + TEST})
    assert judge_red([project.run()], Before(), OWN).tests == ("example.org/adder.TestAdd",)


def test_code_that_is_not_there_yet_is_not_measured(project: Project) -> None:
    """That a name is undefined the compiler tells as text only."""
    project.lay({"adder_test.go": HEAD + TEST, "sub/adder.go": CODE, "sub/adder_test.go": HEAD + TEST})
    report = project.run()
    assert outcomes(report) == {"adder": "error", "adder/sub.TestAdd": "passed"}
    known = Before(known=frozenset({"example.org/adder/sub.TestAdd"}))
    red = judge_red([report], known, OWN)
    assert red.outcome == "not_measured"
    assert "example.org/adder does not build" in red.reason
    assert judge_red([report], Before(), OWN).outcome == "failed", "the other one passes without new code"


@pytest.mark.parametrize("flags", ["-mod=mod", ""])
@pytest.mark.parametrize("inside", [".", "back"])
def test_a_missing_package_of_the_module_is_red_and_then_green(
    tmp_path: Path, cache: Path, inside: str, flags: str
) -> None:
    project = Project(tmp_path / "project", cache, inside, flags)
    project.lay({"checks/a_test.go": INNER.replace("PATH", "example.org/adder/inner")})
    report = project.run()
    (result,) = report.results
    place = "" if inside == "." else f"{inside}/"
    assert (result.file, result.missing) == (f"{place}checks", f"./{place}inner")
    red = judge_red([report], Before(), OWN)
    assert (red.outcome, red.tests) == ("passed", ("example.org/adder/checks",))
    left = Before(known=frozenset(red.tests))
    assert judge_red([report], left, OWN).reason == "1 thing about the new tests is wrong.", "none of them is new"
    changed = left.replace(changed=frozenset({f"{place}checks/b_test.go"}))
    assert judge_red([report], changed, OWN).outcome == "passed"
    project.lay({"inner/inner.go": 'package inner\n\nfunc Add() { panic("no") }\n'})
    assert judge_green([project.run()], red.tests).outcome == "failed"
    project.lay({"inner/inner.go": "package inner\n\nfunc Add() {}\n"})
    assert judge_green([project.run()], red.tests).outcome == "passed"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a_test.go": INNER.replace("PATH", "example.com/inner")}, "it imports example.com/inner"),
        ({"a_test.go": INNER.replace("PATH", "example.org/adderinner")}, "it imports example.org/adderinner"),
        ({"a_test.go": INNER.replace("PATH", "example.org/adder/tests/inner")}, "it imports ./tests/inner"),
        (
            {"a_test.go": INNER.replace('"PATH"', '"example.org/adder/inner"\n\t"example.com/b"')},
            "it imports example.com/b",
        ),
        ({"a_test.go": f"{HEAD}func TestA(t *testing.T) {{\n"}, "Go cannot read its files"),
        ({"a_test.go": "package a\n", "b_test.go": "package b\n"}, "Go cannot read its files"),
        ({"go.mod": "module (\n"}, "The report has no failure"),
    ],
    ids=range(7),
)
def test_what_is_wrong_with_the_tests_goes_back(project: Project, files: Mapping[str, str], said: str) -> None:
    project.lay(files)
    red = judge_red([project.run()], Before(), OWN)
    assert red.outcome == "failed"
    assert said in "\n".join(red.places)


def test_skipped_and_removed_tests_are_not_green(project: Project) -> None:
    red = ["example.org/adder.TestAdd"]
    project.lay({"adder.go": CODE, "adder_test.go": HEAD + TEST.replace("{\n", '{\n\tt.Skip("later")\n', 1)})
    skipped = judge_green([project.run()], red)
    assert (skipped.outcome, skipped.is_missing) == ("failed", True)
    assert judge_red([project.run()], Before(), OWN).places == ("example.org/adder.TestAdd: it is skipped",)
    project.lay({"adder_test.go": HEAD})
    assert judge_green([project.run()], red).places == ("example.org/adder.TestAdd: it was removed",)


def test_a_test_that_was_moved_to_another_package_is_found(project: Project) -> None:
    project.lay({"core/adder.go": CODE, "core/adder_test.go": HEAD + TEST})
    renamed = {"adder_test.go": "core/adder_test.go"}
    green = judge_green([project.run()], ["example.org/adder.TestAdd"], renamed=renamed)
    assert (green.outcome, green.tests) == ("passed", ("example.org/adder/core.TestAdd",))


def test_a_test_that_prints_without_a_line_end_has_a_result(project: Project) -> None:
    """Go before 1.20 loses its end. Where the package fails nobody knows how it ended, and the report says so."""
    prints = 'func TestPrompt(t *testing.T) { fmt.Print("> ") }\n'
    project.lay({"adder.go": CODE, "adder_test.go": f"{HEAD}{TEST}\n{prints}"})
    report = project.run()
    assert (outcomes(report), report.fault) == ({"adder.TestAdd": "passed", "adder.TestPrompt": "passed"}, "")


@pytest.mark.parametrize(
    ("call", "said"), [("os.Exit(0)", ""), ("os.Exit(1)", "did not finish"), ("syscall.Exit(0)", "did not finish")]
)
def test_a_test_that_ends_the_program_is_not_green(project: Project, call: str, said: str) -> None:
    head = HEAD.replace('"testing"', '"os"\n\t"syscall"\n\t"testing"') + "var _, _ = os.Exit, syscall.Exit\n\n"
    project.lay({"adder.go": CODE, "adder_test.go": f"{head}func TestAdd(t *testing.T) {{ {call} }}\n"})
    report = project.run()
    assert said in report.fault
    assert judge_green([report], ["example.org/adder.TestAdd"]).outcome == "failed"


def test_what_the_cache_has_of_an_earlier_run_does_not_count(project: Project) -> None:
    counts = f"{HEAD}func TestAdd(t *testing.T) {{ fmt.Fprint(open(t), 1) }}\n\n"
    counts += 'func open(t *testing.T) *os.File {\n\tfile, err := os.OpenFile("../runs", 1090, 0o600)\n'
    counts += "\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n\treturn file\n}\n"
    project.lay({"adder_test.go": counts.replace('"testing"', '"os"\n\t"testing"')})
    assert [project.run().exit_code for _ in range(2)] == [0, 0]
    assert (project.root.parent / "runs").read_text() == "11"


def test_tests_behind_a_build_tag_are_those_of_the_command(project: Project) -> None:
    project.lay({"adder.go": "package adder\n"})
    project.lay({"a_test.go": f"//go:build slow\n\n{HEAD}func TestAdd(t *testing.T) {{ Add(1, 2) }}\n"})
    assert outcomes(project.run("-tags", "slow", "./...")) == {"adder": "error"}
    assert project.run().exit_code == 0


def test_without_its_code_nothing_of_a_package_passes(project: Project) -> None:
    """As the second look has it, also of a copy of the project below itself."""
    copy = Project(project.root / ".marvin" / "copy", Path(project._environment["HOME"]))
    for place in (project, copy):
        place.lay({"adder.go": CODE, "adder_test.go": HEAD + TEST})
    red = ["example.org/adder.TestAdd"]
    assert judge_green([project.run()], red).outcome == "passed"
    copy.lay({"adder.go": gutted("adder.go", CODE, "/nowhere") or "There is no code here.\n"})
    assert judge_green([copy.run()], red).outcome == "failed"
