"""Topics of ntfy: subscribing, publishing, and new messages at each prompt of a chat."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marvin_core.testing import PackRunner, ToolRunner
from marvin_tools_life.plugin import marvin_register_hooks
from tests.tools_life.ntfy_server import NtfyService

TOPIC = "doorbell"


@pytest.fixture
def service() -> Iterator[NtfyService]:
    with NtfyService().running() as running:
        yield running


@pytest.fixture
def tools(marvin_home: Path, marvin_workdir: Path, service: NtfyService) -> Iterator[PackRunner]:
    with PackRunner(marvin_home, marvin_workdir, env={"MARVIN_URL_NTFY": service.url}) as runner:
        yield runner


def file(tools: ToolRunner) -> Path:
    return tools.home / ".config/marvin/profiles/main/ntfy_subscriptions.json"


def topics(tools: ToolRunner) -> list[tuple[str, str]]:
    return [(entry["topic"], entry["label"]) for entry in json.loads(file(tools).read_text())]


def told(tools: PackRunner, service: NtfyService, **options: Any) -> list[str]:
    """What a prompt shows."""
    hooks = list(marvin_register_hooks())
    env = {"MARVIN_URL_NTFY": service.url, **options.pop("env", {})}
    chat = tools.session(hooks=hooks, env=env, **{"timeouts": {"hook": 30.0}, **options})
    chat.prompt("Hello", "Good day.")
    task = hooks[0]._asking  # type: ignore[attr-defined]
    if task is not None:
        chat.run(asyncio.wait({task}))
    return chat.notices


def test_a_topic_is_made_up_of_five_words(tools: PackRunner, service: NtfyService) -> None:
    made = [tools.call("generate_ntfy_topic", label=f"Phone {number}") for number in range(3)]
    names = [topic for topic, _ in topics(tools)]
    assert all(len(name.split("-")) == 5 for name in names)
    assert len(set(names)) == 3
    assert f"{service.url}/{names[0]}" in made[0].text
    assert topics(tools)[0][1] == "Phone 0"
    tools.take_back(3)
    assert topics(tools) == []


def test_the_words_are_many_and_fit_into_a_topic() -> None:
    import marvin_tools_life.notify

    words = (Path(marvin_tools_life.notify.__path__[0]) / "words.txt").read_text().split()
    assert len(set(words)) == len(words) >= 512  # nine bits each
    assert all(word.isalpha() and word.islower() and len(word) <= 11 for word in words)


@pytest.mark.parametrize("given", [TOPIC, f"https://ntfy.sh/{TOPIC}", f"ntfy.sh/{TOPIC}/", f" {TOPIC} "])
def test_a_topic_is_subscribed_by_name_or_address(tools: PackRunner, given: str) -> None:
    assert tools.call("ntfy_subscribe", topic=given, label="Door").text == f"Subscribed to {TOPIC}."
    assert topics(tools) == [(TOPIC, "Door")]
    assert "is subscribed already" in tools.call("ntfy_subscribe", topic=TOPIC).text
    assert tools.call("ntfy_unsubscribe", topic="door").text == f"Unsubscribed from {TOPIC}."
    assert topics(tools) == []
    tools.take_back()
    assert topics(tools) == [(TOPIC, "Door")]
    tools.take_back()
    assert topics(tools) == []


@pytest.mark.parametrize("given", ["", "a b", "../v1/stats", "x" * 65, "a,b", "é", "https://ntfy.sh/"])
def test_what_cannot_be_a_topic_is_refused(tools: PackRunner, service: NtfyService, given: str) -> None:
    for tool, more in (("ntfy_subscribe", {}), ("ntfy_publish", {"message": "x"})):
        refused = tools.call(tool, topic=given, **more)
        assert refused.is_error
        assert "cannot be a topic" in refused.text
    assert service.requests == []


def test_an_unknown_subscription_is_told_with_those_that_there_are(tools: PackRunner) -> None:
    assert "no topic is" in tools.call("ntfy_unsubscribe", topic="x").text
    tools.call("ntfy_subscribe", topic=TOPIC)
    assert f"Did you mean '{TOPIC}'" in tools.call("ntfy_unsubscribe", topic="dorbell").text


def test_a_message_is_published_to_a_name_or_a_label(tools: PackRunner, service: NtfyService) -> None:
    tools.call("ntfy_subscribe", topic=TOPIC, label="Front door")
    assert tools.call("ntfy_publish", topic="front DOOR", message="Ring", title="Door").text == f"Sent to {TOPIC}."
    assert (service.messages[0]["message"], service.messages[0]["title"]) == ("Ring", "Door")
    assert tools.call("ntfy_publish", topic="other", message="x").text == "Sent to other."
    assert tools.call("ntfy_publish", topic="other", message=" ").is_error


def test_the_token_goes_to_the_server_and_nowhere_else(tools: PackRunner, service: NtfyService) -> None:
    """I24: neither into an answer nor into a file."""
    service.token = "tk_secret123"
    assert "token is not known" in tools.call("ntfy_publish", topic=TOPIC, message="x").text
    env = {"MARVIN_URL_NTFY": service.url, "NTFY_TOKEN": "tk_secret123"}
    chat = tools.session(env=env)
    assert chat.call("ntfy_publish", topic=TOPIC, message="tk_secret123").text == f"Sent to {TOPIC}."
    chat.call("ntfy_subscribe", topic=TOPIC)
    assert "tk_secret123" not in chat.call("ntfy_list").text
    assert not [path for path in tools.home.rglob("*.json") if "tk_secret123" in path.read_text()]


def test_new_messages_are_listed_once(tools: PackRunner, service: NtfyService) -> None:
    assert "No topic is subscribed" in tools.call("ntfy_list").text
    service.put(TOPIC, "too early", time=int(time.time()) - 3_600)
    tools.call("ntfy_subscribe", topic=TOPIC, label="Door")
    tools.call("ntfy_subscribe", topic="other")
    service.put(TOPIC, "Ring\nring", title="\x1b[31mBell")
    service.put("other", "", attachment={"name": "cat.png", "url": "https://x"})
    service.put("strange", "not ours")
    assert tools.call("ntfy_list").text.splitlines() == [
        f"{TOPIC} (Door)",
        "other",
        "New: Door: Bell: Ring ring",
        "New: other: [file cat.png]",
    ]
    assert tools.call("ntfy_list").text.splitlines()[-1] == "No new messages."
    assert len(service.requests) == 2


def test_the_topic_of_alarms_is_marked(tools: PackRunner) -> None:
    tools.call("ntfy_subscribe", topic=TOPIC)
    assert f"{TOPIC}, for alarms and reminders" in tools.call("ntfy_list").text
    tools.call("ntfy_subscribe", topic="other")
    assert "for alarms" not in tools.call("ntfy_list").text


def test_a_prompt_of_a_chat_shows_what_is_new(tools: PackRunner, service: NtfyService) -> None:
    tools.call("ntfy_subscribe", topic=TOPIC)
    assert told(tools, service) == []
    service.put(TOPIC, "Ring")
    assert told(tools, service) == ["life: 🔔 doorbell: Ring"]
    assert told(tools, service) == []


@pytest.mark.parametrize(
    "options", [{"interactive": False}, {"env": {"MARVIN_DEPTH": "1"}}], ids=["a run", "a sub-agent"]
)
def test_runs_and_sub_agents_do_not_ask(tools: PackRunner, service: NtfyService, options: dict[str, Any]) -> None:
    tools.call("ntfy_subscribe", topic=TOPIC)
    service.put(TOPIC, "Ring")
    assert told(tools, service, **options) == []
    assert service.requests == []


def test_a_chat_without_subscriptions_asks_nobody(tools: PackRunner, service: NtfyService) -> None:
    assert told(tools, service) == []
    assert service.requests == []


def test_a_server_that_is_silent_delays_no_prompt(tools: PackRunner, service: NtfyService) -> None:
    tools.call("ntfy_subscribe", topic=TOPIC)
    service.silent = True
    hooks = list(marvin_register_hooks())
    chat = tools.session(hooks=hooks, env={"MARVIN_URL_NTFY": service.url}, timeouts={"hook": 60.0})
    assert chat.prompt("Hello", "Good day.").text == "Good day."
    assert not hooks[0]._asking.done()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "answer",
    [
        (500, b"oops"),
        (429, b'{"error":"limit reached"}'),
        (404, b"<html>"),
        (200, b"<html>" * 1_000),
        (200, b"{" * 100_000),
        (200, b'{"event":"message"}\n[]\n3\nnull\n{"event":"message","topic":"doorbell","id":1,"time":"x"}\n'),
        (200, b'{"event":"keepalive","topic":"doorbell","id":"a","time":1}\n\xff\xfe\n'),
        (200, b"x" * 3_000_000),
    ],
)
def test_a_server_that_answers_nonsense_is_passed_over(
    tools: PackRunner, service: NtfyService, answer: tuple[int, bytes]
) -> None:
    tools.call("ntfy_subscribe", topic=TOPIC)
    service.put(TOPIC, "Ring")
    service.answers = [answer]
    assert told(tools, service) == []
    assert told(tools, service) == ["life: 🔔 doorbell: Ring"]


def test_many_messages_are_bounded(tools: PackRunner, service: NtfyService) -> None:
    tools.call("ntfy_subscribe", topic=TOPIC)
    for number in range(120):
        service.put(TOPIC, f"{number} " + "x" * 3_000)
    shown = told(tools, service)
    assert len(shown) == 51
    assert shown[-1].endswith("70 older messages are left out; the ntfy app has them.")
    assert all(len(line) < 600 for line in shown)
    assert told(tools, service) == []


@pytest.mark.parametrize("content", ["{", '[{"topic": "a b"}]', '[{"topic": 3}]', "[3]"])
def test_a_damaged_file_is_told_and_moved_aside(tools: PackRunner, service: NtfyService, content: str) -> None:
    tools.call("ntfy_subscribe", topic=TOPIC)
    file(tools).write_text(content)
    (line,) = told(tools, service)
    assert "ntfy_subscriptions.json is damaged" in line
    assert told(tools, service) == []
