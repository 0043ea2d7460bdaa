"""The ledger of a cost ceiling: what is reserved, settled and left, whatever happens to the file and the agents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from marvin_core import MarvinError
from marvin_core.api.errors import BudgetExceeded, ConfigError
from marvin_core.api.timeouts import Timeouts
from marvin_core.usage.ledger import Ledger
from marvin_core.util.state_files import acquire
from tests.support.examples import examples

TIMEOUTS = Timeouts(lock=50.0, lock_poll=0.001)


def begin(folder: Path, ceiling: int = 1_000) -> Ledger:
    return Ledger.create(folder / "ledgers", ceiling, TIMEOUTS)


def reserved(ledger: Ledger, amount: int, keep: int = 0, instead_of: str = "") -> tuple[str, str]:
    found = ledger.reserve(amount, keep, instead_of)
    assert found is not None
    return found


def path_of(ledger: Ledger) -> Path:
    return Path(ledger.address.partition("#")[0])


def left(ledger: Ledger) -> int:
    return ledger.balance().left


def dead_agent(ledger: Ledger, amount: int, keep: int = 0) -> None:
    """A process that reserves and dies without a word."""
    code = """
        import os, sys
        from marvin_core.usage.ledger import Ledger
        from marvin_core.api.timeouts import Timeouts
        assert Ledger.inherit(sys.argv[1], Timeouts()).reserve(int(sys.argv[2]), int(sys.argv[3]))
        os._exit(9)
    """
    program = [sys.executable, "-c", textwrap.dedent(code), ledger.address, str(amount), str(keep)]
    assert subprocess.run(program, check=False, timeout=150).returncode == 9


def test_a_request_is_reserved_and_then_settled_with_what_it_cost(tmp_path: Path) -> None:
    ledger = begin(tmp_path)
    key, _ = reserved(ledger, 700)
    assert left(ledger) == 300
    assert ledger.reserve(301) is None
    ledger.settle(key, 120)
    assert left(ledger) == 880
    assert ledger.balance().spent == 120


def test_the_file_is_for_this_user_only_and_each_has_its_own(tmp_path: Path) -> None:
    first, second = begin(tmp_path), begin(tmp_path)
    assert path_of(first).stat().st_mode & 0o777 == 0o600
    assert path_of(first) != path_of(second)
    first.remove()
    assert list((tmp_path / "ledgers").iterdir()) == [path_of(second)]
    with pytest.raises(BudgetExceeded, match="The run stops to avoid costs that are not recorded; start it again"):
        first.reserve(1)


def test_others_see_at_once_what_one_has_reserved(tmp_path: Path) -> None:
    parent = begin(tmp_path)
    child = Ledger.inherit(parent.address, TIMEOUTS)
    key, _ = reserved(child, 900)
    assert parent.reserve(200) is None
    assert parent.balance().possible == 1_000
    child.settle(key, 100)
    assert parent.balance().possible == left(parent)
    assert left(parent) == left(child) == 900


def test_a_child_with_a_lower_ceiling_spends_within_both(tmp_path: Path) -> None:
    parent = begin(tmp_path)
    parent.settle(reserved(parent, 600)[0], 600)
    child = Ledger.inherit(Ledger.inherit(parent.address, TIMEOUTS).bounded(300).address, TIMEOUTS)
    grandchild = child.bounded(100)
    assert (left(parent), left(child), left(grandchild)) == (400, 300, 100)
    grandchild.settle(reserved(grandchild, 80)[0], 80)
    assert (left(parent), left(child), left(grandchild)) == (320, 220, 20)
    parent.settle(reserved(parent, 310)[0], 310)
    assert (left(parent), left(child), left(grandchild)) == (10, 10, 10)
    assert (child.ceiling(), grandchild.ceiling()) == (300, 100)


def test_what_a_dead_agent_reserved_is_charged_and_not_waited_for(tmp_path: Path) -> None:
    """The service bills what it streamed, and nobody can tell how much that was."""
    ledger = begin(tmp_path)
    dead_agent(ledger, 400)
    assert ledger.balance().spent == 400
    assert left(ledger) == 600
    assert ledger.balance().possible == 600


def test_what_a_dead_agent_held_back_for_its_last_answer_is_free_again(tmp_path: Path) -> None:
    ledger = begin(tmp_path)
    dead_agent(ledger, 400, keep=500)
    assert left(ledger) == 600


def test_another_process_with_the_number_of_a_dead_agent_is_not_taken_for_it(tmp_path: Path) -> None:
    ledger = begin(tmp_path)
    record = {"type": "reserve", "id": "r", "scope": "", "pid": os.getpid(), "started": 1, "amount": 400}
    with path_of(ledger).open("a") as file:
        file.write(json.dumps(record) + "\n")
    assert ledger.balance().spent == 400
    assert ledger.balance().possible == 600


def test_what_is_held_back_is_there_for_the_last_request(tmp_path: Path) -> None:
    ledger = begin(tmp_path)
    key, kept = reserved(ledger, 700, keep=200)
    assert ledger.reserve(101) is None
    ledger.settle(key, 750)  # the estimate was too low
    assert left(ledger) == 50
    assert ledger.reserve(300, instead_of=kept) is None
    assert left(ledger) == 50, "a refusal must leave what was held back as it was"
    last, none = reserved(ledger, 240, instead_of=kept)
    assert none == ""
    ledger.settle(last, 240)
    assert left(ledger) == 10


def test_settling_twice_counts_once(tmp_path: Path) -> None:
    ledger = begin(tmp_path)
    key, _ = reserved(ledger, 500)
    ledger.settle(key, 100)
    ledger.settle(key, 100)
    assert left(ledger) == 900


STRANGE = [
    b"",
    b"{",
    b"[]",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"type": "refund", "id": "x", "amount": 5}',
    b'{"type": "ceiling", "scope": "", "amount": 1000000}',
    b'{"type": "ceiling", "scope": "a", "within": "a", "amount": 1}',
    b'{"type": "settle", "id": "x", "amount": -500}',
    b'{"type": "settle", "id": "x", "amount": true}',
    b'{"type": "reserve", "id": "x", "scope": "", "pid": "1", "started": 1, "amount": 5}',
    b'{"type": "reserve", "id": ["x"], "scope": "", "pid": null, "started": null, "amount": 5}',
]


@pytest.mark.parametrize("line", STRANGE, ids=range(len(STRANGE)))
def test_lines_that_are_no_records_count_for_nothing(tmp_path: Path, line: bytes) -> None:
    ledger = begin(tmp_path)
    with path_of(ledger).open("ab") as file:
        file.write(line + b"\n")
    assert left(ledger) == left(Ledger.inherit(ledger.address, TIMEOUTS)) == 1_000


@given(st.binary(max_size=60))
@examples(60)
def test_no_bytes_in_the_file_give_money_back_or_stop_an_agent(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    ledger = begin(tmp_path_factory.mktemp("any"))
    ledger.settle(reserved(ledger, 100)[0], 100)
    with path_of(ledger).open("ab") as file:
        file.write(data)
    key, _ = reserved(ledger, 200)
    ledger.settle(key, 50)
    assert left(ledger) == left(Ledger.inherit(ledger.address, TIMEOUTS)) == 850


def test_a_line_that_was_torn_at_any_byte_loses_no_other(tmp_path: Path) -> None:
    whole = begin(tmp_path)
    key, _ = reserved(whole, 100)
    whole.settle(key, 60)
    reserved(whole, 300)
    content = path_of(whole).read_bytes()
    *before, last = content.splitlines(keepends=True)
    for cut in range(len(last) + 1):
        copy = tmp_path / f"{cut}.jsonl"
        copy.write_bytes(b"".join(before) + last[:cut])
        ledger = Ledger.inherit(str(copy), TIMEOUTS)
        reserved(ledger, 40)
        expected = 1_000 - 60 - 40 - (300 if cut >= len(last) - 1 else 0)
        assert left(ledger) == left(Ledger.inherit(str(copy), TIMEOUTS)) == expected


@pytest.mark.parametrize("content", [None, b"", b"{}\n", b'{"type": "settle", "id": "x", "amount": 1}\n'])
def test_what_is_no_ledger_is_refused_and_not_made_one(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "ledger.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"MARVIN_LEDGER is .* not the ledger of a running Marvin. Unset it."):
        Ledger.inherit(str(path), TIMEOUTS)
    assert path.exists() == (content is not None)


def test_a_scope_that_the_ledger_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        Ledger.inherit(f"{begin(tmp_path).address}#nobody", TIMEOUTS)


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    ledger = begin(tmp_path)
    (tmp_path / "link").symlink_to(path_of(ledger))
    with pytest.raises(ConfigError):
        Ledger.inherit(str(tmp_path / "link"), TIMEOUTS)


def test_a_ledger_that_was_emptied_allows_nothing(tmp_path: Path) -> None:
    ledger = begin(tmp_path)
    path_of(ledger).write_bytes(b"")
    assert ledger.reserve(1) is None


def test_an_agent_that_holds_the_lock_for_ever_is_not_waited_for_without_end(tmp_path: Path) -> None:
    ledger = Ledger.inherit(begin(tmp_path).address, Timeouts(lock=0.05, lock_poll=0.005))
    with path_of(ledger).open("rb") as file:
        acquire(file.fileno(), 1.0, 0.01, "the ledger")
        with pytest.raises(MarvinError, match="is locked by another process"):
            ledger.reserve(1)
    assert ledger.reserve(1)


FULL_DISK = """
    import os, resource, sys
    from marvin_core.api.errors import BudgetExceeded
    from marvin_core.usage.ledger import Ledger
    from marvin_core.api.timeouts import Timeouts

    ledger = Ledger.inherit(sys.argv[1], Timeouts())
    size = os.stat(sys.argv[1]).st_size
    sys.dont_write_bytecode = True  # it would be cut off, too, and stay so
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, size + 20))
    try:
        ledger.reserve(100)
    except BudgetExceeded as error:
        print(error)
"""


def test_where_a_reservation_cannot_be_written_nothing_is_spent_and_nothing_is_torn(tmp_path: Path) -> None:
    """The limit on the size of a file stands for a disk that fills up inside a line."""
    ledger = begin(tmp_path)
    before = path_of(ledger).read_bytes()
    program = [sys.executable, "-c", textwrap.dedent(FULL_DISK), ledger.address]
    done = subprocess.run(program, check=True, capture_output=True, text=True, timeout=150)
    assert (
        "cannot be used: the disk is full. The run stops to avoid costs that are not recorded; start it again"
        in done.stdout
    )
    assert path_of(ledger).read_bytes() == before


SPENDER = """
    import random, sys
    from marvin_core.usage.ledger import Ledger
    from marvin_core.api.timeouts import Timeouts

    ledger = Ledger.inherit(sys.argv[1], Timeouts(lock=50.0, lock_poll=0.001))
    sys.stdin.read()
    spent = 0
    while (taken := ledger.reserve(100)) or ledger.balance().possible >= 100:
        if taken:
            cost = random.randint(0, 100)
            ledger.settle(taken[0], cost)
            spent += cost
    print(spent)
"""


@pytest.mark.slow
def test_eight_processes_on_one_ledger_spend_what_there_is_and_not_more(tmp_path: Path) -> None:
    """What each says it spent is what the ledger says, and too little is left for one request more."""
    ledger = begin(tmp_path, 20_000)
    program = [sys.executable, "-c", textwrap.dedent(SPENDER), ledger.address]
    children = [subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(8)]
    for process in children:
        assert process.stdin is not None
        process.stdin.close()
    totals = []
    for process in children:
        assert process.wait(60) == 0
        assert process.stdout is not None
        totals.append(int(process.stdout.read()))
        process.stdout.close()
    assert sum(totals) == ledger.balance().spent
    assert 0 <= left(ledger) < 100


class Agents(RuleBasedStateMachine):
    """Agents that reserve, settle, hold back and are bounded, in any order, each with a ledger of its own."""

    agents: Bundle[tuple[str, Ledger]] = Bundle("agents")
    requests: Bundle[tuple[Ledger, str, int]] = Bundle("requests")

    @initialize(target=agents, ceiling=st.integers(0, 10_000))
    def start(self, ceiling: int) -> tuple[str, Ledger]:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.root = begin(Path(self.folder.name), ceiling)
        self.ceiling, self.spent, self.over = ceiling, 0, 0
        self.held: dict[str, int] = {}
        return "root", self.root

    @rule(target=agents, parent=agents)
    def fork(self, parent: tuple[str, Ledger]) -> tuple[str, Ledger]:
        return "child", Ledger.inherit(parent[1].address, TIMEOUTS)

    @rule(target=agents, parent=agents, ceiling=st.integers(0, 5_000))
    def bound(self, parent: tuple[str, Ledger], ceiling: int) -> tuple[str, Ledger]:
        found = parent[1].bounded(ceiling)
        assert found.balance().left <= ceiling
        return "bounded", found

    @rule(target=requests, agent=agents, amount=st.integers(1, 3_000), keep=st.integers(0, 500))
    def reserve(self, agent: tuple[str, Ledger], amount: int, keep: int) -> tuple[Ledger, str, int]:
        ledger = agent[1]
        before = ledger.balance().left
        found = ledger.reserve(amount, keep)
        assert (found is not None) == (before >= amount + keep)
        if found is None:
            return ledger, "", 0
        self.held[found[0]] = amount
        if found[1]:
            self.held[found[1]] = keep
        return ledger, found[0], amount

    @rule(request=consumes(requests), part=st.floats(0, 1), overrun=st.sampled_from([0, 0, 0, 7]))
    def settle(self, request: tuple[Ledger, str, int], part: float, overrun: int) -> None:
        ledger, key, amount = request
        if not key:
            return
        cost = int(amount * part) + overrun
        ledger.settle(key, cost)
        self.spent += cost
        self.over += max(cost - amount, 0)
        del self.held[key]

    @rule(data=st.sampled_from([b"{", b"\n\n", b'{"type":"x","amount":3}\n', b'{"type":"settle","id":"q","amou']))
    def disturb(self, data: bytes) -> None:
        with path_of(self.root).open("ab") as file:
            file.write(data)

    @invariant()
    def nothing_is_lost_and_nothing_is_overspent(self) -> None:
        for ledger in (self.root, Ledger.inherit(self.root.address, TIMEOUTS)):
            balance = ledger.balance()
            assert balance.spent == self.spent
            assert balance.left == self.ceiling - self.spent - sum(self.held.values())
            assert balance.left >= -self.over

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


Agents.TestCase.settings = examples(40, stateful_step_count=25)
TestAgents = Agents.TestCase


@pytest.mark.parametrize("amount", ["-1", "1.5", "true", "NaN", "1e999", '"5"', "null", "1" + "0" * 400])
@pytest.mark.parametrize("kind", ["ceiling", "reserve", "keep", "settle"])
def test_an_amount_that_is_none_counts_for_nothing(tmp_path: Path, kind: str, amount: str) -> None:
    """No sum of it raises, whatever stands in the file."""
    ledger = begin(tmp_path)
    entry = f'{{"type":"{kind}","id":"k","scope":"","within":"","pid":{os.getpid()},"started":1,"amount":{amount}}}\n'
    with path_of(ledger).open("a") as file:
        file.write(entry)
    reserved(ledger, 200)
    assert left(ledger) == 800
    assert ledger.balance().ceiling / 1_000_000 == 0.001
