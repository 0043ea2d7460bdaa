"""What a tool receives: its context, and the narrow views of files and the session behind it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, TypeAlias, TypeVar, overload

from .processes import Processes
from .record import Record
from .timeouts import Timeouts
from .tools import Mode, ToolSpec

if TYPE_CHECKING:
    import httpx

    from .agents import Agents
    from .events import CallOrigin
    from .messages import UsageSummary
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
    """What the code of a pack reaches, wherever it runs: its settings, secrets and folders, and how long to wait."""

    @property
    def folders(self) -> PackFolders: ...
    @property
    def timeouts(self) -> Timeouts:
        """How long things may take, in seconds, as the user set it. The stores and limits of the kit take it."""
        ...

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
        """Where all words of the query, one at least, stand in what was taken out of conversations, as text. Blocks."""
        ...

    def read_skill(self, name: str) -> str:
        """The text of a skill, or of a file of it, as in `pdf/references/forms.md`. Blocks.

        Raises `ToolError` where there is none that can be read.
        """
        ...

    def find_tools(self, query: str, most: int) -> Sequence[ToolSpec]:
        """The tools on offer that a query means, the best first. Blocks."""
        ...

    def set_working_dir(self, path: Path) -> None:
        """Move the sandbox root; takes effect with the next call."""
        ...

    def switch_profile(self, name: str) -> Path:
        """Go on with another profile, made where there is none; returns its folder. Blocks: call it in a thread."""
        ...

    def change_preference(self, key: str, change: Callable[[Any], Any]) -> None:
        """Set a preference to what `change` makes of its value, None where it is not set. Blocks."""
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


FileKind: TypeAlias = Literal["file", "folder", "link", "other"]
"""What there is at a path; other are pipes, sockets and devices."""


class FileInfo(Record):
    """What is at a path, which is relative to the root. `size` is in bytes, `modified` in seconds since the epoch."""

    path: str
    kind: FileKind
    size: int
    modified: float


class FileWrite(Record):
    """What is to be in a file. `data` is None where it is to be removed, `mode` are its permissions where it is new.

    `expected` is what `os.fstat` said of it when it was read; it stays open until then, so that its inode stays its.
    With `create_only` it must not exist yet.
    """

    path: str
    data: bytes | None
    expected: os.stat_result | None = None
    create_only: bool = False
    mode: int | None = None


class Paths(Protocol):
    """The only way from a model's string to files. All paths are relative to the working directory.

    Each method raises `PathRefused` where a path, or what it links to, is outside of the working directory, hidden or
    protected, and `ToolError` where the system refuses. No link that is swapped leads them outside. They block.
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

    def write_together(self, changes: Sequence[FileWrite]) -> None:
        """Write and remove several files: all, or none. `FileChanged` where one is not what its change expects."""
        ...

    def append(self, path: str, data: bytes) -> None:
        """Add to the end of a file, making it and its folders. A file of several names (hard links) is refused."""
        ...

    def remove(self, path: str) -> None:
        """Delete a file; of a link, the link itself."""
        ...

    def make_folder(self, path: str) -> bool:
        """Make a folder and those above it, where they are missing; whether it was missing.

        `/undo` knows nothing of folders: a tool that makes one names the call that takes it away.
        """
        ...

    def remove_folder(self, path: str) -> None:
        """Delete a folder that is empty. `ToolError` where it is not, or is a link."""
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

        `**` stands for any folders, none among them; a dot at the beginning of a name has to be written. `ToolError`
        where more than 500,000 names would have to be looked at.
        """
        ...

    def real_file(self, path: str, *, writing: bool = False) -> AbstractContextManager[Path]:
        """A real path for a library that opens files by name, such as SQLite: that of a private copy.

        The copy lasts as long as the block. With `writing`, the file need not exist, and the copy takes its place when
        the block ends without an error; close the file before. `ToolError` where another changed the file meanwhile.
        """
        ...

    def locate(self, path: str) -> str:
        """The path relative to the root, checked, for handing to a program behind `--`."""
        ...

    def overview(self) -> str:
        """The working directory and a short tree of it, for error texts."""
        ...


class Clock(Protocol):
    """Time, as the session sees it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        ...


class ToolContext(PackContext, Protocol):
    """What a tool gets, and all it gets."""

    @property
    def paths(self) -> Paths: ...
    @property
    def processes(self) -> Processes: ...
    @property
    def agents(self) -> Agents:
        """The way to sub-agents, which run under the rules of this session. What they do counts as this call's."""
        ...

    @property
    def http(self) -> httpx.AsyncClient:
        """A client with Marvin's proxies, certificates, time-outs and limits; shared, never close it.

        It reaches public addresses and those that the user allows. `ToolError` for others."""
        ...

    async def may_reach(self, url: str) -> None:
        """Have the tools reach an address that the call was given, also where it is of this machine or of a network.

        What a person typed is reached at once. What a model names is asked about where somebody can be asked, and holds
        for the server until the session ends. Otherwise nothing is changed, and the request says what is wrong.

        Args:
            url: the address; one of the public internet needs nothing.
        """
        ...

    async def proxied(self) -> Mapping[str, str]:
        """Variables for a program that makes requests of its own, such as a browser: they lead it to a proxy.

        Give them as `env` to `processes.run`. What the proxy reaches is what `http` reaches: addresses of this machine
        and of private networks are refused. In a sandbox with a network of its own, the proxy of that takes their
        place, which asks the user about hosts. A program that does not use a proxy is not held back by this.

        Raises:
            ToolError: where there can be no proxy.
        """
        ...

    @property
    def mode(self) -> Mode: ...
    @property
    def origin(self) -> CallOrigin:
        """Who makes the call. What a person asks for by name needs no second thought; a `trial` asks all services."""
        ...

    @property
    def time_left(self) -> float:
        """Seconds until the call is stopped. Who asks several services one after the other shares that out."""
        ...

    @property
    def home(self) -> Path:
        """The user's home folder: for what belongs to the user and to no project, as ~/Downloads does."""
        ...

    @property
    def config_folder(self) -> Path: ...
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

    def reading(self, folder: Path) -> ToolContext:
        """This context with another folder in place of the working directory, where it writes nothing.

        Reading and searching, the kit's included, then count from that folder and are held to it. Programs still start
        in the working directory unless they are told otherwise. The folder is for the tool to choose, or for a person:
        what a model names is checked before. `ToolError` where it is none.
        """
        ...

    def writing(self, folder: Path) -> ToolContext:
        """This context with another folder of the user's in place of the working directory, made where it is missing.

        Its files are read, searched and written as those of the working directory are, and put back by `/undo`.
        Programs still start in the working directory unless they are told otherwise. The folder is for the tool to
        choose, or for a person: what a model names is checked before. `ToolError` where there is none and none can be
        made, and in play mode, which knows the playground only.
        """
        ...

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; the answer is one of the choices. `ToolError` where there is nobody to ask."""
        ...

    async def ask_text(self, question: str, choices: Sequence[str] = ()) -> str:
        """Ask the user what may be answered in any words.

        Args:
            choices: suggestions; the answer may be one of them.

        Returns:
            the answer; empty where the user gives none.

        Raises:
            ToolError: where there is nobody to ask, and without choices where the interface takes no text.
        """
        ...

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What the factory's context manager yields, entered once a session and closed with it."""
        ...
