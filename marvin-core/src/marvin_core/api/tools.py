"""What a tool is: the `@tool` decorator, its declarations, its results, and the context it receives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, TypeAlias, TypeVar, overload

from .errors import ToolError
from .messages import Image, Text
from .record import Record

if TYPE_CHECKING:
    import httpx

    from .tool_context import SessionView

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


class ProcessResult(Record):
    """How a child process ended. `output` is standard output and, where merged, standard error.

    `exit_code` is negative for a signal, None after a time-out. `omitted` counts the bytes that were
    dropped from the middle of the output. `job` names what still runs in the background, if anything.
    """

    exit_code: int | None
    output: bytes
    stderr: bytes = b""
    omitted: int = 0
    timed_out: bool = False
    elapsed: float = 0.0
    job: str = ""


class Paths(Protocol):
    """The only way from a model's string to file content. All methods raise `PathRefused` or `ToolError`."""

    @property
    def root(self) -> Path:
        """The sandbox root, resolved."""
        ...

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading, after checking where the descriptor really is."""
        ...

    def replace(self, path: str, data: bytes, *, create_only: bool = False) -> None:
        """Write a file atomically, making its folders; with `create_only` it must not exist yet."""
        ...

    def remove(self, path: str) -> None:
        """Delete a file."""
        ...

    def locate(self, path: str) -> str:
        """The path relative to the root, checked, for handing to a program behind `--`."""
        ...

    def overview(self) -> str:
        """The working directory and a short tree of it, for error texts."""
        ...


class Processes(Protocol):
    """The only way to a child process."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
        output_limit: int = 1_000_000,
        merge_stderr: bool = False,
        env: Mapping[str, str] | None = None,
        leave_jobs: bool = False,
    ) -> ProcessResult:
        """Run a program to its end; afterwards no descendant of it is alive.

        Args:
            timeout: seconds; when they are over the result says `timed_out`.
            output_limit: bytes kept of each stream, half from its head and half from its tail.
            env: variables added to the child's environment.
            leave_jobs: what the program leaves running becomes a job instead of being killed.

        Raises:
            ToolError: where the program does not exist or cannot be started.
        """
        ...

    def which(self, program: str) -> str | None:
        """Where a program is in the children's PATH, or None. Relative folders of PATH do not count."""
        ...

    def job_list(self) -> Sequence[Job]:
        """The jobs of this session, oldest first."""
        ...

    async def stop_job(self, job_id: str) -> Job:
        """End a job and all its descendants; `ToolError` for an unknown one."""
        ...


class Job(Record):
    """A process that outlived its command. `log` is the file its output goes to; `running` is as of now."""

    id: str
    command: str
    log: Path
    pid: int
    running: bool


class Clock(Protocol):
    """Time, as the session sees it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        ...


class UsageSummary(Record):
    """What was used. `cost` is in USD and None where unknown; `models` has requests and cost of each model.

    `tokens` are by the names of `Usage`'s fields; `lifetime` are the models of all sessions, where asked for.
    `ceiling` is the cost ceiling in USD and None without one, `left` what other agents have not used of it either.
    """

    tokens: Mapping[str, int]
    cost: float | None
    models: Mapping[str, tuple[int, float | None]]
    tool_calls: Mapping[str, int]
    lifetime: Mapping[str, tuple[int, float | None]] | None = None
    ceiling: float | None = None
    left: float | None = None


class ToolContext(Protocol):
    """What a tool gets, and all it gets."""

    @property
    def paths(self) -> Paths: ...
    @property
    def processes(self) -> Processes: ...
    @property
    def http(self) -> httpx.AsyncClient:
        """A client with Marvin's proxies, certificates and time-outs; shared, never close it."""
        ...

    @property
    def mode(self) -> Mode: ...
    @property
    def home(self) -> Path:
        """The user's home folder: for what belongs to the user and to no project, as ~/Downloads does."""
        ...

    @property
    def profile_folder(self) -> Path: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def state(self) -> dict[str, Any]:
        """JSON data of this pack in this session, saved with the session."""
        ...

    @property
    def session(self) -> SessionView: ...

    def secret(self, name: str) -> str | None:
        """The value of a declared secret, or None. `ToolError` for an undeclared name."""
        ...

    def setting(self, name: str) -> str | None:
        """The value of a declared setting, or None. `ToolError` for an undeclared name."""
        ...

    def progress(self, text: str) -> None:
        """Tell the user how far the call is."""
        ...

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; the answer is one of the choices. `ToolError` where there is nobody to ask."""
        ...

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What the factory's context manager yields, entered once a session and closed with it."""
        ...
