"""Everything that can be wrong with what Marvin is given: exit code, streams, retries, and that nothing is lost.

The signals are in test_interrupts.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from marvin_core.testing import (
    Answer,
    ModelServer,
    calls,
    cut_after,
    document,
    drop,
    error,
    events,
    hang_after,
    html,
    raw,
    split,
    text,
)
from tests.e2e.support_e2e import (
    LIMIT,
    PROGRAM,
    QUICK_RETRIES,
    Marvin,
    Result,
    assert_loadable,
    block_texts,
    conversation,
    end_of,
    posts,
    told,
    unread,
)

pytestmark = pytest.mark.slow

RETRIES = 3


def assert_refused(result: Result, server: ModelServer, code: int, *words: str) -> None:
    """The run ended before any request, said all of these words, and printed nothing."""
    assert (result.code, result.out) == (code, b"")
    for word in words:
        assert word in result.said
    assert "Traceback" not in result.said
    assert posts(server) == 0


def without_rights() -> list[str]:
    """What to put before the program so that file permissions hold for it even where the tests run as root."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed, and for root no permission holds")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


# --- flags, prompts, standard input --------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--no-such-flag"], "--no-such-flag"),
        (["--output-format", "xml"], "xml"),
        (["--resume"], "--resume"),
        (["--on-ask", "maybe"], "maybe"),
        (["--on-ask", "run_comand=deny"], "Did you mean 'run_command'?"),
        (["--permission-mode", "read-only"], "Did you mean 'readonly'?"),
        (["--model", "high="], "high="),
        (["--provider", "opnai-compat"], "openai-compat"),
        (["--design-first"], "--working-dir=."),
        (["--ntfy", "a b"], "is not a valid topic"),
        (["--until", "2a"], "Add --design-first"),
    ],
)
def test_a_wrong_flag_or_value(marvin: Marvin, marvin_model_server: ModelServer, flags: list[str], word: str) -> None:
    assert_refused(marvin.ask(*flags), marvin_model_server, 2, word)


@pytest.mark.parametrize("prompt", ["", "  \n\t "])
def test_an_empty_prompt(marvin: Marvin, marvin_model_server: ModelServer, prompt: str) -> None:
    result = marvin.ask(prompt=prompt)
    assert_refused(result, marvin_model_server, 1, "prompt is empty", "--prompt")
    result.cost()
    assert marvin.session_files() == []


def test_empty_standard_input(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    result = marvin.run("--non-interactive", stdin=b"")
    assert_refused(result, marvin_model_server, 1, "prompt is empty")
    result.cost()


def test_closed_standard_input(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    result = marvin.run("-c", 'exec "$@" <&-', "sh", *PROGRAM, "--non-interactive", program=["sh"])
    assert_refused(result, marvin_model_server, 1, "Standard input cannot be read", "--prompt")
    result.cost()


def test_closed_standard_input_with_a_prompt_harms_nothing(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """No file that is opened later may take the place of standard input."""
    marvin_model_server.script(calls(("run_command", {"command": "cat; echo read"})), text("Done."))
    result = marvin.run("-c", 'exec "$@" <&-', "sh", *PROGRAM, "--prompt", "Hi", program=["sh"])
    assert (result.code, result.text) == (0, "  🔧 run_command\nDone.\n")
    assert told(marvin_model_server) == ["read\n[exit code 0]"]


def test_endless_standard_input(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """More than 10 MB is not read on and on."""
    with Path("/dev/zero").open("rb") as zeros:
        result = marvin.start("--non-interactive", stdin=zeros).finish()
    assert_refused(result, marvin_model_server, 1, "10,000,000")
    result.cost()


def test_silent_standard_input(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Bytes that stop coming without an end are not waited for for ever."""
    marvin.config("timeouts: {stdin_idle: 0.3}\n")
    running = marvin.start("--non-interactive", stdin=subprocess.PIPE)
    assert running.process.stdin is not None
    running.process.stdin.write(b"half a prom")
    running.process.stdin.flush()
    result = running.finish()
    assert_refused(result, marvin_model_server, 1, "silent for 0.3 s", "--prompt")
    result.cost()


def test_standard_input_that_is_not_utf8(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    result = marvin.run("--non-interactive", stdin=b"gr\xfc\xdfe")
    assert_refused(result, marvin_model_server, 1, "not UTF-8", "byte 2")


def test_a_prompt_argument_that_is_not_utf8(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """The bytes that are no text are replaced; the rest arrives, and the session can be read."""
    marvin_model_server.script(text("Done."), text("Again."))
    result = marvin.run("--non-interactive", "--prompt", b"gr\xfc\xdfe")
    assert result.code == 0
    sent = conversation(marvin_model_server)[0]["content"]
    assert (sent[:2], sent[-1]) == ("gr", "e")
    assert block_texts(marvin.messages()[0])[:2] == "gr"  # the session file is UTF-8 itself
    assert marvin.ask("--continue").code == 0


def test_file_names_that_are_not_utf8(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """One such name in a project stops no tool, no request and no session."""
    try:
        (Path(os.fsdecode(bytes(marvin.project))) / os.fsdecode(b"gr\xfc.txt")).write_text("needle\n")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    (marvin.project / "plain.txt").write_text("needle\n")
    marvin.make_repository()
    marvin_model_server.script(
        calls(
            ("tree", {}),
            ("glob", {"pattern": "*.txt"}),
            ("code_grep", {"pattern": "needle"}),
            ("run_command", {"command": "ls"}),
            ("git_log", {}),
        ),
        text("Done."),
        text("Again."),
    )
    result = marvin.ask()
    assert result.code == 0
    assert len(told(marvin_model_server)) == 5
    assert all("plain.txt" in output for output in told(marvin_model_server)[:4])
    assert_loadable(marvin.messages())
    assert marvin.ask("--continue").code == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["missing.txt", "No such file"]),
        (b"gr\xfc\xdfe", ["missing.txt", "not UTF-8", "byte 2"]),
        (b"", ["prompt is empty"]),
    ],
)
def test_a_prompt_file_that_cannot_be_used(
    marvin: Marvin, marvin_model_server: ModelServer, content: bytes | None, words: list[str]
) -> None:
    if content is not None:
        (marvin.project / "missing.txt").write_bytes(content)
    result = marvin.run("--non-interactive", "--prompt-file", "missing.txt")
    assert_refused(result, marvin_model_server, 1, *words)
    result.cost()


def test_a_prompt_file_that_is_a_folder(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    result = marvin.run("--non-interactive", "--prompt-file", ".")
    assert_refused(result, marvin_model_server, 1, "cannot be read", "directory")


# --- the working directory -----------------------------------------------------------------------


def test_a_working_directory_that_is_missing_or_a_file(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    (marvin.project / "file").write_text("x")
    for given, word in (("nowhere", "no such folder"), ("file", "is a file")):
        result = marvin.ask("--working-dir", given)
        assert_refused(result, marvin_model_server, 2, given, word)
    assert [path.name for path in marvin.project.iterdir()] == ["file"]


def test_a_working_directory_that_cannot_be_read(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    folder = marvin.project / "closed"
    folder.mkdir(mode=0)
    result = marvin.ask("--working-dir", "closed", program=[*without_rights(), *PROGRAM])
    assert_refused(result, marvin_model_server, 2, "closed", "cannot be read")


def test_a_start_directory_that_was_removed(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    result = marvin.run("-c", script, "sh", *PROGRAM, "--non-interactive", "--prompt", "Hi", program=["sh"])
    assert result.code in (1, 2)
    assert posts(marvin_model_server) == 0
    assert "Traceback" not in result.said
    assert "directory" in result.said or "folder" in result.said


# --- providers -----------------------------------------------------------------------------------


def test_no_provider(unconfigured: Marvin) -> None:
    """It says how to set one, and never falls back to a mode that only looks like an answer."""
    result = unconfigured.ask()
    assert (result.code, result.out) == (1, b"")
    for word in ("No model is configured", "OPENAI_COMPAT_API_KEY", "OPENAI_COMPAT_URL", "config.yaml"):
        assert word in result.said
    assert result.cost()["llm_turns"] == 0
    assert unconfigured.session_files() == []


def test_a_provider_without_its_key(unconfigured: Marvin) -> None:
    result = unconfigured.ask("--provider", "groq")
    assert (result.code, result.out) == (1, b"")
    assert "GROQ_API_KEY" in result.said
    result.cost()


def test_a_provider_that_is_not_there(unconfigured: Marvin) -> None:
    """No retry: nothing listens there. The prompt is kept for --continue."""
    result = unconfigured.ask(prompt="Keep this.", env={"OPENAI_COMPAT_URL": "http://127.0.0.1:9/v1"})
    assert (result.code, result.out) == (1, b"")
    assert "127.0.0.1:9" in result.said
    assert "Is the server running?" in result.said
    result.cost()
    assert [block_texts(message) for message in unconfigured.messages()] == ["Keep this."]


def test_an_address_that_is_no_url(unconfigured: Marvin) -> None:
    result = unconfigured.ask(env={"OPENAI_COMPAT_URL": "localhost:8080"})
    assert (result.code, result.out) == (1, b"")
    assert "http://" in result.said
    result.cost()


@pytest.mark.parametrize(
    ("answer", "requests", "words"),
    [
        pytest.param(error(401, "no good key"), 1, ["no good key", "OPENAI_COMPAT_API_KEY"], id="401"),
        pytest.param(error(403, "not allowed"), 1, ["not allowed", "OPENAI_COMPAT_API_KEY"], id="403"),
        pytest.param(
            error(404, "The model `scripted-x` does not exist"), 1, ["qwen-small, qwen-large", "--model"], id="model"
        ),
        pytest.param(
            error(429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}),
            1,
            ["quota or credit", "/model"],
            id="quota",
        ),
        pytest.param(error(402, "Payment required"), 1, ["quota or credit"], id="402"),
        pytest.param(error(400, "prompt is too long"), 1, ["context window"], id="overflow"),
        pytest.param(error(400, "no such field"), 1, ["no such field"], id="400"),
        pytest.param(error(429, "slow down"), 1 + RETRIES, ["slow down"], id="429"),
        pytest.param(error(500, "boom"), 1 + RETRIES, ["boom"], id="500"),
        pytest.param(html(), 1, ["web page", "/v1"], id="html"),
        pytest.param(drop(), 1 + RETRIES, ["gave no usable answer"], id="dropped"),
        pytest.param(
            document({"error": {"message": "out of memory", "type": "server_error"}}),
            1 + RETRIES,
            ["out of memory"],
            id="error-document-in-200",
        ),
        pytest.param(
            events({"error": {"message": "upstream failed", "code": 502}}),
            1 + RETRIES,
            ["upstream failed"],
            id="error-event-in-200",
        ),
        pytest.param(raw(b"data: {not json}\n\n"), 1 + RETRIES, ["not JSON", "{not json}"], id="malformed"),
        pytest.param(raw(b""), 1 + RETRIES, ["broke off"], id="no-body"),
    ],
)
def test_a_service_that_fails_for_good(
    marvin: Marvin, marvin_model_server: ModelServer, answer: Answer, requests: int, words: list[str]
) -> None:
    """I22: what may pass is tried four times, the rest once; the run ends with the reason, the prompt is kept."""
    marvin.config(QUICK_RETRIES)
    marvin_model_server.models = ["qwen-small", "qwen-large"]
    marvin_model_server.script(*[answer] * requests, text("Too many requests were made."))
    result = marvin.ask("--model", "scripted-x", prompt="Keep this.", env={"OPENAI_COMPAT_API_KEY": "sk-0123456789"})
    assert (result.code, result.out) == (1, b"")
    assert posts(marvin_model_server) == requests
    for word in words:
        assert word in result.said
    assert result.said.count("trying again") == requests - 1
    assert "Traceback" not in result.said
    assert "sk-0123456789" not in result.said
    result.cost()
    assert [block_texts(message) for message in marvin.messages()] == ["Keep this."]


@pytest.mark.parametrize(
    ("failure", "turns"),
    [
        pytest.param(error(429, "slow down"), 1, id="429"),
        pytest.param(error(429, "slow down", {"retry-after": "0"}), 1, id="429-retry-after"),
        pytest.param(error(500, "boom"), 1, id="500"),
        pytest.param(error(529, "overloaded"), 1, id="529"),
        pytest.param(drop(), 3, id="dropped"),
        pytest.param(cut_after(40, text("Never seen.")), 3, id="cut-before-text"),
    ],
)
def test_a_service_that_fails_for_the_moment(
    marvin: Marvin, marvin_model_server: ModelServer, failure: Answer, turns: int
) -> None:
    """Tried again with the same request; nothing of the failure is on standard output or in the session.

    I11: what may have been worked on counts as a request, as the service may bill it; an error does not.
    """
    marvin.config(QUICK_RETRIES)
    marvin_model_server.script(failure, failure, text("Done."))
    result = marvin.ask()
    assert (result.code, result.text) == (0, "Done.\n")
    assert result.said.count("trying again") == 2
    first, second, third = (request.body for request in marvin_model_server.requests)
    assert first == second == third
    assert [message["role"] for message in marvin.messages()] == ["user", "assistant"]
    assert result.cost()["llm_turns"] == turns


def test_retry_after_is_waited_for(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin.config("timeouts: {retry_backoff: [0.01]}\n")
    marvin_model_server.script(error(429, "slow down", {"retry-after": "1"}), text("Done."))
    assert marvin.ask().text == "Done.\n"
    first, second = marvin_model_server.requests
    assert second.received - first.received >= 1.0


def test_a_retry_after_that_is_too_long_is_not_waited_for(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(error(429, "come back tomorrow", {"retry-after": "86400"}))
    result = marvin.ask()
    assert result.code == 1
    assert "come back tomorrow" in result.said
    assert posts(marvin_model_server) == 1


# --- answers that break off ----------------------------------------------------------------------


def _offset(answer: Answer, mark: bytes) -> int:
    return answer.body.index(mark)


CUT_CALL = calls(("create_file", {"path": "cut.txt", "content": "line\n" * 40}), chunks=8)
CUT_CALL_AFTER_TEXT = calls(("create_file", {"path": "cut.txt", "content": "x"}), text="I write it.", chunks=4)
CUT_CHARACTER = raw(b'data: {"choices":[{"delta":{"content":"a\xf0\x9f\x90\x8e"}}]}\n\n')


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(cut_after(_offset(CUT_CALL, b"line") + 2, CUT_CALL), id="in-a-call"),
        pytest.param(cut_after(_offset(CUT_CALL, b'"name"') + 3, CUT_CALL), id="in-a-line"),
        pytest.param(cut_after(_offset(CUT_CHARACTER, b"\x9f"), CUT_CHARACTER), id="in-a-character"),
        pytest.param(cut_after(3, CUT_CALL), id="in-the-first-line"),
    ],
)
def test_an_answer_cut_before_any_text_is_asked_for_again(
    marvin: Marvin, marvin_model_server: ModelServer, answer: Answer
) -> None:
    """I26: what was cut is thrown away, not run, and the next answer counts."""
    marvin.config(QUICK_RETRIES)
    marvin_model_server.script(answer, text("Done."))
    result = marvin.ask()
    assert (result.code, result.text) == (0, "Done.\n")
    assert posts(marvin_model_server) == 2
    assert list(marvin.project.iterdir()) == []
    assert [block_texts(message) for message in marvin.messages()] == ["Do it.", "Done."]


LONG = text("First words. Grüße and more.", chunks=["First words. ", "Grüße", " and more."])


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        pytest.param(cut_after(_offset(LONG, b" and more"), LONG), "First words. Grüße", id="in-a-line"),
        pytest.param(
            cut_after(_offset(CUT_CALL_AFTER_TEXT, b"create_file") + 4, CUT_CALL_AFTER_TEXT),
            "I write it.",
            id="in-a-call",
        ),
        pytest.param(
            cut_after(
                _offset(raw(b'data: {"choices":[{"delta":{"content":"One. "}}]}\n\n' + CUT_CHARACTER.body), b"\x9f"),
                raw(b'data: {"choices":[{"delta":{"content":"One. "}}]}\n\n' + CUT_CHARACTER.body),
            ),
            "One. ",
            id="in-a-character",
        ),
        pytest.param(
            raw(b'data: {"choices":[{"delta":{"content":"Seen."}}]}\n\ndata: {oops\n\n'), "Seen.", id="malformed"
        ),
        pytest.param(
            events({"choices": [{"delta": {"content": "Seen."}}]}, {"error": {"message": "boom", "code": 500}}),
            "Seen.",
            id="error-object",
        ),
    ],
)
def test_an_answer_cut_after_text_ends_the_run(
    marvin: Marvin, marvin_model_server: ModelServer, answer: Answer, shown: str
) -> None:
    """Text that was shown cannot be taken back: exit 1, no second try, and what came is in the session."""
    marvin.config(QUICK_RETRIES)
    marvin_model_server.script(answer, text("Going on."))
    result = marvin.ask()
    assert (result.code, result.text) == (1, f"{shown}\n")
    assert posts(marvin_model_server) == 1
    assert result.said.startswith("marvin: ")
    assert "Traceback" not in result.said
    result.cost()
    messages = marvin.messages()
    assert block_texts(messages[1]) == shown
    assert_loadable(messages)
    assert list(marvin.project.iterdir()) == []
    assert marvin.ask("--continue").text == "Going on.\n"


def test_an_answer_in_single_bytes(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """However the network cuts it: inside lines, characters, arguments."""
    whole = calls(("create_file", {"path": "ä.txt", "content": "漢字 🐎\n"}), text="Grüße 👋")
    marvin_model_server.script(split(whole, *range(1, len(whole.body))), text("Done."))
    result = marvin.ask()
    assert (result.code, result.text) == (0, "Grüße 👋\n  🔧 create_file\nDone.\n")
    assert (marvin.project / "ä.txt").read_text("utf-8") == "漢字 🐎\n"


@pytest.mark.parametrize(
    ("answer", "requests"),
    [
        pytest.param(text(""), 1 + RETRIES, id="no-text"),
        pytest.param(events({"choices": [{"delta": {}, "finish_reason": "stop"}]}), 1 + RETRIES, id="only-an-end"),
        pytest.param(text("\n\n"), 1, id="only-newlines"),
        pytest.param(text("", thinking="Hm."), 1, id="only-thinking"),
    ],
)
def test_an_empty_answer(marvin: Marvin, marvin_model_server: ModelServer, answer: Answer, requests: int) -> None:
    """Nothing to show is no silent success: it is asked for again, then said, and the prompt is kept."""
    marvin.config(QUICK_RETRIES)
    marvin_model_server.script(*[answer] * requests, text("Too many requests were made."))
    result = marvin.ask()
    assert (result.code, result.out) == (1, b"")
    assert posts(marvin_model_server) == requests
    assert "empty answer" in result.said
    result.cost()
    assert marvin.messages()[0]["role"] == "user"


def test_an_answer_after_an_empty_one(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Also after a round of tools, which is not run again."""
    marvin.config(QUICK_RETRIES)
    marvin_model_server.script(calls(("run_command", {"command": "echo ran >> log"})), text(""), text("Done."))
    result = marvin.ask()
    assert (result.code, result.text) == (0, "  🔧 run_command\nDone.\n")
    assert (marvin.project / "log").read_text() == "ran\n"


def test_cut_off_arguments_never_run(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I26: at the output limit the call is refused, the model is told to write in sections, and does."""
    begun = json.dumps({"path": "big.txt", "content": "line\n" * 50})[:120]
    marvin_model_server.script(
        calls(("create_file", begun), finish="length"),
        calls(("create_file", {"path": "big.txt", "content": "one\n"})),
        calls(("append_file", {"path": "big.txt", "content": "two\n"})),
        text("Written in sections."),
    )
    result = marvin.ask()
    assert (result.code, result.text.splitlines()[-1]) == (0, "Written in sections.")
    first = told(marvin_model_server, 1)[0]
    assert first.startswith("Error: ")
    assert "append_file" in first
    assert (marvin.project / "big.txt").read_text() == "one\ntwo\n"
    assert_loadable(marvin.messages())


def test_arguments_that_look_whole_but_were_cut_do_not_run(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I26: finish reason length: the JSON is complete, and still nobody knows what else was to come."""
    marvin_model_server.script(
        calls(("create_file", {"path": "a.txt", "content": "half"}), finish="length"), text("Stopped.")
    )
    assert marvin.ask().code == 0
    assert list(marvin.project.iterdir()) == []
    assert told(marvin_model_server)[0].startswith("Error: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", ["path"]),
        ("[1, 2]", ["path"]),
        ('{"path": 5}', ["content"]),
        ('{"path": "a.txt", "content": "x", "mode": "w"}', ["mode"]),
        ("Please create a file.", ["create_file"]),
    ],
)
def test_arguments_of_no_use_get_an_answer_to_act_on(
    marvin: Marvin, marvin_model_server: ModelServer, arguments: str, words: list[str]
) -> None:
    """I10, I14: the error names what is wrong and shows a correct call; the run goes on."""
    marvin_model_server.script(calls(("create_file", arguments)), text("Done."))
    result = marvin.ask()
    assert (result.code, result.text) == (0, "  🔧 create_file\nDone.\n")
    output = told(marvin_model_server)[0]
    assert output.startswith("Error: ")
    assert "create_file(" in output
    for word in words:
        assert word in output
    assert list(marvin.project.iterdir()) == []


# --- tools that misbehave ------------------------------------------------------------------------


def test_a_tool_that_raises(marvin: Marvin, marvin_model_server: ModelServer, tmp_path: Path) -> None:
    """I14: a tool of any pack may raise anything; its output says so and the run goes on."""
    _install_raising_pack(tmp_path / "site")
    marvin_model_server.script(calls(("explode", {"how": "loudly"}), ("get_working_dir", {})), text("Done."))
    program = [*PROGRAM[:2], "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); {_RUN}"]
    result = marvin.ask(program=program)
    assert (result.code, result.text) == (0, "  🔧 explode, get_working_dir\nDone.\n")
    exploded, other = told(marvin_model_server)
    assert exploded.startswith("Error: explode failed unexpectedly: ZeroDivisionError")
    assert other.startswith(str(marvin.project.resolve()))
    assert "Traceback" not in result.said


_RUN = "from marvin_core.__main__ import main; main()"


def _install_raising_pack(site: Path) -> None:
    info = site / "raising_pack-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: raising-pack\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[marvin]\nraising = raising_pack\n")
    (site / "raising_pack.py").write_text(
        "from marvin_core import hookimpl, tool\n\n"
        "@tool(access=['read'])\n"
        "async def explode(how: str) -> str:\n"
        '    """Raise an error."""\n'
        "    return str(1 / 0)\n\n"
        "@hookimpl\n"
        "def marvin_register_tools():\n"
        "    return [explode]\n"
    )


def test_a_command_that_hangs(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I25: ended after its time-out with all that it started, even what ignores SIGTERM."""
    command = "trap '' TERM; echo begun; sleep 60 & echo $! $$ > pids; wait; sleep 60"
    marvin_model_server.script(calls(("run_command", {"command": command, "timeout": 3})), text("Done."))
    result = marvin.ask()
    assert (result.code, result.text) == (0, "  🔧 run_command\nDone.\n")
    output = told(marvin_model_server)[0]
    assert output.startswith("begun\n")
    assert "timed out after 3 s" in output
    marvin.assert_nothing_left()


def test_a_command_that_prints_100_mb(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """The output is cut while it is read: neither the request nor the memory grows with it."""
    command = "echo head; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo tail"
    marvin_model_server.script(calls(("run_command", {"command": command})), text("Done."))
    measure = f"import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); {_PEAK}; sys.exit(code)"
    result = marvin.ask(program=[sys.executable, "-c", measure, *PROGRAM], limit=50)
    assert (result.code, result.text) == (0, "  🔧 run_command\nDone.\n")
    output = told(marvin_model_server)[0]
    assert output.startswith("head\nxxx")
    assert output.rstrip().endswith("tail\n[exit code 0]")
    assert len(output) < 60_000
    peak = int((marvin.project / "peak").read_text()) // (1 if sys.platform != "darwin" else 1024)
    assert peak < 200_000, f"{peak} KB"


_PEAK = "open('peak', 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))"


STARTED = "until [ -s pids ]; do sleep 0.01; done"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("setsid sleep 300 & echo $! >> pids", id="setsid"),
        pytest.param(f"(sh -c 'sleep 300 & echo $! >> pids' &); {STARTED}", id="double-fork"),
        pytest.param(
            f"setsid sh -c 'env -i setsid sleep 300 & echo $! >> pids' >/dev/null 2>&1 </dev/null; {STARTED}",
            id="daemon",
        ),
        pytest.param("nohup sleep 300 >/dev/null 2>&1 & echo $! >> pids; disown -a", id="nohup"),
        pytest.param(f"(trap '' TERM INT HUP; sleep 300 & echo $! >> pids; wait) & {STARTED}", id="ignores-signals"),
    ],
)
def test_nothing_that_a_command_started_outlives_the_run(
    marvin: Marvin, marvin_model_server: ModelServer, command: str
) -> None:
    """I25: a job may go on in the background, until the session ends, which it does not hold up."""
    marvin_model_server.script(calls(("run_command", {"command": command})), text("Done."))
    result = marvin.ask()
    assert (result.code, result.text) == (0, "  🔧 run_command\nDone.\n")
    assert "job 1 continues" in told(marvin_model_server)[0]
    marvin.assert_nothing_left()


def test_a_command_that_forks_before_its_time_out(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I25: double-forked into a session of its own, and still gone after the time-out."""
    command = "(setsid sh -c 'sleep 60 & echo $! >> pids; wait' &); echo $$ >> pids; sleep 60"
    marvin_model_server.script(
        calls(("run_command", {"command": command, "timeout": 3})),
        calls(("run_command", {"command": "for p in $(cat pids); do kill -0 $p 2>/dev/null && echo $p lives; done"})),
        text("Done."),
    )
    assert marvin.ask().code == 0
    assert told(marvin_model_server)[0].startswith("(no output)")
    marvin.assert_nothing_left()


def test_a_command_that_reads_standard_input_gets_its_end(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(
        calls(("run_command", {"command": "read answer || echo nothing to read; cat; echo end"})), text("Done.")
    )
    marvin.config("timeouts: {tool: 300}\n")
    result = marvin.ask()
    assert result.code == 0
    assert told(marvin_model_server) == ["nothing to read\nend\n[exit code 0]"]


def test_a_command_that_opens_the_terminal_fails(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """As sudo and ssh do to ask for a password; run from a terminal, so that there is one to open."""
    import pexpect

    command = "if (echo secret? > /dev/tty) 2>/dev/null; then echo opened; else echo no terminal; fi"
    marvin_model_server.script(calls(("run_command", {"command": command})), text("Done."))
    child = pexpect.spawn(
        PROGRAM[0],
        [*PROGRAM[1:], "--non-interactive", "--prompt", "Do it."],
        cwd=str(marvin.project),
        env=marvin.env,
        encoding="utf-8",
        timeout=LIMIT,
    )
    child.expect(pexpect.EOF)
    assert end_of(child) == 0
    assert "secret?" not in str(child.before)
    assert told(marvin_model_server) == ["no terminal\n[exit code 0]"]


# --- configuration -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("model: a\nprovider: [groq\n", ["line 2", "the bracket that begins here is not closed"]),
        ("model: a\n\tprovider: groq\n", ["line 2"]),
        ("model: a\nprovidr: groq\n", ["line 2", "providr", "'provider'"]),
        ("timeouts:\n  tool: 5\n  stdin_idel: 3\n", ["line 3", "timeouts.stdin_idel", "stdin_idle"]),
        ("model: [a, b]\n", ["line 1", "model", "text"]),
        ("timeouts: {tool: soon}\n", ["line 1", "timeouts.tool", "a number"]),
        ("- a\n- b\n", ["line 1"]),
        ("just words\n", ["line 1"]),
        ("model: a\nmodel: b\n", ["model"]),
    ],
)
def test_a_config_file_with_a_mistake(
    marvin: Marvin, marvin_model_server: ModelServer, content: str, words: list[str]
) -> None:
    """The file, the line and what to do; the file is left as it is."""
    path = marvin.config(content)
    result = marvin.ask()
    assert_refused(result, marvin_model_server, 1, str(path), *words)
    result.cost()
    assert path.read_text() == content
    again = marvin.ask()
    assert (again.code, again.said) == (1, result.said)


def test_a_config_file_that_is_not_utf8(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    path = marvin.config("")
    path.write_bytes(b"model: gr\xfc\xdfe\n")
    assert_refused(marvin.ask(), marvin_model_server, 1, str(path), "UTF-8")


def test_a_config_file_that_cannot_be_read(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    path = marvin.config("model: a\n")
    path.chmod(0)
    result = marvin.ask(program=[*without_rights(), *PROGRAM])
    assert_refused(result, marvin_model_server, 1, str(path), "cannot be read")


def test_an_empty_config_file_is_fine(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin.config("# nothing yet\n")
    marvin_model_server.script(text("Done."))
    assert marvin.ask().text == "Done.\n"


# --- where Marvin cannot write -------------------------------------------------------------------


def test_a_home_that_cannot_be_written(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """The job is done all the same; that nothing is kept is said once."""
    marvin_model_server.script(calls(("create_file", {"path": "a.txt", "content": "a\n"})), text("Done."))
    shutil.rmtree(marvin.home)
    marvin.home.mkdir(mode=0o555)
    result = marvin.ask(program=[*without_rights(), *PROGRAM])
    assert (result.code, result.text) == (0, "  🔧 create_file\nDone.\n")
    assert (marvin.project / "a.txt").read_text() == "a\n"
    assert result.said.count("session cannot be saved") == 1
    assert result.said.count("The lifetime usage totals could not be saved") == 1
    assert result.said.count("cannot be undone") == 1
    assert len(result.said.splitlines()) == 3
    assert result.cost()["llm_turns"] == 2
    assert list(marvin.home.iterdir()) == []


def test_no_home_at_all(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """As in a container that sets HOME to a folder which does not exist and cannot be made."""
    marvin_model_server.script(text("Done."))
    result = marvin.ask(env={"HOME": "/proc/no-home"})
    assert (result.code, result.text) == (0, "Done.\n")
    assert result.said.count("session cannot be saved") == 1
    assert len(result.said.splitlines()) == 2
    result.cost()


def test_a_session_file_with_damaged_lines_is_still_of_use(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("One."), text("Two."))
    assert marvin.ask(prompt="First").code == 0
    path = marvin.session_files()[0]
    path.write_bytes(path.read_bytes() + b'{"type":"message","id":"x","par')
    result = marvin.ask("--continue", prompt="Second")
    assert (result.code, result.text) == (0, "Two.\n")
    assert "line 4" in result.said
    assert [message["content"] for message in conversation(marvin_model_server)] == ["First", "One.", "Second"]


def test_a_file_of_the_project_that_cannot_be_written(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    (marvin.project / "closed").mkdir(mode=0o555)
    marvin_model_server.script(calls(("create_file", {"path": "closed/a.txt", "content": "x"})), text("Done."))
    result = marvin.ask(program=[*without_rights(), *PROGRAM])
    assert result.code == 0
    assert told(marvin_model_server)[0].startswith("Error: ")
    assert "closed/a.txt" in told(marvin_model_server)[0]


# --- streams that end ----------------------------------------------------------------------------


def test_standard_output_that_is_closed_early(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """As with `| head -c1`: the run ends with 1 instead of paying for an answer that nobody reads."""
    closed, long = threading.Event(), text("word " * 20, chunks=20)
    steps = hang_after(long.body.index(b'finish_reason": "stop'), long).steps
    begun = next(index for index, step in enumerate(steps) if isinstance(step, bytes) and b"word" in step) + 1
    marvin_model_server.script(long.replace(steps=(*steps[:begun], closed, *steps[begun:]), ending="hang"))
    ours, theirs = os.pipe()
    running = marvin.ask_in_background(stdout=theirs)
    os.close(theirs)
    assert os.read(ours, 4) == b"word"
    os.close(ours)
    closed.set()
    result = running.finish()  # though the answer never ends
    assert result.code == 1
    assert "standard output" in result.said
    result.cost()
    assert_loadable(marvin.messages())
    assert "word" in block_texts(marvin.messages()[1])


def test_a_pipe_into_head(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("abc" * 50_000, chunks=100))
    script = '"$@" | head -c1'
    result = marvin.run("-c", script, "sh", *PROGRAM, "--prompt", "Hi", program=["sh"])
    assert result.out == b"a"
    result.cost()
    assert "Traceback" not in result.said


@pytest.mark.parametrize(("closed", "code"), [("2>&-", 0), (">&-", 1), (">&- 2>&-", 1)])
def test_a_stream_that_is_closed_from_the_start(
    marvin: Marvin, marvin_model_server: ModelServer, closed: str, code: int
) -> None:
    """No file that Marvin opens may take the place of a closed stream and be written into."""
    marvin_model_server.script(
        calls(("create_file", {"path": "a.txt", "content": "a\n"})),
        calls(("run_command", {"command": "cat a.txt; echo out; echo err >&2"})),
        text("Done."),
    )
    result = marvin.run("-c", f'exec "$@" {closed}', "sh", *PROGRAM, "--prompt", "Hi", program=["sh"])
    assert result.code == code
    if code == 0:
        assert result.text == "  🔧 create_file\n  🔧 run_command\nDone.\n"
        assert told(marvin_model_server) == ["a\nout\nerr\n[exit code 0]"]
        assert (marvin.project / "a.txt").read_text() == "a\n"
    kept = marvin.kept()
    assert "MARVIN_COST" not in kept
    assert "🔧" not in kept
    for path in marvin.session_files():
        assert next(json.loads(line)["type"] for line in path.read_text().splitlines()) == "session"


def test_a_full_disk_behind_standard_output(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    marvin_model_server.script(text("Done."))
    with Path("/dev/full").open("wb") as full:
        result = marvin.ask(stdout=full)
    assert result.code == 1
    assert "No space left" in result.said
    result.cost()


def test_a_reader_that_is_slow_gets_everything(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """Also where the other end of the pipe was made non-blocking, as some parents do."""
    content = "0123456789" * 30_000
    marvin_model_server.script(text(content, chunks=30))
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    running = marvin.ask_in_background(stdout=theirs)
    os.close(theirs)
    running.until(lambda: unread(ours) >= 40_000, "the pipe to be about full")  # parts of its pages may be unused
    with os.fdopen(ours, "rb") as stream:
        assert stream.read() == content.encode() + b"\n"
    assert running.finish().code == 0
