"""The cost under a cost ceiling by the service's own bill, with well-behaved and misbehaving services."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.billing import INPUT, OUTPUT, Billing, Manner
from benchmarks.lab import HERE, BenchmarkError
from benchmarks.table import Row
from marvin_core.api.timeouts import Timeouts
from marvin_core.usage.ledger import Ledger

GOAL = 1.05
_ONE, _EIGHT, _TIGHT = 0.3, 1.0, 0.25
_AGENTS = 8
_MODEL = "billed-model"
_PAID = "anthropic/claude-opus-4-6"
_LIMIT = 120.0
"""Seconds after which a run counts as hanging."""
_TIMEOUTS = (
    "timeouts: {retry_backoff: [0.01, 0.01, 0.01], ceiling_poll: 0.02, model_idle: 0.5, model_idle_coding: 0.5}\n"
)


class Case(NamedTuple):
    """A row: the behaviour of the service, and how it is used."""

    what: str
    manner: Manner
    ceiling: float
    agents: int = 1
    runs: int = 1
    lines: int = 0
    """Prompts of a chat; 0 for non-interactive runs."""
    killed: int = 0
    fallback: Manner | None = None
    model: str = _MODEL


CASES: Sequence[Case] = (
    Case("exact", Manner(), _ONE),
    Case("late usage", Manner(reports="late"), _ONE),
    Case("none reported", Manner(reports="nothing"), _ONE),
    Case("none reported, 1.2 bytes a token", Manner(reports="nothing", density=1.2), _ONE),
    Case("input 3 x", Manner(fed=3.0), _ONE),
    Case("hidden reasoning", Manner(hidden=1_500), _ONE),
    Case("limit ignored 4 x", Manner(longer=4.0), _ONE),
    Case("kept connection eaten", Manner(fate="eaten", every=2), _ONE),
    Case("usage says 0 output", Manner(reports="no output", tokens=2_500), _ONE),
    Case("cut in the arguments, 4 tries", Manner(fate="cut"), _ONE),
    Case("fallback chain, the second five times as dear", Manner(fate="refused"), _ONE, fallback=Manner(dear=5.0)),
    Case("resumed three times", Manner(), _ONE, runs=3),
    Case("chat of 20 prompts, silent until the time-out", Manner(fate="silent"), _ONE, lines=20),
    Case("exact", Manner(), _EIGHT, _AGENTS),
    Case("late usage", Manner(reports="late"), _EIGHT, _AGENTS),
    Case("none reported", Manner(reports="nothing"), _EIGHT, _AGENTS),
    Case("input 3 x", Manner(fed=3.0), _EIGHT, _AGENTS),
    Case("limit ignored 4 x", Manner(longer=4.0), _EIGHT, _AGENTS),
    Case("every second one cut", Manner(fate="cut", every=2), _EIGHT, _AGENTS),
    Case("silent until the time-out", Manner(fate="silent"), _EIGHT, _AGENTS),
    Case("two of them killed", Manner(), _EIGHT, _AGENTS, killed=2),
    Case("tight", Manner(), _TIGHT, _AGENTS),
    Case("gateway on 127.0.0.1", Manner(dear=5 / INPUT), _EIGHT, _AGENTS, model=_PAID),
)


def rows(*, quick: bool) -> Iterator[Row]:
    """The rows of the table: the cost as a multiple of the ceiling; in quick mode of single runs."""
    for case in CASES:
        if quick and case.agents > 1:
            continue
        who = "one run" if case.agents == 1 else f"{case.agents} agents"
        spent, requests = measured(case)
        how = f"{spent:.4f} of {case.ceiling:.2f} USD in {requests} requests"
        yield Row(f"ceiling, {who}: {case.what}", spent / case.ceiling, GOAL, "x", how)


def measured(case: Case) -> tuple[float, int]:
    """The bill of the service in USD, and the number of requests.

    Raises:
        BenchmarkError: the runs did not do what they should.
    """
    manners = {"one": case.manner, **({"two": case.fallback} if case.fallback else {})}
    with TemporaryDirectory(prefix="marvin-ceiling-") as folder, Billing(**manners) as billing:
        home = _Home(Path(folder).resolve(), case, billing)
        if case.agents == 1:
            for number in range(case.runs):
                home.finish(home.start(f"--max-cost={case.ceiling}", *(["--continue"] if number else [])))
        else:
            home.tree()
        if not billing.requests or not billing.billed(_LIMIT):
            raise BenchmarkError(f"{case.what}: no request was sent, or one has no bill: the row would mean nothing")
        return billing.spent, billing.requests


class _Home:
    """The home folder of a case's agents."""

    def __init__(self, folder: Path, case: Case, billing: Billing) -> None:
        self._case, self._billing, self._folder = case, billing, folder
        self._work = folder / "project"
        config = folder / "home" / ".config" / "marvin"
        for each in (self._work, config):
            each.mkdir(parents=True)
        (config / "config.yaml").write_text(self._config(), "utf-8")
        self._env = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "LANG": "C.UTF-8"}

    def _config(self) -> str:
        names = ["one", *(["two"] if self._case.fallback else [])]
        lines = [
            f'  {name}: {{base_url: "{self._billing.url(name)}", models: ["{self._case.model}"]}}' for name in names
        ]
        text = f"{_TIMEOUTS}provider: one\nproviders:\n" + "\n".join(lines) + "\n"
        if self._case.fallback:
            text += "fallback: [two]\n"
        if self._case.model == _PAID:
            return text  # its price is known
        dear = self._case.fallback.dear if self._case.fallback else 1.0
        prices = {"one": 1.0, "two": dear}
        return f"{text}prices:\n" + "".join(
            f'  "{name}/{_MODEL}": {{input: {INPUT * prices[name]}, output: {OUTPUT * prices[name]}}}\n'
            for name in names
        )

    def start(self, *flags: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start an agent."""
        case = self._case
        command = [HERE.python, "-P", "-m", "marvin_core", "--tools", "coding", *flags]
        command += ["--plain"] if case.lines else ["--non-interactive", "--prompt", "Do what the script says."]
        typed = "".join(f"This is prompt {number}.\n" for number in range(case.lines))
        process = subprocess.Popen(
            command,
            cwd=self._work,
            env={**self._env, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(typed.encode())
        process.stdin.close()
        process.stdin = None
        return process

    def finish(self, process: subprocess.Popen[bytes], *, killed: bool = False) -> None:
        """Wait for the end of an agent."""
        try:
            _, errors = process.communicate(timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise BenchmarkError(f"{self._case.what}: an agent did not end") from None
        told = errors.decode("utf-8", "replace")
        if not killed and not self._case.lines and not told.splitlines()[-1:][0].startswith("MARVIN_COST:"):
            raise BenchmarkError(f"{self._case.what}: an agent did not say what it cost:\n{told[-2000:]}")

    def tree(self) -> None:
        """Several agents below one parent."""
        case = self._case
        ledger = Ledger.create(self._folder / "ledgers", round(case.ceiling * 1_000_000), Timeouts())
        env = {"MARVIN_LEDGER": ledger.address, "MARVIN_DEPTH": "1"}
        agents = [self.start(env=env) for _ in range(case.agents)]
        if case.killed and not self._billing.wait_for(case.agents, _LIMIT):
            raise BenchmarkError(f"{case.what}: the agents sent too few requests")
        for process in agents[: case.killed]:
            process.send_signal(signal.SIGKILL)
        for number, process in enumerate(agents):
            self.finish(process, killed=number < case.killed)
