"""Calls every tool of a pack with many arguments in temporary folders, and examines the results and effects."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ...api.tools import Access, ToolSpec
from ..leaks import _descendants
from ..tool_runner import Outcome, ToolRunner
from .findings import Finding, found
from .fuzzing import cases
from .network import Network
from .pulse import Pulse
from .watch import Deed, Watch

_UNEXPECTED = "failed unexpectedly: "
_SHORTEST_ERROR = 25
_SENTENCE = re.compile(r"[.!?:](\s|$)")
_LEAKED = re.compile(r" at 0x[0-9a-f]+|\[Errno |Traceback \(most recent")
_SHOWN = 100
_REPEATS = 2
_IMPLIED: dict[Access, frozenset[Deed]] = {
    "read": frozenset({"read"}),
    "net": frozenset({"net"}),
    "write": frozenset({"read", "write"}),
    "exec": frozenset({"read", "write", "net", "exec"}),
    "state": frozenset(),
}


class Trial:
    """Tests tools one by one.

    Args:
        seconds: the timeout of a call, and again the time for it to end after its cancellation.
        beat: the maximum time for which the event loop may be blocked, in seconds.
        told: called with the name of each tool before it is tested.
    """

    def __init__(self, place: Path, watch: Watch, *, seconds: float, beat: float, told: Callable[[str], None]) -> None:
        self._place = place
        self._watch = watch
        self._seconds = seconds
        self._beat = beat
        self._told = told
        self._problems: dict[str, list[str]] = {"no surprises": [], "access": [], "in time": [], "advice": []}
        self._calls = 0
        self._held_back: dict[str, None] = {}
        self._own: Sequence[Path] = ()

    def run(self, tools: Sequence[ToolSpec]) -> list[Finding]:
        """Test all tools."""
        for spec in tools:
            self._told(spec.name)
            self._try(spec)
        findings = [found(name, problems, note=f"{self._calls} calls") for name, problems in self._problems.items()]
        if not self._held_back:
            return findings
        why = f"{', '.join(self._held_back)} tried to start programs; --programs allows that"
        return [
            each.replace(unmeasured=why) if each.criterion == "in time" and not each.problems else each
            for each in findings
        ]

    def _try(self, spec: ToolSpec) -> None:
        network = Network()
        deeds: dict[Deed, str] = {}
        home, work = (self._fresh(spec.name, kind) for kind in ("home", "work"))
        (work / "README.md").write_text("# Notes\n\nBuy some tea.\n", encoding="utf-8")
        runner = ToolRunner(home, work, lambda: network, interactive=False)
        config, _ = runner._loaded()
        # A tool that only reads may write to its cache and state: these are not user data.
        self._own = [folder / "packs" for folder in (config.cache_folder, config.state_folder)]
        before = set(_descendants())
        for number, text in enumerate(cases(spec)):
            network.choose(number)
            if not self._one(runner, spec, text, network, deeds):
                break  # a call that does not end would also block the end of the session
        else:
            if self._silent(runner, spec, network):
                self._close(spec, runner)
        if set(_descendants()) - before:
            self._problems["in time"].append(f"{spec.name} leaves processes behind when its calls have ended")
        allowed = frozenset().union(*(_IMPLIED[access] for access in spec.access))
        undeclared = {deed: where for deed, where in deeds.items() if deed not in allowed}
        self._problems["access"] += [
            f"{spec.name} does not declare {deed}: {where}" for deed, where in undeclared.items()
        ]

    def _fresh(self, tool: str, kind: str) -> Path:
        folder = self._place / tool / kind
        folder.mkdir(parents=True)
        return folder

    def _one(self, runner: ToolRunner, spec: ToolSpec, text: str, network: Network, deeds: dict[Deed, str]) -> bool:
        """Make one call; returns whether it ended."""
        call = f"{spec.name} {text[:_SHOWN]}"
        self._calls += 1
        self._watch.begin(self._own)
        ended, outcome, held = runner._loop.run(self._bounded(runner, spec.name, text))
        self._watch.end()
        seen = {deed: next(iter(places)) for deed, places in self._watch.deeds.items()}
        if network.requests:
            seen["net"] = network.requests[0]
        network.requests.clear()
        for deed, where in seen.items():
            deeds.setdefault(deed, where)
        self._problems["access"] += [f"{spec.name} {what}" for what in self._watch.refused]
        self._held_back.update(dict.fromkeys([spec.name] if self._watch.held_back else []))
        if not ended:
            self._problems["in time"].append(f"{call}: does not end when it is cancelled")
        if ended and held and self._holds_up(runner, spec.name, text):
            self._problems["in time"].append(f"{call}: blocks the whole program for {held:.1f} s")
        if outcome is not None:
            self._judge(spec, call, outcome)
        return ended

    def _holds_up(self, runner: ToolRunner, name: str, text: str) -> bool:
        """Whether each repetition blocks the loop: once may be due to a busy machine."""
        self._watch.active = True
        try:
            return all(runner._loop.run(self._bounded(runner, name, text))[2] for _ in range(_REPEATS))
        finally:
            self._watch.end()

    def _judge(self, spec: ToolSpec, call: str, outcome: Outcome) -> None:
        if outcome.is_error and _UNEXPECTED in outcome.text:
            what = outcome.text.partition(_UNEXPECTED)[2].partition("\n")[0][:_SHOWN]
            if not (self._watch.refused or self._watch.held_back):  # otherwise the check caused the error
                self._problems["no surprises"].append(f"{call}: {what}")
        elif outcome.is_error:
            self._problems["advice"] += [f"{call}: {why}" for why in _unhelpful(outcome.text.removeprefix("Error: "))]
        elif outcome.text == "(no output)" and len(outcome.content) < 2:
            self._problems["advice"].append(f"{call}: returns nothing")

    def _silent(self, runner: ToolRunner, spec: ToolSpec, network: Network) -> bool:
        """Make a call while no service answers, and cancel it; returns whether it ended."""
        network.fall_silent()
        first = cases(spec)[0]
        self._watch.begin(self._own)
        ended, _, _ = runner._loop.run(self._bounded(runner, spec.name, first, network.reached))
        self._watch.end()
        if not ended:
            self._problems["in time"].append(
                f"{spec.name}: does not end when it is cancelled while a service is silent"
            )
        return ended

    async def _bounded(
        self, runner: ToolRunner, name: str, text: str, until: asyncio.Event | None = None
    ) -> tuple[bool, Outcome | None, float]:
        """Call a tool; returns whether it ended, its result, and for how many seconds at most it blocked the loop.

        The call is cancelled after `seconds`, or as soon as `until` is set.
        """
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(runner._call(name, text))
        waiting = asyncio.ensure_future(until.wait()) if until is not None else None
        pulse = Pulse(loop, self._beat)
        await asyncio.wait({task, waiting} if waiting else {task}, timeout=self._seconds, return_when="FIRST_COMPLETED")
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=self._seconds)
        if waiting:
            waiting.cancel()
        held = pulse.stop()
        if not task.done() or task.cancelled() or task.exception() is not None:
            return task.done(), None, held
        return True, task.result(), held

    def _close(self, spec: ToolSpec, runner: ToolRunner) -> None:
        try:
            runner.close()
        except Exception as error:  # leftovers of a pack may cause any error
            self._problems["in time"].append(f"{spec.name}: what it left behind could not be ended: {error}")


def _unhelpful(text: str) -> Iterator[str]:
    """The reasons why an error text is not helpful."""
    if _LEAKED.search(text):
        yield f"shows Python internals: {json.dumps(text[:_SHOWN], ensure_ascii=False)}"
    elif len(text) < _SHORTEST_ERROR or len(_SENTENCE.findall(text)) < 2:
        yield f"does not say what to do next: {json.dumps(text[:_SHOWN], ensure_ascii=False)}"
