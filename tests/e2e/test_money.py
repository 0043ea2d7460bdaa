"""What a run costs, as it is told: by provider, after each prompt, over several runs, and whatever a service says."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from marvin_core.testing import Answer, ModelServer, answers
from marvin_core.util.state_files import locked
from tests.support import answers_anthropic, answers_ollama, answers_responses
from tests.support.listing_servers import StrictServer
from tests.support.money import ledgers, usage

from .support_e2e import Marvin, posts

pytestmark = pytest.mark.slow

PRICED = "prices: {scripted: {input: 1.0, output: 10.0}}\n"
QUICK = "timeouts: {retry_backoff: [0.01], ceiling_poll: 0.02}\n"
IMPATIENT = "timeouts: {retry_backoff: [0.01], ceiling_poll: 0.02, model_idle: 0.3, model_idle_coding: 0.3}\n"


@pytest.fixture
def server() -> Any:
    with ModelServer() as found:
        yield found


@pytest.fixture
def marvin(tmp_path: Path, server: ModelServer, warm_cache: Path) -> Marvin:
    found = Marvin(tmp_path, server, warm_cache)
    found.env["OPENAI_COMPAT_MODEL"] = "scripted"
    found.config(PRICED + QUICK)
    return found


def totals(marvin: Marvin) -> Any:
    return json.loads((marvin.config_folder / "usage.json").read_bytes(), parse_constant=pytest.fail)


def counted(marvin: Marvin, turns: int) -> bool:
    return (marvin.config_folder / "usage.json").exists() and totals(marvin)["turns"] == {"scripted": turns}


BAD = ['"0.01"', "{}", "[]", "NaN", "1e999", "-5", "true", "1" + "0" * 400]


@pytest.mark.parametrize("bad", BAD)
def test_a_cost_that_is_no_number_ends_nothing(marvin: Marvin, server: ModelServer, bad: str) -> None:
    """I22: the answer is there, the last line too, and the lifetime totals stay whole."""
    said = json.dumps({"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]})
    told = f'{{"choices": [], "usage": {{"prompt_tokens": 1000, "completion_tokens": 100, "cost": {bad}}}}}'
    server.script(answers.events(said, told))
    done = marvin.ask()
    assert (done.code, done.text) == (0, "Hello.\n")
    assert done.cost()["session_cost"] == pytest.approx(0.002)
    assert totals(marvin)["cost"] == {"scripted": pytest.approx(0.002)}


WIRES: dict[str, Callable[[Any], Answer]] = {
    "chat-completions": lambda bad: answers.text("Hello.", usage=usage(bad, bad, prompt_tokens_details=bad)),
    "messages": lambda bad: answers_anthropic.text("Hello.", usage={"input_tokens": bad, "output_tokens": bad}),
    "responses": lambda bad: answers_responses.text("Hello.", usage={"input_tokens": bad, "input_tokens_details": bad}),
}


@pytest.mark.parametrize("bad", ["12", [], [1], {}, True, -7, 10**30, None])
@pytest.mark.parametrize("wire", WIRES)
def test_counts_that_are_none_are_no_fault_of_the_answer(
    marvin: Marvin, server: ModelServer, wire: str, bad: Any
) -> None:
    """The answer is taken once, and its cost is not known."""
    config = f'providers: {{mine: {{wire: {wire}, base_url: "{server.url}", models: [scripted]}}}}\nprovider: mine\n'
    marvin.config(PRICED + QUICK + config)
    server.script(WIRES[wire](bad))
    done = marvin.ask()
    assert (done.code, done.text, posts(server)) == (0, "Hello.\n", 1), done.err
    assert done.cost()["session_cost"] is None
    assert done.cost()["llm_turns"] == 1


def test_an_output_of_nothing_with_text_has_no_known_cost(marvin: Marvin, server: ModelServer) -> None:
    server.script(answers.text("Hello.", usage=usage(1_000, 0)))
    assert marvin.ask().cost()["session_cost"] is None


def test_a_time_out_has_no_known_cost_and_is_reserved_in_full(marvin: Marvin, server: ModelServer) -> None:
    """The service may have thought all the time, and bills it: prompts do not go on without end."""
    marvin.config(PRICED + IMPATIENT)
    server.script(*[answers.hang()] * 20)
    done = marvin.ask("--max-cost", "1")
    assert done.code == 1
    assert done.cost()["session_cost"] is None
    chat = marvin.run("--plain", "--max-cost", "0.3", stdin=b"".join(b"prompt %d\n" % n for n in range(20)))
    assert "The cost ceiling of 0.3 USD is reached" in chat.text
    assert posts(server) < 10


def test_comments_that_keep_a_connection_alive_are_no_refusal(marvin: Marvin, server: ModelServer) -> None:
    """OpenRouter sends them while a model thinks, which is billed, also where the answer is not waited for."""
    marvin.config(PRICED + IMPATIENT)
    alive = Answer(steps=(b": OPENROUTER PROCESSING\n\n", 0.1) * 100)
    server.script(*[alive] * 20)
    assert marvin.ask("--max-cost", "1").cost()["session_cost"] is None
    chat = marvin.run("--plain", "--max-cost", "0.3", stdin=b"".join(b"prompt %d\n" % n for n in range(20)))
    assert "The cost ceiling of 0.3 USD is reached" in chat.text
    assert posts(server) < 10


def test_a_service_that_is_not_there_costs_nothing(marvin: Marvin) -> None:
    marvin.env["OPENAI_COMPAT_URL"] = "http://127.0.0.1:9/v1"
    done = marvin.ask("--max-cost", "0.3")
    assert done.code == 1
    assert done.cost() == {"session_cost": 0.0, "llm_turns": 0, "model_turns": {}, "model_cost": {}}


def test_the_report_has_each_provider_and_model_with_a_total(marvin: Marvin, server: ModelServer) -> None:
    """I11: per provider and model."""
    server.script(answers.text("Hello.", usage=usage(1_000, 100)))
    report = json.loads(marvin.ask("--output-format", "json").text)
    entry = {"requests": 1, "cost": pytest.approx(0.002), "estimated": False}
    assert report["providers"] == {"openai-compat": {**entry, "models": {"scripted": entry}}}
    assert report["cost"] == pytest.approx(0.002)


def test_usage_json_is_brought_up_to_date_after_each_prompt(marvin: Marvin, server: ModelServer) -> None:
    """Two chats at once add to it, and nothing counts twice."""
    server.script(*[answers.text("Hello.", usage=usage(1_000, 100))] * 6)
    chats = [marvin.start("--plain", stdin=-1) for _ in range(2)]
    for number in range(1, 3):
        for chat in chats:
            assert chat.process.stdin is not None
            chat.process.stdin.write(b"hello\n")
            chat.process.stdin.flush()
        chats[0].until(partial(counted, marvin, 2 * number), "both prompts")
    for chat in chats:
        assert chat.process.stdin is not None
        chat.process.stdin.close()
        assert chat.finish().code == 0
    found = totals(marvin)
    assert found["turns"] == {"scripted": 4}
    assert found["cost"] == {"scripted": pytest.approx(0.008)}
    assert found["providers"]["openai-compat"]["models"]["scripted"]["requests"] == 4


def test_a_session_goes_on_with_what_it_cost(marvin: Marvin, server: ModelServer) -> None:
    """Three runs under one ceiling cost no more than one."""
    for _ in range(40):
        server.script(answers.calls(("list_dir", {"path": "."}), usage=usage(10_000, 1_000)))
    assert marvin.ask("--max-cost", "0.1").code == 3
    sent = posts(server)
    told = marvin.ask("--continue", "--max-cost", "0.1")
    assert told.code == 3
    assert "of them by earlier runs of this session" in told.said
    assert marvin.ask("--continue", "--max-cost", "0.1").code == 3
    assert posts(server) * 0.02 <= 0.1 + 1e-9
    more = posts(server)
    assert marvin.ask("--continue", "--max-cost", "0.2").code == 3  # the advice was right
    assert posts(server) > more >= sent
    assert posts(server) * 0.02 <= 0.2 + 1e-9


def test_what_a_session_cost_without_a_ceiling_counts_too(marvin: Marvin, server: ModelServer) -> None:
    server.script(answers.text("One.", usage=usage(50_000, 5_000)))
    assert marvin.ask().code == 0
    done = marvin.ask("--continue", "--max-cost", "0.1")
    assert done.code == 3
    assert "0.1000 USD are spent, 0.1000 of them by earlier runs" in done.said
    assert posts(server) == 1


def test_an_interrupted_request_has_no_known_cost(marvin: Marvin, server: ModelServer) -> None:
    """Not even where no byte of its answer had come: the service works on it all the same."""
    server.script(answers.hang())
    running = marvin.ask_in_background()
    running.until(lambda: posts(server), "a request")
    running.send(signal.SIGINT)
    cost = running.finish().cost()
    assert (cost["session_cost"], cost["llm_turns"]) == (None, 1)


def test_a_run_that_is_interrupted_between_two_tries_cost_what_is_known(marvin: Marvin, server: ModelServer) -> None:
    marvin.config(f"{PRICED}timeouts: {{retry_backoff: [30]}}\n")
    server.script(answers.error(429, "slow down"))
    running = marvin.ask_in_background()
    running.until(lambda: b"trying again" in running.err, "the pause")
    running.send(signal.SIGINT)
    cost = running.finish().cost()
    assert (cost["session_cost"], cost["llm_turns"]) == (0.0, 0)


def test_what_a_killed_run_spent_counts_too(marvin: Marvin, server: ModelServer) -> None:
    """Rounds that were paid, and the request that was under way, by its worst case; once."""
    server.script(answers.text("One.", usage=usage(10_000, 1_000)))
    assert marvin.ask("--max-cost", "0.2").code == 0
    server.script(answers.calls(("list_dir", {"path": "."}), usage=usage(10_000, 1_000)), answers.hang())
    running = marvin.ask_in_background("--continue", "--max-cost", "0.2")
    running.until(lambda: posts(server) == 3, "the second round")
    running.send(signal.SIGKILL)
    running.finish()
    most = server.requests[-1].body["max_tokens"] * 10 / 1_000_000
    server.script(answers.text("Two.", usage=usage(100, 10)), answers.text("Three.", usage=usage(100, 10)))
    for _ in range(2):
        done = marvin.ask("--continue", "--max-cost", "0.04")
        assert done.code == 3
        spent = float(re.search(r"([\d.]+) of them by earlier runs", done.said)[1])  # type: ignore[index]
        assert 0.04 + most <= spent <= 0.04 + most + 0.02
    assert marvin.ask("--continue", "--max-cost", "0.4").text == "Two.\n"
    assert ledgers(marvin.home) == []


def test_a_chat_that_is_killed_between_prompts_is_not_charged_twice(marvin: Marvin, server: ModelServer) -> None:
    server.script(answers.text("One.", usage=usage(10_000, 1_000)))
    chat = marvin.start("--plain", "--max-cost", "1", stdin=-1)
    assert chat.process.stdin is not None
    chat.process.stdin.write(b"hello\n")
    chat.process.stdin.flush()
    both = "what the request cost, and the note that the session's file has it"
    chat.until(lambda: sum(path.read_bytes().count(b'"amount":20000}') for path in ledgers(marvin.home)) == 2, both)
    chat.send(signal.SIGKILL)
    chat.finish()
    done = marvin.ask("--continue", "--max-cost", "0.001")
    assert "0.0200 of them by earlier runs" in done.said


def test_a_chat_that_is_killed_has_its_earlier_prompts_in_usage_json(marvin: Marvin, server: ModelServer) -> None:
    """Without a ceiling too. What the killed prompt cost is known to nobody."""
    server.script(answers.text("One.", usage=usage(10_000, 1_000)), answers.hang())
    chat = marvin.start("--plain", stdin=-1)
    assert chat.process.stdin is not None
    for number in (1, 2):
        chat.process.stdin.write(b"hello\n")
        chat.process.stdin.flush()
        chat.until(lambda number=number: posts(server) == number, "the request")  # type: ignore[misc]
        chat.until(lambda: counted(marvin, 1), "the first prompt")
    chat.send(signal.SIGKILL)
    chat.finish()
    assert totals(marvin)["cost"] == {"scripted": pytest.approx(0.02)}
    assert max(record.get("spent", 0.0) for record in marvin.session()) == pytest.approx(0.02)


@pytest.mark.parametrize("how", [("--non-interactive", "--prompt", "hello"), ("--plain",)])
def test_a_usage_json_that_is_held_is_waited_for_once_and_told_once(
    marvin: Marvin, server: ModelServer, how: tuple[str, ...]
) -> None:
    marvin.config(f"{PRICED}timeouts: {{lock: 0.5, close: 0.5}}\n")
    server.script(answers.text("One.", usage=usage(10_000, 1_000)))
    with locked(marvin.config_folder / "usage.json", 1.0, 0.01):
        done = marvin.run(*how, stdin=b"hello\n" if how == ("--plain",) else None)
    assert done.code == 0
    said = done.said + done.text
    assert said.count("is locked by another process. Try again when that process has finished") == 1
    assert "The lifetime usage totals could not be saved" in said
    assert "While closing" not in said


GATEWAY = "anthropic/claude-opus-4-6"


def test_a_gateway_on_this_machine_is_under_the_ceiling(marvin: Marvin, server: ModelServer) -> None:
    """Its prices are those of the service whose model it is, until config.yaml says otherwise."""
    marvin.env["OPENAI_COMPAT_MODEL"] = GATEWAY
    marvin.config(QUICK)
    server.script(answers.text("Hello.", usage=usage(10_000, 1_000)))
    assert marvin.ask("--max-cost", "0.01").code == 3
    assert posts(server) == 0
    assert marvin.ask("--max-cost", "1").cost()["session_cost"] == pytest.approx(0.075)
    marvin.config(f"{QUICK}providers: {{openai-compat: {{free: true}}}}\n")
    server.script(answers.text("Hello.", usage=usage(10_000, 1_000)))
    assert marvin.ask("--max-cost", "0.01").cost()["session_cost"] == 0.0
    marvin.env["OPENAI_COMPAT_MODEL"] = "a-model-of-mine"
    marvin.config(f"{QUICK}providers: {{openai-compat: {{free: false}}}}\n")
    assert "price of openai-compat/a-model-of-mine is unknown" in marvin.ask("--max-cost", "1").said


def test_servers_that_run_models_cost_nothing_whatever_their_models_are_called(
    marvin: Marvin, server: ModelServer
) -> None:
    root = server.url.removesuffix("/v1")
    marvin.env |= {"OLLAMA_URL": root, "LLAMA_SERVER_URL": server.url, "OLLAMA_MODEL": "gpt-5.1"}
    marvin.config(QUICK)
    server.script(answers_ollama.text("Hello."))
    assert marvin.ask("--provider", "ollama", "--max-cost", "0").cost()["session_cost"] == 0.0
    server.script(answers.text("Hello."))
    done = marvin.ask("--provider", "llama-server", "--model", "gpt-5.1", "--max-cost", "0")
    assert done.cost()["session_cost"] == 0.0


def test_a_service_that_lists_its_prices_is_billed_by_them(unconfigured: Marvin) -> None:
    """Without a ceiling and under one, in the first run of all."""
    entry = {"pricing": {"prompt": "0.000002", "completion": "0.00001", "request": "0.01"}}
    answer = answers.text("Hello.", usage=usage(10_000, 1_000))
    with StrictServer(answer, models=["nobody-sells-this"], entries=[entry]) as box:
        unconfigured.config(f"provider: box\nproviders: {{box: {{base_url: '{box.url}', free: false}}}}\n")
        for flags in ((), ("--max-cost", "1")):
            done = unconfigured.ask(*flags)
            assert (done.code, done.text) == (0, "Hello.\n")
            assert done.cost()["session_cost"] == pytest.approx(0.04)
        assert unconfigured.ask("--max-cost", "0.01").code == 3
