"""Decides between judgement and run: modes, hooks, and the questions to a person."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...api.errors import MarvinError, ToolError
from ...api.events import CallOrigin
from ...api.hooks import Ask, Deny, Verdict
from ...api.messages import ToolCall, ToolOutput
from ...api.permissions import NO, AskedCall, Question, Reply
from ...api.record import Record
from ...api.tool_context import SessionView
from ...api.tools import ToolSpec
from ...guard.gates.play import verdict_in_play
from ...guard.gates.ticket_lines import only_looks
from ...guard.labels import Origin, SessionLabels, origins_of, told_origins
from ...guard.permissions.modes import StandingPermissions, verdict_by_hand, verdict_of_mode
from ...guard.permissions.rules import Rule, nobody_there
from ...guard.permissions.verdicts import Allow, Judgement, strongest
from ...guard.redaction import REDACTED
from ...tools.toolbox import LoadedTool
from ...util.terminal_text import exact_line
from ...util.threads import in_thread
from ..hook_runner import HookRunner
from ..parts import SessionParts
from .patched_files import files_of, together

if TYPE_CHECKING:
    from .preview import Previews

_TRIES = 5
"""The number of times a question is repeated if the typed answer is not valid."""


class Pending(Record):
    """A call that is about to run: its tool, the given arguments, and the values for its function."""

    call: ToolCall
    loaded: LoadedTool
    given: Mapping[str, Any]
    values: Mapping[str, Any]
    origin: CallOrigin
    leaving: Ask | None = None
    """Its question because it requests to leave the sandbox."""
    replaced: str = ""
    """Its command before a person changed it."""

    @property
    def spec(self) -> ToolSpec:
        """The tool."""
        return self.loaded.spec

    @property
    def arguments(self) -> Mapping[str, Any]:
        """All values, by the names in the call and those of the function."""
        return {**self.given, **self.values}

    @property
    def named(self) -> Mapping[str, Any]:
        """The arguments as parsed."""
        return {name: self.values.get(name, value) for name, value in self.given.items()}

    @property
    def outside(self) -> bool:
        """Whether it runs outside of the sandbox. A command that a person types after `!` does, as in a shell."""
        return self.leaving is not None or self.origin == "typed"

    @property
    def exactly(self) -> str:
        """The key that distinguishes it from every other call of its tool."""
        return json.dumps(self.values, sort_keys=True, ensure_ascii=False, default=str)

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of its reply. Two calls may have the same id, and an approval applies only to the call shown."""
        return self.call.id, self.spec.name, self.exactly

    @property
    def change(self) -> str:
        """A line that tells the model that a different command ran."""
        return f"[The user changed the command before it ran. This ran: {self.given[self.spec.command]}]\n"

    def with_command(self, command: str) -> Pending:
        """The same call with another command. Raises `ToolError` if the tool does not accept it."""
        given = {**self.given, self.spec.command: command}
        before = self.replaced or str(self.arguments[self.spec.command])
        return self.replace(given=given, values=self.loaded.validate(given), replaced=before)


class _Judged(Record):
    """The judgement on a call. `by_mode`: only the mode asks, so an approval may apply to later calls."""

    verdict: Allow | Verdict
    judgement: Judgement
    by_mode: bool


class Permission:
    """Lets calls of one session run, asks a person about them, or refuses them."""

    def __init__(
        self, parts: SessionParts, hooks: HookRunner, session: SessionView, standing: StandingPermissions
    ) -> None:
        self._parts = parts
        self._hooks = hooks
        self._session = session
        self._standing = standing
        self._one_question = asyncio.Lock()
        self._replies: dict[tuple[str, str, str], list[tuple[Reply, str]]] = {}
        self._waited: dict[str, float] = {}
        self._labels = SessionLabels(parts.state, parts.config.labels)
        self._origins: dict[str, list[Origin]] = {}
        self._asked: dict[str, str] = {}

    def add_wait(self, call_id: str, seconds: float) -> None:
        """Record the seconds that a call waited for a person."""
        self._waited[call_id] = self._waited.get(call_id, 0.0) + seconds

    def ran(self, pending: Pending, stood: float) -> None:
        """A call has run or failed: its data counts as read from now on. `stood` is the seconds that it waited."""
        self.add_wait(pending.call.id, stood)
        self._came(pending, origins_of(pending.spec, pending.arguments))

    def told(self, pending: Pending, origins: object) -> None:
        """Record the origin that the tool gives for this result, in addition to the known origins of the tool."""
        self._came(pending, told_origins(origins))

    def _came(self, pending: Pending, origins: Sequence[Origin]) -> None:
        if not origins:
            return
        self._labels.add(origins, pending.spec.name)
        self._origins.setdefault(pending.call.id, []).extend(origins)

    def marked(self, output: ToolOutput) -> ToolOutput:
        """The output of a call with its origin and a person's remarks, as the model sees it. Once per call.

        An output from which a secret was redacted is labelled here.
        """
        origins, asked = self._origins.pop(output.call_id, []), self._asked.pop(output.call_id, "")
        if REDACTED in output.text:
            self._labels.add(["secret"], output.name)
            origins.append("secret")
        return output.replace(origins=tuple(dict.fromkeys(origins)), asked=asked) if origins or asked else output

    def waited(self, call_id: str) -> float:
        """The number of seconds that a call waited for a person; to be read once."""
        return self._waited.pop(call_id, 0.0)

    def may_ask(self, spec: ToolSpec) -> bool:
        """Whether rules, the mode or a hook may require approval for calls of a tool."""
        return spec.changes or spec.confirm or bool(self._parts.config.permissions.ask) or self._hooks.judges

    async def ask_together(self, calls: Sequence[Pending]) -> None:
        """Ask about the calls of an answer that need approval because of rules, mode or hooks, if there are several.

        Hooks judge the current state here. They are called again right before a call runs, and that judgement decides.
        """
        self._replies.clear()
        if self._parts.setup.asker is None or self._parts.workspace.playing:
            return
        from .preview import Previews  # a non-interactive run shows no questions

        previews = Previews(self._parts, self._session)
        asked: list[tuple[Pending, _Judged, AskedCall]] = []
        for pending in calls:
            judged = await self._with_hooks(pending)
            if not isinstance(judged.verdict, Ask) or self._is_allowed(pending, judged):
                continue
            try:
                asked.append((pending, judged, await self._shown(pending, judged, judged.verdict, previews)))
            except ToolError:
                continue  # it fails by itself, so no question is needed
        if len(asked) < 2:
            return
        question = Question(kind="calls", text=f"Run these {len(asked)} calls?", calls=tuple(one for *_, one in asked))
        for (pending, judged, shown), reply in zip(asked, await self._put(question), strict=True):
            reason = judged.verdict.reason if isinstance(judged.verdict, Ask) else ""
            wrong = await self._keep(pending, shown, reply)
            if wrong:
                self._parts.bus.warn(wrong)  # it is asked about alone in its turn
            else:
                self._replies.setdefault(pending.key, []).append((reply, reason))

    async def permit(self, pending: Pending) -> Pending:
        """Return once the call may run, possibly with another command from the person.

        Raises:
            ToolError: if it may not; the text is for the model.
        """
        given = self._replies.get(pending.key) if self._replies else None
        reply, approved = given.pop(0) if given else (None, "")
        if reply is not None:
            pending = self._answered(pending, reply, approved)
        while True:
            judged = await self._with_hooks(pending)
            verdict = judged.verdict
            if isinstance(verdict, Deny):
                raise ToolError(f"{pending.spec.name} was not run: {verdict.reason}.")
            if self._parts.setup.asker is None:
                self._unattended(pending.spec, verdict)
                return pending
            if not isinstance(verdict, Ask) or pending.origin in ("typed", "undo") or self._is_allowed(pending, judged):
                return pending
            if judged.by_mode and pending.replaced:
                return pending  # a command that a person typed needs no approval
            if verdict.reason == approved and not pending.replaced:
                return pending
            async with self._one_question:
                if judged.by_mode and not isinstance((await self._by_rules(pending)).verdict, Ask):
                    return pending  # the answer to the previous question may allow it now
                reply = await self._ask(pending, judged, verdict)
            pending = self._answered(pending, reply, verdict.reason)
            if reply.says != "edit":
                return pending

    def _answered(self, pending: Pending, reply: Reply, reason: str) -> Pending:
        self._asked[pending.call.id] = reply.says
        return _answered(pending, reply, reason)

    def _is_allowed(self, pending: Pending, judged: _Judged) -> bool:
        return judged.by_mode and self._standing.allows_call(pending.spec.name, pending.exactly)

    async def _by_rules(self, pending: Pending) -> _Judged:
        """The judgement of rules and mode, without the hooks."""
        spec, root = pending.spec, self._parts.workspace.root
        holds = not pending.outside and await self._holds(spec)
        judgement = await self._standing.policy.judged(spec, pending.arguments, root, confined=holds)
        files = files_of(spec, pending.arguments)
        if files:
            judged = self._standing.policy.judge
            judgement = together(judgement, [judged(spec, {"path": file}, root, confined=holds) for file in files])
        verdict = strongest(pending.leaving, judgement.verdict)
        by_mode = verdict is None
        if by_mode and pending.origin in ("person", "typed", "trial"):
            verdict = verdict_by_hand(spec, in_home=self._in_home)
        elif by_mode and not only_looks(spec, pending.arguments):
            verdict = verdict_of_mode(self._standing.mode, spec, holds=holds, in_home=self._in_home)
        return _Judged(verdict=verdict, judgement=judgement, by_mode=by_mode)

    async def _with_hooks(self, pending: Pending) -> _Judged:
        judged = await self._by_rules(pending)
        said = _both(self._by_labels(pending), await self._hooks.before_tool(pending.spec, pending.arguments))
        verdict, by_mode = _both(judged.verdict, said), judged.by_mode and said is None
        if self._parts.workspace.playing:
            verdict = verdict_in_play(verdict, by_declaration=by_mode)
        if verdict is judged.verdict and by_mode is judged.by_mode:
            return judged
        return judged.replace(verdict=verdict, by_mode=by_mode)

    def _by_labels(self, pending: Pending) -> Verdict:
        """The judgement on a call because of data that the session has read before."""
        rules, attended = self._parts.config.labels, self._parts.setup.asker is not None
        if pending.origin != "model" or not (rules.unattended or (attended and not self._parts.workspace.playing)):
            return None
        why = self._labels.why_asked(pending.spec)
        if not why:
            return None
        if attended or self._parts.config.when_asked(pending.spec.name) == "allow-all":
            return Ask(reason=why)
        return nobody_there(why)

    @property
    def _in_home(self) -> bool:
        return self._parts.config.in_home and self._parts.workspace.root == self._parts.config.working_dir

    async def _holds(self, spec: ToolSpec) -> bool:
        """Whether the sandbox confines the programs of a call; evaluated only if it matters."""
        if not spec.changes or not ("exec" in spec.access or self._standing.is_open):
            return False
        state = await self._parts.sandbox.state()
        self._standing.settle(holds=state.holds)
        return state.holds

    def _unattended(self, spec: ToolSpec, verdict: Allow | Verdict) -> None:
        """The answer in a non-interactive run: yes, unless --on-ask says otherwise."""
        config, reason = self._parts.config, ""
        if isinstance(verdict, Ask) and config.when_asked(spec.name) == "deny":
            reason = f"{verdict.reason}, and nobody can give it in this run (--on-ask deny)"
        elif verdict is None and spec.changes and config.on_ask_tools.get(spec.name) == "deny":
            reason = f"no rule allows it, and nobody can approve it in this run (--on-ask {spec.name}=deny)"
        if reason:
            raise ToolError(f"{spec.name} was not run: {reason}. Do it another way, or leave it to the user.")

    async def _ask(self, pending: Pending, judged: _Judged, verdict: Ask) -> Reply:
        from .preview import Previews

        shown = await self._shown(pending, judged, verdict, Previews(self._parts, self._session))
        question = Question(kind="calls", text=f"Run {pending.spec.name}?", calls=(shown,))
        for _ in range(_TRIES):
            reply = (await self._put(question))[0]
            wrong = await self._keep(pending, shown, reply)
            if not wrong:
                return reply
            self._parts.bus.warn(wrong)
        return NO

    async def _shown(self, pending: Pending, judged: _Judged, verdict: Ask, previews: Previews) -> AskedCall:
        from .questions import Asking, asked_call

        preview = await previews.of(pending.loaded, pending.values, pending.origin)
        asking = Asking(reason=verdict.reason, judgement=judged.judgement, repeats=judged.by_mode)
        redactor = self._parts.redactor
        return asked_call(pending.call.id, pending.spec, pending.named, asking, preview, redactor)

    async def _put(self, question: Question) -> Sequence[Reply]:
        """Ask, and ensure a reply for each call; the waiting does not count towards their time-outs."""
        from .asking import put

        clock = self._parts.clock
        begun = clock.monotonic()
        try:
            return await put(question, self._parts.setup)
        finally:
            if len(question.calls) == 1:  # a list is asked before any of its calls starts
                self.add_wait(question.calls[0].call_id, clock.monotonic() - begun)

    async def _keep(self, pending: Pending, shown: AskedCall, reply: Reply) -> str:
        """Store an approval for later calls; returns why it is not valid, if its rule does not match the call.

        A person who writes a rule intends it for the call in question. A rule that does not match is a mistake, and
        would go unnoticed, since the call would run anyway.
        """
        if reply.says not in ("session", "always"):
            return ""
        rule = reply.rule or shown.remember
        if reply.rule and (wrong := await self._wrong(pending, reply.rule)):
            return f"The call was not run, and no rule was stored: {wrong}"
        if not rule:
            self._standing.allow_call(pending.spec.name, pending.exactly)
            return ""
        self._standing.allow(rule)
        if reply.says == "always":
            await self._store(rule)
        return ""

    async def _wrong(self, pending: Pending, rule: str) -> str:
        """Why a rule that a person wrote does not allow the call in question; empty if it does."""
        from ...config.file.rules import rule_text

        name, shown = pending.spec.name, exact_line(rule)
        try:
            rule_text(rule)
        except ValueError as error:
            return f"the rule cannot be used. {error}"
        if Rule(rule).tool != name:
            return f"the rule {shown} is not a rule for {name}. It must have the form {name}(PATTERN)."
        root = self._parts.workspace.root
        holds = not pending.outside and await self._holds(pending.spec)
        judgement = await self._standing.with_rule(rule).judged(pending.spec, pending.arguments, root, confined=holds)
        if isinstance(judgement.verdict, Allow):
            return ""
        return f"the rule {shown} does not cover this call. Write one that does, or answer yes to allow this one call."

    async def _store(self, rule: str) -> None:
        from ...config.stored.settings import store_allow_rule

        shown = f"{exact_line(rule)}{', which covers every call of it' if Rule(rule).is_whole else ''}"
        try:
            path = await in_thread(partial(store_allow_rule, self._parts.config, rule))
            self._parts.bus.tell(f"Stored in {path}: allow {shown}")
        except MarvinError as error:
            self._parts.bus.warn(f"The rule {shown} applies to this session only: {error}")


def _both(first: Allow | Verdict, second: Allow | Verdict) -> Any:
    """The stricter of two verdicts; two questions are joined with the reasons of both."""
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, Ask) and isinstance(second, Ask):
        return Ask(reason=f"{first.reason}; {second.reason}")
    return strongest(second, first)


def _answered(pending: Pending, reply: Reply, reason: str) -> Pending:
    """The call after a reply, which may change it. Raises `ToolError` for a no."""
    if reply.says == "edit":
        return pending.with_command(reply.command)
    if reply.says == NO.says:
        said = f"The user says: {reply.text}" if reply.text else "Ask what to do instead."
        raise ToolError(f"{pending.spec.name} was not run: {reason}, and the user said no. {said}")
    return pending
