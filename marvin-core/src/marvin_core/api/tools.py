"""What a tool is: the `@tool` decorator, its declarations, and its results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, get_args, overload

from .errors import ToolError
from .messages import Call, Image, Shown, Text
from .record import Record

Access: TypeAlias = Literal["read", "net", "write", "exec", "state"]
Mode: TypeAlias = Literal["chat", "coding"]
ToolSet: TypeAlias = Literal["coding", "surf", "lockin"]
"""The sets that a tool can join."""
Gate: TypeAlias = Literal["readonly", "writable-files", "ticket"]
"""What keeps tools from a sub-agent that may only read, or only write some files, or has no ticket yet."""
Sign: TypeAlias = Literal["", "!", "@"]
"""What a line typed in a chat begins with, where a tool takes the text behind it."""

SEARCH = "tool_search"
"""The tool that finds those that wait. The core brings it, and nobody else can have the name."""
LONGEST_DESCRIPTION = 4_000
"""Characters of a tool's description that a model is told at most: what a stranger writes may be of any length."""
READING: frozenset[Access] = frozenset({"read", "net"})
CHANGING: frozenset[Access] = frozenset({"write", "exec"})
_NAME_LIMIT = 64
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def is_tool_name(name: str) -> bool:
    """Whether a tool can have a name: every service takes up to 64 letters, digits, `_` and `-`."""
    return 0 < len(name) <= _NAME_LIMIT and _NAME_CHARACTERS.issuperset(name)


class ToolResult(Record):
    """What a tool returns when a plain string does not say it all.

    `content` goes to the model: a string, or text and image blocks. `show` goes to people: tables, pictures and links,
    which every interface draws as well as it can. `details` is data for interfaces that know it (`{"diff": ...}`), as
    JSON knows it: tuples arrive as lists. `undo` is the call that takes this one back; it is kept in the session file.
    `lasting` is what the model should still know once this call was summed up: it then stands in the summary word for
    word, as long as no later call of the tool succeeded. At most 8,000 characters of it are kept. `reveals` are names
    of tools that wait until a model looks for them: requests carry them from now on. `origins` says where this very
    result comes from, beside what is known of the tool: web, repository, private or secret (`labels:` in config.yaml).
    """

    content: str | tuple[Text | Image, ...]
    details: Mapping[str, Any] | None = None
    is_error: bool = False
    undo: Call | None = None
    show: Sequence[Shown] = ()
    lasting: str = ""
    reveals: Sequence[str] = ()
    origins: Sequence[str] = ()

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing beside content and details."""
        return not (self.show or self.undo or self.lasting or self.reveals)

    @property
    def blocks(self) -> tuple[Text | Image, ...]:
        """The content as blocks."""
        return (Text(text=self.content),) if isinstance(self.content, str) else self.content


ToolTimeout: TypeAlias = "float | Callable[[Mapping[str, Any]], float] | None"
"""Seconds, or a function from the arguments of a call to seconds; None for the usual time."""
ToolReturn: TypeAlias = "Awaitable[str | ToolResult] | str | ToolResult"
"""What the function of a tool gives when it is called."""

if TYPE_CHECKING:
    # With defaults, so that `Tool` alone is a tool of any signature; Python itself has them from 3.13 on.
    import typing_extensions

    P = typing_extensions.ParamSpec("P", default=...)
    R = typing_extensions.TypeVar("R", bound=ToolReturn, default=ToolReturn, covariant=True)
else:
    P, R = ParamSpec("P"), TypeVar("R")


class ToolSpec(Record):
    """Everything about a tool that is known without running or importing it.

    `parameters` is its JSON schema in the normal form. `timeout` is in seconds; None is the
    configured default, and `own_timeout` says that it depends on the arguments. `source` is the
    distribution that brings it, `module` where its function is. `phrases` are its entries of phrases.toml.
    `guidance` is that of its group; `in_code` and `in_chat` are its places there, from 1 on, or 0. `function` is what
    its module calls it, where another pack has that name. The other fields are declared on `@tool`.
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
    secrets: tuple[str, ...] = ()
    sets: tuple[ToolSet, ...] = ()
    passes: tuple[Gate, ...] = ()
    interactive: bool = False
    parallel: bool | str = False
    snapshot: bool = False
    typed: Sign = ""
    too_long: str = ""
    probe: Mapping[str, Any] | None = None
    guidance: str = ""
    in_code: int = 0
    in_chat: int = 0
    source: str = ""
    module: str = ""
    function: str = ""
    phrases: Sequence[Mapping[str, Any]] = ()

    @property
    def reads_only(self) -> bool:
        """Whether the tool changes nothing."""
        return self.access <= READING

    def runs_beside(self, arguments: Callable[[], Mapping[str, Any]]) -> bool:
        """Whether a call may run side by side with others of this tool, and with those of other such tools.

        Args:
            arguments: those of the call, read only where it depends on one of them.
        """
        if isinstance(self.parallel, str):
            return bool(arguments().get(self.parallel))
        return self.parallel or self.reads_only

    @property
    def command(self) -> str:
        """The parameter that holds a shell command, which the rules then judge as one; empty where there is none.

        It is the one that can be typed behind `!`. A tool that runs programs and does not say which is taken to mean
        `command`.
        """
        if self.typed == "!":
            return str(self.parameters["required"][0])
        return "command" if "exec" in self.access else ""

    @property
    def ticket_line(self) -> str:
        """The parameter that holds a line for the ticket program, as in `create TITLE`; empty where there is none.

        It is the only one that a tool requires which may be called before there is a ticket.
        """
        required = self.parameters.get("required", ())
        return str(required[0]) if "ticket" in self.passes and len(required) == 1 else ""

    @property
    def changes(self) -> bool:
        """Whether the tool writes or runs something."""
        return bool(self.access & CHANGING)


class Tool(Generic[P, R]):
    """A decorated function with its declarations. Calling it calls the function, whose signature it keeps."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        access: Collection[Access] = ("write", "exec"),
        confirm: bool = False,
        timeout: ToolTimeout = None,
        group: str = "",
        requires: Collection[str] = (),
        labels: Collection[str] = (),
        settings: Collection[str] = (),
        secrets: Collection[str] = (),
        sets: Collection[ToolSet] | None = None,
        passes: Collection[Gate] = (),
        interactive: bool = False,
        parallel: bool | str = False,
        snapshot: bool = False,
        typed: Sign = "",
        too_long: str = "",
        probe: Mapping[str, Any] | None = None,
        aliases: Mapping[str, Collection[str]] | None = None,
        unlisted: Collection[str] = (),
        ignores: Collection[str] = (),
        adapt: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
    ) -> None:
        name = function.__name__
        if not is_tool_name(name):
            raise ToolError(f"{name!r} is not a valid tool name: use up to 64 letters, digits, '_' and '-'.")
        if not (function.__doc__ or "").strip():
            raise ToolError(f"The tool {name} needs a docstring: the model reads it as the tool's description.")
        if not access:
            raise ToolError(f"The tool {name} declares no access; use {_ONE_OF[Access]}.")
        self.function = function
        self.name = name
        self.access: frozenset[Access] = frozenset(_chosen(name, "access", access, Access))
        self.confirm = confirm
        self.timeout = timeout
        self.group = group
        self.requires = _several(name, "requires", requires)
        self.labels = _several(name, "labels", labels)
        self.settings = _several(name, "settings", settings)
        self.secrets = _several(name, "secrets", secrets)
        self.sets: tuple[ToolSet, ...] | None = None if sets is None else _chosen(name, "sets", sets, ToolSet)
        self.passes: tuple[Gate, ...] = _chosen(name, "passes", passes, Gate)
        self.interactive = interactive
        self.parallel = parallel
        self.snapshot = snapshot
        self.typed: Sign = typed
        self.too_long = too_long
        self.probe = None if probe is None else dict(probe)
        self.aliases = {parameter: _several(name, "aliases", names) for parameter, names in (aliases or {}).items()}
        self.unlisted = _several(name, "unlisted", unlisted)
        self.ignores = _several(name, "ignores", ignores)
        self.adapt = adapt
        self.__doc__ = function.__doc__
        self.__name__ = name
        self._check()

    def _check(self) -> None:
        """Refuse declarations that contradict each other, or that name what does not exist."""
        for need in self.requires:
            if need.partition(":")[0] not in ("env", "program", "extra") or not need.partition(":")[2]:
                raise ToolError(f"The tool {self.name} requires {need!r}; use env:NAME, program:NAME or extra:NAME.")
        both = sorted(set(self.secrets) & set(self.settings))
        if both:
            raise ToolError(f"The tool {self.name} declares {both[0]} as a secret and as a setting; choose one.")
        if self.typed not in get_args(Sign):
            raise ToolError(f"The tool {self.name} declares typed={self.typed!r}; only '!' and '@' can be typed.")
        if self.snapshot and not {"write", "exec"} <= self.access:
            raise ToolError(f"The tool {self.name} declares a snapshot, so it needs the access values write and exec.")
        unknown = sorted(set(self.probe or ()).difference(self.function.__code__.co_varnames))
        if unknown:
            raise ToolError(
                f"The tool {self.name} declares a probe with {unknown[0]}, which is not one of its parameters."
            )
        if "writable-files" in self.passes and "exec" in self.access:
            raise ToolError(f"The tool {self.name} runs programs, so it cannot pass 'writable-files'.")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"


_ONE_OF: Mapping[Any, str] = {kind: ", ".join(filter(None, get_args(kind))) for kind in (Access, ToolSet, Gate)}


def _several(tool: str, declaration: str, given: Collection[Any]) -> tuple[Any, ...]:
    """What was declared, as a tuple; a single text would be taken apart into its letters."""
    if isinstance(given, str):
        raise ToolError(f"The tool {tool} declares {declaration}={given!r}; use a list, as in [{given!r}].")
    return tuple(given)


def _chosen(tool: str, declaration: str, given: Collection[Any], kind: Any) -> tuple[Any, ...]:
    """What was declared, each one of the values that there are."""
    chosen = _several(tool, declaration, given)
    if not set(chosen) <= set(get_args(kind)):
        raise ToolError(f"The tool {tool} declares {declaration} {sorted(map(str, chosen))}; use {_ONE_OF[kind]}.")
    return chosen


class ToolGroup(Record):
    """Tools that share a module, imported when one of them is first called.

    `module` is a full name, or begins with a dot and counts from the package of the plugin; `tools` are the names
    that it defines. `phrases` is a file with what people say and the calls that it means. It lies beside `module` or
    beside the plugin; by default it is phrases.toml where a package has that. `sets` and `too_long` hold for those of
    the tools that declare none themselves. `guidance` is what a model should know when it works with these tools on
    code: lines of the system prompt, in coding mode, while one of them is offered. `in_code` and `in_chat` are those of
    the tools that a model is offered at once where most of many tools wait: at work on code, and elsewhere. Both begin
    with the most useful one; the first ones of all groups come before the second ones.
    """

    name: str
    module: str
    tools: tuple[str, ...]
    phrases: str = ""
    sets: tuple[ToolSet, ...] = ()
    too_long: str = ""
    guidance: str = ""
    in_code: tuple[str, ...] = ()
    in_chat: tuple[str, ...] = ()

    @staticmethod
    def place(name: str, names: Sequence[str]) -> int:
        """The place of a tool in a list, from 1 on; 0 for one that is not in it."""
        return names.index(name) + 1 if name in names else 0


class ToolDecorator:
    """What `@tool(...)` gives: it makes a function a tool with these declarations."""

    def __init__(self, **declarations: Any) -> None:
        self._declarations = declarations

    def __call__(self, function: Callable[P, R], /) -> Tool[P, R]:
        return Tool(function, **self._declarations)


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    access: Collection[Access] = ("write", "exec"),
    confirm: bool = False,
    timeout: ToolTimeout = None,
    group: str = "",
    requires: Collection[str] = (),
    labels: Collection[str] = (),
    settings: Collection[str] = (),
    secrets: Collection[str] = (),
    sets: Collection[ToolSet] | None = None,
    passes: Collection[Gate] = (),
    interactive: bool = False,
    parallel: bool | str = False,
    snapshot: bool = False,
    typed: Sign = "",
    too_long: str = "",
    probe: Mapping[str, Any] | None = None,
    aliases: Mapping[str, Collection[str]] | None = None,
    unlisted: Collection[str] = (),
    ignores: Collection[str] = (),
    adapt: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
) -> ToolDecorator: ...
def tool(function: Callable[..., Any] | None = None, /, **declarations: Any) -> Tool | ToolDecorator:
    """Make a function a tool.

    An `async def` function runs in the event loop, and must not block it. A plain `def` function runs in a thread of
    its own, and may. Where it takes longer than its time-out the call ends, and the thread is left to itself: it cannot
    be stopped, and cannot keep Marvin from ending.

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
        settings: the variables that it may ask `setting()` for.
        secrets: the variables that it may ask `secret()` for, beside those of its pack. Their values are
            kept from models, users and programs.
        sets: the sets that it belongs to: coding, surf, lockin. By default those of its `ToolGroup`. What is in
            coding is in lockin as well, and in readonly where it neither writes nor runs programs. What is in no
            set and neither writes nor runs programs is in surf.
        passes: the gates of sub-agents that it passes although it writes or runs something. readonly: called by
            such an agent it changes nothing. writable-files: it writes nothing but files, through
            `ToolContext.paths`. ticket: it may be called before there is a ticket; where it requires one parameter,
            that is a line for the ticket program, in which the gates look for `create` and for what only reads.
        interactive: offer it in a chat only.
        parallel: calls of it may run side by side although it writes or runs something, as those of tools do that only
            read. By default such a call runs alone, and what a model calls behind it waits. The name of a parameter
            says it for the calls that give this one, with a value that is not empty.
        snapshot: programs that it starts change files of the working directory. As around shell commands, these are
            kept before it is called and after, so that `/undo` puts them back. Such a tool names no undo itself.
        typed: "!" where it takes what is typed behind `!` in a chat, as the only parameter that it requires; "@" where
            it reads the document whose path is typed behind `@`. Of several such tools the first is called.
        too_long: what the model should do instead where the arguments of a call were cut off.
        probe: the arguments of a harmless call, by which `marvin tools health` sees whether the services that the tool
            asks answer.
        aliases: other names of parameters, by their own: those that models know from other programs. Calls may use
            them, and no schema tells of them.
        unlisted: parameters that calls may give, and that no schema tells of. Each has a default.
        ignores: names of arguments that models send from habit, and that mean nothing here.
        adapt: what makes arguments of this tool of those in shapes of other programs, as `offset` and `limit` of a
            range of lines. It is given a copy of the arguments before they are checked, aliases read already, and
            returns those that are meant. Where nothing here does what is meant it raises a `ToolError` with what to
            send instead.
    """
    return ToolDecorator(**declarations) if function is None else Tool(function)
