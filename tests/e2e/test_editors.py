"""Marvin in an editor: `marvin acp`, driven by the client of the published library."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from marvin_core.testing import ModelServer, answers
from tests.e2e.support_e2e import Marvin, assert_gone, conversation, told
from tests.e2e.support_editor import Editor, Terminal, talking

pytestmark = pytest.mark.slow

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ANSWER = answers.text("Done.")
SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"


def test_a_prompt_is_answered_with_what_happens_on_the_way(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    (marvin.project / "a.txt").write_text("hello\n")
    marvin_model_server.script(
        answers.calls(("plan", {"steps": ["Read it", "Say it"], "done": 1}), ("read_file", {"path": "a.txt"})),
        answers.text("It says hello.", chunks=3, thinking="Let me see."),
    )

    async def talk() -> None:
        editor = Editor()
        async with talking(marvin, editor) as marvin_acp:
            opened = await marvin_acp.agent.new_session(cwd=str(marvin.project))
            assert opened.modes is not None
            assert opened.modes.current_mode_id == "ask"
            assert {one.id for one in opened.config_options or []} == {"mode", "model", "thinking"}
            assert await marvin_acp.ask(opened.session_id, "What does it say?") == "end_turn"
            commands = {one.name for one in editor.of("available_commands_update")[0].available_commands}
            assert {"compact", "permissions", "undo"} <= commands
            assert not commands & {"exit", "login", "theme", "resume"}
            assert editor.said() == "It says hello."
            assert editor.of("agent_thought_chunk")[-1].content.text == "Let me see."
            assert [(one.content, one.status) for one in editor.of("plan")[0].entries] == [
                ("Read it", "completed"),
                ("Say it", "in_progress"),
            ]
            (read,) = [one for one in editor.of("tool_call") if one.kind == "read"]
            assert read.title == "read_file: a.txt"
            assert [one.path for one in read.locations] == [str(marvin.project / "a.txt")]
            ended = [one for one in editor.of("tool_call_update") if one.tool_call_id == read.tool_call_id][-1]
            assert ended.status == "completed"
            assert "hello" in ended.content[0].content.text
            assert editor.of("session_info_update")[0].title == "What does it say?"
            assert editor.of("usage_update")[-1].size > 0

    asyncio.run(talk())


def test_a_call_that_writes_is_asked_about_with_its_difference(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    file = marvin.project / "a.txt"
    file.write_text("one = 1\ntwo = 2\n")

    def edit(content: str) -> Any:
        return answers.calls(("write_file", {"path": "a.txt", "content": content}))

    marvin_model_server.script(
        answers.calls(("read_file", {"path": "a.txt"})),
        edit("one = 11\ntwo = 2\n"),
        answers.text("Not done."),
        edit("one = 1\ntwo = 22\n"),
        answers.text("Done."),
        answers.calls(("run_command", {"command": "touch x1"})),
        answers.calls(("run_command", {"command": "touch x2"})),
        answers.text("Both."),
        answers.calls(("create_file", {"path": "n1", "content": "x"})),
        answers.calls(("create_file", {"path": "n1", "content": "x"})),
        answers.text("No."),
    )

    async def talk() -> None:
        editor = Editor("reject_once", "allow_once", "allow_always", "reject_always")
        async with talking(marvin, editor) as marvin_acp:
            session = await marvin_acp.session(marvin.project)
            await marvin_acp.ask(session, "Change one.")
            assert file.read_text() == "one = 1\ntwo = 2\n"
            (change,) = [part for part in editor.asked[0].content or [] if part.type == "diff"]
            assert change.path == str(file)
            assert (change.old_text, change.new_text) == ("one = 1\ntwo = 2\n", "one = 11\ntwo = 2\n")
            assert [one.kind for one in editor.options[0]][-2:] == ["reject_once", "reject_always"]
            assert editor.of("tool_call_update")[-1].status == "failed"
            await marvin_acp.ask(session, "Change two.")
            assert file.read_text() == "one = 1\ntwo = 22\n"
            shown = editor.of("tool_call_update")[-1]
            assert [part.type for part in shown.content] == ["diff"]
            await marvin_acp.ask(session, "Touch both.")
            assert len(editor.asked) == 3  # the yes to the first holds for the second
            assert (marvin.project / "x2").exists()
            assert editor.asked[2].kind == "execute"
            await marvin_acp.ask(session, "Make it, twice.")
            assert len(editor.asked) == 4  # the no to the first holds for the second
            assert not (marvin.project / "n1").exists()
            assert "all calls like this one" in told(marvin_model_server)[0]

    asyncio.run(talk())


def test_a_cancelled_prompt_leaves_no_program_behind(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(
        answers.calls(("run_command", {"command": "touch never"})),
        answers.calls(("run_command", {"command": "echo $$ > pids; echo begun; sleep 600"})),
        answers.text("Again."),
    )

    async def talk() -> None:
        editor = Editor("nothing", "allow_once")
        async with talking(marvin, editor) as marvin_acp:
            session = await marvin_acp.session(marvin.project)
            running = asyncio.ensure_future(marvin_acp.ask(session, "Touch it."))
            await editor.until(lambda: editor.asked)
            await marvin_acp.agent.cancel(session_id=session)
            assert await running == "cancelled"
            assert editor.of("tool_call_update")[-1].status == "failed"
            running = asyncio.ensure_future(marvin_acp.ask(session, "Sleep."))
            await editor.until(lambda: "begun" in str(editor.of("tool_call_update")))
            assert marvin.at_work()
            with pytest.raises(Exception, match="Invalid request"):  # one prompt at a time
                await marvin_acp.ask(session, "Another.")
            await marvin_acp.agent.cancel(session_id=session)
            assert await running == "cancelled"
            marvin.assert_nothing_left()
            assert await marvin_acp.ask(session, "Go on.") == "end_turn"
            assert editor.said() == "Again."
            assert not (marvin.project / "never").exists()

    asyncio.run(talk())


def test_the_editor_shows_a_command_in_a_terminal_and_marvin_runs_it(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    steps = "echo line 1; until test -e go; do sleep 0.05; done; echo line 2; rm go"
    outside = marvin.home.parent / "outside"
    commands = [
        f"{steps}; echo new > made; exit 3",
        f"echo x > {outside}",
        "echo $$ > pids; echo begun; sleep 600",
        "touch refused",
        "kill -TERM $$",
    ]
    calls = [answers.calls(("run_command", {"command": command})) for command in commands]
    marvin_model_server.script(calls[0], ANSWER, calls[1], ANSWER, calls[2], calls[3], ANSWER, calls[4], ANSWER)

    async def talk() -> None:
        picks = ["allow_once"] * 3 + ["reject_once", "allow_once"]
        editor = Editor(*picks, terminals=True)
        async with talking(marvin, editor) as marvin_acp:
            session = await marvin_acp.session(marvin.project)

            def terminal() -> Terminal:
                return list(editor.terminals().values())[-1]

            running = asyncio.ensure_future(marvin_acp.ask(session, "Count."))
            await editor.until(lambda: editor.terminals() and "line 1" in terminal().text)
            (marvin.project / "go").touch()  # it was shown while the command runs
            assert await running == "end_turn"
            assert terminal().cwd == str(marvin.project)
            assert [line for line in terminal().text.splitlines() if line] == [
                "line 1",
                "line 2",
                "[exit code 3]",
            ]
            assert terminal().exits == [(3, None)]
            (last,) = editor.of("tool_call_update")[-1].content
            assert (last.type, last.terminal_id) == ("terminal", list(editor.terminals())[-1])
            assert (marvin.project / "made").exists()
            await marvin_acp.ask(session, "/undo")  # what the command did is undone like that of any tool
            assert not (marvin.project / "made").exists()

            await marvin_acp.ask(session, "Write elsewhere.")
            assert not outside.exists()  # the sandbox holds

            running = asyncio.ensure_future(marvin_acp.ask(session, "Sleep."))
            await editor.until(lambda: "begun" in terminal().text)
            await marvin_acp.agent.cancel(session_id=session)
            assert await running == "cancelled"
            assert terminal().exits == [(None, None)]
            marvin.assert_nothing_left()

            await marvin_acp.ask(session, "Touch it.")
            assert editor.of("tool_call_update")[-1].content[0].type == "content"  # it says why, not an empty terminal
            assert terminal().exits == [(None, None)]

            await marvin_acp.ask(session, "End.")
            assert terminal().exits == [(None, "SIGTERM")]

    asyncio.run(talk())


def test_two_sessions_have_folders_of_their_own_and_are_loaded_again(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    other = marvin.home / "other"
    other.mkdir()
    (marvin.project / "a.txt").write_text("first\n")
    (other / "a.txt").write_text("second\n")
    read = answers.calls(("read_file", {"path": "a.txt"}))
    marvin_model_server.script(read, answers.text("One."), read, answers.text("Two."), answers.text("Again."))

    async def talk() -> tuple[str, str]:
        editor = Editor()
        async with talking(marvin, editor) as marvin_acp:
            first, second = await marvin_acp.session(marvin.project), await marvin_acp.session(other)
            await marvin_acp.ask(first, "Read.")
            assert "first" in told(marvin_model_server)[0]
            await marvin_acp.ask(second, "Read, too.")
            assert "second" in told(marvin_model_server)[0]
            assert (editor.said(first), editor.said(second)) == ("One.", "Two.")
            listed = (await marvin_acp.agent.list_sessions()).sessions
            assert {(one.session_id, one.title) for one in listed} == {(first, "Read."), (second, "Read, too.")}
            here = (await marvin_acp.agent.list_sessions(cwd=str(other))).sessions
            assert [one.session_id for one in here] == [second]
        return first, second

    async def again(session: str) -> None:
        editor = Editor()
        async with talking(marvin, editor) as marvin_acp:
            await marvin_acp.agent.load_session(cwd=str(marvin.project), session_id=session, mcp_servers=[])
            assert [one.content.text for one in editor.of("user_message_chunk")] == ["Read."]
            assert editor.said().strip() == "One."
            assert [one.status for one in editor.of("tool_call_update")] == ["completed"]
            assert await marvin_acp.ask(session, "Go on.") == "end_turn"
            assert [one["role"] for one in conversation(marvin_model_server)] == [
                "user", "assistant", "tool", "assistant", "user",
            ]  # fmt: skip
            with pytest.raises(Exception, match="not found"):
                await marvin_acp.agent.load_session(cwd=str(marvin.project), session_id=session[:8], mcp_servers=[])

    first, _ = asyncio.run(talk())
    asyncio.run(again(first))


def test_images_files_and_what_is_embedded_reach_the_model(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    (marvin.project / "disk.txt").write_text("on disk\n")
    unsaved = str(marvin.project / "open.txt")
    marvin_model_server.script(answers.text("Seen."))
    embedded = schema.TextResourceContents(uri=f"file://{marvin.project}/part.py", text="def part(): ...\n")

    async def talk() -> None:
        editor = Editor(files={unsaved: "not saved yet\n"})
        async with talking(marvin, editor) as marvin_acp:
            session = await marvin_acp.session(marvin.project)
            await marvin_acp.ask(
                session,
                "Look at ",
                schema.ImageContentBlock(type="image", data=PNG, mime_type="image/png"),
                schema.ImageContentBlock(
                    type="image", data=base64.b64encode(b"no image").decode(), mime_type="image/png"
                ),
                schema.ResourceContentBlock(type="resource_link", uri=f"file://{marvin.project}/disk.txt", name="d"),
                " and ",
                schema.ResourceContentBlock(type="resource_link", uri=f"file://{unsaved}", name="open.txt"),
                schema.EmbeddedResourceContentBlock(type="resource", resource=embedded),
            )
            assert "not an image that models can see" in editor.said()

    asyncio.run(talk())
    (sent,) = [one for one in conversation(marvin_model_server) if one["role"] == "user"]
    words = json.dumps(sent["content"])
    assert all(part in words for part in ("disk.txt", "on disk", "not saved yet", "def part()", PNG[:40]))


def test_servers_of_the_editor_and_what_a_folder_brings(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    (marvin.project / ".marvin").mkdir()
    (marvin.project / ".marvin" / "config.yaml").write_text("tools: readonly\n")
    marvin_model_server.script(*[answers.calls(("own-tools__add", {"a": 2, "b": 3})), answers.text("Five.")] * 20)
    marvin.env["MARVIN_SANDBOX"] = "off"  # which hides the folder of the server
    server = schema.McpServerStdio(name="own tools", command=sys.executable, args=[str(SERVER), "plain"], env=[])

    async def talk() -> None:
        editor = Editor("reject_once", "allow_once")
        async with talking(marvin, editor) as marvin_acp:
            session = await marvin_acp.session(marvin.project, [server])
            await marvin_acp.ask(session, "Add.")
            assert "Trust the code and settings of" in str(editor.asked[0].title)
            while (
                "There is no tool" in told(marvin_model_server)[0]
            ):  # a prompt waits for a new server for a while only
                await marvin_acp.ask(session, "Add.")
            assert told(marvin_model_server) == ["5"], editor.said()
            later = await marvin_acp.session(marvin.project)
            await marvin_acp.ask(later, "/permissions")
            assert len(editor.asked) == 2  # the no is kept
            await marvin_acp.agent.set_session_mode(session_id=later, mode_id="readonly")
            await marvin_acp.ask(later, "/permissions")
            assert "readonly" in editor.said(later)
            (changed,) = editor.of("config_option_update", later)
            assert changed.config_options[0].current_value == "readonly"
        assert [path.stem for path in marvin.session_files()] == [session]  # nothing was said in the other one

    asyncio.run(talk())


def test_garbage_is_answered_and_the_end_of_the_editor_ends_everything(marvin: Marvin) -> None:
    def line(message: Any) -> bytes:
        return json.dumps(message).encode() + b"\n"

    opened = {"method": "session/new", "params": {"cwd": str(marvin.project), "mcpServers": []}}
    sent = b"".join(
        [
            b"not json\n\xff\xfe\n[]\n17\n\n" + b"[" * 100_000 + b"\n",
            line({"id": {"a": 1}, "method": "initialize"}),
            line({"jsonrpc": "2.0", "id": 99, "error": "boom"}),
            line({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": [1, 2]}),
            line({"jsonrpc": "2.0", "id": 2, "method": "no/such"}),
            line({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId": "?", "prompt": []}}),
            line({"jsonrpc": "2.0", "id": 4, "method": "session/new", "params": {"cwd": "rel", "mcpServers": []}}),
            line({"jsonrpc": "2.0", "id": "five", **opened}),
            b'{"jsonrpc": "2.0", "id": 6, "method": "initialize"',
        ]
    )
    done = marvin.run("acp", stdin=sent)
    assert done.code == 0, done.said
    replies = [json.loads(one) for one in done.out.splitlines()]
    by_id = {one["id"]: one for one in replies if "id" in one}
    assert sum(one.get("id", 0) is None for one in replies) >= 5
    assert by_id[1]["error"]["code"] == -32602
    assert by_id[2]["error"]["code"] == -32601
    assert "No session" in json.dumps(by_id[3])
    assert "not the absolute path" in json.dumps(by_id[4])


def test_nothing_but_the_protocol_reaches_standard_output(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    tools = marvin.config_folder / "tools"
    tools.mkdir()
    (tools / "noisy.py").write_text(
        "import os\nimport subprocess\nfrom marvin_core import tool\n\n"
        '@tool(access=["read"])\ndef noisy() -> str:\n    """Make noise."""\n'
        '    print("NOISE")\n    os.write(1, b"NOISE\\n")\n    subprocess.run(["echo", "NOISE"])\n    return "quiet"\n'
    )
    marvin_model_server.script(answers.calls(("noisy", {})), answers.text("Done."))
    running = marvin.start("acp", stdin=subprocess.PIPE)

    def send(method: str, **params: Any) -> None:
        assert running.process.stdin is not None
        running.process.stdin.write(json.dumps({"id": method, "method": method, "params": params}).encode() + b"\n")
        running.process.stdin.flush()

    send("session/new", cwd=str(marvin.project), mcpServers=[])
    running.until_out(b'"sessionId"')
    session = re.findall(rb'"sessionId":"([^"]+)"', running.out)[0].decode()
    send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Do it."}])
    running.until_out(b'"stopReason"')
    assert running.process.stdin is not None
    running.process.stdin.close()
    done = running.finish()
    assert told(marvin_model_server) == ["quiet"]
    assert all(isinstance(json.loads(line), dict) for line in done.out.splitlines())
    assert b"NOISE" not in done.out
    assert done.err.count(b"NOISE") == 3


def test_an_editor_that_dies_leaves_nothing_behind(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(answers.calls(("run_command", {"command": "echo $$ > pids; echo begun; sleep 600"})))

    async def talk() -> int:
        editor = Editor()
        async with talking(marvin, editor) as marvin_acp:
            session = await marvin_acp.session(marvin.project)
            running = asyncio.ensure_future(marvin_acp.ask(session, "Sleep."))
            await editor.until(lambda: "begun" in str(editor.of("tool_call_update")))
            pid = marvin_acp.process.pid
            assert marvin_acp.process.stdin is not None
            marvin_acp.process.stdin.close()
            await marvin_acp.process.wait()
            running.cancel()
        return pid

    assert_gone([asyncio.run(talk())])
    marvin.assert_nothing_left()
