"""A budget that Marvins share which are started one by one: counted on, whatever of them is killed."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from marvin_core import ConfigError, SharedBudget, Timeouts
from marvin_core.usage.ledger import Ledger

TIMEOUTS = Timeouts(lock=50.0, lock_poll=0.001)


def budget(folder: Path) -> SharedBudget:
    return SharedBudget(folder / "ledgers", TIMEOUTS)


def spend(address: str, micro: int) -> bool:
    ledger = Ledger.inherit(address, TIMEOUTS)
    taken = ledger.reserve(micro)
    if taken is not None:
        ledger.settle(taken[0], micro)
    return taken is not None


def test_parts_are_bounded_each_by_its_own_and_all_by_the_whole(tmp_path: Path) -> None:
    shared = budget(tmp_path)
    shared.begin(1.0)
    first, second = shared.part("a", 0.75), shared.part("b", 0.75)
    assert not spend(first, 750_001)
    assert spend(first, 750_000)
    assert not spend(second, 250_001)
    assert spend(second, 250_000)
    assert (shared.spent("a"), shared.spent("b"), shared.spent("c"), shared.spent()) == (0.75, 0.25, 0.0, 1.0)


def test_a_part_that_was_begun_keeps_what_it_has(tmp_path: Path) -> None:
    shared = budget(tmp_path)
    shared.begin(1.0)
    assert shared.part("a", 0.5) == shared.part("a", 1.0)
    assert not spend(shared.part("a", 1.0), 500_001)


def test_what_a_killed_one_reserved_is_spent_and_counts_in_the_next_run(tmp_path: Path) -> None:
    shared = budget(tmp_path)
    shared.begin(1.0)
    code = """
        import os, sys
        from marvin_core.usage.ledger import Ledger
        from marvin_core.api.timeouts import Timeouts
        assert Ledger.inherit(sys.argv[1], Timeouts()).bounded(400_000).reserve(300_000, 50_000)
        os._exit(9)
    """
    program = [sys.executable, "-c", textwrap.dedent(code), shared.part("a", 0.5)]
    assert subprocess.run(program, check=False, timeout=150).returncode == 9
    later = budget(tmp_path)
    assert (later.spent("a"), later.spent()) == (0.3, 0.3)
    later.begin(1.0 - later.spent())
    assert spend(later.part("a", 0.5 - later.spent("a")), 200_000)
    assert not spend(later.part("a", 0.5), 1)
    assert budget(tmp_path).spent("a") == 0.5


def test_where_nobody_knows_what_was_spent_it_is_said(tmp_path: Path) -> None:
    shared = budget(tmp_path)
    assert shared.spent() == 0.0
    with pytest.raises(ValueError, match="The budget must be started before it can be divided"):
        shared.part("a", 1.0)
    shared.begin(1.0)
    (file,) = (tmp_path / "ledgers").iterdir()
    file.write_bytes(b"")
    with pytest.raises(ConfigError):
        budget(tmp_path).spent()
