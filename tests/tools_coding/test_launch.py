"""The tools that start agents, before one starts: what models send, and the ticket that is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marvin_core import ToolError
from marvin_core.testing import ToolRunner
from marvin_core.testing.tool_runner import Options
from marvin_tools_coding.agents.adapters import launch_arguments, research_arguments
from tests.support.tickets import TEXT


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"worktree": True}, {"isolation": "worktree"}),
        ({"worktree": "true"}, {"isolation": "worktree"}),
        ({"worktree": "false"}, {}),
        ({"isolation": True}, {"isolation": "worktree"}),
        ({"isolation": " Worktree "}, {"isolation": "worktree"}),
        ({"isolation": "True"}, {"isolation": "worktree"}),
        ({"isolation": None}, {"isolation": ""}),
        ({"isolation": "none"}, {"isolation": ""}),
        ({"isolation": "false"}, {"isolation": ""}),
        ({"isolation": "container"}, {"isolation": "container"}),
        ({"model": " opus "}, {"model": "opus"}),
        ({"model": "inherit"}, {"model": "auto"}),
        ({"model": ""}, {"model": "auto"}),
        ({"model": 5}, {"model": 5}),
        ({"run_in_background": False}, {}),
    ],
)
def test_what_models_send_from_habit(given: dict[str, Any], meant: dict[str, Any]) -> None:
    """An isolation that was asked for in other words is never passed over: the agent would work in the main folder."""
    assert launch_arguments(given) == meant


@pytest.mark.parametrize("adapt", [launch_arguments, research_arguments])
def test_an_agent_is_waited_for(adapt: Any) -> None:
    with pytest.raises(ToolError, match=r"run_in_background is not supported here"):
        adapt({"run_in_background": "true"})


def project(tmp_path: Path, *tickets: str) -> Path:
    """A project with these tickets."""
    root = tmp_path / "project"
    (root / ".tickets").mkdir(parents=True)
    for name in tickets:
        text = TEXT.format(id=name, status="open", deps="", links="", priority=2, more="", title="A ticket")
        (root / ".tickets" / f"{name}.md").write_text(text)
    return root


@pytest.mark.parametrize(
    ("ticket", "said"),
    [
        ("mp-none", "ticket 'mp-none' not found. Create it with tk"),
        ("mp-a", "ambiguous ID 'mp-a' matches multiple tickets"),
        ("--help", "is not a ticket id"),
        ("../mp-aa", "is not a ticket id"),
    ],
)
def test_no_agent_starts_for_a_ticket_that_is_not_there(tmp_path: Path, ticket: str, said: str) -> None:
    """It could create none below it, and so write nothing, whatever it costs."""
    with ToolRunner(tmp_path / "home", project(tmp_path, "mp-aa", "mp-ab")) as runner:
        outcome = runner.call("launch_agent", ticket_id=ticket, prompt="Work.")
    assert outcome.is_error
    assert said in outcome.text


def test_the_ticket_is_looked_for_where_the_agent_will_work(tmp_path: Path) -> None:
    root = project(tmp_path, "mp-aa")
    (root / "inner/.tickets").mkdir(parents=True)
    (root / "beside").mkdir()
    with ToolRunner(tmp_path / "home", root) as runner:
        said = [
            runner.call("launch_agent", ticket_id="mp-aa", prompt="Work.", working_dir=folder).text
            for folder in ("inner", "beside")
        ]
    assert "'mp-aa' not found" in said[0]
    assert "no model" in said[1].lower() or "provider" in said[1].lower()


def test_a_link_in_the_place_of_the_tickets_leads_nowhere(tmp_path: Path) -> None:
    root = project(tmp_path / "elsewhere", "mp-aa")
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.tickets").symlink_to(root / ".tickets")
    with ToolRunner(tmp_path / "home", tmp_path / "project") as runner:
        assert "is a link" in runner.call("launch_agent", ticket_id="mp-aa", prompt="Work.").text


def test_a_project_that_takes_no_logs_is_said_to(tmp_path: Path) -> None:
    """Of agents, and of what a command left running: both need a file below `.marvin`."""
    root = project(tmp_path, "mp-aa")
    (root / ".marvin").write_text("in the way")
    options: Options = {"mode": "coding", "interactive": False}
    with ToolRunner(tmp_path / "home", root, **options) as runner:
        left = runner.call("run_command", command="sleep 100 & echo started")
        foreground = runner.call("run_command", command="echo fine")
    assert "no log can be written" in left.text
    assert foreground.text.startswith("fine")
