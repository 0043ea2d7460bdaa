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
"""The id of the call whose task is running."""
_OURS = "marvin-core"


class _Anything(BaseModel):
    model_config = ConfigDict(extra="allow", protected_namespaces=())


class RecordedResults:
    """The `ToolSource` of a replay. With `real`, tools do their work, as far as a replay permits."""

    def __init__(self, places: Places, behind: ToolSource | None, *, real: bool) -> None:
        self._places = places
        self._behind = behind
        self._real = real
        self._prompt: RecordedPrompt | None = None
        self.never: frozenset[str] = frozenset()
        """Tools that never run in a replay: they start sub-agents, ask a person, or are not available."""

    def begin(self, prompt: RecordedPrompt) -> None:
        """Continue with the results of this prompt."""
        self._prompt = prompt

    async def ready(self) -> None:
        """The tools of the wrapped source, if they are real."""
        if self._real and self._behind is not None:
            await self._behind.ready()

    def commands(self, own: Mapping[str, Command]) -> Mapping[str, Command]:
        """The commands of the session itself, which do not run again."""
        return own

    def resources(self) -> Mapping[str, str]:
        """Always empty: the recorded requests contain the attachments."""
        return {}

    def find(self, spec: ToolSpec) -> Tool | None:
        """The replacement for a tool; None for one that does its own work."""
        if works_on_session(spec) or (self._real and spec.name not in self.never):
            return self._behind.find(spec) if self._behind is not None else None

        async def stand_in(arguments: Any) -> ToolResult:
            return self.result(spec.name)

        stand_in.__name__ = spec.name
        stand_in.__doc__ = spec.description or spec.name
        stand_in.__annotations__ = {"arguments": _Anything, "return": ToolResult}
        return Tool(stand_in, access=tuple(spec.access), parallel=spec.parallel)

    def result(self, name: str) -> ToolResult:
        """The recorded result of the running call. Raises `ToolError` if there is none."""
        calls = self._prompt.calls if self._prompt is not None else {}
        call = calls.get(CALL.get())
        if call is None or call.result is None or call.name != name:
            raise ToolError(f"The cassette has no result of this call of {name}.")
        return _result(call, self._places)


def works_on_session(spec: ToolSpec) -> bool:
    """Whether a tool affects only the session, so that it runs in every replay."""
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
    """Always approves: for a replay in which tools do nothing."""
    return [Reply(says="once")] * question.answers


async def answer_nothing(question: str, choices: Sequence[str], /) -> str:
    """Never answers: the recorded results contain the effect of the answers."""
    raise ToolError("Nobody can be asked in a replay.")
