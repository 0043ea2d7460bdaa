"""The sandbox as calls of tools meet it: what it held back is said, and a person can let one call out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from marvin_core.guard.sandbox.state import RESULT
from marvin_core.testing import ToolRunner
from tests.support.sandboxes import tried


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which the sandbox was tried already, with a project in it."""
    cache = tmp_path / "home" / ".cache" / "marvin"
    cache.mkdir(parents=True)
    kept = json.loads(tried())
    kept["key"][-1] = os.environ["PATH"]
    (cache / RESULT).write_text(json.dumps(kept), encoding="utf-8")
    (cache / RESULT).chmod(0o600)
    (tmp_path / "home" / "project").mkdir()
    return tmp_path / "home"


def test_what_was_held_back_is_said_and_can_be_asked_for(home: Path) -> None:
    """The line names the place, and how to ask; after a yes the call runs outside of the sandbox."""
    with ToolRunner(home, home / "project", sandbox="auto", answers=["yes", "yes", "no"]) as runner:
        refused = runner.call("run_command", command="echo x > ~/made")
        assert f"In the sandbox {home / 'made'} is read-only" in refused.text
        assert "If the task needs this, make the call again with" in refused.text
        assert not (home / "made").exists()
        runner.call("run_command", command="echo x > ~/made", outside="the file belongs there")
        assert (home / "made").exists()
        assert "outside of the sandbox, because: the file belongs there" in runner.questions[1][0]
        no = runner.call("run_command", command="rm ~/made", outside="it is in the way")
        assert (no.is_error, (home / "made").exists()) == (True, True)


@pytest.mark.slow
def test_where_nobody_can_say_yes_there_is_no_way_out(home: Path) -> None:
    """The tools do not even have the parameter, and the line does not tell of it."""
    with ToolRunner(home, home / "project", sandbox="auto", interactive=False) as runner:
        refused = runner.call("run_command", command="echo x > ~/made")
        assert "read-only" in refused.text
        assert "outside" not in refused.text
        assert runner.call("run_command", command="true", outside="why not").is_error
        assert not (home / "made").exists()


def test_without_a_sandbox_nothing_is_added(home: Path) -> None:
    """`off` runs commands as they are, and no tool takes a reason for it."""
    with ToolRunner(home, home / "project", sandbox="off", answers=["yes"]) as runner:
        assert not runner.call("run_command", command="echo x > ~/made").is_error
        assert (home / "made").exists()
        assert runner.call("run_command", command="true", outside="why not").is_error
