"""Play mode as a mode of the guard: what an agent that is left alone can reach, and that nobody is asked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from marvin_core import ToolContext, tool
from marvin_core.api.config import SandboxUse
from marvin_core.api.events import MessageEnd, Notice, ToolExecutionEnd
from marvin_core.api.hooks import Ask, Hook, HookContext, Verdict
from marvin_core.api.tools import ToolSpec
from marvin_core.engine.autonomy import PLAY
from marvin_core.guard.sandbox.state import RESULT
from marvin_core.tools.schema import describe
from tests.support import gate_tools, undo_tools
from tests.support.chat import Chat, chatting
from tests.support.engine import Made, calls, make, says
from tests.support.sandboxes import tried

SPECS = tuple(
    describe(tool, source="strangers", module=module.__name__)
    for module in (gate_tools, undo_tools)
    for tool in module.ALL
)


class Asks(Hook):
    """Wants a yes before anything is written."""

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Any) -> Verdict:
        return Ask(reason="the hook wants a yes") if spec.name == "writes" else None


class Overhears(Hook):
    """Sees what users say."""

    heard: list[str]

    def __init__(self) -> None:
        self.heard = []

    async def on_prompt(self, context: HookContext, text: str) -> None:
        self.heard.append(text)


@tool(access=["exec", "read", "state"])
async def lists_jobs(context: ToolContext) -> str:
    """List the jobs."""
    return " ".join(f"{job.id}:{job.running}" for job in context.processes.job_list()) or "none"


@tool(access=["exec", "read", "state"])
async def ends_job(context: ToolContext, job_id: str) -> str:
    """End a job."""
    return f"ended {(await context.processes.stop_job(job_id)).id}"


@tool(access=["write", "exec"], typed="!", confirm=True)
async def leaves(context: ToolContext, command: str) -> str:
    """Run a command that may leave a job."""
    result = await context.processes.run(["sh", "-c", command], merge_stderr=True, leave_jobs=True)
    return f"{result.output.decode()}job {result.job}"


JOBS = tuple(describe(one, source="strangers", module=__name__) for one in (lists_jobs, ends_job, leaves))


@tool(access=["read"])
async def looks_home(context: ToolContext) -> str:
    """Look into another folder of the user's."""
    return str(context.writing(context.home / "Notes").paths.root)


async def never(question: str, choices: Sequence[str]) -> str:
    raise AssertionError(f"asked: {question}")


def played(tmp_path: Path, *given: tuple[str, dict[str, Any]], sandbox: SandboxUse = "off", **options: Any) -> Made:
    """A chat in which play mode made these calls."""
    script = [calls(*((f"c{n}", name, json.dumps(values)) for n, (name, values) in enumerate(given)))] if given else []
    argv = ("--sandbox", sandbox)
    specs = (*SPECS, describe(looks_home, source="strangers", module=__name__))
    made = make(tmp_path, *script, says("Bye."), argv=argv, specs=specs, asker=never, **options)
    if sandbox != "off":
        in_sandbox(made)

    async def work(chat: Chat) -> None:
        assert "Play mode has ended. Its files are in" in await chat.do("/play --turns 2")

    chatting(made, work)
    return made


def outputs(made: Made) -> list[str]:
    return [event.text for event in made.seen(ToolExecutionEnd)]


def offered(made: Made) -> set[str]:
    assert made.provider is not None
    return {spec.name for spec in made.provider.requests[0].tools}


def in_sandbox(made: Made) -> None:
    """Let the session know at once that the sandbox works here."""
    made.config.cache_folder.mkdir(parents=True, exist_ok=True)
    made.config.cache_folder.chmod(0o700)
    (made.config.cache_folder / RESULT).write_bytes(tried())
    (made.config.cache_folder / RESULT).chmod(0o600)


def test_folders_of_the_user_beside_the_playground_are_out_of_reach(tmp_path: Path) -> None:
    made = played(tmp_path, ("looks_home", {}))
    assert "Work in the playground" in outputs(made)[0]
    assert not (made.config.home / "Notes").exists()


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_programs_run_where_the_sandbox_holds_them_and_nowhere_else(tmp_path: Path, sandbox: SandboxUse) -> None:
    """Nothing is asked in either case, and where there is none one line says so."""
    outside = tmp_path / "project" / "x"
    wanted = {"command": f"pwd; touch here {outside}; touch ~/evil"}
    made = played(tmp_path, ("shell", wanted), ("undeclared", {}), sandbox=sandbox)
    told = [notice.text for notice in made.seen(Notice) if "so play mode runs no programs" in notice.text]
    ran, refused = outputs(made)
    playground = made.config.data_folder / "playground"
    if sandbox == "auto":
        assert offered(made) == {"reads", "writes", "shell", "lists_programs", "looks_home"}
        assert ran.startswith(str(playground))
        assert (playground / "here").exists()
        assert "In the sandbox" in ran
        assert "the user is asked" not in ran, "nobody is there"
        assert not told
    else:
        assert offered(made) == {"reads", "writes", "looks_home"}
        assert "there is no working sandbox here, so play mode runs no programs" in ran
        assert not (playground / "here").exists()
        assert len(told) == 1
    assert not outside.exists()
    assert "is not available here" in refused
    assert {"shell", "undeclared", "put", "moves"} <= {spec.name for spec in made.session.tools}, "as before afterwards"


def test_files_are_written_in_the_playground_alone(tmp_path: Path) -> None:
    """I4."""
    outside = str(tmp_path / "project" / "a.txt")
    made = played(
        tmp_path,
        ("writes", {"path": "a.txt", "content": "mine"}),
        ("writes", {"path": outside, "content": "x"}),
        ("writes", {"path": "../../a.txt", "content": "x"}),
        ("moves", {"path": str(tmp_path)}),
    )
    assert (made.config.data_folder / "playground" / "a.txt").read_text() == "mine"
    assert not Path(outside).exists()
    assert outputs(made)[0] == "wrote a.txt"
    assert all(text.startswith(("Error", "The tool", "'")) for text in outputs(made)[1:])


def test_what_a_rule_or_a_hook_asks_about_is_denied(tmp_path: Path) -> None:
    rules = "permissions: {ask: ['reads']}"
    made = played(
        tmp_path, ("reads", {"name": "x"}), ("writes", {"path": "a", "content": "x"}), hooks=[Asks()], yaml=rules
    )
    assert all("and nobody can answer in play mode" in text for text in outputs(made))
    assert "the rule `ask: reads`" in outputs(made)[0]
    assert "the hook wants a yes" in outputs(made)[1]


def test_a_chat_that_began_in_the_home_folder_plays_without_a_question(tmp_path: Path) -> None:
    made = played(tmp_path, ("writes", {"path": "a", "content": "x"}), in_home=True)
    assert outputs(made) == ["wrote a"]


def test_the_opening_is_not_taken_for_words_of_the_user(tmp_path: Path) -> None:
    """I18: neither by the chat log nor by hooks nor by whoever lists sessions."""
    hook = Overhears()
    made = played(tmp_path, hooks=[hook])
    assert hook.heard == []
    opening = [event for event in made.seen(MessageEnd) if event.message.text == PLAY]
    assert [event.origin for event in opening] == ["auto"]
    assert not (made.session.profile.folder / "chat_log.json").exists()
    (session,) = (made.config.data_folder / "sessions").glob("*.jsonl")
    assert json.loads(session.read_text().splitlines()[0])["title"] == "Play mode"


def test_what_play_mode_did_can_be_taken_back_there_and_does_not_mix_with_the_chat(tmp_path: Path) -> None:
    made = played(tmp_path, ("writes", {"path": "a.txt", "content": "mine"}))

    async def work(chat: Chat) -> None:
        assert await chat.do("/undo") == "There is nothing to undo in this folder."

    chatting(make(tmp_path, argv=(), specs=SPECS), work)
    assert (made.config.data_folder / "playground" / "a.txt").exists()


@pytest.mark.slow
def test_the_jobs_and_temporary_files_of_the_chat_are_not_those_of_play_mode(tmp_path: Path) -> None:
    """An agent that is left alone neither sees nor ends what the user has running; what it leaves ends with it."""
    leaving = {"command": "cat /tmp/from 2>&1; echo play > /tmp/from; sleep 600 & echo"}
    script = [
        calls(("a", "lists_jobs", "{}"), ("b", "ends_job", '{"job_id": "1"}')),
        calls(("c", "leaves", json.dumps(leaving)), ("d", "lists_jobs", "{}")),
        says("Bye."),
    ]
    argv = ("--sandbox", "auto", "--permission-mode", "auto")
    made = make(tmp_path, *script, argv=argv, specs=JOBS, asker=never)
    in_sandbox(made)

    async def work(chat: Chat) -> None:
        by_hand = partial(chat.session.dispatcher.by_hand, "leaves", origin="model")
        assert "job 1" in (await by_hand({"command": "echo chat > /tmp/from; sleep 600 &"})).text
        assert "Play mode has ended. Its files are in" in await chat.do("/play --turns 3")
        (job,) = made.parts.processes.job_list()
        assert (job.id, job.running) == ("1", True)
        assert (await by_hand({"command": "cat /tmp/from"})).text.startswith("chat")

    chatting(made, work)
    texts = outputs(made)[1:5]
    assert texts[0] == "none"
    assert "There is no job '1'" in texts[1]
    assert "No such file" in texts[2]
    assert "job 2" in texts[2]
    assert texts[3] == "2:True"


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a_host_is_not_asked_about_in_play_mode(tmp_path: Path) -> None:
    asked: list[str] = []

    async def no(question: str, choices: Sequence[str]) -> str:
        asked.append(question)
        return "no"

    made = make(tmp_path, argv=("--sandbox", "auto"), specs=SPECS, asker=no)
    in_sandbox(made)

    async def work(chat: Chat) -> None:
        reach = {"command": "curl -sS -m 20 http://192.0.2.1/ 2>&1"}
        async with chat.session.autonomy.playing(None, 1):
            assert "192.0.2.1" in (await chat.session.dispatcher.by_hand("shell", reach, "model")).text
        assert asked == []

    chatting(made, work)
