"""One tool call, from its raw arguments to its output. Never raises; the output always says how to go on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...api.errors import ToolError
from ...api.events import CallOrigin, ToolExecutionEnd, ToolExecutionStart
from ...api.hooks import Ask, Deny
from ...api.messages import Image, Text, ToolCall, ToolOutput
from ...api.session import RunningCall
from ...api.tool_context import SessionView
from ...api.tools import ToolResult, ToolSpec
from ...conversation.compactor import Compactor
from ...conversation.pairing import INTERRUPTED, interrupted
from ...guard.permissions.policy import Policy
from ...guard.permissions.verdicts import strongest
from ...guard.redaction import redacted
from ...tools.toolbox import LoadedTool
from ...util.failures import is_failure, told
from ...util.threads import in_thread
from ..hook_runner import HookRunner
from ..parts import SessionParts
from .context import CallContext
from .timer import CallTimer

_GO_ON = "What it was to do may be done. Check, then try it another way."
_LONG_ARGUMENTS = 20_000
"""Characters of arguments that are read beside the event loop: where they are broken, mending them takes long."""


class Dispatcher:
    """Runs the calls of one session. `session` is what tools may know of it."""

    def __init__(self, parts: SessionParts, hooks: HookRunner, compactor: Compactor, session: SessionView) -> None:
        self._parts = parts
        self._hooks = hooks
        self._compactor = compactor
        self._session = session
        self._policy = Policy(parts.config)
        self._running: dict[str, asyncio.Task[ToolOutput]] = {}
        self._by_hand = 0

    async def batch(self, calls: Sequence[ToolCall], outputs: list[ToolOutput], origin: CallOrigin = "model") -> None:
        """Run the calls of one answer and fill `outputs` with exactly one output each, in their order.

        Neighbouring calls that only read run side by side, as many at a time as config allows; every other call runs
        alone. When this is cancelled, the calls that have not finished get the output "interrupted" and the
        cancellation goes on.
        """
        beside = asyncio.Semaphore(self._parts.config.limits.parallel_calls)
        try:
            for group in self._groups(calls):
                for call in group:
                    self._running[call.id] = asyncio.ensure_future(self._in_turn(call, origin, beside))
                tasks = [self._running[call.id] for call in group]
                await asyncio.wait(tasks)
                outputs.extend(_output_of(call, task) for call, task in zip(group, tasks, strict=True))
        except asyncio.CancelledError:
            await self._cancel_running()
            raise
        finally:  # whoever cancels twice does not wait for what is slow to stop, but each call gets its output
            outputs.extend(_output_of(call, self._running.get(call.id)) for call in calls[len(outputs) :])
            self._running.clear()
            self._fit_all(outputs)

    def cancel(self, call_id: str) -> bool:
        """Cancel one running call; the others of its round go on. False where it does not run."""
        task = self._running.get(call_id)
        return task is not None and task.cancel()

    async def _cancel_running(self) -> None:
        for task in self._running.values():
            task.cancel()
        if self._running:
            await asyncio.wait(self._running.values())

    def _groups(self, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
        groups: list[list[ToolCall]] = []
        beside = False
        for call in calls:
            may_run_beside = self._may_run_beside(call)
            if groups and beside and may_run_beside:
                groups[-1].append(call)
            else:
                groups.append([call])
            beside = may_run_beside
        return groups

    def _may_run_beside(self, call: ToolCall) -> bool:
        try:
            return self._parts.toolbox.spec(call.name).reads_only
        except ToolError:
            return True  # it will only be told that there is no such tool

    def _fit_all(self, outputs: list[ToolOutput]) -> None:
        added = 0
        for index, output in enumerate(outputs):
            blocks = tuple(
                Text(text=self._compactor.fit(block.text, added)) if isinstance(block, Text) else block
                for block in output.content
            )
            outputs[index] = output.replace(content=blocks)
            added += len(outputs[index].text)

    async def _in_turn(self, call: ToolCall, origin: CallOrigin, beside: asyncio.Semaphore) -> ToolOutput:
        async with beside:
            return await self.call(call, origin)

    async def call(self, call: ToolCall, origin: CallOrigin = "model") -> ToolOutput:
        """Run one call; `origin` says who made it."""
        clock = self._parts.clock
        started = clock.monotonic()
        arguments: dict[str, Any] = {}
        result = ToolResult(content=INTERRUPTED, is_error=True)
        try:
            result = await self._result(call, arguments, origin)
        finally:  # a call that is cancelled ends, too
            self._parts.progress.calls.pop(call.id, None)
            output, details = self._shown(call, result)
            elapsed = clock.monotonic() - started
            self._parts.bus.emit(
                ToolExecutionEnd(
                    call_id=call.id,
                    name=call.name,
                    text=output.text,
                    is_error=output.is_error,
                    elapsed=elapsed,
                    origin=origin,
                    details=details,
                    show=output.for_people,
                )
            )
            self._audit(call.name, arguments, output.text, elapsed)
        return output

    def _begun(self, call: ToolCall, arguments: Mapping[str, Any], origin: CallOrigin) -> None:
        shown = redacted(dict(arguments), self._secrets)
        now = self._parts.clock.now()
        running = RunningCall(call_id=call.id, name=call.name, arguments=shown, since=now, origin=origin)
        self._parts.progress.calls[call.id] = running
        self._parts.bus.emit(ToolExecutionStart(call_id=call.id, name=call.name, arguments=shown, origin=origin))

    def _shown(self, call: ToolCall, result: ToolResult) -> tuple[ToolOutput, Mapping[str, Any] | None]:
        """The output of a call, and the details of its result, as people and models are shown them."""
        try:
            return self._redacted(call, result), redacted(result.details, self._secrets)
        except Exception as error:  # a result of a stranger's class: the call has an output all the same
            text = f"Error: what {call.name} returned cannot be shown: {told(error)}. {_GO_ON}"
            return ToolOutput(call_id=call.id, name=call.name, content=(Text(text=text),), is_error=True), None

    async def by_hand(self, name: str, arguments: Mapping[str, Any], origin: CallOrigin) -> ToolOutput:
        """Run a call that a person makes."""
        self._by_hand += 1
        return await self.call(ToolCall(id=f"hand_{self._by_hand}", name=name, arguments=json.dumps(arguments)), origin)

    async def _result(self, call: ToolCall, arguments: dict[str, Any], origin: CallOrigin) -> ToolResult:
        try:
            return self._presentable(call.name, await self._checked(call, arguments, origin))
        except ToolError as error:
            return ToolResult(content=f"Error: {_text_of(error)}", is_error=True)
        except BaseException as error:  # a tool may raise anything, SystemExit too; the model gets something to act on
            if not is_failure(error):
                raise
            if isinstance(error, asyncio.CancelledError):  # it cancelled itself, or something that it waited for
                return ToolResult(content=INTERRUPTED, is_error=True)
            from traceback import format_exception_only

            why = "".join(format_exception_only(error)).strip()
            return ToolResult(content=f"Error: {call.name} failed unexpectedly: {why}. {_GO_ON}", is_error=True)

    async def _checked(self, call: ToolCall, shown: dict[str, Any], origin: CallOrigin) -> ToolResult:
        """Parse, validate, judge, ask, run. `shown` is filled with the arguments as soon as they are known."""
        try:
            spec = self._parts.toolbox.spec(call.name)
            shown.update(await self._parsed(call, spec))
        finally:
            self._begun(call, shown, origin)
        loaded = await self._parts.toolbox.load(call.name)
        values = loaded.validate(shown)
        await self._permit(spec, {**shown, **values}, origin)
        result = await self._run(loaded, call, values)
        return await self._hooks.after_tool(spec, shown, result)

    async def _parsed(self, call: ToolCall, spec: ToolSpec) -> dict[str, Any]:
        """The arguments of a call. Where they are broken and long, mending them takes too long for the event loop."""
        from ...tools.arguments import parse_arguments  # not needed before the first request is out

        others = self._parts.toolbox.offered
        parse = partial(parse_arguments, call.arguments, spec, complete=call.complete, others=others)
        return await in_thread(parse) if len(call.arguments) > _LONG_ARGUMENTS else parse()

    async def _permit(self, spec: ToolSpec, arguments: Mapping[str, Any], origin: CallOrigin) -> None:
        root = self._parts.workspace.root
        verdict = strongest(self._policy.judge(spec, arguments, root), await self._hooks.before_tool(spec, arguments))
        if isinstance(verdict, Deny):
            raise ToolError(f"{spec.name} was not run: {verdict.reason}.")
        if isinstance(verdict, Ask) and origin != "typed" and not await self._confirmed(spec, arguments, verdict):
            said = "nobody is there to give it (--on-ask deny). Do it another way, or leave it to the user"
            if self._parts.setup.asker is not None:
                said = "the answer was no. Ask what to do instead"
            raise ToolError(f"{spec.name} was not run: {verdict.reason}, and {said}.")

    async def _confirmed(self, spec: ToolSpec, arguments: Mapping[str, Any], verdict: Ask) -> bool:
        if self._parts.setup.asker is None:
            return self._parts.config.on_ask != "deny"
        shown = arguments.get(spec.command) or json.dumps(arguments, ensure_ascii=False)[:500]
        question = f"{spec.name}: {shown}\n({verdict.reason}) Run it?"
        return await self._parts.setup.asker(question, ("yes", "no")) == "yes"

    async def _run(self, loaded: LoadedTool, call: ToolCall, values: Mapping[str, Any]) -> ToolResult:
        limit = self._limit(loaded, values)
        timer = CallTimer(limit)
        context = CallContext(self._parts, self._session, loaded.spec, call.id, timer)
        try:
            async with timer:
                returned = await loaded.call(values, context)
        except TimeoutError:
            if not timer.expired:
                raise
            raise ToolError(
                f"{call.name} took longer than {limit:g} s and was stopped. It may have done part of its work. "
                "Check, then try a smaller step."
            ) from None
        finally:
            context.end()
        if isinstance(returned, ToolResult):
            return returned
        return ToolResult(content="(no output)" if returned in (None, "") else str(returned))

    def _limit(self, loaded: LoadedTool, values: Mapping[str, Any]) -> float:
        timeouts = self._parts.config.timeouts
        declared = loaded.tool.timeout
        if callable(declared):
            return declared(values) + timeouts.command_grace
        return declared or timeouts.tool

    @property
    def _secrets(self) -> Sequence[str]:
        """What is redacted now; tools and providers may learn of more at any time."""
        return self._parts.setup.secrets.known()

    def _redacted(self, call: ToolCall, result: ToolResult) -> ToolOutput:
        from ...util.text import storable

        secrets = self._secrets
        blocks = tuple(
            Text(text=storable(redacted(block.text, secrets))) if isinstance(block, Text) else block
            for block in result.blocks
        )
        output = ToolOutput(call_id=call.id, name=call.name, content=blocks, is_error=result.is_error)
        if result.show or result.undo:
            from .shown import with_extras

            return with_extras(output, result, secrets)
        return output

    def _presentable(self, name: str, result: ToolResult) -> ToolResult:
        presentable = _presentable(name, result)
        if result.show or result.undo:
            from .shown import checked

            config = self._parts.config
            extras = checked(name, result, self._parts.workspace.root, config.limits.shown)
            presentable = presentable.replace(**extras)
        return presentable

    def _audit(self, name: str, arguments: Mapping[str, Any], text: str, elapsed: float) -> None:
        path = self._parts.config.subagent_log
        if path is not None:
            from .log import append

            shown = redacted(", ".join(f"{k}={v}" for k, v in arguments.items()), self._secrets)
            append(path, self._parts.clock.now(), name, shown, text, elapsed)


def _presentable(name: str, result: ToolResult) -> ToolResult:
    """The result as a model can be shown it, and a session file and interfaces can hold it."""
    content: object = result.content
    blocks = content if isinstance(content, (tuple, list)) else [Text(text=content)]  # type: ignore[arg-type]
    if not all(map(_is_content, blocks)):
        raise ToolError(f"{name} returned {content!r:.100}, which is neither text nor image. {_GO_ON}")
    details = result.details
    if details is not None:
        from ...util.plain_data import plain

        try:
            details = plain(dict(details))
        except (TypeError, ValueError) as error:
            raise ToolError(f"{name} returned details that cannot be used: {error}. {_GO_ON}") from None
    return ToolResult(content=tuple(blocks), details=details, is_error=bool(result.is_error))


def _text_of(error: ToolError) -> str:
    """What a tool says of its failure; of a class of its own, which may fail at that too."""
    try:
        return str(error)
    except Exception:
        return told(error)


def _is_content(block: object) -> bool:
    texts: list[object] = []
    if isinstance(block, Image):
        texts = [block.media_type, block.data]
    elif isinstance(block, Text):
        texts = [block.text]
    return bool(texts) and all(isinstance(text, str) for text in texts)


def _output_of(call: ToolCall, task: asyncio.Task[ToolOutput] | None) -> ToolOutput:
    if task is None or not task.done() or task.cancelled() or task.exception() is not None:
        return interrupted(call.id, call.name)
    return task.result()
