"""Copilot's real runtime and SDK, with the bring-your-own-key setting, against a server on this machine."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest

from marvin_core.api.errors import (
    AuthFailed,
    ContextOverflow,
    ModelNotFound,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    StreamBroken,
    Unreachable,
)
from marvin_core.api.messages import Image, Message, Text, ToolOutput, tool, user
from marvin_core.api.providers import CallDelta, Delta, Endpoint, Request, Secret, TextDelta
from marvin_core.api.timeouts import Timeouts
from marvin_core.api.tools import ToolSpec
from marvin_core.engine.assembly import Assembly
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.providers.copilot.installation import has_sdk
from marvin_core.providers.copilot.provider import Copilot, create
from marvin_core.testing import Answer, ModelServer, calls, cut_after, drop, error, hang_after, text
from tests.e2e.support_e2e import Marvin, alive, wait_until
from tests.e2e.test_docs import DOCS, blocks, shell

pytestmark = [
    pytest.mark.real,
    pytest.mark.xdist_group("copilot"),
    # The SDK leaves closing its pipes to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / ".venv-real" / "npm" / "node_modules" / ".bin" / "copilot"
"""It has to be named: nothing in a folder as those of projects are is run outside of the sandbox."""
KEY = "sk-test-0123456789abcdef"
TIMEOUTS = Timeouts(model_idle=10.0, close=5.0, runtime_poll=0.1, retry_backoff=(0.0, 0.0, 0.0))
PIXEL = Image(
    media_type="image/png",
    data="iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
)
LONG = text("A long answer. " * 40, chunks=40)


def tool_spec(name: str) -> ToolSpec:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return ToolSpec(name=name, description=f"Does {name}.", parameters=schema, access=frozenset({"read"}))


# Two of these names are those of tools of the runtime's own.
TOOLS = tuple(map(tool_spec, ("read_file", "bash", "view")))


@pytest.fixture(autouse=True)
def installed() -> None:
    if not has_sdk() or not PROGRAM.exists():
        pytest.skip("Copilot's SDK and program are not installed; run scripts/setup-real")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What a test leaves to the garbage collector is collected in it."""
    yield
    gc.collect()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


class Desk:
    """A conversation with the runtime, which is shown every message as the agent would."""

    def __init__(self, server: ModelServer, home: Path, **changes: Any) -> None:
        self.server = server
        self.messages: list[Message] = []
        self.deltas: list[Delta] = []
        self.text_came = asyncio.Event()
        variables = {"PATH": os.environ["PATH"], "COPILOT_CLI_PATH": str(PROGRAM), "HOME": str(home)}
        # What the program unpacks at its first start is shared by all tests.
        variables["COPILOT_CACHE_HOME"] = str(ROOT / ".venv-real" / "cache")
        self.variables = variables
        given = {"base_url": server.url, "model": "scripted", "key": Secret(KEY), "timeouts": TIMEOUTS, **changes}
        settings = HttpSettings(timeouts=given["timeouts"])
        self._client = make_client(settings, timeout_read=given["timeouts"].model_idle, tls=None)
        endpoint = Endpoint(provider="copilot", key_hint="MY_KEY", environment=lambda: dict(self.variables), **given)
        self.provider = cast("Copilot", create(endpoint, lambda: self._client))

    async def close(self) -> None:
        await self.provider.aclose()
        await self._client.aclose()

    def request(self, **fields: Any) -> Request:
        given = {"system": "You are Marvin.", "messages": tuple(self.messages), "tools": TOOLS, **fields}
        return Request(**given)

    async def ask(self, said: str | Message, *script: Answer, **fields: Any) -> Message:
        """One request: say something, and keep the answer."""
        self.messages.append(user(said) if isinstance(said, str) else said)
        self.server.script(*script)
        assembly = Assembly(self.provider.name, self.provider.model)
        self.deltas = []
        async with aclosing(cast("Any", self.provider.stream(self.request(**fields)))) as deltas:
            async for delta in deltas:
                self.deltas.append(delta)
                if isinstance(delta, TextDelta):
                    self.text_came.set()
                assembly.feed(delta)
        self.messages.append(assembly.message())
        return self.messages[-1]

    def done(self, said: str = "seen") -> Message:
        """The outputs of the last calls."""
        called = self.messages[-1].calls
        return tool([ToolOutput(call_id=c.id, name=c.name, content=(Text(text=f"{said} {c.name}"),)) for c in called])

    def sent(self, number: int = -1) -> list[dict[str, Any]]:
        """The messages of a request that came to the server; without the line with the time before what users say."""
        asked = [request for request in self.server.requests if request.method == "POST"][number]
        found: list[dict[str, Any]] = asked.body["messages"]
        for message in found:
            if message["role"] == "user" and isinstance(message["content"], str):
                message["content"] = message["content"].rpartition("</current_datetime>\n\n")[2]
        return found

    def roles(self, number: int = -1) -> list[str]:
        return [message["role"] for message in self.sent(number)]


def run(server: ModelServer, home: Path, work: Callable[[Desk], Awaitable[None]], **changes: Any) -> None:
    """Run a conversation; afterwards nothing of the runtime is left."""

    async def go() -> None:
        desk = Desk(server, home, **changes)
        try:
            async with asyncio.timeout(50):
                await work(desk)
        finally:
            await desk.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(go())
    assert runtimes(home) == [], "I25: the program is still there"


def runtimes(home: Path) -> list[int]:
    """The living processes with this home folder, found as the system lists them."""
    mine = f"HOME={home}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mine in (entry / "environ").read_bytes() and alive(int(entry.name)):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_text_and_thinking_are_streamed_and_the_conversation_goes_on(server: ModelServer, tmp_path: Path) -> None:
    """I28: with a listener for each request the second answer would come twice."""

    async def work(desk: Desk) -> None:
        usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 40}}
        answer = await desk.ask("Hello", text("Hi there, Ada", chunks=4, thinking="Hm", usage=usage))
        assert answer.text == "Hi there, Ada"
        assert answer.stop_reason == "stop"
        assert len([delta for delta in desk.deltas if isinstance(delta, TextDelta)]) == 4
        assert answer.usage is not None
        assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.cache_read_tokens) == (100, 7, 40)
        assert answer.usage.cost is None, "its own units are no money"
        assert (await desk.ask("And?", text("Well."))).text == "Well."
        assert desk.sent()[0] == {"role": "system", "content": "You are Marvin."}
        assert desk.roles() == ["system", "user", "assistant", "user"], "one session, no transcript"
        assert [m["content"] for m in desk.sent()[1:]] == ["Hello", "Hi there, Ada", "And?"]
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"

    run(server, tmp_path, work)


def test_calls_are_handed_over_and_their_outputs_go_back(server: ModelServer, tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        three = calls(
            ("read_file", {"path": "a"}), ("bash", {"path": "b"}), ("view", {"path": "c"}), text="I look.", chunks=3
        )
        answer = await desk.ask("Look", three)
        assert answer.stop_reason == "tool_calls"
        assert [(call.name, json.loads(call.arguments)["path"]) for call in answer.calls] == [
            ("read_file", "a"),
            ("bash", "b"),
            ("view", "c"),
        ]
        assert len([d for d in desk.deltas if isinstance(d, CallDelta)]) > 3, "the arguments are streamed"
        assert len(server.requests) == 1, "the runtime waits for the outputs"

        failed = ToolOutput(
            call_id=answer.calls[0].id, name="read_file", content=(Text(text="Error: no a"),), is_error=True
        )
        pictured = ToolOutput(call_id=answer.calls[1].id, name="bash", content=(Text(text="a picture"), PIXEL))
        rest = desk.done().outputs[2]
        answer = await desk.ask(tool([failed, pictured, rest]), text("Done."))
        assert answer.text == "Done."
        outputs = [m for m in desk.sent() if m["role"] == "tool"]
        assert [m["tool_call_id"] for m in outputs] == [call.id for call in desk.messages[1].calls]
        assert "Error: no a" in str(outputs[0])
        assert "a picture" in str(outputs[1])
        assert desk.roles()[-1] == "user", "images go along in a message"
        assert "bash" in str(desk.sent()[-1])
        assert PIXEL.data in str(desk.sent()[-1])
        assert "seen view" in str(outputs[2])

        offered = [entry["function"] for entry in server.requests[0].body["tools"]]
        assert [entry["name"] for entry in offered] == ["read_file", "bash", "view"], "nothing of the runtime's own"
        assert offered[1] == {"name": "bash", "description": "Does bash.", "parameters": TOOLS[1].parameters}

    run(server, tmp_path, work)


def test_a_line_typed_while_a_tool_runs_goes_along_with_its_output(server: ModelServer, tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.ask("Look", calls(("view", {"path": "c"})))
        desk.messages.append(desk.done())
        await desk.ask("Stop, do the other", text("I stop."))
        assert desk.roles() == ["system", "user", "assistant", "tool", "user"]
        assert desk.sent()[-1]["content"] == "Stop, do the other"

    run(server, tmp_path, work)


def test_images_that_the_user_shows(server: ModelServer, tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.ask(user("What is this?", PIXEL), text("A pixel."))
        assert {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL.data}"}} in desk.sent()[1][
            "content"
        ]

    run(server, tmp_path, work)


def test_another_model_answered_in_between(server: ModelServer, tmp_path: Path) -> None:
    """What another model said comes as a transcript, and from there on the session goes on."""

    async def work(desk: Desk) -> None:
        await desk.ask("Hello", text("Hi."))
        desk.messages += [
            user("You?"),
            Message(role="assistant", content=(Text(text="Me."),), provider="groq", model="x"),
        ]
        await desk.ask("Back?", text("Back."))
        assert desk.roles() == ["system", "user"]
        for entry in ('{"user": "Hello"}', '{"assistant": "Hi."}', '{"user": "You?"}', '{"assistant": "Me."}'):
            assert entry in desk.sent()[1]["content"]
        assert desk.sent()[1]["content"].endswith("\n\nBack?")
        await desk.ask("Good", text("Yes."))
        assert desk.roles() == ["system", "user", "assistant", "user"]

    run(server, tmp_path, work)


def test_the_last_round_has_no_tools_and_other_settings_take_a_new_session(server: ModelServer, tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.ask("Look", calls(("view", {"path": "c"})), thinking="high")
        assert server.requests[-1].body["reasoning_effort"] == "high"
        await desk.ask(desk.done(), text("Done."), tool_choice="none", system="You are Marvin. Sum up.")
        assert "tools" not in server.requests[-1].body
        assert desk.sent()[0]["content"] == "You are Marvin. Sum up."
        assert "seen view" in desk.sent()[1]["content"]

    run(server, tmp_path, work)


def test_the_part_of_the_prompt_that_changes_is_told_in_the_session(server: ModelServer, tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.ask("Hello", text("Hi."), system="You are Marvin. Monday.", stable=15)
        await desk.ask("And?", text("Well."), system="You are Marvin. Tuesday.", stable=15)
        assert desk.roles() == ["system", "user", "assistant", "user"]
        assert desk.sent()[-1]["content"].endswith("Tuesday.]\n\nAnd?")
        await desk.ask("And?", text("Well."), system="You are Marvin. Tuesday.", stable=15)
        assert desk.sent()[-1]["content"] == "And?"

    run(server, tmp_path, work)


@pytest.mark.parametrize(
    ("answer", "called"),
    [
        (calls(("no_such_tool", {"path": "a"})), '{"path": "a"}'),
        (calls(("view", '{"path": ')), '{"path": '),
    ],
    ids=["unknown tool", "broken arguments"],
)
def test_a_call_that_the_runtime_would_answer_itself_is_left_to_marvin(
    answer: Answer, called: str, server: ModelServer, tmp_path: Path
) -> None:
    async def work(desk: Desk) -> None:
        said = await desk.ask("Look", answer, LONG)
        assert [call.arguments for call in said.calls] == [called]
        await asyncio.to_thread(server.wait_for, 1)
        server._script.clear()
        await desk.ask(desk.done("Error: use another"), text("I see."))
        assert "Error: use another" in desk.sent()[1]["content"]

    run(server, tmp_path, work)


@pytest.mark.parametrize("answer", [text("Cut o", finish="length"), calls(("view", '{"path": "c'), finish="length")])
def test_an_answer_that_was_cut_off_is_not_gone_on_with(answer: Answer, server: ModelServer, tmp_path: Path) -> None:
    """I26: cut-off arguments never run."""

    async def work(desk: Desk) -> None:
        said = await desk.ask("Hello", answer, LONG)
        assert said.stop_reason == "length"
        assert all(not call.complete for call in said.calls)

    run(server, tmp_path, work)


FAILURES: Sequence[tuple[Answer, type[ProviderError]]] = (
    (error(401, "wrong key"), AuthFailed),
    (error(402, "no credit left"), QuotaExhausted),
    (error(404, "the model scripted does not exist"), ModelNotFound),
    (error(429, "too many requests"), RateLimited),
    (error(500, "it broke"), Overloaded),
    (error(400, "maximum context length is 100 tokens"), ContextOverflow),
    (text(""), StreamBroken),
    (drop(), StreamBroken),
    (cut_after(900, LONG), StreamBroken),
)


def test_failures_are_typed_at_once_and_the_next_request_works(server: ModelServer, tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.ask("Hello", text("Hi."))
        for answer, expected in FAILURES:
            begin = asyncio.get_running_loop().time()
            with pytest.raises(expected) as caught:
                await desk.ask("And?", answer)
            assert asyncio.get_running_loop().time() - begin < 3, f"{expected}: the runtime's own retries take longer"
            assert KEY not in str(caught.value)
            desk.messages.pop()
        assert (await desk.ask("And now?", text("Fine."))).text == "Fine."
        assert '{"assistant": "Hi."}' in desk.sent()[1]["content"]

    run(server, tmp_path, work)


def test_a_service_that_is_not_there(server: ModelServer, tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9"):
            await desk.ask("Hello")

    run(server, tmp_path, work, base_url="http://127.0.0.1:9/v1")


def test_silence_ends_the_answer(server: ModelServer, tmp_path: Path) -> None:
    """I29: the session that fell silent is ended, and one that has not seen its prompt answers the next."""

    async def work(desk: Desk) -> None:
        with pytest.raises(Unreachable, match="sent nothing for 1 s"):
            await desk.ask("Hello", hang_after(700, LONG))
        assert await asyncio.to_thread(server.requests[0].gone.wait, 5), "the service is still asked"
        desk.messages.pop()
        assert (await desk.ask("Again", text("Here."))).text == "Here."
        assert [m["content"] for m in desk.sent()] == ["You are Marvin.", "Again"]

    run(server, tmp_path, work, timeouts=TIMEOUTS.replace(model_idle=1.0))


def test_a_cancel_in_mid_answer_stops_the_request(server: ModelServer, tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        asking = asyncio.ensure_future(desk.ask("Tell", hang_after(1500, LONG)))
        await asyncio.wait_for(desk.text_came.wait(), 20)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await asyncio.to_thread(server.requests[0].gone.wait, 5), "the service is still asked"
        assert (await desk.ask("Again", text("Here."))).text == "Here."

    run(server, tmp_path, work)


def test_a_cancel_while_the_tools_run(server: ModelServer, tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.ask("Look", calls(("view", {"path": "c"})))
        desk.messages.append(desk.done("interrupted"))
        desk.messages.append(
            Message(role="assistant", content=(Text(text="[Cancelled]"),), provider="copilot", model="scripted")
        )
        await desk.ask("Again", text("Here."))
        assert "interrupted view" in desk.sent()[1]["content"]
        await desk.ask("Look", calls(("view", {"path": "c"})))
        # It is closed with a handler that waits.

    run(server, tmp_path, work)


def test_a_runtime_that_dies_is_started_again(server: ModelServer, tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        asking = asyncio.ensure_future(desk.ask("Tell", hang_after(1500, LONG)))
        await asyncio.wait_for(desk.text_came.wait(), 20)
        for pid in runtimes(tmp_path):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(StreamBroken, match="ended in the middle"):
            await asking
        desk.messages.pop()
        assert (await desk.ask("Again", text("Here."))).text == "Here."

    run(server, tmp_path, work)


def test_without_a_login(server: ModelServer, tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        with pytest.raises(AuthFailed, match="gh auth login"):
            await desk.ask("Hello")

    run(server, tmp_path, work, base_url="", key=Secret(""))


def test_what_the_user_set_up_for_copilot_itself_does_not_act_here(server: ModelServer, tmp_path: Path) -> None:
    """Its MCP servers would run outside of Marvin's permissions, and its instructions are not Marvin's."""
    (tmp_path / ".copilot").mkdir()
    started = tmp_path / "started"
    evil = {"type": "local", "command": "touch", "args": [str(started)], "tools": ["*"]}
    (tmp_path / ".copilot" / "mcp-config.json").write_text(json.dumps({"mcpServers": {"evil": evil}}))
    (tmp_path / ".copilot" / "copilot-instructions.md").write_text("Speak French.")

    async def work(desk: Desk) -> None:
        await desk.ask("Hello", text("Hi."))
        assert "French" not in json.dumps(server.requests[-1].body)

    run(server, tmp_path, work)
    assert not started.exists()
    assert sorted(path.name for path in (tmp_path / ".copilot").iterdir()) == [
        "copilot-instructions.md",
        "mcp-config.json",
    ]


# ---- the installed program ----


@pytest.fixture
def marvin(server: ModelServer, tmp_path: Path) -> Marvin:
    marvin = Marvin(tmp_path, None)
    marvin.env["COPILOT_CLI_PATH"] = str(PROGRAM)
    marvin.env["COPILOT_CACHE_HOME"] = str(ROOT / ".venv-real" / "cache")
    marvin.config(f"providers: {{copilot: {{base_url: '{server.url}', models: [scripted]}}}}\n")
    return marvin


def test_the_command_and_the_configuration_of_the_page(marvin: Marvin, server: ModelServer) -> None:
    page = DOCS / "how-to" / "provider-copilot.md"
    (configuration,), (command,) = blocks(page, "yaml"), blocks(page, "sh")
    marvin.config(configuration.replace("http://127.0.0.1:8080/v1", server.url))
    server.script(text("There are two files."))
    path = f"{Path(sys.executable).parent}{os.pathsep}{marvin.env['PATH']}"
    done = shell(command, marvin.project, {**marvin.env, "PATH": path})
    assert (done.returncode, done.stdout) == (0, "There are two files.\n"), done.stderr
    assert server.requests[-1].body["model"] == "my-model"


def test_a_run_with_a_tool(marvin: Marvin, server: ModelServer) -> None:
    (marvin.project / "note.txt").write_text("The answer is 42.\n")
    server.script(calls(("read_file", {"path": "note.txt"})), text("It is 42."))
    done = marvin.ask("--provider", "copilot")
    assert (done.code, done.text.splitlines()[-1]) == (0, "It is 42."), done.said
    assert "The answer is 42." in str(server.requests[-1].body["messages"])
    assert done.cost()["llm_turns"] == 2
    assert done.said.count("\n") <= 1, f"nothing of the SDK's log: {done.said}"
    assert runtimes(marvin.home) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_process(number: signal.Signals, marvin: Marvin, server: ModelServer) -> None:
    """I25: whatever ends Marvin, Copilot's program ends, too."""
    server.script(hang_after(1500, LONG))
    running = marvin.ask_in_background("--provider", "copilot")
    running.until_out(b"A long answer")
    assert runtimes(marvin.home)
    running.send(number)
    running.finish()
    wait_until(lambda: runtimes(marvin.home) == [], "the program's end")
