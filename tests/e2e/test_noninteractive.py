"""`marvin --non-interactive`: what goes to which stream, what changes on disk, how it ends."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from marvin_core.testing import ModelServer, calls, error, hang, text
from tests.e2e.support_e2e import (
    Marvin,
    assert_cost_last,
    assert_loadable,
    block_texts,
    conversation,
    posts,
    told,
)

pytestmark = pytest.mark.slow

READ: tuple[str, dict[str, Any]] = ("get_working_dir", {})


# --- standard output -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param([text("Hello.")], "Hello.\n", id="no-newline"),
        pytest.param([text("Hello.\n")], "Hello.\n", id="one-newline"),
        pytest.param([text("Hello.\n\n\n")], "Hello.\n", id="several-newlines"),
        pytest.param([text("a\n\nb\n\n", chunks=["a\n", "\n", "b", "\n", "\n"])], "a\n\nb\n", id="newlines-in-pieces"),
        pytest.param([text("  a  \n\n\tb \n")], "  a  \n\n\tb \n", id="blanks-kept"),
        pytest.param([text("a\r\nb\r\n")], "a\r\nb\r\n", id="carriage-returns"),
        pytest.param([calls(READ), text("Done.")], "  🔧 get_working_dir\nDone.\n", id="tools-first"),
        pytest.param(
            [calls(READ, text="I look."), text("Done.")],
            "I look.\n  🔧 get_working_dir\nDone.\n",
            id="tools-in-mid-line",
        ),
        pytest.param(
            [calls(READ, text="I look.\n\n"), text("Done.\n")],
            "I look.\n  🔧 get_working_dir\nDone.\n",
            id="tools-after-newlines",
        ),
        pytest.param(
            [calls(READ, ("tree", {}), text="Two:"), text("Done.")],
            "Two:\n  🔧 get_working_dir, tree\nDone.\n",
            id="two-names",
        ),
        pytest.param(
            [calls(READ), calls(READ, text="More\n"), calls(READ), text("Done.\n\n")],
            "  🔧 get_working_dir\nMore\n  🔧 get_working_dir\n  🔧 get_working_dir\nDone.\n",
            id="rounds",
        ),
        pytest.param(
            [calls(READ, text="\n\n"), text("\n\nDone.")], "  🔧 get_working_dir\n\n\nDone.\n", id="only-newlines"
        ),
        pytest.param([text("Answer.", thinking="Secret thoughts.")], "Answer.\n", id="thinking-is-not-shown"),
    ],
)
def test_what_stands_on_standard_output(
    marvin: Marvin, marvin_model_server: ModelServer, script: list[Any], expected: str
) -> None:
    """I32: the newlines of an answer are neither lost nor doubled, but for those at its end and before tools."""
    marvin_model_server.script(*script)
    result = marvin.ask()
    assert (result.code, result.text, result.said) == (0, expected, "")
    assert result.cost()["llm_turns"] == len(script)


def test_text_comes_as_it_arrives(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I32: each piece is there before the next one was sent; newlines wait for what follows them."""
    whole = text("one\n\ntwo", chunks=["one\n\n", "two"])
    first, second = whole.steps[:2], whole.steps[2:]
    marvin_model_server.script(whole.replace(steps=(*first, 1.0, *second, 0.5)))
    running = marvin.ask_in_background()
    running.until_out(b"one")
    assert running.out == b"one"
    running.until_out(b"two")
    assert running.out == b"one\n\ntwo"
    assert running.finish().out == b"one\n\ntwo\n"


@pytest.mark.parametrize(
    "locale", [{"LANG": "C"}, {"LC_ALL": "POSIX"}, {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}]
)
def test_utf8_whatever_the_locale(marvin: Marvin, marvin_model_server: ModelServer, locale: dict[str, str]) -> None:
    """Answers, prompts, file names and the output of commands stay what they are."""
    marvin_model_server.script(
        calls(("create_file", {"path": "grüße.txt", "content": "žluťoučký 🐎\n"})),
        calls(("run_command", {"command": "cat grüße.txt"})),
        text("naïve café 漢字 👩‍👩‍👧"),
    )
    result = marvin.ask(prompt="Schreib Grüße 漢字", env=locale)
    assert result.code == 0
    assert result.text == "  🔧 create_file\n  🔧 run_command\nnaïve café 漢字 👩‍👩‍👧\n"
    assert conversation(marvin_model_server)[0]["content"] == "Schreib Grüße 漢字"
    assert (marvin.project / "grüße.txt").read_text("utf-8") == "žluťoučký 🐎\n"
    assert "žluťoučký 🐎" in told(marvin_model_server)[0]


def test_half_a_character_breaks_neither_output_nor_session(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """A lone surrogate in JSON cannot be written as UTF-8: it is replaced, and the rest stands."""
    marvin_model_server.script(text("a\ud83dz"), text("Fine."))
    result = marvin.ask()
    assert result.code == 0
    assert result.text.startswith("a")
    assert result.text.endswith("z\n")
    assert marvin.ask("--continue").text == "Fine.\n"
    assert posts(marvin_model_server) == 2


def test_a_pair_of_surrogates_in_two_pieces_is_one_character(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("🐎", chunks=["\ud83d", "\udc0e"]))
    assert marvin.ask().text == "🐎\n"


# --- real work -----------------------------------------------------------------------------------


def test_a_bug_is_fixed_and_committed_in_a_real_repository(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin.make_repository()
    marvin_model_server.script(
        calls(("read_file", {"path": "total.py"}), ("git_log", {}), text="I read it."),
        calls(
            ("apply_patch", {"path": "total.py", "old_str": "sum(items) / len(items)", "new_str": "sum(items)"}),
            ("create_file", {"path": "tests/test_total.py", "content": "from total import total\n"}),
        ),
        calls(("run_command", {"command": "python3 -B -c 'import total; print(total.total([1, 2, 3]))'"})),
        calls(("git_commit", {"message": "Add up the items"})),
        text("Fixed and committed."),
    )
    result = marvin.ask("--working-dir", str(marvin.project), prompt="Fix total().", cwd=marvin.home)
    assert result.code == 0
    assert result.text == (
        "I read it.\n  🔧 read_file, git_log\n  🔧 apply_patch, create_file\n  🔧 run_command\n  🔧 git_commit\n"
        "Fixed and committed.\n"
    )
    assert "return sum(items)\n" in (marvin.project / "total.py").read_text()
    assert marvin.git("log", "--format=%s").splitlines() == ["Add up the items", "Begin"]
    assert marvin.git("show", "--name-only", "--format=").split() == ["tests/test_total.py", "total.py"]
    assert "return sum(items) / len(items)" in told(marvin_model_server, 1)[0]
    assert "6\n[exit code 0]" in told(marvin_model_server, 3)[0]
    assert result.cost()["llm_turns"] == 5
    assert_loadable(marvin.messages())


def test_git_variables_of_the_caller_have_no_effect(
    marvin: Marvin, marvin_model_server: ModelServer, tmp_path: Path
) -> None:
    """I8: as in a git hook, GIT_DIR names another repository; the tools still work in the one they are in."""
    marvin.make_repository()
    other = tmp_path / "other"
    other.mkdir()
    marvin.git("init", "-q", cwd=other)
    marvin_model_server.script(
        calls(("create_file", {"path": "new.txt", "content": "new\n"}), ("git_commit", {"message": "Add new"})),
        calls(("run_command", {"command": "git rev-parse --show-toplevel; env | grep ^GIT_ || true"})),
        text("Done."),
    )
    tied = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": str(other / "index")}
    assert marvin.ask(env=tied).code == 0
    assert marvin.git("log", "-1", "--format=%s") == "Add new\n"
    assert told(marvin_model_server)[0] == f"{marvin.project.resolve()}\n[exit code 0]"
    assert not (other / "index").exists()


def test_paths_outside_of_the_working_directory_are_refused(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I4, I10: nothing is written outside, and the model is told where it is."""
    (marvin.project / "link").symlink_to(marvin.home)
    marvin_model_server.script(
        calls(
            ("create_file", {"path": "../escaped.txt", "content": "x"}),
            ("create_file", {"path": str(marvin.home / "escaped.txt"), "content": "x"}),
            ("create_file", {"path": "link/escaped.txt", "content": "x"}),
        ),
        text("Refused."),
    )
    assert marvin.ask().code == 0
    outputs = told(marvin_model_server)
    assert len(outputs) == 3
    assert all(output.startswith("Error: ") and str(marvin.project.resolve()) in output for output in outputs)
    assert [path.name for path in marvin.home.parent.rglob("escaped.txt")] == []


# --- json and stream-json ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "env", "yaml", "expected"),
    [
        ((), {}, "", None),
        (("--thinking", "high"), {}, "", "high"),
        ((), {"MARVIN_THINKING": "low"}, "", "low"),
        ((), {}, "thinking: medium\n", "medium"),
    ],
)
def test_how_hard_the_model_thinks_is_said_without_a_chat(
    marvin: Marvin,
    marvin_model_server: ModelServer,
    argv: Sequence[str],
    env: Mapping[str, str],
    yaml: str,
    expected: str | None,
) -> None:
    marvin.config(yaml)
    marvin_model_server.script(text("Yes."))
    assert marvin.ask(*argv, env=env).text == "Yes.\n"
    (asked,) = [request.body for request in marvin_model_server.requests if request.method == "POST"]
    assert asked.get("reasoning_effort") == expected


def test_a_level_that_there_is_not(marvin: Marvin) -> None:
    assert marvin.ask("--thinking", "hard").code == 2
    done = marvin.run("config", "set", "thinking", "harder")
    assert (done.code, 'must be one of "off", "low", "medium", "high"; found "harder"' in done.said) == (1, True)
    assert marvin.run("config", "set", "thinking", "low").code == 0
    marvin.config("thinking: hard\n")
    result = marvin.ask()
    assert (result.code, 'must be one of "off", "low", "medium", "high"' in result.said) == (1, True)


FREE = {"requests": 2, "cost": 0.0, "estimated": False}


def test_json_is_one_object(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(calls(READ, text="I look. "), text("Grüße.\n\n"))
    result = marvin.ask("--output-format", "json")
    assert result.out.count(b"\n") == 1
    report = json.loads(result.out)
    assert report == {
        "type": "result",
        "session_id": marvin.session_files()[0].stem,
        "text": "I look. \nGrüße.\n\n",
        "usage": {
            "input_tokens": 22,
            "output_tokens": 14,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "reasoning_tokens": 0,
        },
        "cost": 0.0,
        "providers": {"openai-compat": {**FREE, "models": {"qwen/qwen3-32b": FREE}}},
        "turns": 2,
        "is_error": False,
        "exit_code": 0,
    }
    assert result.code == 0
    assert result.said == ""


def test_json_of_a_run_that_fails(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(calls(READ, text="I look."), error(401, "wrong key"))
    result = marvin.ask("--output-format", "json")
    report = json.loads(result.out)
    assert (result.code, report["is_error"], report["exit_code"], report["turns"]) == (1, True, 1, 1)
    assert report["text"] == "I look."
    assert "wrong key" in result.said


@pytest.mark.parametrize("why", ["no provider", "empty prompt", "broken config.yaml"])
def test_json_is_one_object_too_where_the_session_never_began(unconfigured: Marvin, why: str) -> None:
    if why == "broken config.yaml":
        unconfigured.config("tools: [\n")
    result = unconfigured.ask("--output-format", "json", prompt="" if why == "empty prompt" else "Do it.")
    report = json.loads(result.out)
    assert (result.code, report["is_error"], report["exit_code"], report["turns"]) == (1, True, 1, 0)
    assert set(report["usage"].values()) == {0}
    assert result.said
    result.cost()


def test_stream_json_is_one_event_a_line_in_order(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(
        calls(("create_file", {"path": "a.txt", "content": "a\n"}), text="Now:", chunks=2), text("Done.")
    )
    result = marvin.ask("--output-format", "stream-json")
    events = result.events()
    assert result.code == 0
    kinds = [event["type"] for event in events]
    assert [kind for kind, before in zip(kinds, [None, *kinds], strict=False) if kind != before] == [
        *("app_start", "session_start", "agent_start", "message_start", "message_end"),
        *("turn_start", "message_start", "message_update", "message_end", "usage"),
        *("tool_execution_start", "tool_execution_end", "turn_end"),
        *("turn_start", "message_start", "message_update", "message_end", "usage", "turn_end"),
        "agent_end",
    ]
    by_kind = {event["type"]: event for event in events}
    assert by_kind["session_start"]["session_id"] == marvin.session_files()[0].stem
    assert by_kind["session_start"]["working_dir"] == str(marvin.project.resolve())
    assert by_kind["agent_start"]["prompt"] == "Do it."
    updates = [event for event in events if event["type"] == "message_update"]
    assert "".join(event["delta"] for event in updates if event["kind"] == "text") == "Now:Done."
    written = "".join(event["delta"] for event in updates if event["kind"] == "tool_call")
    assert json.loads(written) == {"path": "a.txt", "content": "a\n"}
    assert {event["name"] for event in updates if event["kind"] == "tool_call"} == {"create_file"}
    assert by_kind["tool_execution_start"]["arguments"] == {"path": "a.txt", "content": "a\n"}
    end = by_kind["tool_execution_end"]
    assert (end["name"], end["is_error"]) == ("create_file", False)
    assert end["text"].startswith("Created a.txt")
    assert end["elapsed"] >= 0
    assert by_kind["usage"]["usage"]["input_tokens"] == 11
    assert by_kind["agent_end"] == {"type": "agent_end", "stop_reason": "done", "text": "Now:\nDone.", "error": ""}


def test_stream_json_tells_of_retries_and_errors(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin.config("timeouts: {retry_backoff: [0.01]}\n")
    marvin_model_server.script(error(500, "boom"), error(500, "boom again"))
    result = marvin.ask("--output-format", "stream-json")
    events = result.events()
    assert result.code == 1
    assert [event["level"] for event in events if event["type"] == "notice"] == ["warning"]
    assert events[-1]["type"] == "agent_end"
    assert events[-1]["stop_reason"] == "error"
    assert "boom again" in events[-1]["error"]


# --- MARVIN_COST ---------------------------------------------------------------------------------


def test_cost_names_turns_and_cost_of_each_model(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I11, I22: the same fields on every run; a cost that the service states counts."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    marvin.config(f"providers:\n  paid: {{base_url: {marvin_model_server.url}, models: [big]}}\n")
    marvin_model_server.script(
        calls(READ, usage={**usage, "cost": 0.25}), text("Done.", usage={**usage, "cost": 0.125})
    )
    result = marvin.ask("--provider", "paid")
    assert result.cost() == {
        "session_cost": 0.375,
        "llm_turns": 2,
        "model_turns": {"big": 2},
        "model_cost": {"big": 0.375},
    }
    totals = json.loads((marvin.config_folder / "usage.json").read_text())
    assert list(totals["turns"].values()) == [2]
    assert list(totals["cost"].values()) == [0.375]


def test_lifetime_totals_add_up_over_runs(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("one"), text("two"))
    for _ in range(2):
        assert marvin.ask("--model", "m1").code == 0
    assert json.loads((marvin.config_folder / "usage.json").read_text())["turns"] == {"m1": 2}


# --- where the prompt comes from -----------------------------------------------------------------


@pytest.mark.parametrize("way", ["--prompt", "--prompt-file", "stdin", "words", "words-without-flag"])
def test_ways_to_give_the_prompt(marvin: Marvin, marvin_model_server: ModelServer, way: str) -> None:
    """Without a terminal every start is non-interactive, with or without the flag."""
    marvin_model_server.script(text("Done."))
    prompt = "Zähle die Dateien"
    (marvin.project / "prompt.txt").write_text(prompt, encoding="utf-8")
    flags, stdin = {
        "--prompt": (["--non-interactive", "--prompt", prompt], None),
        "--prompt-file": (["--non-interactive", "--prompt-file", "prompt.txt"], None),
        "stdin": (["--non-interactive"], prompt.encode()),
        "words": (["--non-interactive", *prompt.split()], None),
        "words-without-flag": (prompt.split(), None),
    }[way]
    result = marvin.run(*flags, stdin=stdin)
    assert (result.code, result.text) == (0, "Done.\n")
    result.cost()
    assert conversation(marvin_model_server) == [{"role": "user", "content": prompt}]


def test_stdin_that_comes_in_pieces_is_read_to_its_end(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """A character whose bytes come apart stays whole."""
    marvin_model_server.script(text("Done."))
    running = marvin.start("--non-interactive", stdin=subprocess.PIPE)
    pipe = running.process.stdin
    assert pipe is not None
    for piece in (b"Gr\xc3", b"\xbc\xc3\x9f", b"e"):
        pipe.write(piece)
        pipe.flush()
    pipe.close()
    assert running.finish().code == 0
    assert conversation(marvin_model_server)[0]["content"] == "Grüße"


def test_stdin_is_left_alone_when_a_prompt_is_given(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """A caller may hold it open for ever, and what is in it stays for the next program."""
    marvin_model_server.script(calls(("run_command", {"command": "cat"})), text("Done."))
    ours, theirs = os.pipe()
    try:
        os.write(theirs, b"not for Marvin")
        result = marvin.ask_in_background(stdin=ours).finish()
        assert result.code == 0
        assert os.read(ours, 100) == b"not for Marvin"
    finally:
        os.close(ours)
        os.close(theirs)
    assert told(marvin_model_server) == ["(no output)\n[exit code 0]"]


def test_two_prompts_are_refused(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    result = marvin.run("--non-interactive", "--prompt", "one", "two")
    assert result.code == 2
    assert "twice" in result.said
    assert posts(marvin_model_server) == 0


# --- tools ---------------------------------------------------------------------------------------


def _offered(server: ModelServer) -> set[str]:
    return {entry["function"]["name"] for entry in server.requests[-1].body.get("tools", [])}


@pytest.mark.parametrize(
    ("chosen", "there", "missing"),
    [
        ("coding,-run_command", {"read_file", "git_diff"}, {"run_command"}),
        ("readonly", {"read_file", "git_diff", "code_grep"}, {"create_file", "run_command", "git_commit"}),
        ("git", {"git_status", "git_commit"}, {"read_file", "run_command"}),
        ("read_file", {"read_file"}, {"glob", "create_file"}),
        ("-git", {"read_file", "run_command"}, {"git_status"}),
    ],
)
def test_tools_chooses_what_a_request_carries(
    marvin: Marvin, marvin_model_server: ModelServer, chosen: str, there: set[str], missing: set[str]
) -> None:
    marvin_model_server.script(text("Done."))
    assert marvin.ask(f"--tools={chosen}").code == 0
    offered = _offered(marvin_model_server)
    assert there <= offered
    assert not missing & offered


def test_tools_come_in_the_same_order_each_time(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """A provider's cache holds only as long as the beginning of a request stays the same.

    A tool that was called without being offered comes behind the others.
    """
    marvin_model_server.script(calls(READ), text("Done."), text("Again."))
    assert marvin.ask().code == 0
    assert marvin.ask().code == 0
    first, second, third = (request.body["tools"] for request in marvin_model_server.requests)
    assert json.dumps(second[: len(first)]) == json.dumps(first) == json.dumps(third)
    assert [tool["function"]["name"] for tool in second[len(first) :]] in ([], [READ[0]])


def test_an_unknown_tool_set_is_a_wrong_value(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    result = marvin.ask("--tools", "codign")
    assert (result.code, result.text) == (2, "")
    assert "coding" in result.said
    assert posts(marvin_model_server) == 0
    result.cost()


def test_denied_commands_do_not_run(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Non-interactive runs allow what would ask, but not the short built-in list, and never a deny rule."""
    marvin.config("permissions: {deny: ['run_command(touch *)']}\n")
    (marvin.project / "keep").mkdir()
    marvin_model_server.script(
        calls(
            ("run_command", {"command": "echo fine && touch denied"}),
            ("run_command", {"command": "rm -rf ../project"}),
            ("run_command", {"command": "echo asked"}),
        ),
        text("Done."),
    )
    assert marvin.ask().code == 0
    denied, dangerous, asked = told(marvin_model_server)
    assert "config.yaml" in denied
    assert "--on-ask allow-all" in dangerous
    assert asked == "asked\n[exit code 0]"
    assert [path.name for path in marvin.project.iterdir()] == ["keep"]


def test_on_ask_deny_refuses_what_would_ask(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(calls(("run_command", {"command": "touch made"})), text("Done."))
    assert marvin.ask("--on-ask", "deny").code == 0
    assert told(marvin_model_server)[0].startswith("Error: run_command was not run")
    assert not (marvin.project / "made").exists()


def test_the_last_round_gets_an_answer_without_tools(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """50 rounds of tools, then one request that may call none: a run ends even if the model never would."""
    marvin_model_server.script(*(calls(READ) for _ in range(50)), text("I stop here."))
    result = marvin.ask()
    assert result.code == 0
    assert result.text.endswith("I stop here.\n")
    assert posts(marvin_model_server) == 51
    assert marvin_model_server.requests[-1].body.get("tool_choice") == "none"
    assert result.cost()["llm_turns"] == 51


# --- the session file ----------------------------------------------------------------------------


def test_the_session_file(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Append-only, private, one record a line, each with its parent; no chat log, no history."""
    marvin_model_server.script(calls(READ, text="I look."), text("Done."))
    assert marvin.ask("--model", "big", prompt="Look at THIS, please!").code == 0
    (path,) = marvin.session_files()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stem.endswith("-look-at-this-please")
    header, *records = marvin.session()
    assert header["type"] == "session"
    assert header["id"] == path.stem
    assert header["title"] == "Look at THIS, please!"
    assert (header["provider"], header["model"]) == ("openai-compat", "big")
    parents = [header["id"], *(record["id"] for record in records)]
    assert [record["parent"] for record in records] == parents[:-1]
    messages = marvin.messages()
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert_loadable(messages)
    assert [path.name for path in marvin.home.rglob("chat_log*")] == []
    assert [path.name for path in marvin.home.rglob("history*")] == []


def test_continue_goes_on_with_the_newest_session_of_this_folder(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    marvin_model_server.script(text("Noted."), text("Other."), text("42."))
    other = marvin.home / "other"
    other.mkdir()
    assert marvin.ask(prompt="Remember 42.").code == 0
    assert marvin.ask(prompt="Elsewhere.", cwd=other).code == 0
    result = marvin.ask("--continue", prompt="Which number?")
    assert (result.code, result.text) == (0, "42.\n")
    assert [message["content"] for message in conversation(marvin_model_server)] == [
        "Remember 42.",
        "Noted.",
        "Which number?",
    ]
    assert len(marvin.session_files()) == 2


def test_resume_by_the_beginning_of_an_id(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("One."), text("Two."))
    assert marvin.ask(prompt="First").code == 0
    session_id = marvin.session_files()[0].stem
    result = marvin.ask("--resume", session_id[:-2], "--output-format", "json", prompt="Second")
    assert result.code == 0
    assert json.loads(result.out)["session_id"] == session_id
    assert len(conversation(marvin_model_server)) == 3
    assert [message["role"] for message in marvin.messages()] == ["user", "assistant"] * 2


@pytest.mark.parametrize("flags", [["--continue"], ["--resume", "20300101"]])
def test_nothing_to_go_on_with(marvin: Marvin, marvin_model_server: ModelServer, flags: list[str]) -> None:
    result = marvin.ask(*flags)
    assert (result.code, result.text) == (1, "")
    assert "There is no session" in result.said
    assert posts(marvin_model_server) == 0
    result.cost()


def test_a_killed_run_goes_on_without_loss(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I15: SIGKILL in the middle of a call; what came before is on disk, and the call gets an output."""
    marvin_model_server.script(
        calls(READ, text="First I look."),
        calls(("run_command", {"command": "touch started; sleep 60 & echo $! >> pids; wait"}), text="Now I run."),
        text("Going on."),
    )
    running = marvin.ask_in_background(prompt="A long job.")
    running.until(marvin.pids, "the command to start")
    running.process.kill()
    running.process.wait()
    for pid in marvin.pids():
        os.kill(pid, 9)  # whoever kills Marvin itself without warning has to clean up after it
    running.finish()
    assert [message["role"] for message in marvin.messages()] == ["user", "assistant", "tool", "assistant"]

    result = marvin.ask("--continue", prompt="Go on.")
    assert (result.code, result.text) == (0, "Going on.\n")
    sent = conversation(marvin_model_server)
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "tool", "user"]
    assert "interrupted" in sent[4]["content"]
    assert sent[4]["tool_call_id"] == sent[3]["tool_calls"][0]["id"]
    assert sent[0]["content"] == "A long job."
    assert block_texts(marvin.messages()[-1]) == "Going on."


def test_a_continued_session_is_announced(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """A program that reads the events learns which session it is, and what was healed."""
    marvin_model_server.script(calls(("run_command", {"command": "true"})), text("Done."))
    assert marvin.ask().code == 0
    path = marvin.session_files()[0]
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]))  # as if it had been killed while the call ran
    marvin_model_server.script(text("Going on."))
    events = marvin.ask("--continue", "--output-format", "stream-json").events()
    assert [event["type"] for event in events[:3]] == ["app_start", "session_resume", "agent_start"]
    assert events[1]["session_id"] == path.stem
    assert (events[1]["messages"], events[1]["healed"]) == (3, 1)


# --- sub-agents ----------------------------------------------------------------------------------


def test_a_read_only_agent_has_no_tool_that_writes_or_runs(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(
        calls(("create_file", {"path": "a.txt", "content": "x"}), ("run_command", {"command": "touch a.txt"})),
        text("Done."),
    )
    assert marvin.ask(env={"MARVIN_READONLY": "1", "MARVIN_DEPTH": "1"}).code == 0
    offered = _offered(marvin_model_server)
    assert "read_file" in offered
    assert not offered & {"create_file", "append_file", "write_file", "apply_patch", "run_command", "git_commit"}
    assert all("read-only" in output for output in told(marvin_model_server))
    assert list(marvin.project.iterdir()) == []


def test_an_agent_with_writable_files_writes_only_those(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    for name in ("mine.py", "other.py"):
        (marvin.project / name).write_text("x = 1\n")
    patch = {"old_str": "x = 1", "new_str": "x = 2"}
    marvin_model_server.script(
        calls(
            ("apply_patch", {"path": "other.py", **patch}),
            ("write_file", {"path": "sub/../other.py", "content": ""}),
            ("create_file", {"path": "new.py", "content": ""}),
            ("run_command", {"command": "echo > other.py"}),
            ("git_commit", {"message": "x"}),
            ("apply_patch", {"path": "mine.py", **patch}),
            ("create_file", {"path": "sub/made.py", "content": "made\n"}),
        ),
        text("Done."),
    )
    assert marvin.ask(env={"MARVIN_WRITABLE_FILES": "mine.py,sub/made.py", "MARVIN_DEPTH": "1"}).code == 0
    assert not _offered(marvin_model_server) & {"run_command", "git_commit"}
    outputs = told(marvin_model_server)
    assert [output.startswith("Error: ") for output in outputs] == [True] * 5 + [False] * 2
    assert "mine.py" in outputs[0]  # which files it may write
    assert (marvin.project / "mine.py").read_text() == "x = 2\n"
    assert (marvin.project / "other.py").read_text() == "x = 1\n"
    assert (marvin.project / "sub" / "made.py").read_text() == "made\n"
    assert not (marvin.project / "new.py").exists()


@pytest.mark.parametrize(("depth", "code"), [("5", 0), ("6", 1), ("many", 1)])
def test_depth_is_bounded(marvin: Marvin, marvin_model_server: ModelServer, depth: str, code: int) -> None:
    """I7, I22: an agent nested too deep ends before it asks a model, and says so."""
    marvin_model_server.script(text("Done."))
    result = marvin.ask(env={"MARVIN_DEPTH": depth})
    assert result.code == code
    assert posts(marvin_model_server) == 1 - code
    assert bool(result.said) == bool(code)
    result.cost()


def test_a_sub_agent_logs_each_call(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    log = marvin.home / "agent.jsonl"
    marvin_model_server.script(
        calls(("create_file", {"path": "a.txt", "content": "ä" * 1000}), ("no_such_tool", {})), text("Done.")
    )
    assert marvin.ask(env={"MARVIN_SUBAGENT_LOG": str(log), "MARVIN_DEPTH": "1"}).code == 0
    entries = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [entry["tool"] for entry in entries] == ["create_file", "no_such_tool"]
    for entry in entries:
        assert set(entry) == {"ts", "tool", "args", "result", "elapsed_ms"}
        assert len(entry["args"]) <= 200
        assert len(entry["result"]) <= 400
    assert "path=a.txt" in entries[0]["args"]
    assert entries[1]["result"].startswith("Error: ")


# --- secrets -------------------------------------------------------------------------------------

KEY = "sk-live-0123456789abcdefghij"
TOKEN = "ghp_abcdefghij0123456789"


def test_secrets_appear_nowhere_but_in_request_headers(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I24: not in children, outputs, errors, session files, logs or caches."""
    log = marvin.project / "agent.jsonl"
    (marvin.project / "leaked.txt").write_text(f"key: {KEY}\n")
    marvin_model_server.script(
        calls(("run_command", {"command": "env; tr '\\0' '\\n' < /proc/$PPID/environ | wc -l; cat leaked.txt"})),
        calls(("read_file", {"path": "leaked.txt"})),
        error(400, f"bad request with key {KEY} and Bearer {KEY}"),
    )
    secrets = {"OPENAI_COMPAT_API_KEY": KEY, "GH_TOKEN": TOKEN, "COPY_OF_IT": KEY, "MARVIN_SUBAGENT_LOG": str(log)}
    result = marvin.ask("--output-format", "stream-json", env=secrets)
    assert result.code == 1
    assert marvin_model_server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    everything = [
        result.out.decode(),
        result.err.decode(),
        marvin.kept(),
        log.read_text(),
        *(json.dumps(request.body) for request in marvin_model_server.requests),
    ]
    for secret in (KEY, TOKEN):
        assert [where[:200] for where in everything if secret in where] == []
    environment = told(marvin_model_server, 1)[0]
    assert "PATH=" in environment
    assert "_KEY" not in environment
    assert "key: [redacted]" in environment
    assert "key: [redacted]" in told(marvin_model_server, 2)[0]


def test_child_env_passes_a_variable_on(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """What the user hands over by name reaches a command; the model still does not see it."""
    marvin.config("child_env: [GH_TOKEN]\n")
    marvin_model_server.script(calls(("run_command", {"command": "echo ${#GH_TOKEN} $GH_TOKEN"})), text("Done."))
    assert marvin.ask(env={"GH_TOKEN": TOKEN}).code == 0
    assert told(marvin_model_server) == [f"{len(TOKEN)} [redacted]\n[exit code 0]"]


# --- how it starts and ends ----------------------------------------------------------------------


def test_provider_and_model_by_flag_and_variable(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("a"), text("b"), text("c"))
    assert marvin.ask(env={"MARVIN_MODEL": "from-variable"}).code == 0
    assert marvin.ask("--model", "from-flag", env={"MARVIN_MODEL": "from-variable"}).code == 0
    marvin.config("model: from-config\n")
    assert marvin.ask(env={"OPENAI_COMPAT_MODEL": ""}).code == 0
    assert [request.body["model"] for request in marvin_model_server.requests if request.method == "POST"] == [
        "from-variable",
        "from-flag",
        "from-config",
    ]


def test_project_instructions_reach_the_model(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    (marvin.project / "AGENTS.md").write_text("Use tabs.\n")
    marvin_model_server.script(text("Done."))
    assert marvin.ask().code == 0
    system = marvin_model_server.requests[0].body["messages"][0]
    assert system["role"] == "system"
    assert "Use tabs." in system["content"]
    assert str(marvin.project.resolve()) in system["content"]


def test_a_proxy_of_the_environment_is_not_used_for_loopback_named_in_no_proxy(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    marvin_model_server.script(text("Done."))
    result = marvin.ask(env={"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"})
    assert (result.code, result.text) == (0, "Done.\n")


def test_files_named_like_our_modules_are_not_imported(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """A project may hold anything; none of it is code of ours, in the run and in its sub-commands."""
    trap = "raise SystemExit('imported from the working directory')\n"
    (marvin.project / "marvin_core").mkdir()
    for name in ("httpx.py", "json.py", "asyncio.py", "typer.py", "sitecustomize.py", "marvin_core/__init__.py"):
        (marvin.project / name).write_text(trap)
    marvin_model_server.script(calls(("tree", {})), text("Done."))
    result = marvin.ask()
    assert (result.code, result.text) == (0, "  🔧 tree\nDone.\n")
    called = marvin.run("tools", "call", "get_working_dir")
    assert called.code == 0, called.err


def test_a_run_waits_for_no_connection_that_stays_open(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I22: the answer is complete, so the run ends, though the server would hold the connection open for ever."""
    marvin_model_server.script(text("Done.").replace(ending="hang"))
    result = marvin.ask()
    assert (result.code, result.text) == (0, "Done.\n")


def test_a_silent_server_ends_the_run(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I22, I31: silence is bounded, by the limit of coding mode."""
    marvin.config("timeouts: {model_idle_coding: 0.3}\n")
    marvin_model_server.script(hang())
    result = marvin.ask()
    assert (result.code, result.text) == (1, "")
    assert "0.3 s" in result.said
    result.cost()


def test_version_and_help_need_nothing(unconfigured: Marvin) -> None:
    assert unconfigured.run("--version").out.startswith(b"marvin ")
    shown = unconfigured.run("--help")
    assert shown.code == 0
    assert shown.err == b""
    for flag in ("--non-interactive", "--prompt-file", "--working-dir", "--output-format", "--resume"):
        assert flag in shown.text


def test_the_installed_command(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """The script that pip makes, as a user starts it."""
    script = shutil.which("marvin", path=str(Path(sys.executable).parent))
    assert script is not None, "the package is not installed"
    marvin_model_server.script(text("Done."))
    result = marvin.run("--non-interactive", "--prompt", "Hi", program=[script])
    assert (result.code, result.text) == (0, "Done.\n")
    assert_cost_last(result.err)


def test_no_command_changes_the_log_of_calls(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Nor the folders above it; a program in the sandbox could otherwise hide what the agent did."""
    log = marvin.project / "out" / "calls.jsonl"
    command = "echo x > out/calls.jsonl; rm -f out/calls.jsonl; mv out gone; mv out/calls.jsonl y; touch out/mine"
    marvin_model_server.script(
        calls(("run_command", {"command": "echo first"})),
        calls(("run_command", {"command": command})),
        text("Done."),
    )
    result = marvin.ask(env={"MARVIN_SUBAGENT_LOG": "out/calls.jsonl"})
    assert result.code == 0, result.said
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert [entry["args"] for entry in entries] == ["command=echo first", f"command={command}"[:200]]
    assert (marvin.project / "out" / "mine").exists(), "what is beside the log can be written"
