"""The money that a tree of agents may spend: one file that all of them read and add to, under its lock.

Each line is a record of its own. Amounts are whole micro-dollars.

- `ceiling {scope, within, amount}`: how much an agent and those below it may spend. The first is that of
  the whole tree, its scope the empty string.
- `reserve {id, scope, pid, started, amount}`: the worst case of a request that is about to be sent.
- `keep {id, scope, pid, started, amount}`: what an agent holds back for its last answer.
- `settle {id, amount}`: what a reservation came to; what was kept, to nothing.
- `session {id, pid, started, amount}`: the agent that began the ledger works for this session, whose own file has
  `amount` of what is spent. A ledger that is left by a killed agent so tells what the session is to count as well.

What is not settled counts in full, also when its agent has died: the service bills what it streamed. Only
what a dead agent held back is free again. A last line that was not written to its end, and whatever
else is not such a record, counts for nothing.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeGuard

from ..api.errors import BudgetExceeded, ConfigError, MarvinError
from ..api.record import Record
from ..api.timeouts import Timeouts
from ..guard.processes.table import start_of
from ..util.state_files import acquire, make_private_folder
from ..util.untrusted_json import parse_json

_MOST = 10**18
"""A trillion USD, in micro-dollars."""


class LedgerEntry(Record):
    """A reservation that is not settled. `started` is the start time of its process, as `tree.start_of` returns it."""

    scope: str
    pid: int
    started: int | None
    amount: int
    kept: bool

    @property
    def is_live(self) -> bool:
        """Whether its process still runs."""
        return self.started is not None and start_of(self.pid) == self.started


class LedgerSession(Record):
    """The session that an agent works for, and the part of the spending in its file."""

    id: str
    pid: int
    started: int
    amount: int

    @property
    def is_live(self) -> bool:
        """Whether the agent's process still runs."""
        return start_of(self.pid) == self.started


class Balance(Record):
    """The state of an agent's money, in micro-dollars.

    `ceiling` is the tightest one that applies. `left` is the part of it that is neither spent nor reserved. `possible`
    is the part left if the running requests cost nothing. `spent` may exceed the ceiling if an estimate was too low.
    """

    ceiling: int
    spent: int
    left: int
    possible: int


class LedgerState:
    """The sum of the records."""

    def __init__(self) -> None:
        self._ceilings: dict[str, tuple[str, int]] = {}
        self._spent: dict[str, int] = {}
        self._settled: set[str] = set()
        self.open: dict[str, LedgerEntry] = {}
        self.session: LedgerSession | None = None

    def feed(self, line: bytes) -> None:
        """Process one line."""
        try:
            record = parse_json(line)
        except ValueError:
            return
        if isinstance(record, dict) and _is_amount(record.get("amount")):
            kinds = {
                "ceiling": self._limit,
                "settle": self._settle,
                "reserve": self._reserve,
                "keep": self._reserve,
                "session": self._work_for,
            }
            take = kinds.get(str(record.get("type")))
            if take is not None:
                take(record)

    def _limit(self, record: dict[str, Any]) -> None:
        scope, within = str(record.get("scope", "")), str(record.get("within", ""))
        if scope not in self._ceilings and (not scope or within in self._ceilings):
            self._ceilings[scope] = (within, record["amount"])

    def _reserve(self, record: dict[str, Any]) -> None:
        key, scope, pid, started = str(record.get("id")), record.get("scope"), record.get("pid"), record.get("started")
        if key not in self.open and key not in self._settled and _is_amount(pid) and _is_amount(started):
            self.open[key] = LedgerEntry(
                scope=str(scope), pid=pid, started=started, amount=record["amount"], kept=record["type"] == "keep"
            )

    def _settle(self, record: dict[str, Any]) -> None:
        key = str(record.get("id"))
        if key not in self._settled:
            self._settled.add(key)
            entry = self.open.pop(key, None)
            scope = entry.scope if entry else ""
            self._spent[scope] = self._spent.get(scope, 0) + record["amount"]

    def _work_for(self, record: dict[str, Any]) -> None:
        pid, started = record.get("pid"), record.get("started")
        if _is_amount(pid) and _is_amount(started):
            self.session = LedgerSession(id=str(record.get("id")), pid=pid, started=started, amount=record["amount"])

    def beyond(self) -> int:
        """The amount spent, and reserved for requests, that is not in the session's file."""
        spent = sum(self._spent.values()) + sum(entry.amount for entry in self.open.values() if not entry.kept)
        return max(spent - (self.session.amount if self.session else 0), 0)

    def spent(self, scope: str) -> int:
        """The spending of a scope and those inside it, including reservations for requests: the exact amount is
        unknown.
        """
        settled = sum(amount for inner, amount in self._spent.items() if scope in self._around(inner))
        return settled + self._sum([entry for entry in self.open.values() if not entry.kept], scope)

    def has(self, scope: str) -> bool:
        """Whether there is a ceiling for this scope."""
        return scope in self._ceilings

    def balance(self, scope: str, without: str = "") -> Balance:
        """The state of a scope's money, without the entry `without`."""
        entries = [entry for key, entry in self.open.items() if key != without]
        live = [entry for entry in entries if entry.is_live]
        lost = [entry for entry in entries if entry not in live and not entry.kept]
        balances = []
        for around in self._around(scope):
            _, ceiling = self._ceilings.get(around, ("", 0))  # 0 where somebody emptied the file
            settled = sum(amount for inner, amount in self._spent.items() if around in self._around(inner))
            spent = settled + self._sum(lost, around)
            possible = ceiling - spent - self._sum([entry for entry in live if entry.kept], around)
            left = possible - self._sum([entry for entry in live if not entry.kept], around)
            balances.append(Balance(ceiling=ceiling, spent=spent, left=left, possible=possible))
        possible = min(balance.possible for balance in balances)
        return min(balances, key=lambda balance: balance.left).replace(possible=possible)

    def _sum(self, entries: Sequence[LedgerEntry], scope: str) -> int:
        return sum(entry.amount for entry in entries if scope in self._around(entry.scope))

    def ceiling(self, scope: str) -> int:
        """The lowest ceiling that applies to a scope."""
        return min(self._ceilings.get(around, ("", 0))[1] for around in self._around(scope))

    def _around(self, scope: str) -> tuple[str, ...]:
        """A scope and those around it; an unknown one is the whole tree."""
        found = [scope if scope in self._ceilings else ""]
        while found[-1]:
            found.append(self._ceilings[found[-1]][0])
        return tuple(found)


def _is_amount(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _MOST


class Ledger:
    """The file, from the view of one agent. `owned` says whether this agent began it.

    Its methods raise `BudgetExceeded` if the file is gone or cannot be written: without it nothing may be spent.
    """

    def __init__(self, path: Path, scope: str, timeouts: Timeouts, *, owned: bool = False) -> None:
        self.owned = owned
        self._path = path
        self._scope = scope
        self._timeouts = timeouts
        self._book = LedgerState()
        self._offset = 0

    @classmethod
    def create(cls, folder: Path, ceiling: int, timeouts: Timeouts) -> Ledger:
        """Begin a ledger in a new file that only this user can read.

        Raises:
            OSError: the folder cannot be written.
        """
        make_private_folder(folder)
        path = folder / f"{os.urandom(8).hex()}.jsonl"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        ledger = cls(path, "", timeouts, owned=True)
        with ledger._locked() as descriptor:
            ledger._write(descriptor, {"type": "ceiling", "scope": "", "amount": ceiling})
        return ledger

    @classmethod
    def inherit(cls, address: str, timeouts: Timeouts) -> Ledger:
        """The ledger of a parent.

        Raises:
            ConfigError: it is no ledger of ours; without it nothing would limit the spending.
        """
        path, mark, scope = address.rpartition("#")
        ledger = cls(Path(path), scope, timeouts) if mark else cls(Path(address), "", timeouts)
        try:
            with ledger._locked():
                if ledger._book.has(ledger._scope):
                    return ledger
        except BudgetExceeded:
            pass
        raise ConfigError(f"MARVIN_LEDGER is {address!r}, which is not the ledger of a running Marvin. Unset it.")

    def bounded(self, ceiling: int, scope: str = "") -> Ledger:
        """This ledger for an agent that may spend no more than `ceiling`, including the agents below it.

        Args:
            scope: its name in the file, to find it again; an existing one keeps its ceiling.
        """
        inner = Ledger(self._path, scope or os.urandom(4).hex(), self._timeouts)
        with inner._locked() as descriptor:
            if inner._book.has(inner._scope):
                return inner
            ceiling_of = {"scope": inner._scope, "within": self._scope, "amount": ceiling}
            inner._write(descriptor, {"type": "ceiling", **ceiling_of})
        return inner

    @property
    def address(self) -> str:
        """The value of MARVIN_LEDGER for a child."""
        return f"{self._path}#{self._scope}" if self._scope else str(self._path)

    def balance(self, without: str = "") -> Balance:
        """The state of the money, without the entry `without`."""
        with self._locked():
            return self._book.balance(self._scope, without)

    def spent(self, scope: str = "") -> int:
        """The spending of all agents of a scope, including reservations; 0 for an unknown scope."""
        with self._locked():
            return self._book.spent(scope) if self._book.has(scope) else 0

    def ceiling(self) -> int:
        """The ceiling for this agent."""
        with self._locked():
            return self._book.ceiling(self._scope)

    def reserve(self, amount: int, keep: int = 0, instead_of: str = "") -> tuple[str, str] | None:
        """Reserve the maximum cost of a request, if there is enough.

        Args:
            keep: the amount to keep in reserve for the last answer.
            instead_of: the present reserve.

        Returns:
            The names of the reservation and of the reserve (empty for none); None if there is too little.
        """
        with self._locked() as descriptor:
            if self._book.balance(self._scope, instead_of).left < amount + keep:
                return None
            own = {"scope": self._scope, "pid": os.getpid(), "started": start_of(os.getpid())}
            key, kept = os.urandom(8).hex(), os.urandom(8).hex() if keep else ""
            records = [{"type": "settle", "id": instead_of, "amount": 0}] if instead_of else []
            records.append({"type": "reserve", "id": key, **own, "amount": amount})
            if kept:
                records.append({"type": "keep", "id": kept, **own, "amount": keep})
            self._write(descriptor, *records)
            return key, kept

    def settle(self, key: str, amount: int) -> None:
        """Record the cost of a reservation."""
        with self._locked() as descriptor:
            self._write(descriptor, {"type": "settle", "id": key, "amount": amount})

    def work_for(self, session: str, amount: int) -> None:
        """Record the session that the money is spent for, and the part of it in the session's own file."""
        with self._locked() as descriptor:
            own = {"pid": os.getpid(), "started": start_of(os.getpid())}
            self._write(descriptor, {"type": "session", "id": session, **own, "amount": amount})

    def left_behind(self, session: str) -> int:
        """The spending of killed agents for a session that its file lacks. Their ledgers are removed."""
        beyond = 0
        for path in self._path.parent.glob("*.jsonl"):
            with suppress(MarvinError):  # one that is in use, or that another agent has taken up meanwhile
                beyond += Ledger(path, "", self._timeouts)._taken_up(session)
        return beyond

    def _taken_up(self, session: str) -> int:
        with self._locked() as descriptor:
            found = self._book.session
            if found is None or found.id != session or found.is_live or not os.fstat(descriptor).st_nlink:
                return 0
            self.remove()
            return self._book.beyond()

    def remove(self) -> None:
        """Remove the file; for the agent that began it, after all others have ended."""
        self._path.unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the file's lock, with every record read. The lock is held for microseconds."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
                    raise BudgetExceeded(f"The ledger of --max-cost, {self._path}, is not owned by this user.")
                acquire(descriptor, self._timeouts.lock, self._timeouts.lock_poll, str(self._path))
                self._read(descriptor)
                yield descriptor
            finally:
                os.close(descriptor)
        except OSError as error:
            reason = f"The ledger of --max-cost, {self._path}, cannot be used: {error.strerror}."
            raise BudgetExceeded(
                f"{reason} The run stops to avoid costs that are not recorded; start it again."
            ) from error

    def _read(self, descriptor: int) -> None:
        """Read the records added since the last look."""
        if os.fstat(descriptor).st_size < self._offset:  # somebody cut it: start over
            self._book, self._offset = LedgerState(), 0
        data = b""
        while chunk := os.pread(descriptor, 1 << 20, self._offset + len(data)):
            data += chunk
        *lines, _ = data.split(b"\n")
        for line in lines:
            self._book.feed(line)
        self._offset += sum(len(line) + 1 for line in lines)

    def _write(self, descriptor: int, *records: dict[str, Any]) -> None:
        size = os.fstat(descriptor).st_size
        torn = b"\n" if size > self._offset else b""  # somebody was killed in the middle of a line: end it
        data = torn + b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)
        try:
            if os.write(descriptor, data) < len(data):
                raise OSError(None, "the disk is full")
        except OSError:
            os.ftruncate(descriptor, size)
            raise
        self._read(descriptor)
