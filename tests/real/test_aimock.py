"""Every wire format against an emulator of the services that others wrote, in good order and in bad."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import pytest

from marvin_core.api.record import Record
from tests.e2e.support_e2e import Marvin, Result, assert_loadable, block_texts
from tests.real.aimock import Aimock

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("aimock")]

KEY = "sk-test-0123456789abcdef"
LONG = "An answer that is long enough to come in several pieces: one, two, three, four, five, six and seven."
QUICK = "timeouts: {retry_backoff: [0.05, 0.05, 0.05], retry_after_limit: 1.5}\n"
UNICODE = "Grüße, 漢字 👩‍👩‍👧\n"


class Service(Record):
    """One service: which provider speaks to it, the variable with its address, where it is below the emulator's."""

    provider: str
    variable: str
    base: str
    path: str


SERVICES = (
    Service(provider="openai-compat", variable="OPENAI_COMPAT_URL", base="/v1", path="/v1/chat/completions"),
    Service(provider="openai", variable="OPENAI_BASE_URL", base="/v1", path="/v1/responses"),
    Service(provider="anthropic", variable="ANTHROPIC_BASE_URL", base="", path="/v1/messages"),
    Service(
        provider="gemini",
        variable="GEMINI_BASE_URL",
        base="/v1beta/openai",
        path="/v1beta/openai/chat/completions",
    ),
    Service(provider="groq", variable="GROQ_BASE_URL", base="/openai/v1", path="/openai/v1/chat/completions"),
    Service(provider="ollama", variable="OLLAMA_URL", base="", path="/api/chat"),
)
# In Ollama's format the emulator neither thinks nor counts as it is told.
not_ollama = pytest.mark.parametrize("service", SERVICES[:-1], indirect=True, ids=lambda service: service.provider)


@pytest.fixture(params=SERVICES, ids=lambda service: service.provider)
def service(request: pytest.FixtureRequest, marvin: Marvin, aimock: Aimock) -> Service:
    found: Service = request.param
    marvin.env |= variables(found, aimock) | {"LLM_PROVIDER": found.provider}
    marvin.config(QUICK)
    return found


def variables(service: Service, aimock: Aimock) -> dict[str, str]:
    given = {service.variable: aimock.url + service.base}
    if service.provider != "ollama":
        given[f"{service.provider.upper().replace('-', '_')}_API_KEY"] = KEY
    return given


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def assert_sound(marvin: Marvin, result: Result) -> None:
    """However a run ended: its cost stands last, no key was written, the session can be gone on with."""
    result.cost()
    assert_loadable(marvin.messages())
    assert KEY not in result.err.decode() + result.text + marvin.kept()


def goes_on(marvin: Marvin, aimock: Aimock) -> None:
    """The session is loaded, and the service takes it."""
    aimock.reset()
    aimock.always_answers("Here I am.")
    again = marvin.ask("--continue", prompt="Are you there?")
    assert (again.code, again.text) == (0, "Here I am.\n"), again.said
    assert len(marvin.session_files()) == 1


# --- in good order --------------------------------------------------------------------------------------------------


def test_an_answer_comes_whole(marvin: Marvin, aimock: Aimock, service: Service) -> None:
    aimock.answers("Say something", {"content": LONG + UNICODE})
    result = marvin.ask(prompt="Say something")
    assert (result.code, result.text, result.said) == (0, LONG + UNICODE, "")
    assert list(result.cost()["model_turns"].values()) == [1]
    asked = aimock.journal()
    assert [(entry["path"], entry["response"]["status"]) for entry in asked] == [(service.path, 200)]
    assert asked[0]["body"]["stream"] is True
    assert_sound(marvin, result)


def test_rounds_of_tools(marvin: Marvin, aimock: Aimock, service: Service) -> None:
    """Each call runs, its output goes back to where it belongs, and the service goes on from there."""
    aimock.answers(
        "Copy the word",
        {"toolCalls": [call("read_file", path="notes.txt")]},
        {"toolCalls": [call("create_file", path="word.txt", content=UNICODE), call("read_file", path="none.txt")]},
        {"content": "It is copied."},
    )
    result = marvin.ask(prompt="Copy the word")
    shown = "  🔧 read_file\n  🔧 create_file, read_file\nIt is copied.\n"
    assert (result.code, result.text, result.said) == (0, shown, "")
    assert (marvin.project / "word.txt").read_text("utf-8") == UNICODE
    requests = [entry["body"] for entry in aimock.journal()]
    assert [roles(body) for body in requests] == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "tool"],
    ]
    outputs = [message["content"] for message in requests[-1]["messages"] if message["role"] == "tool"]
    assert "heron" in outputs[0]
    assert "none.txt" in outputs[2]
    offered = {tool["function"]["name"]: tool["function"] for tool in requests[0]["tools"]}
    assert {"read_file", "create_file", "run_command"} <= set(offered)
    assert set(offered["create_file"]["parameters"]["properties"]) == {"path", "content"}
    assert_paired(requests[-1], service)
    assert_sound(marvin, result)
    goes_on(marvin, aimock)


def roles(body: Mapping[str, Any]) -> list[str]:
    """Who speaks, in turn: formats differ in how many messages one turn is."""
    spoken = (message["role"] for message in body["messages"] if message["role"] != "system")
    return [role for role, _ in groupby(spoken)]


def assert_paired(body: Mapping[str, Any], service: Service) -> None:
    """Each output names its call. Ollama's format has no ids: there the order says it."""
    if service.provider == "ollama":
        return
    called = [made["id"] for message in body["messages"] for made in message.get("tool_calls") or ()]
    told = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    assert called == told
    assert len(set(called)) == len(called) == 3


def test_a_call_that_comes_before_the_text(marvin: Marvin, aimock: Aimock, service: Service) -> None:
    blocks = [{"type": "toolCall", **call("read_file", path="notes.txt")}, {"type": "text", "text": "Reading."}]
    aimock.answers("Read it", {"blocks": blocks}, {"content": "Read."})
    result = marvin.ask(prompt="Read it")
    assert (result.code, result.said) == (0, "")
    assert result.text.splitlines() == ["Reading.", "  🔧 read_file", "Read."]
    assert_sound(marvin, result)


@not_ollama
def test_thoughts_are_kept_and_not_shown(marvin: Marvin, aimock: Aimock, service: Service) -> None:
    aimock.answers("Think", {"content": "Thought.", "reasoning": "First this, then that."})
    result = marvin.ask(prompt="Think")
    assert (result.code, result.text) == (0, "Thought.\n")
    blocks = marvin.messages()[-1]["content"]
    assert [block["text"] for block in blocks if block["type"] == "thinking"] == ["First this, then that."]
    goes_on(marvin, aimock)


@not_ollama
def test_what_was_used_is_counted(marvin: Marvin, aimock: Aimock, service: Service) -> None:
    counts = (
        {"input_tokens": 1234, "output_tokens": 56}
        if service.provider in ("openai", "anthropic")
        else {"prompt_tokens": 1234, "completion_tokens": 56}
    )
    aimock.answers("Count", {"content": "Counted.", "usage": counts})
    result = marvin.ask("--output-format", "stream-json", prompt="Count")
    used = [event["usage"] for event in result.events() if event["type"] == "usage"]
    assert [(usage["input_tokens"], usage["output_tokens"]) for usage in used] == [(1234, 56)]
    # A gateway on this machine costs what its models cost; Ollama runs them itself.
    assert (result.cost()["session_cost"] > 0) == (service.provider != "ollama")


def test_a_list_of_models_shows_that_it_answers(marvin: Marvin, aimock: Aimock) -> None:
    for one in SERVICES:
        marvin.env |= variables(one, aimock)
    shown = marvin.run("providers").text.splitlines()
    for one in SERVICES:
        line = next(number for number, text in enumerate(shown) if text[2:].startswith(f"{one.provider} "))
        # The emulator has no list at Gemini's path; that it says so is an answer as well.
        assert shown[line + 2].strip() == ("answers" if one.provider == "gemini" else "answers, 5 models")


# --- in bad order ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500])
def test_a_fault_that_passes_is_waited_out(marvin: Marvin, aimock: Aimock, service: Service, status: int) -> None:
    aimock.answers("Say something", {"content": LONG})
    aimock.fail_once(status)
    result = marvin.ask(prompt="Say something")
    assert (result.code, result.text) == (0, LONG + "\n")
    what = f"Rate limited by {service.provider}" if status == 429 else f"{service.provider} is overloaded"
    assert f"marvin: {what}, trying again in " in result.said
    assert [entry["response"]["status"] for entry in aimock.journal()] == [status, 200]
    assert_sound(marvin, result)


@pytest.mark.parametrize(
    ("fault", "told", "tries"),
    [
        ("dropRate", "is failing or overloaded (500): Chaos: request dropped.", 4),
        ("malformedRate", "sent something that is not JSON. It begins: {malformed json", 4),
        ("disconnectRate", "gave no usable answer: the connection was closed. Try again.", 4),
        ("rateLimitRate", "limits the rate of requests (429): Chaos: rate limit exceeded.", 4),
    ],
)
def test_a_fault_that_stays_ends_the_run(
    marvin: Marvin, aimock: Aimock, service: Service, fault: str, told: str, tries: int
) -> None:
    """I15, I22: with a clear error and 1, its cost last; and the prompt is not lost."""
    aimock.fail_always(**{fault: 1})
    result = marvin.ask(prompt="Say something")
    assert (result.code, result.text) == (1, "")
    if (service.provider, fault) == ("ollama", "malformedRate"):
        told = "broke off before the answer was complete."  # there a line counts when it is ended
    assert told in result.said.splitlines()[-1]
    assert len(aimock.journal()) == tries
    assert not result.cost()["session_cost"]  # nothing, or not known where an answer was begun
    assert_sound(marvin, result)
    goes_on(marvin, aimock)


def test_a_wrong_key_is_said_at_once(marvin: Marvin, aimock: Aimock, service: Service) -> None:
    aimock.fail_once(401)
    result = marvin.ask(prompt="Say something")
    assert result.code == 1
    assert f"{service.provider} did not accept the API key (401): injected by the test. Check the key" in result.said
    assert len(aimock.journal()) == 1
    assert_sound(marvin, result)


def test_an_answer_that_breaks_off_in_its_text(marvin: Marvin, aimock: Aimock, service: Service) -> None:
    """What was shown is never shown twice: the run ends, and what came is kept."""
    aimock.answers("Say something", {"content": LONG}, truncateAfterChunks=8, latency=20, chunkSize=10)
    result = marvin.ask(prompt="Say something")
    assert result.code == 1
    assert LONG.startswith(result.text.strip())
    assert result.text.strip()
    assert "broke off" in result.said
    assert len(aimock.journal()) == 1
    assert block_texts(marvin.messages()[-1]) == result.text.rstrip("\n")
    assert_sound(marvin, result)
    goes_on(marvin, aimock)


def test_a_call_that_breaks_off_is_not_run(marvin: Marvin, aimock: Aimock, service: Service) -> None:
    """I15: neither with half of its arguments nor as if it had been whole."""
    made = call("create_file", path="new.txt", content=LONG)
    cut = 1 if service.provider == "ollama" else 4  # there a call comes in one piece; what is cut off is its end
    aimock.answers("Write it", {"toolCalls": [made]}, {"content": "Written."}, truncateAfterChunks=cut, latency=20)
    result = marvin.ask(prompt="Write it")
    assert result.code == 1
    assert not (marvin.project / "new.txt").exists()
    assert "broke off" in result.said or "gave no usable answer" in result.said
    assert_sound(marvin, result)
    goes_on(marvin, aimock)


def test_an_answer_at_its_limit_is_said_to_be_one(marvin: Marvin, aimock: Aimock, service: Service) -> None:
    aimock.answers("Say something", {"content": "Half an ans", "finishReason": "length"})
    result = marvin.ask(prompt="Say something")
    assert (result.code, result.text) == (0, "Half an ans\n")
    if service.provider != "ollama":  # there the emulator gives no reason
        assert "The answer was cut off at the model's output limit." in result.said
