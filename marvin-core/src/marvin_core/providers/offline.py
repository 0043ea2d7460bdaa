"""The provider `offline`: no model, only rules that find the tool that a request means, and fixed sentences."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from ..arguments import type_text
from ..errors import NotActed
from ..messages import Message, Usage
from ..routing import Proposal, Route, Router
from ..toolhelp import IN_SHELL, one_line_example, summary, typed_call
from ..tools import ToolSpec
from .base import CallDelta, ClientFactory, Delta, Endpoint, Request, Stop, TextDelta, UsageDelta

NAME = "offline"

NO_MODEL = (
    "No model is configured, so only a request that clearly means one tool is carried out. "
    'To set one: `marvin doctor`, or the page "Set a provider" of the documentation.'
)
CHANGES = "{name} changes or runs something, so it was not called yet. This is the call:"
INCOMPLETE = "{name} can do this. Still to say:"
UNCLEAR = "No tool fits this for certain. The nearest, each with a line that calls it:"
NOTHING_NEAR = "No tool here is near to this. /help lists the tools of a chat, `marvin tools list` all of them."
HOW_TO_CALL = "In a chat, Enter sends such a line; in a shell it is: {line}"
NO_OUTPUT = "The tool gave no text."
"""Every sentence that is said here but for the tools' own."""


class Offline:
    """Answers with the output of a tool, or raises `NotActed`."""

    def __init__(self, model: str) -> None:
        self.name = NAME
        self.model = model
        self.context_window: int | None = None
        self.max_tools: int | None = None
        self._tools: tuple[ToolSpec, ...] = ()
        self._router = Router(())

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The call that the last request means, or the output of the last call.

        Raises:
            NotActed: where no call is certain and harmless enough to be made without being asked for.
        """
        last = request.messages[-1]
        if last.role == "tool":
            yield TextDelta(text=_output(last))
        else:
            yield self._call(request, _last_text(request.messages))
        yield UsageDelta(usage=Usage(cost=0.0))
        yield Stop(reason="stop" if last.role == "tool" else "tool_calls")

    def _call(self, request: Request, text: str) -> CallDelta:
        if request.tools != self._tools:
            self._tools, self._router = request.tools, Router(request.tools)
        route = self._router.route(text)
        if route.action != "act":
            raise not_acted(route)
        (meant,) = route.proposals
        identity = f"offline_{len(request.messages)}"
        arguments = json.dumps(meant.arguments, ensure_ascii=False)
        return CallDelta(key=0, id=identity, name=meant.spec.name, arguments=arguments)

    async def aclose(self) -> None:
        """There is nothing to close."""


def create(endpoint: Endpoint, client: ClientFactory) -> Offline:
    """The provider of an endpoint; the client is never made."""
    return Offline(endpoint.model or NAME)


def not_acted(route: Route) -> NotActed:
    """Why nothing was done about a request, and what to do instead."""
    if route.action == "nothing":
        return _refusal([NOTHING_NEAR])
    if route.action == "offer":
        lines = [UNCLEAR, *(line for offer in route.proposals for line in _offer(offer))]
        return _refusal([*lines, _shell(route.proposals[0].spec.name, _example(route.proposals[0]))])
    (meant,) = route.proposals
    line = typed_call(meant.spec.name, meant.arguments)
    if route.action == "confirm":
        told = [CHANGES.format(name=meant.spec.name), f"  {line}", _shell(meant.spec.name, meant.arguments)]
        return _refusal(told, line)
    told = [INCOMPLETE.format(name=meant.spec.name), *(_needed(name, meant.spec) for name in meant.missing)]
    example = _example(meant)
    told += ["For example:", f"  {typed_call(meant.spec.name, example)}", _shell(meant.spec.name, example)]
    return _refusal(told, line)


def _refusal(lines: list[str], line: str = "") -> NotActed:
    return NotActed("\n".join([*lines, NO_MODEL]), line=line, provider=NAME)


def _offer(offer: Proposal) -> list[str]:
    return [f"  {typed_call(offer.spec.name, _example(offer))}", f"      {summary(offer.spec)}"]


def _needed(name: str, spec: ToolSpec) -> str:
    schema = spec.parameters.get("properties", {}).get(name, {})
    meaning = schema.get("description", "")
    return f"  {name}: {meaning} ({type_text(schema)})" if meaning else f"  {name}: {type_text(schema)}"


def _example(proposal: Proposal) -> dict[str, Any]:
    """The arguments that are known, and examples of the required ones that are not."""
    known = proposal.arguments
    return one_line_example(proposal.spec, known) if proposal.missing else dict(known)


def _shell(name: str, arguments: Mapping[str, Any]) -> str:
    return HOW_TO_CALL.format(line=typed_call(name, arguments, IN_SHELL))


def _output(message: Message) -> str:
    text = "\n".join(output.text for output in message.outputs)
    return text if text.strip() else NO_OUTPUT


def _last_text(messages: tuple[Message, ...]) -> str:
    return next((message.text for message in reversed(messages) if message.role == "user"), "")
