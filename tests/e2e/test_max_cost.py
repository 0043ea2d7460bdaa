"""The cost ceiling of a whole run: what people see, what is sent, and what is spent when it is reached."""

from __future__ import annotations

import json
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.timeouts import Timeouts
from marvin_core.testing import ModelServer, answers
from marvin_core.usage.ledger import Ledger
from tests.support.money import ledgers, usage

from .support_e2e import Marvin, Running, posts, wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PRICED = "prices: {scripted: {input: 1.0, output: 10.0}}\ntimeouts: {retry_backoff: [0.01], ceiling_poll: 0.02}\n"
"""A request of 10,000 tokens costs a cent, and so does an answer of 1,000."""


def round_of(name: str = "list_dir", out: int = 1_000) -> Any:
    """A call, and what the service says that it used."""
    return answers.calls((name, {"path": "."}), usage=usage(10_000, out))


@pytest.fixture
def server() -> Any:
    with ModelServer() as found:
        yield found


@pytest.fixture
def marvin(tmp_path: Path, server: ModelServer, warm_cache: Path) -> Marvin:
    found = Marvin(tmp_path, server, warm_cache)
    found.env["OPENAI_COMPAT_MODEL"] = "scripted"
    found.config(PRICED)
    return found


def test_a_run_below_its_ceiling_is_as_any_other(marvin: Marvin, server: ModelServer) -> None:
    server.script(round_of(), answers.text("Done.", usage=usage(10_000, 100)))
    done = marvin.ask("--max-cost", "1")
    assert (done.code, done.said) == (0, "")
    assert done.text.endswith("Done.\n")
    assert done.cost()["session_cost"] == pytest.approx(0.031)
    assert server.requests[0].body["max_tokens"] == 4_096
    assert ledgers(marvin.home) == []


def test_when_the_ceiling_is_near_the_run_ends_with_a_summary_and_exit_code_3(
    marvin: Marvin, server: ModelServer
) -> None:
    """I22: and MARVIN_COST is still the last line of standard error."""
    server.script(*[round_of()] * 3, answers.text("Listed; the rest is open.", usage=usage(10_000, 200)))
    done = marvin.ask("--max-cost", "0.1")
    assert done.code == 3
    assert done.text.endswith("Listed; the rest is open.\n")
    assert re.search(r"The cost ceiling of 0\.1 USD is reached: 0\.0720 USD .* higher --max-cost", done.said)
    assert done.cost()["session_cost"] == pytest.approx(0.072)
    assert posts(server) == 4
    last = server.requests[-1].body
    assert last["tool_choice"] == "none"
    assert last["max_tokens"] == 1_000
    assert "Sum up in a few sentences" in last["messages"][0]["content"]
    assert ledgers(marvin.home) == []


def test_the_other_forms_of_output_say_so_too(marvin: Marvin, server: ModelServer) -> None:
    script = [*[round_of()] * 3, answers.text("So far.", usage=usage(10_000, 200))]
    server.script(*script, *script)
    report = json.loads(marvin.ask("--max-cost", "0.1", "--output-format", "json").text)
    assert (report["is_error"], report["exit_code"], report["text"].splitlines()[-1]) == (True, 3, "So far.")
    *_, end = (e for e in marvin.ask("--max-cost", "0.1", "--output-format", "stream-json").events() if e)
    assert (end["type"], end["stop_reason"]) == ("agent_end", "budget")


def test_calls_in_the_last_answer_are_not_run(marvin: Marvin, server: ModelServer) -> None:
    """I15."""
    server.script(*[round_of()] * 3, answers.calls(("run_command", {"command": "touch made"}), usage=usage(10_000, 9)))
    assert marvin.ask("--max-cost", "0.1").code == 3
    assert not (marvin.project / "made").exists()
    assert "the cost ceiling was reached" in json.dumps(marvin.messages()[-1])


def test_a_ceiling_that_covers_nothing_sends_nothing(marvin: Marvin, server: ModelServer) -> None:
    done = marvin.ask("--max-cost", "0.0001")
    assert done.code == 3
    assert "The cost ceiling of 0.0001 USD is reached: 0.0000 USD are spent" in done.said
    assert done.cost()["llm_turns"] == 0
    assert posts(server) == 0


def test_a_run_goes_on_with_a_higher_ceiling(marvin: Marvin, server: ModelServer) -> None:
    server.script(*[round_of()] * 3, answers.text("So far.", usage=usage(10_000, 200)))
    assert marvin.ask("--max-cost", "0.1").code == 3
    server.script(answers.text("All done.", usage=usage(10_000, 200)))
    done = marvin.ask("--continue", "--max-cost", "1", prompt="Go on.")
    assert (done.code, done.text) == (0, "All done.\n")


def test_a_model_without_a_price_is_refused_and_nothing_is_sent(marvin: Marvin, server: ModelServer) -> None:
    marvin.config(f'providers: {{far: {{base_url: "http://far.example:{server.port}/v1", models: [large]}}}}')
    marvin.env["HTTP_PROXY"] = server.url.removesuffix("/v1")
    done = marvin.ask("--provider", "far", "--max-cost", "1")
    assert done.code == 1
    assert 'prices:\n  "far/large":\n    input: 3.0\n' in done.said
    assert posts(server) == 0
    server.script(answers.text("Hello."))
    assert marvin.ask("--provider", "far").text == "Hello.\n"


def test_what_runs_on_this_machine_is_free_under_any_ceiling(marvin: Marvin, server: ModelServer) -> None:
    marvin.config("")
    server.script(answers.text("Hello."))
    done = marvin.ask("--max-cost", "0")
    assert (done.code, done.text) == (0, "Hello.\n")
    assert done.cost()["session_cost"] == 0.0
    assert "max_tokens" not in server.requests[0].body


def test_a_chat_refuses_later_prompts_and_stays_open(marvin: Marvin, server: ModelServer) -> None:
    server.script(*[round_of()] * 3, answers.text("So far.", usage=usage(10_000, 200)))
    done = marvin.run("--plain", "--max-cost", "0.1", stdin=b"list\nand again\n/usage\n")
    assert done.code == 0
    assert done.text.count("The cost ceiling of 0.1 USD is reached: 0.0720 USD are spent") == 2
    assert "Since Marvin was started: 4 model requests, cost 0.0720 USD." in done.text
    assert "Cost ceiling: 0.1000 USD for all agents together, 0.0280 USD left" in done.text
    assert posts(server) == 4


def test_play_mode_without_a_budget_of_its_own_ends_with_that_of_the_run(marvin: Marvin, server: ModelServer) -> None:
    lines = ["/play --turns 3", "/usage"]
    result = marvin.run("--plain", "--max-cost", "0.001", stdin="\n".join(lines).encode())
    assert result.code == 0
    assert "The cost ceiling of 0.001 USD is reached" in result.text
    assert "Play mode has ended. Its files are in" in result.text
    assert posts(server) == 0


def test_after_clear_a_chat_still_counts_from_its_start(marvin: Marvin, server: ModelServer) -> None:
    server.script(answers.text("One.", usage=usage(10_000, 100)), answers.text("Two.", usage=usage(10_000, 100)))
    done = marvin.run("--plain", "--max-cost", "1", stdin=b"one\n/clear\ntwo\n/usage\n")
    assert "Since Marvin was started: 2 model requests, cost 0.0220 USD." in done.text
    assert "0.9780 USD left" in done.text


def test_a_marvin_that_a_command_starts_spends_out_of_the_same_ceiling(marvin: Marvin, server: ModelServer) -> None:
    # In the sandbox it would find neither configuration nor ledger, and spend nothing.
    marvin.env["MARVIN_SANDBOX"] = "off"
    command = f"{marvin_program()} --non-interactive --prompt inner --max-cost 5; echo code $?"
    server.script(
        answers.calls(("run_command", {"command": command}), usage=usage(10_000, 1_000)),
        *[round_of()] * 2,
        answers.text("Inner sums up.", usage=usage(10_000, 200)),
        answers.text("Outer sums up.", usage=usage(10_000, 200)),
    )
    done = marvin.ask("--max-cost", "0.12")
    assert done.text.endswith("Outer sums up.\n")
    told = marvin.session_files()[0].read_text("utf-8")
    assert "Inner sums up." in told
    assert "code 3" in told
    assert "The cost ceiling of 0.12 USD is reached" in told


def marvin_program() -> str:
    import sys

    return f"{sys.executable} -P -m marvin_core"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_ledger(marvin: Marvin, server: ModelServer, number: signal.Signals) -> None:
    server.script(answers.hang_after(300, answers.text("A long answer, of which not all comes.", chunks=9)))
    running = marvin.ask_in_background("--max-cost", "1")
    running.until(lambda: posts(server) and ledgers(marvin.home), "a request")
    running.send(number)
    assert running.finish().code == 130
    assert ledgers(marvin.home) == []


def test_what_a_killed_agent_reserved_is_charged_in_full(marvin: Marvin, server: ModelServer, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledgers", 1_000_000, Timeouts())
    marvin.env["MARVIN_LEDGER"] = ledger.address
    server.script(answers.hang())
    running = marvin.ask_in_background()
    running.until(lambda: posts(server), "a request")
    reserved = 1_000_000 - ledger.balance().possible
    running.send(signal.SIGKILL)
    running.finish()
    wait_until(lambda: ledger.balance().spent, "the agent to be gone")
    assert ledger.balance().spent > 40_000 > reserved > 0  # 4,096 tokens of output, and what was held back is free


def test_eight_agents_on_one_ledger_stay_below_its_ceiling(marvin: Marvin, server: ModelServer, tmp_path: Path) -> None:
    """They sum up while others have left enough for it; together they spend what there is and no more."""
    for _ in range(100):
        server.script(answers.calls(("list_dir", {"path": "."}), usage=usage(2_700, 900)))
    ledger = Ledger.create(tmp_path / "ledgers", 600_000, Timeouts())
    marvin.env["MARVIN_LEDGER"] = ledger.address
    running: list[Running] = [marvin.ask_in_background() for _ in range(8)]
    results = [one.finish(150) for one in running]
    assert {result.code for result in results} == {3}
    spent = sum(result.cost()["session_cost"] for result in results)
    assert spent == pytest.approx(ledger.balance().spent / 1_000_000)
    assert spent == pytest.approx(posts(server) * 0.0117)
    assert 0.4 < spent <= 0.6
    assert 1 <= [request.body.get("tool_choice") for request in server.requests].count("none") <= 8


def test_an_answer_that_is_asked_for_again_is_paid_for_twice(marvin: Marvin, server: ModelServer) -> None:
    """I11: the service bills an empty answer, too."""
    server.script(answers.text("", usage=usage(1_000, 10)), answers.text("Hello.", usage=usage(1_000, 100)))
    done = marvin.ask("--max-cost", "0.07")
    assert (done.code, done.text) == (0, "Hello.\n")
    assert done.cost() == {
        "session_cost": pytest.approx(0.0031),
        "llm_turns": 2,
        "model_turns": {"scripted": 2},
        "model_cost": {"scripted": pytest.approx(0.0031)},
    }


def test_the_page_about_it_is_true(marvin: Marvin, server: ModelServer) -> None:
    page = (ROOT / "docs" / "how-to" / "limit-cost.md").read_text("utf-8")
    (prices,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (command,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    marvin.config(f'{prices}providers: {{work: {{base_url: "{server.url}", models: [large-coder]}}}}\nprovider: work\n')
    server.script(answers.text("It is slow.", usage=usage(100_000, 1_000)))
    bin_folder = marvin.home / "bin"
    bin_folder.mkdir()
    program = bin_folder / "marvin"
    program.write_text(f'#!/bin/sh\nexec {marvin_program()} "$@"\n')
    program.chmod(0o755)
    shell = shutil.which("sh")
    assert shell is not None
    running = marvin.start("-c", command, program=[shell], env={"PATH": f"{bin_folder}:{marvin.env['PATH']}"})
    done = running.finish()
    assert (done.code, done.text) == (0, "It is slow.\n"), done.err
    assert done.cost()["session_cost"] == pytest.approx(0.208)
