"""Where agents work, and which ones there are: worktrees, what they leave uncommitted, agents of Markdown files."""

from __future__ import annotations

import json
import signal
import threading
from typing import Any

import pytest

from marvin_core.testing import ModelServer, answers, calls, text
from tests.e2e.support_e2e import Marvin

pytestmark = pytest.mark.slow

TOOL = '''
import json
from marvin_core import AgentTask, ToolContext, tool


@tool(access=["exec", "net"], sets=["coding"], timeout=900)
async def start_agent(context: ToolContext, fields: str) -> str:
    """Start an agent."""
    result = await context.agents.run(AgentTask(**json.loads(fields)), context.progress)
    return json.dumps({"text": result.text, "worktree": result.worktree, "ended": result.ended, "why": result.reason})
'''


@pytest.fixture
def marvin(marvin: Marvin, marvin_model_server: ModelServer) -> Marvin:
    """Marvin in a repository, with a tool that starts any agent."""
    (marvin.config_folder / "tools").mkdir()
    (marvin.config_folder / "tools" / "agents_for_tests.py").write_text(TOOL)
    marvin.make_repository()
    marvin_model_server.models += ["qwen/qwen3-32b", "qwen/qwen3-14b"]
    return marvin


def start(**fields: Any) -> tuple[str, dict[str, str]]:
    """A call that starts an agent."""
    return "start_agent", {"fields": json.dumps({"prompt": "Work.", **fields})}


def result_of(marvin: Marvin) -> dict[str, str]:
    """What became of the agent, as the model was told it."""
    sessions = [[json.loads(line) for line in file.read_text().splitlines()] for file in marvin.session_files()]
    (said,) = [
        block["text"]
        for session in sessions
        for record in session
        if record["type"] == "message" and record["message"]["role"] == "tool"
        for output in record["message"]["content"]
        for block in output["content"]
        if '"worktree"' in block["text"]
    ]
    found: dict[str, str] = json.loads(said)
    return found


def prompts(server: ModelServer) -> list[str]:
    """All that each request says, but for its answers, as one text each."""
    return [json.dumps(request.body) for request in server.requests if request.method == "POST"]


def test_an_agent_in_a_worktree(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """It works on its own branch with the documents and tickets of the main folder; what it did is merged."""
    (marvin.project / ".marvin").mkdir()
    (marvin.project / ".marvin/spec.md").write_text("The product adds numbers.\n")
    (marvin.project / "notes.txt").write_text("mine\n")
    marvin_model_server.script(
        calls(start(isolation="worktree", tools="coding")),
        calls(
            ("create_file", {"path": "new.py", "content": "x = 1\n"}),
            ("run_command", {"command": "git branch --show-current; echo tickets: $TICKETS_DIR; pwd"}),
        ),
        text("Made new.py."),
        text("All done."),
    )
    done = marvin.ask("--output-format", "stream-json")
    assert done.code == 0, done.said
    shown = [event["text"] for event in done.events() if event["type"] == "tool_execution_update"]
    assert shown[0] == f"on the branch marvin/agent, in {marvin.project}/.marvin/worktrees/agent"
    result = result_of(marvin)
    assert result["ended"] == "answered", result
    assert "Not in the worktree, because it is not committed: notes.txt." in result["worktree"]
    assert "left 1 file uncommitted" in result["worktree"]
    assert "merged into main" in result["worktree"]
    assert (marvin.project / "new.py").read_text() == "x = 1\n"
    assert marvin.git("branch", "--format=%(refname:short)").split() == ["main"]
    assert marvin.git("worktree", "list").count("\n") == 1
    asked = prompts(marvin_model_server)
    assert "You work in your own git worktree, on the branch" in asked[1]
    assert "The product adds numbers." in asked[1]
    assert "notes.txt" in asked[1]
    assert "marvin/agent" in asked[2]
    assert f"tickets: {marvin.project}/.tickets" in asked[2]


def test_agents_in_worktrees_write_at_the_same_time(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Two calls of one answer: the second agent asks its model while the first one waits for its own."""
    together = threading.Event()
    tickets = [marvin.run("tk", "create", "A part").text.strip() for _ in range(2)]
    both = [("launch_agent", {"ticket_id": ticket, "prompt": "Work.", "isolation": "worktree"}) for ticket in tickets]
    held = [answers.pause(together, text("Looked.")) for _ in both]
    marvin_model_server.script(calls(*both), *held, text("All done."))
    running = marvin.ask_in_background()
    try:
        running.until(lambda: len(prompts(marvin_model_server)) == 3, "both agents ask their models")
    finally:
        together.set()
    assert running.finish().code == 0
    assert marvin.git("worktree", "list").count("\n") == 1


def test_an_agent_with_few_tools_has_that_for_tickets_and_those_of_tickets_dir(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    """Without it nothing would open its gate. In a worktree, too, the tickets are those that TICKETS_DIR names."""
    marvin.env["TICKETS_DIR"] = "elsewhere"
    epic = marvin.run("tk", "create", "The whole").text.strip()
    line = f"create 'A part' --parent {epic} -d 'Why' --acceptance 'It is there'"
    create = calls(("tk", {"args": line}))
    marvin_model_server.script(
        calls(start(isolation="worktree", ticket=epic, tools="create_file")),
        create,
        create,
        text("Made."),
        text("Done."),
    )
    assert marvin.ask().code == 0
    assert result_of(marvin)["text"] == "Made."
    asked = [request.body for request in marvin_model_server.requests if request.method == "POST"][1]
    assert {entry["function"]["name"] for entry in asked["tools"]} >= {"tk", "create_file"}
    assert len(list((marvin.project / "elsewhere").glob("*.md"))) == 2
    assert not (marvin.project / ".tickets").exists()


def test_what_an_agent_leaves_uncommitted_in_the_main_folder(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """What it wrote with its tools is committed with the ticket's id; what the user had changed, and others, is not."""
    (marvin.project / "total.py").write_text("# mine\n")
    (marvin.project / "staged.py").write_text("# mine\n")
    marvin.git("add", "staged.py")
    marvin_model_server.script(
        calls(start()),
        calls(
            ("create_file", {"path": "new.py", "content": "x = 1\n"}),
            ("append_file", {"path": "total.py", "content": "# its\n"}),
            ("run_command", {"command": "echo made > by-command.txt"}),
        ),
        text("Made new.py."),
        text("All done."),
    )
    done = marvin.ask()
    assert done.code == 0, done.said
    told = result_of(marvin)["worktree"]
    assert "left 1 file uncommitted, now in commit" in told
    assert "which may not be its own: by-command.txt" in told
    assert marvin.git("show", "--format=", "--name-only", "HEAD").split() == ["new.py"]
    assert marvin.git("status", "--porcelain").splitlines() == [
        "A  staged.py",
        " M total.py",
        "?? .marvin/",
        "?? by-command.txt",
    ]


def test_an_agent_of_a_markdown_file(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Named where a model may be named; its tools, its instructions and that it only reads are those of its file."""
    agents = marvin.config_folder / "agents"
    agents.mkdir()
    (agents / "reviewer.md").write_text(
        "---\nname: reviewer\ntools: [read_file, create_file]\nread-only: true\n---\nYou review like an owl.\n"
    )
    research = ("launch_research_agent", {"query": "Review total.py.", "model": "reviewer"})
    marvin_model_server.script(calls(research), text("total.py:2: no items."), text("Told."))
    done = marvin.ask()
    assert done.code == 0, done.said
    request = next(one for one in marvin_model_server.requests if "like an owl" in json.dumps(one.body))
    assert [tool["function"]["name"] for tool in request.body["tools"]] == ["read_file"]
    assert request.body["model"] == "qwen/qwen3-32b"


def test_the_search_agent_of_the_coding_pack(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """It only reads and searches, on the tier for small things, and is told to return places."""
    search = ("launch_research_agent", {"query": "Where are totals made?", "model": "search"})
    marvin_model_server.script(calls(search), text("total.py:1-2: total()"), text("Told."))
    done = marvin.ask("--model", "low=qwen/qwen3-14b")
    assert done.code == 0, done.said
    marvin_model_server.script(calls(search), text("total.py:1-2: total()"), text("Told."))
    assert marvin.ask().code == 0
    request, without = [one for one in marvin_model_server.requests if "return no files" in json.dumps(one.body)]
    assert without.body["model"] == "qwen/qwen3-32b", "nobody serves the tier's default"
    names = {tool["function"]["name"] for tool in request.body["tools"]}
    assert names == {"read_file", "code_grep", "glob", "tree", "git_log", "git_show"}
    assert request.body["model"] == "qwen/qwen3-14b"


def test_agents_of_a_project_need_trust(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Those of a repository count once somebody trusts it, which includes them."""
    folder = marvin.project / ".marvin/agents"
    folder.mkdir(parents=True)
    (folder / "owl.md").write_text("---\nmodel: qwen/qwen3-14b\n---\nYou are an owl.\n")
    research = ("launch_research_agent", {"query": "Look.", "model": "owl"})
    marvin_model_server.script(calls(research), text("Not told."))
    done = marvin.ask()
    assert done.code == 0, done.said
    assert "The agent owl cannot be used: the project is not trusted" in prompts(marvin_model_server)[-1]
    marvin_model_server.script(calls(research), text("Hoo."), text("Told."))
    done = marvin.ask("--trust-project")
    assert done.code == 0, done.said
    assert any("You are an owl." in said and "qwen3-14b" in said for said in prompts(marvin_model_server))


def test_a_run_that_is_killed_leaves_its_worktree_to_the_next(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """What is in it is named by the next run that makes one, with the commands that go on."""
    release = threading.Event()
    marvin_model_server.script(
        calls(start(isolation="worktree")),
        calls(("create_file", {"path": "new.py", "content": "x = 1\n"})),
        answers.pause(release, text("Never.")),
    )
    running = marvin.ask_in_background()
    try:
        tree = marvin.project / ".marvin/worktrees/agent"
        running.until(lambda: len(prompts(marvin_model_server)) == 3, "the agent wrote its file")
        running.process.kill()
    finally:
        release.set()
    running.finish()
    marvin_model_server.script(calls(start(isolation="worktree")), text("Nothing."), text("Done."))
    done = marvin.ask()
    assert done.code == 0, done.said
    assert f"left the worktree of an agent: {tree} (branch marvin/agent)" in done.err.decode()
    assert (
        "An interrupted run left the worktree of an agent, with 1 uncommitted file" in prompts(marvin_model_server)[-1]
    )
    assert (tree / "new.py").exists()


def test_an_agent_that_is_interrupted(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Ctrl+C: what it did is committed on its branch, and named at the next start."""
    release = threading.Event()
    marvin_model_server.script(
        calls(start(isolation="worktree")),
        calls(("create_file", {"path": "new.py", "content": "x = 1\n"})),
        answers.pause(release, text("Never.")),
    )
    running = marvin.ask_in_background()
    try:
        running.until(lambda: len(prompts(marvin_model_server)) == 3, "the agent wrote its file")
        running.process.send_signal(signal.SIGINT)
        assert running.finish().code == 130
    finally:
        release.set()
    assert marvin.git("show", "--format=", "--name-only", "marvin/agent").split() == ["new.py"]
    assert marvin.git("status", "--porcelain", "--", "*.py") == ""
    marvin_model_server.script(text("Hello."))
    done = marvin.ask()
    assert "left the worktree of an agent" in done.err.decode()


def test_the_command_lists_agents(marvin: Marvin) -> None:
    """Whose each is, what it has, and why one is not used."""
    for folder, text_of_file in (
        (marvin.config_folder, "---\nmodel: low\n---\nHoo."),
        (marvin.project / ".marvin", "x"),
    ):
        (folder / "agents").mkdir(parents=True)
        (folder / "agents" / "owl.md").write_text(text_of_file)
    done = marvin.run("agents")
    assert done.code == 0
    listed = [line for line in done.text.splitlines() if not line.startswith("  ")]
    assert listed[0].startswith("owl  (project) not used: the project is not trusted")
    assert listed[1] == "owl  (user)"
    assert listed[2].startswith("search  (coding) Finds where")
    assert "model low; " in done.text
