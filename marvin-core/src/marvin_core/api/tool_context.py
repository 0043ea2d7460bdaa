"""What a tool receives: its context, and the narrow views of files, processes and the session behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, TypeAlias, TypeVar, overload

from .record import Record
from .tools import Mode

if TYPE_CHECKING:
    import httpx

    from .settings import Settings

T = TypeVar("T")
D = TypeVar("D")
S = TypeVar("S", bound="Settings")


class PackFolders(Protocol):
    """Folders of a pack's own. Each is made, for this user alone (mode 0700), when it is first asked for."""

    @property
    def data(self) -> Path:
        """For what must not be lost, of all profiles."""
        ...

    @property
    def cache(self) -> Path:
        """For what can be fetched or made again; people may remove it at any time."""
        ...

    @property
    def state(self) -> Path:
        """For what outlives a run and matters on this machine only: logs, positions, histories."""
        ...

    @property
    def profile(self) -> Path:
        """For what must not be lost and belongs to the person: the pack's folder in the active profile."""
        ...


class PackContext(Protocol):
    """What the code of a pack reaches of its own, wherever it runs: settings, secrets and folders."""

    @property
    def folders(self) -> PackFolders: ...
    def settings(self, model: type[S]) -> S:
        """The settings of the pack, as defaults, config.yaml and variables make them.

        Args:
            model: the class that `PackSettings.model` names.

        Raises:
            ToolError, ConfigError: where one is missing or wrong, in a tool and elsewhere; the text says which one and
                how to set it. The same where the pack declares no such settings.
        """
        ...

    @overload
    def secret(self, name: str) -> str:
        """The value of a variable that `PackSettings.secrets` or `@tool(secrets=...)` names.

        Raises:
            ToolError, ConfigError: where it is not set and no `default` is given, in a tool and elsewhere; the text
                says what to set. The same where it is not declared.
        """
        ...

    @overload
    def secret(self, name: str, default: None) -> str | None: ...
    @overload
    def secret(self, name: str, default: D) -> str | D: ...


class SessionView(Protocol):
    """What a tool may know of, and ask of, the session it runs in."""

    @property
    def id(self) -> str: ...
    @property
    def interactive(self) -> bool: ...
    @property
    def ticket(self) -> str: ...
    @property
    def depth(self) -> int: ...
    @property
    def memory_folder(self) -> Path:
        """Where dumps of what did not fit go."""
        ...

    def output_characters(self, tool_name: str) -> int:
        """How many characters of this tool's outputs are in the live context."""
        ...

    def compact(self, target_tokens: int) -> str:
        """Have older messages make room before the next request; returns what will happen."""
        ...

    def search_backups(self, query: str, most: int) -> str:
        """Where all words of the query stand in what was taken out of conversations, as text. Blocks.

        Raises:
            ToolError: where the query has no word.
        """
        ...

    def set_working_dir(self, path: Path) -> None:
        """Move the sandbox root; takes effect with the next call."""
        ...

    def switch_profile(self, name: str) -> Path:
        """Go on with another profile, made where there is none; returns its folder. Blocks: call it in a thread."""
        ...

    def change_preference(self, key: str, change: Callable[[Any], Any]) -> None:
        """Set a preference of the profile to what `change` makes of its value; None stands for one that is not set.

        Blocks while another Marvin writes the file: call it in a thread.
        """
        ...

    def usage(self, *, lifetime: bool = False) -> UsageSummary:
        """What was used since Marvin was started. Blocks where a price is looked up: call it in a thread."""
        ...

    def finish(self, way: Literal["auto", "play"]) -> None:
        """End auto-continue or play mode with the next answer. Raises `ToolError` where it is not on."""
        ...

    def leave(self, farewell: str) -> None:
        """Have the interface say this and end, once the turn is over."""
        ...


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


FileKind: TypeAlias = Literal["file", "folder", "link", "other"]
"""What there is at a path; other are pipes, sockets and devices."""


class FileInfo(Record):
    """What is known of the thing at a path. `size` is in bytes, `modified` in seconds since the epoch."""

    path: str
    """Relative to the working directory."""
    kind: FileKind
    size: int
    modified: float


class Paths(Protocol):
    """The only way from a model's string to files. All paths are relative to the working directory.

    Each method raises `PathRefused` where a path, or what it links to, is outside of the working directory, hidden or
    protected, and `ToolError` where the system refuses; both tell the model what to do. A link that is swapped
    meanwhile leads none of them outside. They block, as files do.
    """

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

    def append(self, path: str, data: bytes) -> None:
        """Add to the end of a file, making it and its folders. A file of several names (hard links) is refused."""
        ...

    def remove(self, path: str) -> None:
        """Delete a file; of a link, the link itself."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is something; a link that leads nowhere is nothing."""
        ...

    def stat(self, path: str) -> FileInfo:
        """What is there, links followed. `ToolError` where there is nothing."""
        ...

    def list(self, path: str = ".", most: int = 10_000) -> Sequence[FileInfo]:
        """What is in a folder, the first `most` by name. Links stand for themselves; what is hidden is left out."""
        ...

    def glob(self, pattern: str, most: int = 1_000) -> Sequence[str]:
        """The files and folders that fit a pattern, the first `most` of them in order. No link is entered.

        `**` stands for any folders, none among them; `*`, `?` and `[...]` for what a name may hold there. A dot at the
        beginning of a name has to be written. `ToolError` where more than 500,000 names would have to be looked at.
        """
        ...

    def real_file(self, path: str, *, writing: bool = False) -> AbstractContextManager[Path]:
        """A real path for a library that opens files by name, such as SQLite: that of a private copy.

        The copy lasts as long as the block. With `writing`, the file need not exist, and the copy takes its place in
        one step when the block ends without an error, if it was changed; close the file or the database before.
        `ToolError` where the file was changed by another meanwhile, which is then kept.
        """
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


class ModelUsage(Record):
    """What a model, or several of them, was used for. `cost` is in USD and None where unknown.

    `estimated` says that the service bills in units of its own, so that the cost is an estimate.
    """

    requests: int = 0
    cost: float | None = 0.0
    estimated: bool = False


class UsageSummary(Record):
    """What was used. `cost` is in USD and None where unknown; `providers` has the models of each provider.

    `tokens` are by the names of `Usage`'s fields; `lifetime` are the models of all sessions, where asked for, without
    a provider those that were counted by their names alone.
    `ceiling` is the cost ceiling in USD and None without one, `left` what other agents have not used of it either.
    """

    tokens: Mapping[str, int]
    cost: float | None
    providers: Mapping[str, Mapping[str, ModelUsage]]
    tool_calls: Mapping[str, int]
    lifetime: Mapping[str, Mapping[str, ModelUsage]] | None = None
    ceiling: float | None = None
    left: float | None = None


class ToolContext(PackContext, Protocol):
    """What a tool gets, and all it gets."""

    @property
    def paths(self) -> Paths: ...
    @property
    def processes(self) -> Processes: ...
    @property
    def http(self) -> httpx.AsyncClient:
        """A client with Marvin's proxies, certificates, time-outs and limits; shared, never close it.

        It reaches public addresses, and those that the user allows; it raises `ToolError` for others.
        """
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

    def setting(self, name: str) -> str | None:
        """The value of a variable that `@tool(settings=...)` names, or None. `ToolError` for another one."""
        ...

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Tell the user how far the call is.

        Args:
            text: what it does now.
            done: how much of it is done, in whatever is counted, from 0 on.
            total: how much there is to do; what is done is shown as a part of it.
        """
        ...

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; the answer is one of the choices. `ToolError` where there is nobody to ask."""
        ...

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What the factory's context manager yields, entered once a session and closed with it."""
        ...
