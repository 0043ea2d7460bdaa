"""One session that splits its work: a plan, tickets, two researchers, a builder in a worktree, a review, a commit."""

from __future__ import annotations

import subprocess
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from marvin_core.testing import calls, text
from tests.e2e.support_e2e import PROGRAM, Marvin
from tests.support.agents import AgentModels, asked_by, processes_in
from tests.support.money import usage

pytestmark = pytest.mark.slow

PRICED = "prices: {qwen/qwen3-32b: {input: 1.0, output: 1.0}}\n"
TEST = "from total import total\n\nassert total([]) == 0\nassert total([2, 4]) == 3\n"
STEPS = ["Find out what an empty list does", "Have it mended", "Review and close"]
CRITERIA = "-d 'The mean of nothing is 0.' --acceptance 'test_total.py passes'"


@pytest.fixture
def marvin(tmp_path: Path, models: AgentModels, warm_cache: Path) -> Marvin:
    found = Marvin(tmp_path, models, warm_cache)
    found.config(PRICED)
    found.make_repository()
    (found.project / ".gitignore").write_text(".marvin/\n.tickets/\n__pycache__/\n")
    (found.project / "test_total.py").write_text(TEST)
    found.git("add", ".")
    found.git("commit", "-q", "-m", "A test that fails")
    return found


def tk(marvin: Marvin, *words: str) -> str:
    """What the ticket program prints for the user."""
    done = subprocess.run(
        [*PROGRAM, "tk", *words], cwd=marvin.project, env=marvin.env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def tools(*named: tuple[str, dict[str, Any]]) -> Any:
    """An answer with these calls, which cost something."""
    return calls(*named, usage=usage(1_000, 100))


def outputs(body: dict[str, Any]) -> list[str]:
    """What the tools gave back, as a request has it."""
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def test_work_is_split_done_reviewed_and_merged(marvin: Marvin, models: AgentModels) -> None:
    epic = tk(marvin, "create", "The mean of an empty list", "-t", "epic")
    run_the_test = ("run_command", {"command": "python3 test_total.py && echo green"})
    build = {"ticket_id": epic, "prompt": "Build what makes test_total.py pass.", "isolation": "worktree"}
    models.scripts["Do"] = deque(
        [
            tools(("plan", {"steps": STEPS}), ("tk", {"args": f"start {epic}"})),
            tools(
                ("launch_research_agent", {"query": "Look at total.py: what does an empty list do?"}),
                ("launch_research_agent", {"query": "Search for who calls total."}),
            ),
            tools(("plan", {"steps": STEPS, "done": 1}), ("launch_agent", build)),
            tools(("git_show", {"ref": "HEAD"}), run_the_test),
            tools(("tk", {"args": f"close {epic}"}), ("plan", {"steps": STEPS, "done": 3})),
            text("The mean of nothing is 0 now.", usage=usage(100, 10)),
        ]
    )
    models.scripts["Look"] = deque(
        [tools(("read_file", {"path": "total.py"})), text("It divides by zero.", usage=usage(100, 10))]
    )
    models.scripts["Search"] = deque(
        [tools(("code_grep", {"pattern": "total\\("})), text("Only the test does.", usage=usage(100, 10))]
    )
    mended = {
        "path": "total.py",
        "old_str": "    return sum(items) / len(items)\n",
        "new_str": "    return sum(items) / len(items) if items else 0\n",
    }
    models.scripts["You"] = deque(  # as the prompt of an agent in a worktree begins
        [
            tools(("apply_patch", mended)),  # refused: there is no ticket yet
            tools(("tk", {"args": "create 'Mend total'"})),  # refused once, on purpose
            tools(("tk", {"args": f"create 'Mend total' --parent {epic} {CRITERIA}"})),
            tools(("apply_patch", mended), run_the_test),
            tools(("git_commit", {"message": f"{epic}: The mean of nothing is 0"})),
            text("Mended, and the test passes.", usage=usage(100, 10)),
        ]
    )

    done = marvin.ask("--output-format", "stream-json", "--max-cost", "1")

    assert done.code == 0, done.said
    told = [event for event in done.events() if event["type"] == "tool_execution_end"]
    failed = [event["text"] for event in told if event["is_error"]]
    assert failed == []
    said = {event["name"]: event["text"] for event in told}
    assert "merged into main" in said["launch_agent"]
    assert said["run_command"].startswith("green")
    assert "else 0" in said["git_show"]

    builder = outputs(asked_by(models, "You")[-1])
    assert "this agent must create its ticket before it writes or runs anything" in builder[0]
    assert "refused on purpose" in builder[1]
    assert "green" in builder[4]

    child = builder[2].split()[-1]
    assert f"parent: {epic}" in (marvin.project / ".tickets" / f"{child}.md").read_text()
    assert f"## Children\n\n- {child} [open] Mend total" in tk(marvin, "show", epic)
    assert "status: closed" in tk(marvin, "show", epic)
    assert marvin.git("worktree", "list").count("\n") == 1
    assert marvin.git("branch", "--format=%(refname:short)").split() == ["main"]
    assert marvin.git("status", "--porcelain") == ""
    assert "else 0" in (marvin.project / "total.py").read_text()

    requests = sum(len(asked_by(models, word)) for word in ("Do", "Look", "Search", "You"))
    cost = done.cost()
    assert cost["llm_turns"] == requests
    assert cost["session_cost"] == pytest.approx(12 * 0.0011 + 4 * 0.00011), "what everybody used, once"
    assert processes_in(Path(marvin.env["HOME"])) == []
