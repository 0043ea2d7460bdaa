"""What a session used and cost, and the lifetime totals of all of them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from marvin_core import MarvinError, Usage
from marvin_core.api.messages import ModelUsage
from marvin_core.api.timeouts import Timeouts
from marvin_core.usage.meter import UsageMeter
from marvin_core.util.state_files import locked
from marvin_core.util.threads import in_thread
from tests.support.engine import run

TIMEOUTS = Timeouts(lock=50.0, lock_poll=0.002)
SOME = Usage(input_tokens=10, output_tokens=5, cache_read_tokens=4, reasoning_tokens=2)


def price(provider: str, model: str, usage: Usage) -> float | None:
    """Dear costs a cent a token, cheap a tenth of that, free nothing; nothing else has a price."""
    rate = {"dear": 0.01, "cheap": 0.001, "free": 0.0}.get(model)
    return None if rate is None else rate * (usage.input_tokens + usage.output_tokens)


def meter(*models: str, usage: Usage = SOME) -> UsageMeter:
    found = UsageMeter(price, lambda provider, model: True)
    for model in models:
        found.add("p", model, usage)
    return found


def test_requests_and_cost_are_summed_for_each_model() -> None:
    """I11: every model call is priced per provider and model."""
    assert meter("dear", "cheap", "dear").summary() == {
        "session_cost": 0.315,
        "llm_turns": 3,
        "model_turns": {"dear": 2, "cheap": 1},
        "model_cost": {"dear": 0.3, "cheap": 0.015},
    }


def test_the_sums_can_be_asked_for_while_requests_are_priced() -> None:
    """I11: the price table takes most of a second to import, and a chat goes on meanwhile."""

    def slow(provider: str, model: str, usage: Usage) -> float | None:
        time.sleep(0.005)
        return price(provider, model, usage)

    found = UsageMeter(slow, lambda provider, model: False)

    async def work() -> list[Any]:
        counted = [found.count("p", model, SOME) for model in ("dear", "cheap", "free")]
        return await asyncio.gather(*counted, *(in_thread(found.summary) for _ in range(2)))

    dear, cheap, free, *_ = run(work())
    assert (dear, cheap, free) == (pytest.approx(0.15), pytest.approx(0.015), 0.0)
    assert found.summary()["session_cost"] == 0.165


def test_what_has_no_price_makes_the_sum_unknown_and_never_zero() -> None:
    """I11: unknown is shown as unknown."""
    summary = meter("dear", "new").summary()
    assert summary["session_cost"] is None
    assert summary["model_cost"] == {"dear": 0.15, "new": None}
    assert summary["llm_turns"] == 2


def test_one_unknown_request_makes_its_model_unknown() -> None:
    found = meter("dear")
    found.add("other", "dear", SOME.replace(cost=None))
    assert found.summary()["session_cost"] == 0.3
    mixed = UsageMeter(lambda provider, model, usage: 1.0 if provider == "p" else None, lambda provider, model: True)
    mixed.add("p", "m", SOME)
    mixed.add("q", "m", SOME)
    mixed.add("p", "m", SOME)
    assert mixed.summary()["model_cost"] == {"m": None}


def test_nothing_used_costs_nothing() -> None:
    empty = {"session_cost": 0, "llm_turns": 0, "model_turns": {}, "model_cost": {}}
    assert meter().summary() == empty


def test_a_cost_that_the_service_states_counts_before_any_price() -> None:
    found = meter()
    found.add("p", "dear", SOME.replace(cost=0.5))
    found.add("p", "new", SOME.replace(cost=0.0))
    assert found.summary()["model_cost"] == {"dear": 0.5, "new": 0.0}


def test_a_service_that_does_not_say_what_was_used_has_an_unknown_cost() -> None:
    """I11: no count is not a count of zero; only what is free anyway costs nothing."""
    assert meter("dear", usage=Usage()).summary()["session_cost"] is None
    assert meter("free", usage=Usage()).summary()["session_cost"] == 0.0


@pytest.mark.parametrize("quick", [True, False])
def test_counting_tells_the_cost_of_that_request(quick: bool) -> None:
    found = UsageMeter(price, lambda provider, model: quick)

    async def go() -> list[float | None]:
        return [await found.count("p", model, SOME) for model in ("dear", "new", "cheap")]

    assert run(go()) == [0.15, None, 0.015]


def test_requests_that_were_only_added_are_priced_with_the_next_question() -> None:
    found = meter("dear")
    assert run(found.count("p", "cheap", SOME)) == 0.015
    assert found.summary()["session_cost"] == 0.165


def test_tokens_are_summed_by_kind() -> None:
    assert meter("dear", "new").tokens() == {
        "input_tokens": 20,
        "output_tokens": 10,
        "cache_read_tokens": 8,
        "cache_write_tokens": 0,
        "reasoning_tokens": 4,
    }


def lifetime(path: Path) -> Any:
    return json.loads(path.read_bytes())


def by_model(path: Path) -> Any:
    """What stands in the file beside the providers."""
    return {name: value for name, value in lifetime(path).items() if name != "providers"}


def test_sessions_add_up_over_a_lifetime(tmp_path: Path) -> None:
    path = tmp_path / "usage.json"
    meter("dear", "cheap").save_lifetime(path, TIMEOUTS)
    meter("dear").save_lifetime(path, TIMEOUTS)
    totals = lifetime(path)
    assert totals["turns"] == {"dear": 2, "cheap": 1}
    assert totals["cost"] == pytest.approx({"dear": 0.3, "cheap": 0.015})


def test_over_a_lifetime_too_unknown_stays_unknown_until_something_is_known(tmp_path: Path) -> None:
    """I11: a model without a price does not look like one that was free."""
    path = tmp_path / "usage.json"
    meter("new").save_lifetime(path, TIMEOUTS)
    meter("new", "free").save_lifetime(path, TIMEOUTS)
    assert by_model(path) == {"turns": {"new": 2, "free": 1}, "cost": {"new": None, "free": 0.0}}
    path.write_text(json.dumps({"turns": {"dear": 1}, "cost": {"dear": None}}))
    meter("dear").save_lifetime(path, TIMEOUTS)
    assert by_model(path) == {"turns": {"dear": 2}, "cost": {"dear": 0.15}}


def test_a_session_without_a_request_leaves_no_trace(tmp_path: Path) -> None:
    meter().save_lifetime(tmp_path / "usage.json", TIMEOUTS)
    assert list(tmp_path.iterdir()) == []


def test_what_others_keep_in_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "usage.json"
    path.write_text('{"turns": {"old": 7}, "since": "2024"}')
    meter("dear").save_lifetime(path, TIMEOUTS)
    assert by_model(path) == {"turns": {"old": 7, "dear": 1}, "since": "2024", "cost": {"dear": 0.15}}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"5", b'{"turns": []}', b'{"cost": {"m": "much"}}', b"\xff\xfe{}"]
)
def test_a_damaged_file_is_moved_aside_and_not_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "usage.json"
    path.write_bytes(content)
    meter("dear").save_lifetime(path, TIMEOUTS)
    assert lifetime(path)["turns"] == {"dear": 1}
    (kept,) = tmp_path.glob("usage.json.damaged-*")
    assert kept.read_bytes() == content


def test_a_file_that_another_process_holds_is_not_waited_for_without_end(tmp_path: Path) -> None:
    path = tmp_path / "usage.json"
    with (
        locked(path, 1.0, 0.01),
        pytest.raises(MarvinError, match="is locked by another process"),
    ):
        meter("dear").save_lifetime(path, Timeouts(lock=0.05, lock_poll=0.005))
    assert not path.exists()


SAVER = """
    import sys
    from pathlib import Path
    from marvin_core.api.messages import Usage
    from marvin_core.usage.meter import UsageMeter
    from marvin_core.api.timeouts import Timeouts

    sys.stdin.read()
    for _ in range(20):
        meter = UsageMeter(lambda provider, model, usage: 0.25, lambda provider, model: True)
        meter.add("p", "m", Usage(input_tokens=1))
        meter.save_lifetime(Path(sys.argv[1]), Timeouts(lock=50.0))
"""


@pytest.mark.slow
def test_eight_processes_at_the_same_time_lose_no_request(tmp_path: Path) -> None:
    """I11: the lifetime totals are read, added to and written under one lock."""
    path = tmp_path / "usage.json"
    code = textwrap.dedent(SAVER)
    children = [subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE) for _ in range(8)]
    for process in children:
        assert process.stdin is not None
        process.stdin.close()
    assert [process.wait(50) for process in children] == [0] * 8
    assert by_model(path) == {"turns": {"m": 160}, "cost": {"m": 40.0}}
    assert {entry.name for entry in tmp_path.iterdir()} == {"usage.json", "usage.json.lock"}


def test_what_is_done_without_a_model_is_no_model_request(tmp_path: Path) -> None:
    """Neither the session nor the lifetime totals list it, and it costs nothing."""
    found = meter("dear")
    before = found.summary()
    found.add("offline", "offline", Usage(cost=0.0))
    assert run(found.count("offline", "offline", Usage(cost=0.0))) == 0
    assert found.summary() == before
    found.save_lifetime(tmp_path / "usage.json", TIMEOUTS)
    assert json.loads((tmp_path / "usage.json").read_text())["turns"] == {"dear": 1}
    only = meter()
    only.add("offline", "offline", Usage(cost=0.0))
    only.save_lifetime(tmp_path / "none.json", TIMEOUTS)
    assert not (tmp_path / "none.json").exists()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -5.0, "0.01", True, {}, 10**400])
def test_what_is_no_number_is_neither_a_cost_nor_a_count(bad: Any, tmp_path: Path) -> None:
    """I22: the last line can always be written, and the lifetime totals stay whole."""
    found = meter("dear", usage=Usage(input_tokens=10, output_tokens=5, cost=bad, reasoning_tokens=bad))
    assert found.summary()["session_cost"] == 0.15
    found.add("p", "dear", Usage(input_tokens=bad, output_tokens=bad))
    assert found.summary()["session_cost"] is None  # nothing is known of it
    json.dumps(found.summary(), allow_nan=False)
    found.save_lifetime(tmp_path / "usage.json", TIMEOUTS)
    json.loads((tmp_path / "usage.json").read_bytes(), parse_constant=pytest.fail)


def test_what_a_service_told_in_part_has_an_unknown_cost() -> None:
    """I11: an output of 0 where text came is no output that cost nothing."""
    found = meter()
    some = Usage(input_tokens=10)
    assert run(found.count("p", "dear", some, whole=False)) is None
    assert run(found.count("p", "free", some, whole=False)) == 0.0
    assert found.tokens()["input_tokens"] == 20


def test_each_provider_counts_for_itself() -> None:
    """I11: one name at two services is two models; MARVIN_COST has the four fields that it had."""
    found = UsageMeter(lambda provider, model, usage: {"p": 1.0, "q": 2.0}.get(provider), lambda provider, model: True)
    for provider in ("p", "q", "p", "r"):
        found.add(provider, "m", SOME)
    assert found.by_provider() == {
        "p": {"m": ModelUsage(requests=2, cost=2.0)},
        "q": {"m": ModelUsage(requests=1, cost=2.0)},
        "r": {"m": ModelUsage(requests=1, cost=None)},
    }
    assert set(found.summary()) == {"session_cost", "llm_turns", "model_turns", "model_cost"}
    assert found.known_cost() == 4.0


def test_an_estimate_is_marked_wherever_the_cost_comes_from() -> None:
    found = meter()
    found.add("copilot", "dear", SOME.replace(estimate=0.04))  # by the price of its tokens
    found.add("copilot", "new", SOME.replace(estimate=0.04))  # by what the service says it counts for
    found.add("copilot", "stated", SOME.replace(cost=0.5, estimate=None))
    models = found.by_provider()["copilot"]
    assert models["dear"] == ModelUsage(requests=1, cost=0.15, estimated=True)
    assert models["new"] == ModelUsage(requests=1, cost=0.04, estimated=True)
    assert models["stated"] == ModelUsage(requests=1, cost=0.5)


def test_what_was_saved_is_not_saved_again(tmp_path: Path) -> None:
    """A chat saves after each prompt, and so may another one at the same time."""
    path = tmp_path / "usage.json"
    one, other = meter("dear"), meter("dear")
    for found in (one, other, one, other):
        found.save_lifetime(path, TIMEOUTS)
    assert lifetime(path)["turns"] == {"dear": 2}
    one.add("p", "dear", SOME)
    assert one.lifetime(path)["p"]["dear"].requests == 3
    one.save_lifetime(path, TIMEOUTS)
    assert lifetime(path)["turns"] == {"dear": 3}
    assert one.lifetime(path)["p"]["dear"].requests == 3


def test_a_file_that_was_waited_for_in_vain_is_tried_once_more_without_waiting(tmp_path: Path) -> None:
    path = tmp_path / "usage.json"
    found = meter("dear")
    with locked(path, 1.0, 0.01):
        with pytest.raises(MarvinError):
            found.save_lifetime(path, Timeouts(lock=0.05, lock_poll=0.005))
        begin = time.monotonic()
        with pytest.raises(MarvinError):
            found.save_lifetime(path, Timeouts(lock=1_000.0))
        assert time.monotonic() - begin < 30
    found.save_lifetime(path, TIMEOUTS)
    found.add("p", "dear", SOME)
    with locked(path, 1.0, 0.01):
        begin = time.monotonic()
        with pytest.raises(MarvinError):
            found.save_lifetime(path, Timeouts(lock=0.05, lock_poll=0.005))
        assert time.monotonic() - begin >= 0.05, "once it went well, it is waited for again"


def test_what_could_not_be_saved_is_saved_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "usage.json"
    found = meter("dear")
    with locked(path, 1.0, 0.01), pytest.raises(MarvinError):
        found.save_lifetime(path, Timeouts(lock=0.05, lock_poll=0.005))
    found.save_lifetime(path, TIMEOUTS)
    assert lifetime(path)["turns"] == {"dear": 1}
