"""Runs one tool call, from its raw arguments to its output. Never raises; the output always says how to continue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ...api.errors import ToolError
from ...api.events import CallOrigin, ToolExecutionEnd, ToolExecutionStart
from ...api.messages import Call, Image, Text, ToolCall, ToolOutput
from ...api.session import RunningCall
from ...api.tool_context import SessionView
from ...api.tools import ToolResult, ToolSpec
from ...conversation.compactor import Compactor
from ...conversation.pairing import INTERRUPTED
from ...guard.gates.calls import CallGates
from ...guard.permissions.modes import StandingPermissions
from ...guard.sandbox.leaving import without
from ...tools.toolbox import LoadedTool
from ...util.failures import is_failure, told
from ...util.threads import in_thread, side_by_side
from ..hook_runner import HookRunner
from ..parts import SessionParts
from .context import CallContext, ContextOfCall
from .leaving import asked, held_back, noted
from .permission import Pending, Permission
from .results import GO_ON, as_result, as_written, failed, output_of, presentable, text_of
from .timer import CallTimer, limit_of

if TYPE_CHECKING:
    from ...guard.spellings import Spellings
    from ..instructions.nested import NestedInstructions
    from .commands import CommandSpans
    from .log import CallLog
    from .recording import Recorder

_LONG_ARGUMENTS = 20_000
"""The length in characters from which arguments are parsed outside of the event loop: repairing broken ones is slow."""


class Dispatcher:
    """Runs the calls of one session. `session` is its description for tools."""

    def __init__(
        self,
        parts: SessionParts,
        hooks: HookRunner,
        compactor: Compactor,
        session: SessionView,
        standing: StandingPermissions,
    ) -> None:
        self._parts = parts
        self._hooks = hooks
        self._compactor = compactor
        self._session = session
        self._gates = CallGates(parts.config, parts.state)
        self.permission = Permission(parts, hooks, session, standing)
        self._running: dict[str, asyncio.Task[ToolOutput]] = {}
        self._by_hand = 0

    async def batch(self, calls: Sequence[ToolCall], outputs: list[ToolOutput], origin: CallOrigin = "model") -> None:
        """Run the calls of one answer and fill `outputs` with exactly one output each, in order.

        Adjacent calls run in parallel if they only read, or if their tool allows it, up to the limit in the
        configuration. Every other call runs alone. After a cancellation, unfinished calls get the output "interrupted",
        and the cancellation propagates.
        """
        beside = asyncio.Semaphore(self._parts.config.limits.parallel_calls)
        try:
            if len(calls) > 1 and self._parts.setup.asker is not None:
                await self._ask_together(calls, origin)
            for group in self._groups(calls):
                tasks, over = side_by_side([partial(self._in_turn, call, origin, beside) for call in group])
                self._running.update({call.id: task for call, task in zip(group, tasks, strict=True)})
                await over
                outputs.extend(output_of(call, task) for call, task in zip(group, tasks, strict=True))
        except asyncio.CancelledError:
            await self._cancel_running()
            raise
        finally:  # a second cancellation does not wait for calls that are slow to stop, but each call gets its output
            outputs.extend(output_of(call, self._running.get(call.id)) for call in calls[len(outputs) :])
            self._running.clear()
            self._fit_all(outputs)

    async def _ask_together(self, calls: Sequence[ToolCall], origin: CallOrigin) -> None:
        """Ask about the calls of an answer in one question; errors of a call are reported in its turn."""
        understood = []
        try:
            for call in calls:
                with suppress(ToolError):
                    spec = self._parts.toolbox.spec(call.name)
                    if self.permission.may_ask(spec):
                        loaded = await self._parts.toolbox.load(call.name)
                        given = loaded.named(await self._parsed(call, spec))
                        understood.append(await self._pending(call, loaded, given, origin))
            await self.permission.ask_together(understood)
        except BaseException as error:  # a failure of a third-party tool or interface: each call is asked about alone
            if not is_failure(error) or isinstance(error, asyncio.CancelledError):
                raise

    def cancel(self, call_id: str) -> bool:
        """Cancel one running call; the others of its round continue. False if it is not running."""
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
            return self._parts.toolbox.spec(call.name).runs_beside(lambda: as_written(call))
        except ToolError:
            return True  # the output will only say that there is no such tool

    def _fit_all(self, outputs: list[ToolOutput]) -> None:
        added = 0
        for index, output in enumerate(outputs):
            blocks = tuple([self._fitting(block, added) for block in output.content])
            if blocks != output.content:
                outputs[index] = output.replace(content=blocks)
            added += len(outputs[index].text)

    def _fitting(self, block: Text | Image, added: int) -> Text | Image:
        if not isinstance(block, Text):
            return block
        text = self._compactor.fit(block.text, added)
        return block if text is block.text else Text(text=text)

    async def _in_turn(self, call: ToolCall, origin: CallOrigin, beside: asyncio.Semaphore) -> ToolOutput:
        async with beside:
            return await self.call(call, origin)

    async def call(self, call: ToolCall, origin: CallOrigin = "model") -> ToolOutput:
        """Run one call; `origin` is its caller."""
        # Those of a model were searched when its answer came, and files are looked at after each call.
        looked = await self._parts.redactor.prepare(call.arguments, look=origin != "model")
        # No tool stores or sends a secret.
        clean = self._parts.redactor.text(call.arguments, looked)
        call = call if clean == call.arguments else call.replace(arguments=clean)
        started = self._parts.clock.monotonic()
        arguments: dict[str, Any] = {}
        result, of_result = ToolResult(content=INTERRUPTED, is_error=True), None
        try:
            result, of_result = await self._result(call, arguments, origin, looked)
        finally:  # a cancelled call ends, too
            self._parts.progress.calls.pop(call.id, None)
            output, details = self._shown(call, result, of_result)
            output = self.permission.marked(output)
            text = output.text
            elapsed = self._parts.clock.monotonic() - started - self.permission.waited(call.id)
            self._parts.bus.emit(
                ToolExecutionEnd(
                    call_id=call.id,
                    name=call.name,
                    text=text,
                    is_error=output.is_error,
                    elapsed=elapsed,
                    origin=origin,
                    details=details,
                    show=output.for_people,
                    origins=output.origins,
                    asked=output.asked,
                )
            )
            self._audit(call, arguments, text, elapsed)
        return output

    def _begun(
        self, call: ToolCall, arguments: Mapping[str, Any], origin: CallOrigin, looked: Spellings | None
    ) -> None:
        shown = self._parts.redactor.value(arguments, looked)
        self._parts.progress.calls[call.id] = RunningCall(
            call_id=call.id, name=call.name, arguments=shown, since=self._parts.clock.now(), origin=origin
        )
        self._parts.bus.emit(ToolExecutionStart(call_id=call.id, name=call.name, arguments=shown, origin=origin))

    def _shown(
        self, call: ToolCall, result: ToolResult, looked: Spellings | None
    ) -> tuple[ToolOutput, Mapping[str, Any] | None]:
        """The output of a call, and the details of its result, as people and models see them."""
        try:
            return self._redacted(call, result, looked), self._parts.redactor.value(result.details, looked)
        except Exception as error:  # the result has a third-party class: the call must have an output anyway
            text = f"Error: what {call.name} returned cannot be shown: {told(error)}. {GO_ON}"
            return ToolOutput(call_id=call.id, name=call.name, content=(Text(text=text),), is_error=True), None

    async def by_hand(self, name: str, arguments: Mapping[str, Any], origin: CallOrigin) -> ToolOutput:
        """Run a call that a person makes."""
        self._by_hand += 1
        return await self.call(ToolCall(id=f"hand_{self._by_hand}", name=name, arguments=json.dumps(arguments)), origin)

    async def _result(
        self, call: ToolCall, shown: dict[str, Any], origin: CallOrigin, looked: Spellings
    ) -> tuple[ToolResult, Spellings | None]:
        """The result, and the secrets that were known when it came."""
        try:
            result = self._presentable(call.name, await self._checked(call, shown, origin, looked))
            return result, await self._parts.redactor.prepare(result.content, result.details)
        except ToolError as error:
            return failed(error), None
        except BaseException as error:  # a tool may raise anything, even SystemExit; the model gets advice
            if not is_failure(error):
                raise
            if isinstance(error, asyncio.CancelledError):  # it cancelled itself, or a task for which it waited did
                return ToolResult(content=INTERRUPTED, is_error=True), None
            from traceback import format_exception_only

            why = "".join(format_exception_only(error)).strip()
            return ToolResult(content=f"Error: {call.name} failed unexpectedly: {why}. {GO_ON}", is_error=True), None

    async def _checked(self, call: ToolCall, shown: dict[str, Any], origin: CallOrigin, by: Spellings) -> ToolResult:
        """Parse, validate, judge, ask, run. `shown` receives the arguments, redacted by `by` before."""
        try:
            spec = self._parts.toolbox.spec(call.name)
            shown.update(await self._parsed(call, spec))
            if len(call.arguments) > _LONG_ARGUMENTS:  # time has passed
                by = await self._parts.redactor.prepare(shown)
        finally:
            self._begun(call, shown, origin, by)
        loaded = await self._parts.toolbox.load(call.name)
        if origin == "model":
            self._parts.carried.reveal([call.name])
        given = loaded.named(shown)
        shown.clear()
        shown.update(given)  # the judges of a call know the parameters of the tool, and no other names
        self._gates.check(spec, shown, self._parts.toolbox.offered)
        pending = await self.permission.permit(await self._pending(call, loaded, shown, origin))
        shown.update(pending.given)
        result = await self._run(pending, shown)
        return result.replace(content=(Text(text=pending.change), *result.blocks)) if pending.replaced else result

    async def _pending(
        self, call: ToolCall, loaded: LoadedTool, arguments: Mapping[str, Any], origin: CallOrigin
    ) -> Pending:
        given = without(loaded.spec, arguments)
        values = loaded.validate(given)
        leaving = await asked(self._parts, loaded.spec, arguments)
        return Pending(call=call, loaded=loaded, given=dict(given), values=values, origin=origin, leaving=leaving)

    async def _parsed(self, call: ToolCall, spec: ToolSpec) -> dict[str, Any]:
        """The arguments of a call. Repairing long broken ones would block the event loop."""
        from ...tools.arguments import parse_arguments  # not needed before the first request is sent

        others = self._parts.toolbox.offered
        parse = partial(parse_arguments, call.arguments, spec, complete=call.complete, others=others)
        return await in_thread(parse) if len(call.arguments) > _LONG_ARGUMENTS else parse()

    async def _run(self, pending: Pending, shown: Mapping[str, Any]) -> ToolResult:
        """The result, after the hooks. What these change after a call, as a formatter does, belongs to the call."""
        spec, origin = pending.loaded.spec, pending.origin
        timer = CallTimer(limit_of(pending.loaded.tool, pending.values, self._parts.config.timeouts))
        of_call = ContextOfCall(id=pending.call.id, origin=origin, timer=timer, outside=pending.outside)
        context = CallContext(self._parts, self._session, spec, of_call)
        await context.fetch_secrets()
        await self._spans.before(spec, pending.values, origin)
        try:
            result, undo = await self._ran(pending, context, timer)
            try:
                result = await self._with_instructions(result, context) if origin == "model" else result
                if not result.is_error:
                    self._gates.passed(spec, shown)
                return await self._hooks.after_tool(spec, shown, result)
            finally:
                if (context.changes.any or undo is not None) and origin != "undo":
                    await self._recorder.keep(spec, pending.named, undo, context.changes)
        finally:
            self._spans.ended()
            if origin in ("person", "typed", "trial"):  # no prompt ends afterwards
                await self._parts.progress.settled()

    async def _ran(self, pending: Pending, context: CallContext, timer: CallTimer) -> tuple[ToolResult, Call | None]:
        """The result of the tool, and the call that undoes it."""
        loaded, name = pending.loaded, pending.call.name
        try:
            returned = as_result(await self._returned(loaded, pending.values, context, timer))
            self.permission.told(pending, returned.origins)
            result = noted(self._parts, loaded.spec, returned, context.processes.held_back)
            if result.is_plain:
                return result, None
            from .shown import revealed_by, undo_of

            undo = undo_of(name, result)
            self._parts.carried.reveal(revealed_by(name, result))
            return result, undo
        except BaseException as error:
            if timer.expired or isinstance(error, asyncio.CancelledError):
                context.changes.stop()
            if context.changes.any and pending.origin != "undo":  # its changes before it failed or was cancelled
                self._recorder.keep_now(loaded.spec, context.changes)
            raise
        finally:
            self.permission.ran(pending, timer.stood)

    async def _with_instructions(self, result: ToolResult, context: CallContext) -> ToolResult:
        """The result, with the instructions of subfolders of the working directory that the call reached first."""
        used = [path for path in context.changes.used(self._parts.workspace.root) if "/" in path]
        if not used or result.is_error or not isinstance(result.content, (str, tuple)):
            return result
        return await self._nested.added(result, used)

    async def _returned(
        self, loaded: LoadedTool, values: Mapping[str, Any], context: CallContext, timer: CallTimer
    ) -> object:
        try:
            async with timer:
                return await loaded.call(values, context)
        except TimeoutError:
            if not timer.expired:
                raise
            raise ToolError(
                f"{loaded.spec.name} took longer than {timer.limit:g} s and was stopped. It may have done part of its "
                "work. Check, then try a smaller step."
            ) from None
        except ToolError as error:
            if not context.processes.held_back:
                raise
            said = held_back(self._parts, loaded.spec, context.processes.held_back)
            raise ToolError(f"{text_of(error)}\n{said}") from error
        finally:
            context.end()

    @cached_property
    def _recorder(self) -> Recorder:
        from .recording import Recorder

        return Recorder(self._parts)

    @cached_property
    def _log(self) -> CallLog | None:
        path = self._parts.config.subagent_log
        if path is None:
            return None
        from .log import CallLog

        return CallLog(path, self._parts.bus.warn)

    @cached_property
    def _spans(self) -> CommandSpans:
        from .commands import CommandSpans

        return CommandSpans(self._parts, self._recorder)

    @cached_property
    def _nested(self) -> NestedInstructions:
        from ..instructions.nested import NestedInstructions

        return NestedInstructions(self._parts)

    def _redacted(self, call: ToolCall, result: ToolResult, looked: Spellings | None) -> ToolOutput:
        from ...util.text import storable

        redactor = self._parts.redactor
        given = result.blocks
        texts = iter(redactor.texts([block.text for block in given if isinstance(block, Text)], looked))
        blocks = tuple(
            [Text(text=storable(next(texts))) if isinstance(block, Text) else redactor.image(block) for block in given]
        )
        output = ToolOutput(call_id=call.id, name=call.name, content=blocks, is_error=result.is_error)
        if not result.is_plain:
            from .shown import with_extras

            return with_extras(output, result, redactor)
        return output

    def _presentable(self, name: str, result: ToolResult) -> ToolResult:
        made = presentable(name, result)
        if result.is_plain:
            return made
        from .shown import checked

        return made.replace(**checked(name, result, self._parts.workspace.root, self._parts.config.limits.shown))

    def _audit(self, call: ToolCall, arguments: Mapping[str, Any], text: str, elapsed: float) -> None:
        if self._log is None:
            return
        from .log import arguments_text, beginning

        kept = self._parts.kept.text  # a log stays, as a session file does
        shown = kept(arguments_text(arguments, call.arguments))
        self._log.add(self._parts.clock.now(), kept(call.name), shown, kept(beginning(text)), elapsed)
