"""usage.json: by provider and model, added to after each prompt, and read on where an older version wrote it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.messages import ModelUsage
from marvin_core.api.timeouts import Timeouts
from marvin_core.usage.lifetime import LifetimeTotals, add, read

TIMEOUTS = Timeouts(lock=50.0, lock_poll=0.002)
ONE = ModelUsage(requests=1, cost=0.25)


def content(path: Path) -> Any:
    return json.loads(path.read_bytes(), parse_constant=pytest.fail)


def test_each_provider_has_its_models_and_a_total(tmp_path: Path) -> None:
    """I11: per provider and model."""
    path = tmp_path / "usage.json"
    add(path, {"openai": {"gpt": ONE, "mini": ONE}, "router": {"gpt": ONE.replace(cost=None)}}, TIMEOUTS)
    add(path, {"openai": {"gpt": ONE}, "copilot": {"gpt": ONE.replace(estimated=True)}}, TIMEOUTS)
    found = content(path)
    assert found["turns"] == {"gpt": 4, "mini": 1}
    assert found["cost"] == {"gpt": 0.75, "mini": 0.25}
    assert found["providers"]["openai"] == {
        "requests": 3,
        "cost": 0.75,
        "estimated": False,
        "models": {
            "gpt": {"requests": 2, "cost": 0.5, "estimated": False},
            "mini": {"requests": 1, "cost": 0.25, "estimated": False},
        },
    }
    assert found["providers"]["router"]["cost"] is None
    assert found["providers"]["copilot"]["estimated"] is True
    assert read(path).by_provider()["router"]["gpt"] == ModelUsage(requests=1, cost=None)


def test_an_older_file_is_read_on(tmp_path: Path) -> None:
    """It has models only; what was counted there stays, beside the providers that came since."""
    path = tmp_path / "usage.json"
    path.write_text('{"turns": {"gpt": 7, "old": 2}, "cost": {"gpt": 3.5, "old": null}, "since": "2024"}')
    add(path, {"openai": {"gpt": ONE}}, TIMEOUTS)
    assert content(path)["since"] == "2024"
    assert content(path)["turns"] == {"gpt": 8, "old": 2}
    assert read(path).by_provider() == {
        "openai": {"gpt": ONE},
        "": {"gpt": ModelUsage(requests=7, cost=3.5), "old": ModelUsage(requests=2, cost=None)},
    }


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity", "-5", "true", "1e999", "1" + "0" * 400])
def test_numbers_that_are_none_do_not_stay_for_good(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "usage.json"
    entry = f'{{"requests": {bad}, "cost": {bad}, "estimated": {bad}}}'
    path.write_text(
        f'{{"turns": {{"m": {bad}}}, "cost": {{"m": {bad}}}, "providers": {{"p": {{"models": {{"m": {entry}}}}}}}}}'
    )
    add(path, {"p": {"m": ONE}}, TIMEOUTS)
    found = content(path)
    assert (found["turns"], found["cost"]) == ({"m": 1}, {"m": 0.25})
    assert found["providers"]["p"]["cost"] == 0.25


@pytest.mark.parametrize(
    "text",
    ["[]", "5", '{"turns": []}', '{"cost": {"m": "1"}}', '{"providers": 1}', '{"providers": {"p": {"models": []}}}'],
)
def test_a_damaged_file_is_moved_aside(tmp_path: Path, text: str) -> None:
    path = tmp_path / "usage.json"
    path.write_text(text)
    add(path, {"p": {"m": ONE}}, TIMEOUTS)
    assert content(path)["turns"] == {"m": 1}
    (kept,) = tmp_path.glob("usage.json.damaged-*")
    assert kept.read_text() == text


def test_each_damaged_file_is_kept_up_to_a_number(tmp_path: Path) -> None:
    path = tmp_path / "usage.json"
    for number in range(8):
        path.write_text(f"[{number}]")
        add(path, {"p": {"m": ONE}}, TIMEOUTS)
        kept = sorted(tmp_path.glob("usage.json.damaged-*"))
        assert [file.read_text() for file in kept] == [f"[{n}]" for n in range(max(number - 4, 0), number + 1)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["m", "models", "cost"]), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["turns", "cost", "providers", "x"]), JSON))
def test_any_content_is_totals_or_damaged_and_totals_are_finite(data: dict[str, Any]) -> None:
    try:
        totals = LifetimeTotals(data)
    except ValueError:
        return
    totals.add({"p": {"m": ONE}})
    for models in totals.by_provider().values():
        for used in models.values():
            assert used.requests >= 0
            assert used.cost is None or math.isfinite(used.cost)
