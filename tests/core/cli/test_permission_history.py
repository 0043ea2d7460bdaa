"""The dry run over past sessions: which calls would be asked about, and which rules would ask less."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from marvin_core import Reply
from marvin_core.api.permissions import Question
from marvin_core.cli.commands.permission_history import DryRun, past_calls
from tests.support.engine import Made, calls, make, run, says
from tests.support.labelled_tools import SPECS


async def ask(question: str, choices: Sequence[str]) -> str:
    raise AssertionError(question)


def recorded(tmp_path: Path, *commands: str, refused: str = "") -> Made:
    """A session whose model ran these commands, one of which the person refused."""

    async def permit(question: Question) -> list[Reply]:
        return [Reply(says="no" if refused and refused in call.text else "once") for call in question.calls]

    script = [calls((f"c{n}", "shell", json.dumps({"command": one}))) for n, one in enumerate(commands)]
    made = make(tmp_path, *script, says("done"), specs=SPECS, argv=(), asker=ask, permit=permit)

    async def go() -> None:
        (await made.session.submit("go")).check()
        await made.session.close()

    run(go())
    return made


def dry(made: Made, **changes: bool) -> DryRun:
    found = list(past_calls(made.config.data_folder / "sessions", 100))
    return DryRun(made.config, SPECS, found, holds=changes.get("holds", False))


def test_a_habit_is_proposed_with_the_calls_that_it_covers(tmp_path: Path) -> None:
    made = recorded(tmp_path, "git status", "git status -s", "git status --short", "make", "rm -rf /")
    found = dry(made)
    assert len(found.asked) == 5
    assert [proposal.rule for proposal in found.proposals] == ["shell(git status *)"]
    assert [call.text for call in found.proposals[0].covers] == [
        "shell git status",
        "shell git status -s",
        "shell git status --short",
    ]
    assert found.left == 2
    report = "\n".join(found.report())
    assert "These rules would have asked 2 times instead of 5" in report
    assert "shell(git status *)   (3 calls)" in report


def test_what_was_refused_once_is_never_proposed(tmp_path: Path) -> None:
    made = recorded(tmp_path, *["git log"] * 5, "git log -p", refused="log -p")
    assert len(dry(made).asked) == 6
    assert dry(made).proposals == []
    assert (
        "There is no rule to propose: a rule must cover at least three such calls, and none that was refused"
        in "\n".join(dry(made).report())
    )


def test_what_was_done_twice_is_no_habit(tmp_path: Path) -> None:
    assert dry(recorded(tmp_path, "git log", "git log")).proposals == []


def test_what_is_dangerous_is_asked_about_whatever_its_number(tmp_path: Path) -> None:
    found = dry(recorded(tmp_path, *["git push --force"] * 4), holds=True)
    assert (len(found.asked), list(found.proposals)) == (4, [])


def test_where_the_sandbox_holds_plain_commands_are_not_asked_about(tmp_path: Path) -> None:
    assert dry(recorded(tmp_path, "git status"), holds=True).asked == []


def test_damaged_sessions_are_passed_over(tmp_path: Path) -> None:
    made = recorded(tmp_path, *["git status"] * 3)
    folder = made.config.data_folder / "sessions"
    (folder / "broken.jsonl").write_bytes(b"\xff\x00{")
    assert len(dry(made).asked) == 3


def test_without_sessions_nothing_is_said_to_be_asked(tmp_path: Path) -> None:
    found = DryRun(make(tmp_path).config, SPECS, list(past_calls(tmp_path / "none", 5)), holds=False)
    assert next(iter(found.report())).startswith("0 of 0 past calls")


RECORDED = Path(__file__).parents[2] / "support" / "sessions"
COMMANDS = tuple(spec.replace(name="run_command") for spec in SPECS if spec.name == "shell")


def test_the_recorded_sessions_would_have_asked_far_less(tmp_path: Path) -> None:
    """The sessions over which the benchmarks make the same dry run."""
    found = DryRun(make(tmp_path, argv=()).config, COMMANDS, list(past_calls(RECORDED, 100)), holds=False)
    assert (len(found.calls), len(found.asked)) == (38, 38)
    assert found.left == 9
    report = "\n".join(found.report())
    assert report.startswith(
        "You were asked about 38 of 38 past calls, and refused 2:\n    38  run_command, 2 refused\n"
    )
    covered = [call.text for proposal in found.proposals for call in proposal.covers]
    assert len(covered) == len(found.asked) - found.left
    assert not [text for text in covered if "rm -rf" in text or "--force" in text]


def test_what_was_asked_and_answered_is_counted(tmp_path: Path) -> None:
    report = "\n".join(dry(recorded(tmp_path, "make", "git log", "rm x", refused="rm")).report())
    assert report.startswith("You were asked about 3 of 3 past calls, and refused 1:\n     3  shell, 1 refused\n")
