"""What a tool is: the `@tool` decorator, its declarations, its results, and the context it receives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from .errors import ToolError
from .messages import Image, Text
from .record import Record

if TYPE_CHECKING:
    pass

Access: TypeAlias = Literal["read", "net", "write", "exec", "state"]
Mode: TypeAlias = Literal["chat", "coding"]

READING: frozenset[Access] = frozenset({"read", "net"})
CHANGING: frozenset[Access] = frozenset({"write", "exec"})
_NAME_LIMIT = 64
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")

T = TypeVar("T")


class Call(Record):
    """A call of a tool by name, as data: an undo, an example, a phrase."""

    name: str
    arguments: Mapping[str, Any]


class ToolResult(Record):
    """What a tool returns when a plain string does not say it all.

    `content` goes to the model: a string, or text and image blocks. `details` goes to the interface
    only (`{"diff": ...}`). `undo` is the call that takes this one back.
    """

    content: str | tuple[Text | Image, ...]
    details: Mapping[str, Any] | None = None
    is_error: bool = False
    undo: Call | None = None

    @property
    def blocks(self) -> tuple[Text | Image, ...]:
        """The content as blocks."""
        return (Text(text=self.content),) if isinstance(self.content, str) else self.content


ToolFunction: TypeAlias = Callable[..., Awaitable["str | ToolResult"]]
Timeout: TypeAlias = "float | Callable[[Mapping[str, Any]], float] | None"


class ToolSpec(Record):
    """Everything about a tool that is known without running or importing it.

    `parameters` is its JSON schema in the normal form. `timeout` is in seconds; None is the
    configured default, and `own_timeout` says that it depends on the arguments. `source` is the
    distribution that brings it, `module` where its function is. `phrases` are its entries of phrases.toml.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    access: frozenset[Access]
    group: str = ""
    confirm: bool = False
    timeout: float | None = None
    own_timeout: bool = False
    requires: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    source: str = ""
    module: str = ""
    phrases: tuple[Mapping[str, Any], ...] = ()

    @property
    def reads_only(self) -> bool:
        """Whether the tool changes nothing, so that calls of it may run side by side."""
        return self.access <= READING

    @property
    def changes(self) -> bool:
        """Whether the tool writes or runs something."""
        return bool(self.access & CHANGING)


class Tool:
    """A decorated function with its declarations. Calling it calls the function."""

    def __init__(
        self,
        function: ToolFunction,
        *,
        access: Collection[Access] = ("write", "exec"),
        confirm: bool = False,
        timeout: Timeout = None,
        group: str = "",
        requires: Collection[str] = (),
        labels: Collection[str] = (),
        settings: Collection[str] = (),
    ) -> None:
        name = function.__name__
        if not _NAME_CHARACTERS.issuperset(name) or len(name) > _NAME_LIMIT:
            raise ToolError(f"{name!r} cannot name a tool: use up to 64 letters, digits, '_' and '-'.")
        if not (function.__doc__ or "").strip():
            raise ToolError(f"The tool {name} needs a docstring: it is what the model reads.")
        unknown = set(access) - {"read", "net", "write", "exec", "state"}
        if unknown or not access:
            raise ToolError(f"The tool {name} declares access {sorted(access)}; use read, net, write, exec, state.")
        for need in requires:
            if need.partition(":")[0] not in ("env", "program", "extra") or not need.partition(":")[2]:
                raise ToolError(f"The tool {name} requires {need!r}; use env:NAME, program:NAME or extra:NAME.")
        self.function = function
        self.name = name
        self.access: frozenset[Access] = frozenset(access)
        self.confirm = confirm
        self.timeout = timeout
        self.group = group
        self.requires = tuple(requires)
        self.labels = tuple(labels)
        self.settings = tuple(settings)
        self.__doc__ = function.__doc__
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Awaitable[str | ToolResult]:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"


class ToolGroup(Record):
    """Tools that share a module, imported when one of them is first called.

    `module` is imported by its full name; `tools` are the names it defines. `phrases` is the file, as in
    "phrases.toml", in the package of `module`, with what people say and the calls that it means.
    """

    name: str
    module: str
    tools: tuple[str, ...]
    phrases: str = ""


@overload
def tool(function: ToolFunction, /) -> Tool: ...
@overload
def tool(
    *,
    access: Collection[Access] = ("write", "exec"),
    confirm: bool = False,
    timeout: Timeout = None,
    group: str = "",
    requires: Collection[str] = (),
    labels: Collection[str] = (),
    settings: Collection[str] = (),
) -> Callable[[ToolFunction], Tool]: ...
def tool(function: ToolFunction | None = None, /, **declarations: Any) -> Tool | Callable[[ToolFunction], Tool]:
    """Make an async function a tool.

    The docstring is the description that the model reads. In `Annotated`, a bare string describes
    the parameter and everything else goes to pydantic. A parameter annotated `ToolContext` receives
    the context and stays out of the schema; a single parameter that is a pydantic model is the
    schema itself. The function returns a string or a `ToolResult`, and fails by raising `ToolError`.

    Args:
        access: what the tool touches: read, net, write, exec, state. Undeclared counts as write and exec.
        confirm: ask the user before each call, where there is a user.
        timeout: seconds, or a function from the arguments to seconds.
        group: the group that tool sets name.
        requires: `env:NAME`, `program:NAME`, `extra:NAME`; the tool is not offered where one is missing.
        labels: where its results come from.
        settings: the names that it may ask `secret()` and `setting()` for.
    """
    if function is not None:
        return Tool(function)
    return lambda decorated: Tool(decorated, **declarations)
