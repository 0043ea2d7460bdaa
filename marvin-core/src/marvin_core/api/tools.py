"""The `@tool` decorator, the declarations of tools, and their results."""

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
"""What bars tools from a sub-agent that is read-only, may write only some files, or has no ticket yet."""
Sign: TypeAlias = Literal["", "!", "@"]
"""The prefix of a line in a chat whose text a tool takes."""

SEARCH = "tool_search"
"""The tool that searches for deferred tools. The core provides it, and no pack can use the name."""
LONGEST_DESCRIPTION = 4_000
"""The maximum number of characters of a tool's description for the model; a third-party pack may write longer ones."""
READING: frozenset[Access] = frozenset({"read", "net"})
CHANGING: frozenset[Access] = frozenset({"write", "exec"})
_NAME_LIMIT = 64
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def is_tool_name(name: str) -> bool:
    """Whether a name is valid for a tool: every service takes up to 64 letters, digits, `_` and `-`."""
    return 0 < len(name) <= _NAME_LIMIT and _NAME_CHARACTERS.issuperset(name)


class ToolResult(Record):
    """The result of a tool that is more than a plain string.

    `content` goes to the model: a string, or text and image blocks. `show` is for people: tables, pictures and links,
    drawn as well as the interface can. `details` is JSON data for interfaces that support it (`{"diff": ...}`); tuples
    become lists. `undo` is the call that undoes this one; it is stored in the session file. `lasting` is what the model
    must still know after compaction: it is put into the summary word for word, unless a later call of the tool
    succeeded. At most 8,000 characters of it are kept. `reveals` are names of deferred tools that requests include from
    now on. `origins` says where this result comes from, beside the tool's own labels: web, repository, private or
    secret (`labels:` in config.yaml). `is_final` marks an error that no other try can avoid: raise `NeverUndone`.
    """

    content: str | tuple[Text | Image, ...]
    details: Mapping[str, Any] | None = None
    is_error: bool = False
    undo: Call | None = None
    show: Sequence[Shown] = ()
    lasting: str = ""
    reveals: Sequence[str] = ()
    origins: Sequence[str] = ()
    is_final: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether only content and details are set."""
        return not (self.show or self.undo or self.lasting or self.reveals or self.is_final)

    @property
    def blocks(self) -> tuple[Text | Image, ...]:
        """The content as blocks."""
        return (Text(text=self.content),) if isinstance(self.content, str) else self.content


ToolTimeout: TypeAlias = "float | Callable[[Mapping[str, Any]], float] | None"
"""Seconds, or a function from the arguments of a call to seconds; None for the default."""
ToolReturn: TypeAlias = "Awaitable[str | ToolResult] | str | ToolResult"
"""What a tool function returns."""

if TYPE_CHECKING:
    # With defaults, so that a bare `Tool` is a tool of any signature; Python itself has them from 3.13 on.
    import typing_extensions

    P = typing_extensions.ParamSpec("P", default=...)
    R = typing_extensions.TypeVar("R", bound=ToolReturn, default=ToolReturn, covariant=True)
else:
    P, R = ParamSpec("P"), TypeVar("R")


class ToolSpec(Record):
    """Everything known about a tool without running or importing it.

    `parameters` is its JSON schema in the normal form. `timeout` is in seconds; None is the configured default, and
    `own_timeout` says that it depends on the arguments. `source` is the distribution that provides it, `module` the
    module of its function. `phrases` are its entries in phrases.toml. `guidance` is that of its group; `in_code` and
    `in_chat` are its positions there, from 1 on, or 0. `function` is its name in the module, if another pack has a tool
    of that name. The other fields are parameters of `@tool`.
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
    known_as: tuple[str, ...] = ()
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
        """Whether a call may run in parallel with others of this tool, and of other such tools.

        Args:
            arguments: those of the call; used only if the declaration depends on one of them.
        """
        if isinstance(self.parallel, str):
            return bool(arguments().get(self.parallel))
        return self.parallel or self.reads_only

    @property
    def command(self) -> str:
        """The parameter with a shell command, to which the rules for commands apply; empty if there is none.

        It is the text typed behind `!`. For a tool that runs programs and declares none it is
        `command`.
        """
        if self.typed == "!":
            return str(self.parameters["required"][0])
        return "command" if "exec" in self.access else ""

    @property
    def ticket_line(self) -> str:
        """The parameter with arguments for the ticket program, as in `create TITLE`; empty if there is none.

        Of tools that require a ticket, only one with this parameter may be called before there is a ticket.
        """
        required = self.parameters.get("required", ())
        return str(required[0]) if "ticket" in self.passes and len(required) == 1 else ""

    @property
    def changes(self) -> bool:
        """Whether the tool writes or runs programs."""
        return bool(self.access & CHANGING)


class Tool(Generic[P, R]):
    """A decorated function with its declarations. Calling it calls the function, and it has the same signature."""

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
        known_as: Collection[str] = (),
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
        self.known_as = tuple(one.casefold() for one in _several(name, "known_as", known_as))
        self.probe = None if probe is None else dict(probe)
        self.aliases = {parameter: _several(name, "aliases", names) for parameter, names in (aliases or {}).items()}
        self.unlisted = _several(name, "unlisted", unlisted)
        self.ignores = _several(name, "ignores", ignores)
        self.adapt = adapt
        self.__doc__ = function.__doc__
        self.__name__ = name
        self._check()

    def _check(self) -> None:
        """Reject declarations that contradict each other, or have unknown names."""
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
    """A declaration as a tuple; a single string would be split into its letters."""
    if isinstance(given, str):
        raise ToolError(f"The tool {tool} declares {declaration}={given!r}; use a list, as in [{given!r}].")
    return tuple(given)


def _chosen(tool: str, declaration: str, given: Collection[Any], kind: Any) -> tuple[Any, ...]:
    """A declaration in which each value is one of the allowed ones."""
    chosen = _several(tool, declaration, given)
    if not set(chosen) <= set(get_args(kind)):
        raise ToolError(f"The tool {tool} declares {declaration} {sorted(map(str, chosen))}; use {_ONE_OF[kind]}.")
    return chosen


class ToolGroup(Record):
    """Tools in one module, which is imported when one of them is first called.

    `module` is a full name, or begins with a dot and is relative to the package of the plugin; `tools` are the names
    that it defines. `phrases` is a file with requests of people and the calls that they mean, relative to `module` or
    to the plugin; by default it is phrases.toml, if the package has one. `sets` and `too_long` are defaults for the
    tools that declare none themselves. `guidance` is for the model in coding mode: lines of the system prompt while one
    of these tools is offered. `in_code` and `in_chat` are the tools that are not deferred when many tools are: in
    coding mode, and elsewhere. Both begin with the most useful one; the first ones of all groups come before the second
    ones.
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
        """The position of a tool in a list, from 1 on; 0 if it is not in it."""
        return names.index(name) + 1 if name in names else 0


class ToolDecorator:
    """What `@tool(...)` returns: it makes a function a tool with these declarations."""

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
    known_as: Collection[str] = (),
    probe: Mapping[str, Any] | None = None,
    aliases: Mapping[str, Collection[str]] | None = None,
    unlisted: Collection[str] = (),
    ignores: Collection[str] = (),
    adapt: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
) -> ToolDecorator: ...
def tool(function: Callable[..., Any] | None = None, /, **declarations: Any) -> Tool | ToolDecorator:
    """Make a function a tool.

    An `async def` function runs in the event loop, and must not block. A plain `def` function runs in a thread of its
    own, and may block. When it exceeds its timeout the call ends; the thread cannot be stopped, and does not keep
    Marvin from ending.

    The docstring is the description that the model reads. In `Annotated`, a bare string describes
    the parameter and everything else goes to pydantic. A parameter annotated `ToolContext` receives
    the context and stays out of the schema; a single parameter that is a pydantic model is the
    schema itself. The function returns a string or a `ToolResult`, and fails by raising `ToolError`.

    Args:
        access: what the tool touches: read, net, write, exec, state. Undeclared counts as write and exec.
        confirm: ask the user before each call in an interactive session.
        timeout: seconds, or a function from the arguments to seconds.
        group: the group that tool sets name.
        requires: `env:NAME`, `program:NAME`, `extra:NAME`; the tool is not offered where one is missing.
        labels: where its results come from.
        settings: the variables that it may read with `setting()`.
        secrets: the variables that it may read with `secret()`, beside those of its pack. Their values are
            hidden from models, users and programs.
        sets: the sets that it belongs to: coding, surf, lockin. By default those of its `ToolGroup`. Tools in
            coding are in lockin as well, and in readonly if they neither write nor run programs. Tools in no set
            that neither write nor run programs are in surf.
        passes: the restrictions of sub-agents that do not apply although it writes or runs something. readonly: it
            changes nothing for such an agent. writable-files: it writes only files, through `ToolContext.paths`.
            ticket: it may be called before there is a ticket; if it requires one parameter, that has arguments for
            the ticket program, of which only `create` and read-only ones are allowed.
        interactive: offer it in a chat only.
        parallel: calls may run in parallel although it writes or runs something, like those of read-only tools. By
            default such a call runs alone, and later calls of the answer wait for it. With the name of a parameter,
            this holds for calls with a non-empty value for it.
        snapshot: its programs change files of the working directory. As for shell commands, these are stored before
            and after the call, so that `/undo` restores them. Such a tool returns no undo itself.
        typed: "!" if its only required parameter takes the text typed behind `!` in a chat; "@" if
            it reads the document whose path is typed behind `@`. Of several such tools the first is called.
        too_long: what the model should do instead where the arguments of a call were cut off.
        known_as: names of such a tool in other programs. A model that calls one of them is told this tool's name.
        probe: the arguments of a harmless call, with which `marvin tools health` tests the services of the
            tool.
        aliases: other names of parameters, by their own, that models know from other programs. Calls may use
            them; they are not in the schema.
        unlisted: parameters that are not in the schema. Each has a default.
        ignores: names of arguments that models send from habit, and that have no effect.
        adapt: converts arguments in the form of other programs, such as `offset` and `limit` of a
            range of lines. It gets a copy of the arguments before validation, with aliases resolved, and returns
            the converted ones. If the tool cannot do what they mean it raises a `ToolError` that says what to
            send instead.
    """
    return ToolDecorator(**declarations) if function is None else Tool(function)
