"""The context of a tool call, and its interfaces to files and to the session."""

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
    """The folders of a pack. Each is created, for this user alone (mode 0700), on first use."""

    @property
    def data(self) -> Path:
        """For data that must not be lost, shared by all profiles."""
        ...

    @property
    def cache(self) -> Path:
        """For data that can be fetched or computed again; users may delete it at any time."""
        ...

    @property
    def state(self) -> Path:
        """For data that outlives a run and matters on this machine only: logs, positions, histories."""
        ...

    @property
    def profile(self) -> Path:
        """For data that must not be lost and belongs to the person: the pack's folder in the active profile."""
        ...


class PackContext(Protocol):
    """What all code of a pack can use: its settings, secrets and folders, and the timeouts."""

    @property
    def folders(self) -> PackFolders: ...
    @property
    def timeouts(self) -> Timeouts:
        """The configured timeouts, in seconds. The stores and limits of the kit take them."""
        ...

    def settings(self, model: type[S]) -> S:
        """The settings of the pack, from defaults, config.yaml and environment variables.

        Args:
            model: the class that `PackSettings.model` names.

        Raises:
            ToolError, ConfigError: a setting is missing or wrong, in a tool and elsewhere; the text says which one
                and how to set it. Also if the pack declares no such settings.
        """
        ...

    @overload
    def secret(self, name: str) -> str:
        """The value of a variable that `PackSettings.secrets` or `@tool(secrets=...)` declares.

        Raises:
            ToolError, ConfigError: it is not set and there is no `default`, in a tool and elsewhere; the text
                says what to set. Also if it is not declared.
        """
        ...

    @overload
    def secret(self, name: str, default: None) -> str | None: ...
    @overload
    def secret(self, name: str, default: D) -> str | D: ...


class SessionView(Protocol):
    """What a tool can read and change of its session."""

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
        """The folder for output that did not fit."""
        ...

    def output_characters(self, tool_name: str) -> int:
        """The number of characters of this tool's results in the conversation."""
        ...

    def compact(self, target_tokens: int) -> str:
        """Compact older messages before the next request; returns a description of what will happen."""
        ...

    def search_backups(self, query: str, most: int) -> str:
        """Search messages that were removed from conversations for all words, or at least one, as text. Blocks."""
        ...

    def read_skill(self, name: str) -> str:
        """The text of a skill, or of one of its files, as in `pdf/references/forms.md`. Blocks.

        Raises `ToolError` if it does not exist or cannot be read.
        """
        ...

    def find_tools(self, query: str, most: int) -> Sequence[ToolSpec]:
        """The offered tools that match a query, best first. Blocks."""
        ...

    def set_working_dir(self, path: Path) -> None:
        """Change the sandbox root; takes effect with the next call."""
        ...

    def switch_profile(self, name: str) -> Path:
        """Switch the profile, created if it does not exist; returns its folder. Blocks: call it in a thread."""
        ...

    def change_preference(self, key: str, change: Callable[[Any], Any]) -> None:
        """Set a preference to `change(value)`; the value is None if it is not set. Blocks."""
        ...

    def usage(self, *, lifetime: bool = False) -> UsageSummary:
        """The usage since Marvin was started. Blocks to look up prices: call it in a thread."""
        ...

    def finish(self, way: Literal["auto", "play"]) -> None:
        """End auto-continue or play mode with the next answer. Raises `ToolError` if neither is on."""
        ...

    def leave(self, farewell: str) -> None:
        """End the interface after this turn, with this farewell."""
        ...


FileKind: TypeAlias = Literal["file", "folder", "link", "other"]
"""The type of an entry; other are pipes, sockets and devices."""


class FileInfo(Record):
    """An entry; its path is relative to the root. `size` is in bytes, `modified` in seconds since the epoch."""

    path: str
    kind: FileKind
    size: int
    modified: float


class FileWrite(Record):
    """The new content of a file, None to delete it. `mode` has the permissions of a new file.

    `expected` is the `os.fstat` of when it was read; that descriptor stays open, so that the inode is not reused.
    `content` is all that was read, if at hand. With `create_only` the file must not exist yet."""

    path: str
    data: bytes | None
    expected: os.stat_result | None = None
    content: bytes | None = None
    create_only: bool = False
    mode: int | None = None


class Paths(Protocol):
    """Access to files; paths of a model must not be used in any other way. They are relative to the working directory.

    Each method raises `PathRefused` if a path or its link target is outside of the working directory, hidden or
    protected, and `ToolError` if the system refuses. This is safe against links that are replaced meanwhile. All block.
    """

    @property
    def root(self) -> Path:
        """The sandbox root, resolved."""
        ...

    def open(self, path: str) -> BinaryIO:
        """Open a regular file, checked where its descriptor really is; `name` is that path, relative to the root."""
        ...

    def replace(self, path: str, data: bytes, *, create_only: bool = False) -> None:
        """Write a file atomically, with missing parent folders; with `create_only` it must not exist yet."""
        ...

    def write_together(self, changes: Sequence[FileWrite]) -> None:
        """Write and delete several files: all or none. Raises `FileChanged` if one is not as `expected`."""
        ...

    def append(self, path: str, data: bytes) -> None:
        """Append to a file, which is created with its folders if missing. A file with several hard links is refused."""
        ...

    def remove(self, path: str) -> None:
        """Delete a file; of a link, the link itself."""
        ...

    def make_folder(self, path: str) -> bool:
        """Create a folder and its missing parents; returns whether it was missing.

        `/undo` does not cover folders: a tool that creates one names the call that deletes it.
        """
        ...

    def remove_folder(self, path: str) -> None:
        """Delete an empty folder. Raises `ToolError` if it is not empty, or is a link."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a path exists; a broken link does not."""
        ...

    def stat(self, path: str) -> FileInfo:
        """The entry at a path; links are followed. Raises `ToolError` if there is none."""
        ...

    def list(self, path: str = ".", most: int = 10_000) -> Sequence[FileInfo]:
        """The first `most` entries of a folder by name. Links are not followed; hidden entries are left out."""
        ...

    def glob(self, pattern: str, most: int = 1_000) -> Sequence[str]:
        """The first `most` files and folders that match a pattern, in order. Links are not followed.

        `**` matches any number of folders, including none; a leading dot has to be written. Raises `ToolError` if more
        than 500,000 names would have to be checked.
        """
        ...

    def real_file(self, path: str, *, writing: bool = False) -> AbstractContextManager[Path]:
        """A real path of a private copy, for libraries that open files by name, such as SQLite.

        The copy exists until the block ends. With `writing`, the file need not exist, and the copy replaces it when the
        block ends without an error; close it before. Raises `ToolError` if another program changed the file meanwhile.
        """
        ...

    def locate(self, path: str) -> str:
        """The path relative to the root, checked, for a command line behind `--`."""
        ...

    def overview(self) -> str:
        """The working directory and a short tree of it, for error texts."""
        ...


class Clock(Protocol):
    """The clock of the session."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        ...


class ToolContext(PackContext, Protocol):
    """The context of a tool call: all that a tool may use."""

    @property
    def paths(self) -> Paths: ...
    @property
    def processes(self) -> Processes: ...
    @property
    def agents(self) -> Agents:
        """Starts sub-agents, under the rules of this session. Their actions count as those of this call."""
        ...

    @property
    def http(self) -> httpx.AsyncClient:
        """The shared client with Marvin's proxies, certificates, timeouts and limits; never close it.

        It reaches public addresses and those that the user allows, and raises `ToolError` for others."""
        ...

    async def may_reach(self, url: str) -> None:
        """Allow the tools to reach an address from the call's arguments, also on this machine or a private network.

        An address that a person typed is allowed at once. One that a model names needs approval in an interactive
        session, which holds for that server until the session ends. Otherwise nothing changes, and the request fails.

        Args:
            url: the address; public ones are allowed anyway.
        """
        ...

    async def proxied(self) -> Mapping[str, str]:
        """Environment variables of the proxy, for a program that makes requests of its own, such as a browser.

        Pass them as `env` to `processes.run`. The proxy reaches what `http` reaches: addresses of this machine and of
        private networks are refused. In a sandbox with a network of its own, the proxy of the sandbox is used instead,
        which asks the user about hosts. This does not restrict a program that ignores proxies.

        Raises:
            ToolError: the proxy cannot be started.
        """
        ...

    @property
    def mode(self) -> Mode: ...
    @property
    def origin(self) -> CallOrigin:
        """Who makes the call. A call by a person needs no further check; a `trial` calls all services."""
        ...

    @property
    def time_left(self) -> float:
        """Seconds until the call is stopped. A tool that calls several services in turn divides them."""
        ...

    @property
    def home(self) -> Path:
        """The user's home folder, for files that belong to no project, as in ~/Downloads."""
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
        """The value of a variable that `@tool(settings=...)` declares, or None. Raises `ToolError` for another one."""
        ...

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Report the progress of the call to the user.

        Args:
            text: the current step.
            done: how much is complete, in any unit, from 0 on.
            total: how much there is in all; the progress is shown as a fraction of it.
        """
        ...

    def reading(self, folder: Path) -> ToolContext:
        """This context with another, read-only folder as its working directory.

        Reading and searching, also by the kit, are then relative to that folder and restricted to it. Programs still
        start in the original working directory by default. The tool or a person has to choose the folder: check one
        that a model names first. Raises `ToolError` if it is not a folder.
        """
        ...

    def writing(self, folder: Path) -> ToolContext:
        """This context with another folder of the user as its working directory, created if it is missing.

        Its files are read, searched and written like those of the original one, and `/undo` covers them. Programs still
        start in the original working directory by default. The tool or a person has to choose the folder: check one
        that a model names first. Raises `ToolError` if there is none and it cannot be created, and in play mode, which
        is restricted to the playground.
        """
        ...

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; the answer is one of the choices. Raises `ToolError` in a non-interactive run."""
        ...

    async def ask_text(self, question: str, choices: Sequence[str] = ()) -> str:
        """Ask the user for free text.

        Args:
            choices: suggestions; the answer may be one of them.

        Returns:
            the answer; empty if the user gives none.

        Raises:
            ToolError: the run is not interactive, or there are no choices and the interface has no free text.
        """
        ...

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """The value of the factory's context manager, entered once per session and closed with it."""
        ...
