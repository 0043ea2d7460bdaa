"""The tools of a replay, which return recorded results without doing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from ..api.errors import ToolError
from ..api.messages import Image, Text
from ..api.permissions import Question, Reply
from ..api.tools import SEARCH, Tool, ToolResult, ToolSpec
from .cassette import RecordedCall, RecordedPrompt
from .places import Places

if TYPE_CHECKING:
    from ..api.session import Command
    from ..engine.ports import ToolSource

CALL: ContextVar[str] = ContextVar("call", default="")
"""The id of the call in whose task something happens."""
_OURS = "marvin-core"


class _Anything(BaseModel):
    model_config = ConfigDict(extra="allow", protected_namespaces=())


class RecordedResults:
    """The `ToolSource` of a replay. With `real` the tools do their work, as far as they can in a replay."""

    def __init__(self, places: Places, behind: ToolSource | None, *, real: bool) -> None:
        self._places = places
        self._behind = behind
        self._real = real
        self._prompt: RecordedPrompt | None = None
        self.never: frozenset[str] = frozenset()
        """Tools that do nothing in any replay: they start sub-agents, ask somebody, or are not there."""

    def begin(self, prompt: RecordedPrompt) -> None:
        """Go on with the results of this prompt."""
        self._prompt = prompt

    async def ready(self) -> None:
        """As where tools come from otherwise, if they are real."""
        if self._real and self._behind is not None:
            await self._behind.ready()

    def commands(self, own: Mapping[str, Command]) -> Mapping[str, Command]:
        """The session's own: commands are not run again."""
        return own

    def resources(self) -> Mapping[str, str]:
        """Nothing: what was attached is in the recorded requests."""
        return {}

    def find(self, spec: ToolSpec) -> Tool | None:
        """What stands in for a tool; None for one that does its work itself."""
        if works_on_session(spec) or (self._real and spec.name not in self.never):
            return self._behind.find(spec) if self._behind is not None else None

        async def stand_in(arguments: Any) -> ToolResult:
            return self.result(spec.name)

        stand_in.__name__ = spec.name
        stand_in.__doc__ = spec.description or spec.name
        stand_in.__annotations__ = {"arguments": _Anything, "return": ToolResult}
        return Tool(stand_in, access=tuple(spec.access), parallel=spec.parallel)

    def result(self, name: str) -> ToolResult:
        """The recorded result of the call that runs. Raises `ToolError` where there is none."""
        calls = self._prompt.calls if self._prompt is not None else {}
        call = calls.get(CALL.get())
        if call is None or call.result is None or call.name != name:
            raise ToolError(f"The cassette has no result of this call of {name}.")
        return _result(call, self._places)


def works_on_session(spec: ToolSpec) -> bool:
    """Whether a tool acts on the session alone, so that it does so in every replay."""
    return spec.source == _OURS and (spec.name == SEARCH or spec.access == {"state"})


def _result(call: RecordedCall, places: Places) -> ToolResult:
    result, extras = call.result or {}, call.extras
    text = places.put_back(str(result.get("text", "")))
    images = [image for image in map(_image, _list(extras, "images")) if image is not None]
    reveals = [name for name in _list(extras, "reveals") if isinstance(name, str)]
    lasting = extras.get("lasting", "")
    return ToolResult(
        content=(Text(text=text), *images) if images else text,
        is_error=result.get("is_error") is True,
        lasting=places.put_back(lasting) if isinstance(lasting, str) else "",
        reveals=tuple(reveals),
    )


def _image(value: Any) -> Image | None:
    data, kind = (value.get("data"), value.get("media_type")) if isinstance(value, Mapping) else (None, None)
    return Image(media_type=kind, data=data) if isinstance(data, str) and isinstance(kind, str) else None


def _list(extras: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = extras.get(name)
    return value if isinstance(value, list) else ()


async def let_all_run(question: Question, /) -> Sequence[Reply]:
    """Say yes: for a replay in which no tool does anything."""
    return [Reply(says="once")] * question.answers


async def answer_nothing(question: str, choices: Sequence[str], /) -> str:
    """Nobody is there: what was answered is part of the recorded results."""
    raise ToolError("Nobody can be asked in a replay.")
