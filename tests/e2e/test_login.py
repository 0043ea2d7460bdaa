"""`marvin login` and `/login`: a key is read unseen, tried out, kept, used at once, and forgotten again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_core.testing import Answer, LoopbackServer, ModelServer, RecordedRequest, document, error, text
from tests.e2e.support_e2e import Marvin
from tests.e2e.support_terminal import Terminal
from tests.e2e.test_plain_chat import Chat

pytestmark = pytest.mark.slow

KEY = "gsk-key-q8ZkV3tYw71xLpR9"
PROMPT = "\r\n> "


class Strict(LoopbackServer):
    """A service that accepts one key."""

    def answer_to(self, request: RecordedRequest) -> Answer:
        """The list of models, or that the key is wrong."""
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return error(401, f"invalid key: {request.headers.get('authorization')}")
        return document({"data": [{"id": "m"}]}) if request.method == "GET" else text("Hi.")


@pytest.fixture
def server() -> Iterator[Strict]:
    with Strict() as serving:
        yield serving


@pytest.fixture
def groq(unconfigured: Marvin, server: Strict) -> Marvin:
    """Marvin without a key, for a service that wants one."""
    unconfigured.env["GROQ_BASE_URL"] = f"http://127.0.0.1:{server.port}/v1"
    unconfigured.env["GROQ_MODEL"] = "m"
    return unconfigured


def keys_file(marvin: Marvin) -> Path:
    return marvin.config_folder / "keys.json"


def written_elsewhere(marvin: Marvin) -> list[str]:
    """The files but `keys.json` that hold the key."""
    files = [path for path in marvin.home.rglob("*") if path.is_file() and path != keys_file(marvin)]
    return [str(path) for path in files if KEY.encode() in path.read_bytes()]


def test_a_key_is_set_used_and_forgotten(groq: Marvin) -> None:
    result = groq.run("login", "groq", "--store", "file", stdin=f"{KEY}\n".encode())
    assert result.code == 0, result.said
    assert "groq answers, with 1 model." in result.text
    assert f"The key of groq is stored in {keys_file(groq)}." in result.text.replace("\n", " ")
    assert keys_file(groq).stat().st_mode & 0o777 == 0o600
    answered = groq.ask()
    assert (answered.code, answered.text) == (0, "Hi.\n"), answered.said
    assert "its key is in" in groq.run("providers", "list", "--no-check").text
    assert groq.run("logout", "groq").code == 0
    assert KEY not in keys_file(groq).read_text()
    assert groq.ask().code == 1
    assert KEY not in result.text + result.said + answered.said
    assert written_elsewhere(groq) == []


def test_a_key_that_is_refused_is_neither_kept_nor_shown(groq: Marvin) -> None:
    result = groq.run("login", "groq", "--store", "file", stdin=b"gsk-wrong-0123456789\n")
    assert result.code == 1
    assert "groq does not accept this key, so it was not stored" in result.said
    assert "gsk-wrong" not in result.said + result.text
    assert not keys_file(groq).exists()


def test_what_can_be_no_key_or_no_service_is_refused(groq: Marvin, server: Strict) -> None:
    for words, typed, said in (
        (["groq"], b"two words\n", "That is not a key"),
        (["groq"], b"", "No key was given"),
        (["ollama"], b"x\n", "ollama has no key"),
        (["copilot"], b"x\n", "gh auth login"),
        (["grok"], b"x\n", "Unknown provider 'grok'. Did you mean 'groq'?"),
        ([], b"x\n", "Which service?"),
    ):
        result = groq.run("login", *words, stdin=typed)
        assert result.code in (1, 2), words
        assert said in result.said
    assert server.requests == []


def test_a_variable_counts_more_and_is_named(groq: Marvin) -> None:
    groq.env["GROQ_API_KEY"] = "gsk-other-0123456789"
    result = groq.run("login", "groq", "--store", "file", stdin=f"{KEY}\n".encode())
    assert "GROQ_API_KEY is set and takes precedence at the next start: unset it" in result.text.replace("\n", " ")
    assert "GROQ_API_KEY is still set" in groq.run("logout", "groq").text.replace("\n", " ")


def test_a_key_is_set_in_a_chat_of_lines(groq: Marvin) -> None:
    """Nobody has to leave: the service answers the next line, and the key stands nowhere but in its file."""
    chat = Chat(groq)
    greeting = chat.until(PROMPT)
    assert "/login NAME sets a key" in greeting
    chat.process.sendline("/login groq")
    chat.until("which is not shown:")
    chat.process.sendline(KEY)
    shown = chat.until(PROMPT)
    assert "groq answers, with 1 model." in shown
    assert "Now using groq/m" in shown
    assert KEY not in shown
    assert "Hi." in chat.say("Hello")
    assert "removed from" in chat.say("/logout groq")
    assert chat.leave() == 0
    assert written_elsewhere(groq) == []


def test_a_key_is_set_in_a_chat_on_a_terminal(groq: Marvin, server: Strict) -> None:
    terminal = Terminal(groq)
    terminal.ready()
    terminal.say(
        f"/login groq {KEY[::-1]}", "Do not type the key after the name: it would stay on the screen. Type /login"
    )
    terminal.say("/login groq", "which is not shown:")
    terminal.until("[hidden]")
    terminal.say(KEY[:-1], "does not accept this key")
    terminal.say("/login groq", "[hidden]")
    terminal.say(KEY, "Now using groq/m")
    terminal.say("Hello", "Hi.")
    assert terminal.leave() == 0
    assert KEY[:-1] not in terminal.output
    assert json.loads(keys_file(groq).read_text())["keys"] == {"GROQ_API_KEY": KEY}
    assert written_elsewhere(groq) == []
    history = (groq.config_folder / "profiles" / "main" / "history").read_text()
    assert KEY[:-1] not in history
    assert KEY[::-1] not in history
    assert "+/login groq" in history
    assert len(server.requests) == 3


def test_a_key_that_is_typed_as_a_line_is_not_kept(
    marvin: Marvin, marvin_model_server: ModelServer, tmp_path: Path
) -> None:
    """One that Marvin knows, and one that only looks like a key: neither is in the history, the log, the session."""
    marvin.env["GROQ_API_KEY"] = KEY
    marvin.env["LLM_PROVIDER"] = "openai-compat"
    marvin_model_server.script(text("Noted."), text("Again."))
    stranger = "ghp_" + "aB3d" * 9
    terminal = Terminal(marvin)
    terminal.ready()
    terminal.say(f"my keys are {KEY} and {stranger}", "Noted.")
    assert terminal.leave() == 0
    kept = marvin.kept()
    assert KEY not in kept
    assert stranger not in kept
    assert "my keys are [redacted] and [redacted]" in kept
    sent = marvin_model_server.requests[0].content.decode()
    assert KEY not in sent
    assert stranger in sent
