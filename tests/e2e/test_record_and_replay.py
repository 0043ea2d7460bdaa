"""Sessions that are recorded with the real program, and replayed elsewhere: another home, another folder, no model."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest

from marvin_core.testing import ModelServer, calls, error, hang_after, text
from tests.e2e.support_e2e import LIMIT, PROGRAM, QUICK_RETRIES, Marvin, Result, put_away
from tests.support.agents import AgentModels

pytestmark = pytest.mark.slow
TOO_LONG = error(400, {"error": {"message": "Too many tokens.", "code": "context_length_exceeded"}})
NAME = "s.cassette.jsonl"
MCP_SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
PROMPT = "\r\n> "
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def elsewhere(tmp_path: Path, warm_cache: Path) -> Marvin:
    """Another machine: its own home and project, and no model."""
    return Marvin(tmp_path / "else where é", None, warm_cache)


def recorded(marvin: Marvin, *args: str, prompt: str = "Look at total.py.", **options: Any) -> Path:
    """The cassette of one non-interactive run."""
    result = marvin.ask("--record", NAME, *args, prompt=prompt, **options)
    assert result.code in (0, 1), result.err.decode()
    return marvin.project / NAME


def lines(cassette: Path) -> list[dict[str, Any]]:
    """Its records."""
    return [json.loads(line) for line in cassette.read_text("utf-8").splitlines()]


def change(cassette: Path, how: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Rewrite every record."""
    cassette.write_text("".join(json.dumps(how(record)) + "\n" for record in lines(cassette)), "utf-8")


def replay(marvin: Marvin, cassette: Path, *args: str) -> tuple[Result, dict[str, Any]]:
    """A replay, and its report."""
    copy = marvin.project / NAME
    if not copy.exists():
        shutil.copy(cassette, copy)
    result = marvin.run("replay", NAME, "--json", *args)
    assert result.out, result.err.decode()
    return result, json.loads(result.out)


def looked_at(marvin: Marvin, server: ModelServer) -> Path:
    """The cassette of a run that reads a file and runs a command, with the folders of this machine in all of it."""
    marvin.make_repository()
    server.script(
        calls(("read_file", {"path": str(marvin.project / "total.py")}), text=f"I look into {marvin.project}."),
        calls(("run_command", {"command": f"echo {marvin.home}; date; echo $$"})),
        text(f"It divides in {marvin.project}/total.py.", chunks=9),
    )
    return recorded(marvin, "--on-ask", "allow-all", prompt=f"Look at {marvin.project}/total.py.")


def test_a_session_replays_with_other_paths_and_another_home(
    marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin
) -> None:
    cassette = looked_at(marvin, marvin_model_server)
    assert stat.S_IMODE(cassette.stat().st_mode) == 0o600
    content = cassette.read_text("utf-8")
    assert str(marvin.project) not in content
    assert str(marvin.home) not in content
    assert [record["type"] for record in lines(cassette)][-2:] == ["done", "end"]
    result, report = replay(elsewhere, cassette)
    assert (result.code, report["same"]) == (0, True), report
    assert (report["prompts"], report["requests"], report["calls"]) == (1, 3, 2)
    assert not elsewhere.session_files()  # nothing of the person who replays is read or written


def test_a_changed_result_is_told_with_a_diff(
    marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin
) -> None:
    cassette = looked_at(marvin, marvin_model_server)
    elsewhere.make_repository()
    (elsewhere.project / "total.py").write_text("def total(items):\n    return sum(items)\n")
    result, report = replay(elsewhere, cassette, "--tools", "real", "--on-ask", "allow-all")
    assert result.code == 1
    (found,) = report["differences"]  # what `date` and `$$` print means nothing
    assert (found["kind"], found["where"]) == ("result", "prompt 1, call of read_file")
    assert "return sum(items) / len(items)" in found["diff"]
    (elsewhere.project / "total.py").write_text("def total(items):\n    return sum(items) / len(items)\n")
    assert replay(elsewhere, cassette, "--tools", "real", "--on-ask", "allow-all")[1]["same"]


def test_calls_of_an_mcp_server_are_recorded_alike_and_replayed_without_it(
    marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin
) -> None:
    """The SDK makes the first call of a connection and Marvin the later ones; no cassette and no replay shows it."""
    shutil.copy(MCP_SERVER, marvin.project / "server.py")
    command = {"command": sys.executable, "args": ["-S", "-P", str(marvin.project / "server.py"), "progress"]}
    marvin.config(json.dumps({"mcp_servers": {"trial": command}}))
    add = ("trial__add", {"a": 2, "b": 40})
    act: tuple[str, dict[str, Any]] = ("trial__act", {})
    marvin_model_server.script(calls(add), calls(add), calls(act), calls(add, act, add), text("42 it is."))
    cassette = recorded(marvin, "--tool-search", "off", prompt="Add them.")
    results = [one for one in lines(cassette) if one["type"] == "result"]
    alike = [
        {name: value for name, value in one.items() if name not in ("id", "at", "elapsed")}
        for one in results
        if one["name"] == "trial__add"
    ]
    assert len(results) == 6
    assert [one["text"] for one in alike] == ["42"] * 4
    assert alike == [alike[0]] * 4
    result, report = replay(elsewhere, cassette)  # which has no such server
    assert (result.code, report["same"], report["calls"]) == (0, True, 6), report
    result, report = replay(marvin, cassette, "--tools", "real", "--on-ask", "allow-all")
    assert (result.code, report["same"], report["calls"]) == (0, True, 6), report


def test_real_tools_are_under_the_permissions_of_who_replays(
    marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin
) -> None:
    """A stranger's cassette runs nothing that a stranger's model would not be allowed to run."""
    server = marvin_model_server
    outside = elsewhere.home / "kept.txt"
    outside.write_text("kept")
    escapes = "../" * 12 + str(outside).lstrip("/")
    server.script(
        calls(("run_command", {"command": "touch ran"}), ("create_file", {"path": "made", "content": "x"})),
        calls(("write_file", {"path": escapes, "content": "x"}), ("read_file", {"path": escapes})),
        text("Done."),
    )
    cassette = recorded(marvin, "--on-ask", "allow-all")
    shutil.copy(cassette, elsewhere.project / NAME)
    result, report = replay(elsewhere, cassette, "--tools", "real")
    assert result.code == 1
    assert sorted(path.name for path in elsewhere.project.iterdir() if path.name[0] != ".") == [NAME]
    replay(elsewhere, cassette, "--tools", "real", "--on-ask", "allow-all")
    assert outside.read_text() == "kept"
    elsewhere.config("permissions: {deny: [run_command]}\n")
    (elsewhere.project / "ran").unlink(missing_ok=True)
    _, report = replay(elsewhere, cassette, "--tools", "real", "--on-ask", "allow-all")
    assert not (elsewhere.project / "ran").exists()
    assert any("run_command" in one["where"] for one in report["differences"])


def test_retries_and_stand_ins_come_again(marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin) -> None:
    with ModelServer(calls(("read_file", {"path": "no.py"})), text("I stood in.")) as other:
        services = f"providers: {{spare: {{base_url: '{other.url}', models: [s1]}}}}\nfallback: [spare/s1]\n"
        marvin.config(QUICK_RETRIES + services)
        marvin_model_server.script(error(429), *(error(401) for _ in range(3)))
        cassette = recorded(marvin)
    kinds = [part["kind"] for record in lines(cassette) for part in record.get("parts", ())]
    assert kinds[:2] == ["retrying", "switched"], kinds
    result, report = replay(elsewhere, cassette)
    assert (result.code, report["same"]) == (0, True), report


def test_a_conversation_that_was_summed_up_is_replayed(
    marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin
) -> None:
    look = calls(("run_command", {"command": "seq 1 1000"}))
    marvin_model_server.script(*[look] * 6, TOO_LONG, text("It counted."), text("Done."))
    cassette = recorded(marvin, "--on-ask", "allow-all", prompt="Count well.")
    assert sum(record["type"] == "request" for record in lines(cassette)) == 9
    result, report = replay(elsewhere, cassette)
    assert (result.code, report["same"], report["requests"]) == (0, True, 9), json.dumps(report, indent=1)


def test_sub_agents_are_in_the_cassette_and_replayed(
    tmp_path: Path, models: AgentModels, warm_cache: Path, elsewhere: Marvin
) -> None:
    marvin = Marvin(tmp_path, models, warm_cache)
    (marvin.project / "total.py").write_text("def total(items): ...\n")
    research = "launch_research_agent"
    models.scripts["Do"] = deque(
        [calls((research, {"query": "Look at total.py."}), (research, {"query": "Count it."})), text("Told.")]
    )
    models.scripts["Look"] = deque([calls(("read_file", {"path": "total.py"})), text("It adds.")])
    models.scripts["Count"] = deque([text("One line.")])
    cassette = recorded(marvin, "--on-ask", "allow-all", prompt="Do it.")
    begun = [record for record in lines(cassette) if record["type"] == "conversation"]
    assert [record["depth"] for record in begun] == [0, 1, 1]
    assert str(tmp_path) not in cassette.read_text("utf-8")
    result, report = replay(elsewhere, cassette)
    assert (result.code, report["same"], report["prompts"]) == (0, True, 3), report
    _, report = replay(elsewhere, cassette, "--tools", "real")
    assert any("sub-agents do not work in a replay" in note for note in report["notes"])


def test_a_killed_session_leaves_a_cassette_that_says_so(
    marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin
) -> None:
    server = marvin_model_server
    server.script(calls(("run_command", {"command": "echo one"})), hang_after(200, text("It never ends.")))
    running = marvin.ask_in_background("--record", NAME, "--on-ask", "allow-all")
    running.until(lambda: len(server.requests) == 2, "the second request")
    running.until(lambda: (marvin.project / NAME).read_bytes().count(b'"type":"request"') == 2, "its record")
    running.send(signal.SIGKILL)
    running.finish()
    cassette = marvin.project / NAME
    result, report = replay(elsewhere, cassette)
    assert (result.code, report["same"]) == (0, True), report
    assert any("the recording was cut" in note for note in report["notes"])
    whole = cassette.read_bytes()
    (elsewhere.project / NAME).write_bytes(whole[:-20])  # in the middle of a line
    assert any("the recording was cut" in note for note in replay(elsewhere, cassette)[1]["notes"])


def test_a_cancelled_prompt_is_cancelled_again(
    marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin
) -> None:
    marvin_model_server.script(hang_after(300, text("It begins and never ends.", chunks=5)))
    running = marvin.ask_in_background("--record", NAME)
    running.until(lambda: len(marvin_model_server.requests) == 1, "the request")
    running.send(signal.SIGINT)
    assert running.finish().code == 130
    result, report = replay(elsewhere, marvin.project / NAME)
    assert (result.code, report["same"]) == (0, True), report


def test_a_chat_with_a_command_a_question_and_an_earlier_session(
    marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin
) -> None:
    server = marvin_model_server
    server.script(text("Earlier."))
    assert marvin.ask(prompt="Begin.").code == 0
    server.script(
        calls(("run_command", {"command": "echo one"})),
        text("It said one."),
        text("Much further."),
    )
    typed = "Go on with it.\ny\n/thinking high\nAnd further.\n"
    result = marvin.run("--plain", "--continue", "--record", NAME, stdin=typed.encode())
    assert result.code == 0, result.err.decode()
    found = lines(marvin.project / NAME)
    assert [record["name"] for record in found if record["type"] == "command"] == ["thinking"]
    assert [record["text"] for record in found if record["type"] == "prompt"] == ["Go on with it.", "And further."]
    assert any(record["type"] == "question" for record in found)
    result, report = replay(elsewhere, marvin.project / NAME)
    assert (result.code, report["same"], report["calls"]) == (0, True, 1), report
    assert any("/thinking" in note for note in report["notes"])


def test_a_chat_on_a_terminal_with_a_picture_and_questions(
    marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin
) -> None:
    (marvin.project / "pic.png").write_bytes(base64.b64decode(PICTURE))
    question = {"questions": [{"question": "Which?", "options": ["a", "b"]}]}
    marvin_model_server.script(
        calls(("run_command", {"command": "echo one"})),
        text("Seen."),
        calls(("ask_user", question)),
        text("So be it."),
        text("Anew."),
    )
    chat = pexpect.spawn(
        PROGRAM[0],
        [*PROGRAM[1:], "--record", NAME],
        cwd=str(marvin.project),
        env={**marvin.env, "TERM": "dumb"},
        encoding="utf-8",
        timeout=LIMIT,
        dimensions=(40, 200),
    )
    chat.delaybeforesend = None
    try:
        for line, expected in (
            ("Look at @pic.png", "/view] "),
            ("y", PROMPT),
            ("Ask me.", "own words"),
            ("b", PROMPT),
            ("/clear", PROMPT),
            ("Begin anew.", PROMPT),
        ):
            if line == "Look at @pic.png":
                chat.expect_exact(PROMPT)
            chat.sendline(line)
            chat.expect_exact(expected)
        chat.send("\x04")
        chat.expect(pexpect.EOF)
    finally:
        put_away(chat)
    asked = [record for record in lines(marvin.project / NAME) if record["type"] == "question"]
    assert [(one["kind"], one["question"]) for one in asked] == [("calls", "Run run_command?"), ("text", "Which?")]
    assert asked[1]["answer"] == "b"
    result, report = replay(elsewhere, marvin.project / NAME)
    assert (result.code, report["same"], report["prompts"], report["calls"]) == (0, True, 3, 2), report
    assert report["notes"] == ["slash commands are not run again: /clear"]
    _, report = replay(elsewhere, marvin.project / NAME, "--tools", "real")
    assert {one["where"] for one in report["differences"]} == {"prompt 1, call of run_command"}


def test_no_secret_is_in_a_cassette(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    key, other = "sk-declared-0123456789abcdef", "ghp_0123456789abcdefghij0123456789abcdefgh"
    marvin.env |= {"OPENAI_COMPAT_API_KEY": key}
    (marvin.project / "keys.txt").write_text(f"{key}\n{other}\n")
    halves = [f"I saw {key[:9]}", f"{key[9:20]}", f"{key[20:]} and {other[:12]}", other[12:]]
    marvin_model_server.script(calls(("read_file", {"path": "keys.txt"})), text("".join(halves), chunks=halves))
    content = recorded(marvin, prompt=f"Is {key} in keys.txt, or {other}?").read_text("utf-8")
    assert key not in content
    assert other not in content
    assert "[redacted]" in content


def test_what_was_changed_in_the_file_is_told(
    marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin
) -> None:
    cassette = looked_at(marvin, marvin_model_server)

    def other_prompt(record: dict[str, Any]) -> dict[str, Any]:
        if record["type"] == "request" and record["n"] == 1:
            record["request"]["messages"][0]["content"][0]["text"] = "Something else."
        return record

    change(cassette, other_prompt)
    result, report = replay(elsewhere, cassette)
    assert result.code == 1
    assert {one["kind"] for one in report["differences"]} == {"cassette", "request"}


def test_answers_and_calls_that_do_not_come_are_told(
    marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin
) -> None:
    cassette = looked_at(marvin, marvin_model_server)

    def without_calls(record: dict[str, Any]) -> dict[str, Any]:
        if record["type"] == "answer" and record["n"] == 2:
            record["parts"] = [{"kind": "text", "text": "No.", "pieces": []}, {"kind": "stop", "reason": "stop"}]
        return record

    change(cassette, without_calls)
    _, report = replay(elsewhere, cassette)
    assert [one["kind"] for one in report["differences"]] == ["answer", "call"]
    assert report["differences"][1]["where"] == "prompt 1, call of run_command"


def test_windows_line_ends_change_nothing(marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin) -> None:
    cassette = looked_at(marvin, marvin_model_server)
    cassette.write_bytes(cassette.read_bytes().replace(b"\n", b"\r\n"))
    result, report = replay(elsewhere, cassette)
    assert (result.code, report["same"]) == (0, True), report


def test_a_file_that_is_there_is_not_written_over(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    (marvin.project / NAME).write_text("mine")
    result = marvin.ask("--record", NAME)
    assert result.code == 2, result.said
    assert "already exists" in result.said
    assert (marvin.project / NAME).read_text() == "mine"
    assert not marvin_model_server.requests


def test_a_cassette_becomes_a_test(marvin: Marvin, marvin_model_server: ModelServer, elsewhere: Marvin) -> None:
    cassette = looked_at(marvin, marvin_model_server)
    (elsewhere.project / "tests").mkdir()
    shutil.copy(cassette, elsewhere.project / "bad day.jsonl")
    made = elsewhere.run("replay", "--as-test", "bad day.jsonl")
    assert made.code == 0, made.err.decode()
    target = elsewhere.project / "tests" / "bad day.cassette.jsonl"
    assert target.read_bytes() == cassette.read_bytes()
    assert elsewhere.run("replay", "--as-test", "bad day.jsonl").code == 2

    def tests() -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
        return subprocess.run(words, cwd=elsewhere.project, env=elsewhere.env, capture_output=True, text=True)

    done = tests()
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout

    def other_prompt(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "text": "Look elsewhere."} if record["type"] == "prompt" else record

    change(target, other_prompt)
    done = tests()
    assert done.returncode == 1, done.stdout
    assert "the conversation is different" in done.stdout


def test_the_demo_fixes_a_bug_without_any_model(unconfigured: Marvin) -> None:
    result = unconfigured.run("demo", "--keep")
    assert result.code == 0, result.err.decode()
    assert result.text.startswith("This is a demonstration by a script.")
    assert "written by hand" in result.text.splitlines()[-2]
    assert "FAILED (failures=1)" in result.text
    assert "return (ordered[middle - 1] + ordered[middle]) / 2" in result.text
    assert result.text.index("FAILED (failures=1)") < result.text.index("\n    OK\n")
    (kept,) = [line for line in result.text.splitlines() if line.startswith("/") and line.endswith("/averages")]
    folder = Path(kept)
    assert "M averages.py" in unconfigured.git("status", "--short", cwd=folder)
    assert folder.parent.name.startswith("marvin-demo-")
    shutil.rmtree(folder.parent)
    assert not unconfigured.session_files()


def test_the_demo_claims_nothing_where_a_tool_failed(unconfigured: Marvin, tmp_path: Path) -> None:
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\ncase " $* " in *" diff "*) exit 1;; esac\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    result = unconfigured.run("demo", env={"PATH": f"{git.parent}{os.pathsep}{os.environ['PATH']}"})
    assert result.code == 1
    assert "The demo did not go as it should" in result.said
    assert "the bug was fixed just now" not in result.text
    (gone,) = [line for line in result.text.splitlines() if line.startswith("/") and line.endswith("/averages")]
    assert not Path(gone).exists()


def test_the_demo_says_what_to_install(unconfigured: Marvin) -> None:
    result = unconfigured.run("demo", env={"MARVIN_PACKS": "core"})
    assert result.code == 1
    assert "marvin-core[coding]" in result.said


def test_the_demo_needs_no_other_pack(unconfigured: Marvin) -> None:
    result = unconfigured.run("demo", env={"MARVIN_PACKS": "core,coding"})
    assert result.code == 0, result.err.decode()
    (gone,) = [line for line in result.text.splitlines() if line.startswith("/") and line.endswith("/averages")]
    assert not Path(gone).exists()


def test_what_a_stranger_wrote_into_a_cassette_stays_text(unconfigured: Marvin) -> None:
    """Control characters, values of wrong types, tools that are none, paths that lead outside."""
    path = '{"path": "{cwd}/../../../../etc/passwd"}'
    of_call = {"c": "main", "id": "c1"}
    records: list[dict[str, Any]] = [
        {"type": "cassette", "version": 1, "marvin": "\x1b]0;x\x07"},
        {"type": "conversation", "c": "main", "tools": "\x1b[2J", "output_schema": 5, "tool_search": "x"},
        {"type": "prompt", "c": "main", "text": "\x1b[31mred {cwd}/..\r\n", "mode": "x", "tools": "none,-of,them"},
        {"type": "request", "c": "main", "n": 1, "provider": "\x1b[1m", "window": -4, "request": {"messages": [{}]}},
        {
            "type": "answer",
            "c": "main",
            "n": 1,
            "parts": [
                {"kind": "text", "text": "\x1b[2Jhi", "pieces": [[0, 5], [-1, -5]]},
                {"kind": "call", "key": -7, "id": "c1", "name": "read_file", "text": path},
                {"kind": "call", "key": 8, "id": "c2", "name": "\x1b[31mno", "text": "{{{"},
                {"kind": "usage", "usage": {"input_tokens": -5, "output_tokens": 1e300, "zz": 1}},
                {"kind": "stop", "reason": "tool_calls"},
            ],
        },
        {"type": "call", **of_call, "name": "read_file", "arguments": 5},
        {"type": "result", **of_call, "text": "\x1b[2Jroot", "is_error": "x"},
        {"type": "extras", **of_call, "images": [{"data": 5}], "reveals": [5], "lasting": 7},
        {"type": "request", "c": "main", "n": 2, "like": 1, "same": 1, "request": {"messages": []}},
        {"type": "answer", "c": "main", "n": 2, "parts": [], "error": {"kind": "Overloaded", "status": [1]}},
        {"type": "done", "c": "main", "stop_reason": "\x1b[2J"},
    ]
    (unconfigured.project / NAME).write_text("".join(json.dumps(record) + "\n" for record in records))
    for words in ((), ("--json",), ("--tools", "real", "--on-ask", "allow-all")):
        result = unconfigured.run("replay", NAME, *words)
        assert result.code == 1
        assert b"\x1b" not in result.out + result.err
        assert not result.err, result.said
        assert b"root:" not in result.out


def test_standard_input_is_no_cassette(unconfigured: Marvin) -> None:
    result = unconfigured.run("replay", "/dev/stdin", stdin=b"{}\n")
    assert result.code == 1
    assert "is not a file" in result.said
