"""The provider `offline`: it has no model, only rules that find the tool for a request, and fixed sentences."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

from ..api.errors import NotActed
from ..api.messages import Message, Usage
from ..api.providers import CallDelta, ClientFactory, Delta, Endpoint, Request, Stop, TextDelta, UsageDelta
from ..api.tools import ToolSpec
from ..config.program import command_name
from ..tools.help import in_shell, summary, typed_call, with_typed_calls, with_typed_note
from ..tools.routing.router import Proposal, Route, Router
from ..util.schemas.texts import type_text

NAME = "offline"

NO_MODEL = (
    "No model is configured. Without one only requests that clearly name one tool are run. To see how to add one, "
    "type /model in a chat, or run `{marvin} providers`."
)
STILL_NO_MODEL = "(No model is configured: /model)"
HOW_TO = (
    "Marvin needs a model: from a service, or from a server on this machine. None is set up yet. Either set the key "
    "of a service before you start Marvin, as in `export GROQ_API_KEY=...`, or start a server, such as `ollama "
    "serve`. For all options, type /model in a chat, or run `{marvin} providers`."
)
CHANGES = "{name} changes or runs something, so it was not called. This is the call:"
INCOMPLETE = "{name} can do this. It still needs:"
UNCLEAR = "No tool clearly matches this request. The closest ones, each with a line that calls it:"
OR_A_TOOL = "If you meant a tool: the closest ones, each with a line that calls it:"
NOTHING_NEAR = "No tool matches this request. To list the tools, type /help in a chat, or run `{marvin} tools list`."
UNSAID = "..."
"""The placeholder for a value that the request does not contain."""
NO_OUTPUT = "The tool returned no text."
"""All of its sentences, except for texts of tools; {marvin} is the command that starts Marvin."""


_LONGEST_QUESTION = 200
_ABOUT_MODELS = re.compile(
    r"\b(api.?keys?|models?|llms?|providers?|anthropic|claude|copilot|(chat)?gpt|gemini|groq|ollama|openai"
    r"|openrouter)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\W*(?:what|which|how|who|where|do|are|is|can)\b.*\b(?:i|you|marvin|mode)\b", re.IGNORECASE)
_SETTING_UP = re.compile(
    r"\b(add|change|choose|configur\w+|connect|enter|get|how|install|log ?in|need|pick|put|set|setup|switch|use|which"
    r"|where)\b",
    re.IGNORECASE,
)


class Offline:
    """Answers with the output of a tool, or raises `NotActed`."""

    def __init__(self, model: str) -> None:
        self.name = NAME
        self.model = model
        self.context_window: int | None = None
        self.max_tools: int | None = None
        self._tools: tuple[ToolSpec, ...] = ()
        self._router = Router(())
        self._refused = False

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The call for the last request, or the output of the last call.

        Raises:
            NotActed: no call is certain and harmless enough to be made without confirmation.
        """
        last = request.messages[-1]
        given = TextDelta(text=_output(last)) if last.role == "tool" else self._reply(request)
        yield given
        yield UsageDelta(usage=Usage(cost=0.0))
        yield Stop(reason="tool_calls" if isinstance(given, CallDelta) else "stop")

    def _reply(self, request: Request) -> CallDelta | TextDelta:
        """The call for a request, or an answer from the documentation if it is a question about Marvin."""
        text = _last_text(request.messages)
        tools = (*request.tools, *request.waiting)
        if tools != self._tools:
            self._tools, self._router = tools, Router(tools)
        route = self._router.route(text)
        is_sure = route.action in ("act", "confirm", "ask")
        if not is_sure and _asks_for_a_model(text):
            raise how_to_have_one(text)
        passage = about_marvin(text, is_known=is_sure)
        if passage:
            below = ["\n".join([OR_A_TOOL, *_offers(route)])] if route.proposals else []
            return TextDelta(text="\n\n".join([passage, *below]))
        if route.action != "act":
            again, self._refused = self._refused, True
            raise not_acted(route, STILL_NO_MODEL if again else NO_MODEL)
        (meant,) = route.proposals
        identity = f"offline_{len(request.messages)}"
        arguments = json.dumps(meant.arguments, ensure_ascii=False)
        return CallDelta(key=0, id=identity, name=meant.spec.name, arguments=arguments)

    async def aclose(self) -> None:
        """There is nothing to close."""


def create(endpoint: Endpoint, client: ClientFactory) -> Offline:
    """The provider of an endpoint; no HTTP client is created."""
    return Offline(endpoint.model or NAME)


def about_marvin(text: str, *, is_known: bool = False) -> str:
    """The answer of the documentation to a question about Marvin, with the name of the page; empty for any other
    text."""
    if is_known and not _ASKS.match(text):  # what means a tool, and is no question, need not wait for the passages
        return ""
    # Reading the passages takes a tenth of a second, once.
    from ..tools.handbook import handbook, told

    passage = handbook().answer(text, is_known=is_known)
    return told(passage) if passage is not None else ""


def how_to_have_one(text: str = "") -> NotActed:
    """The answer to a question about having a model."""
    typed = " ".join([command_name(), "providers"])
    answer = "\n\n".join(filter(None, [HOW_TO.format(marvin=command_name()), about_marvin(text)]))
    return NotActed(answer, line="/model", shell=typed, provider=NAME)


def not_acted(route: Route, no_model: str) -> NotActed:
    """Why nothing was done for a request, and what to do instead; it ends with the fact that there is no model."""
    no_model = no_model.format(marvin=command_name())
    if route.action == "nothing":
        return NotActed(f"{NOTHING_NEAR.format(marvin=command_name())}\n{no_model}", provider=NAME)
    meant = route.proposals[0]
    name, whole = meant.spec.name, _to_complete(meant)
    line = typed_call(name, meant.arguments)
    if route.action == "offer":
        told, line = [UNCLEAR, *_offers(route)], ""
    elif route.action == "confirm":
        told = [CHANGES.format(name=name), f"  {line}"]
    else:
        told = [INCOMPLETE.format(name=name), *(_needed(one, meant.spec) for one in meant.missing)]
        told += ["The line is then:", f"  {typed_call(name, whole)}"]
    text = "\n".join([*told, no_model])
    return NotActed(text, line=line, shell=typed_call(name, whole, in_shell()), provider=NAME)


def _offers(route: Route) -> list[str]:
    return [row for offer in route.proposals for row in _offer(offer)]


def _offer(offer: Proposal) -> list[str]:
    return [f"  {typed_call(offer.spec.name, _to_complete(offer))}", f"      {summary(offer.spec)}"]


def _needed(name: str, spec: ToolSpec) -> str:
    schema = spec.parameters.get("properties", {}).get(name, {})
    meaning = schema.get("description", "")
    return f"  {name}: {meaning} ({type_text(schema)})" if meaning else f"  {name}: {type_text(schema)}"


def _to_complete(proposal: Proposal) -> dict[str, Any]:
    """The arguments in the request, with a placeholder for each missing required one: values are never made up."""
    return {**proposal.arguments, **dict.fromkeys(proposal.missing, UNSAID)}


def _output(message: Message) -> str:
    texts = (
        with_typed_calls(output.text) if output.is_error else with_typed_note(output.text) for output in message.outputs
    )
    text = "\n".join(texts)
    return text if text.strip() else NO_OUTPUT


def _asks_for_a_model(text: str) -> bool:
    """Whether a request is about having a model, or about its key."""
    said = text[:_LONGEST_QUESTION]
    return bool(_ABOUT_MODELS.search(said) and _SETTING_UP.search(said))


def _last_text(messages: tuple[Message, ...]) -> str:
    return next((message.text for message in reversed(messages) if message.role == "user"), "")
