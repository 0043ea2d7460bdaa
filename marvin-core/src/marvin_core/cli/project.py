"""The extensions of the working directory at the start of a run: asks once for trust, then loads or reports them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..api.config import Config, ProjectFiles
from ..api.errors import ConfigError, MarvinError
from ..config.program import command_name
from ..util.streams import StandardStreams
from ..util.terminal_text import exact_line
from ..util.text import shortened

if TYPE_CHECKING:
    from ..api.permissions import ProjectTrust

_PLACES = (
    ".mcp.json",
    *(f".marvin/{name}" for name in ("config.yaml", "hooks", "tools", "commands", "agents", "prompts")),
)
_COPIES = "trusted-tools"
_SHOWN = 60
"""The maximum number of lines about a folder's extensions in the question."""
_LONGEST_ANSWER = 1_000


def brings_something(config: Config) -> bool:
    """Whether the working directory may have extensions, which require trust. Checks only whether the paths exist."""
    root = config.working_dir
    if config.config_folder == root / ".marvin":  # its content is the user's own configuration
        return False
    return any(os.path.lexists(root / name) for name in _PLACES)


def with_project(config: Config, warn: Callable[[str], None], *, attended: bool = False) -> Config:
    """The configuration with the extensions of the working directory if they are trusted. Otherwise, warn.

    In an `attended` run there is no warning if the user has already declined.
    """
    if not brings_something(config):
        return config
    from ..guard.trust import TrustStore

    found, contents = TrustStore(config).load(config.working_dir)
    if found.trusted:
        return _taken(config, contents, found.digest, warn)
    names = [exact_line(name) for name in found.brings]
    if names and not config.depth and not (attended and found.asked):
        warn(f"This folder brings {shortened(names)}, which is not loaded: {found.why}. {how_to_trust(found)}")
    return config


def how_to_trust(found: ProjectTrust) -> str:
    """What the user can do to load the extensions of a folder."""
    if not found.digest:
        return "Remove that part, or replace it by a file that can be read."
    return "--trust-project loads it for one run, /permissions trust in a chat from then on."


def _taken(config: Config, contents: Mapping[str, bytes], digest: str, warn: Callable[[str], None]) -> Config:
    from ..config.project import with_settings
    from ..guard.trust import COMMANDS, HOOKS, SERVERS, SETTINGS, TOOLS

    settings = contents.get(SETTINGS)
    if settings is not None:
        try:
            config, left_out = with_settings(config, settings)
            if left_out:
                warn(
                    f"{SETTINGS}: {', '.join(map(exact_line, left_out))}: a project cannot set this, so it was ignored."
                )
        except ConfigError as error:
            warn(f"{error} None of its settings is used.")
    if SERVERS in contents:
        config = _with_servers(config, contents[SERVERS], warn)
    commands = {name: text.decode("utf-8", "replace") for name, text in _below(COMMANDS, contents)}
    hooks = {name: text.decode("latin-1") for name, text in _below(HOOKS, contents)}
    tools = dict(_below(TOOLS, contents))
    files = ProjectFiles(
        root=config.working_dir,
        hooks=hooks,
        commands=commands,
        tools=_copied(config, tools, digest, warn) if tools else None,
    )
    return config.replace(project=files)


def _with_servers(config: Config, content: bytes, warn: Callable[[str], None]) -> Config:
    """Add the servers of the project to the user's own, which take precedence if names are equal."""
    from ..config.mcp_servers import servers_of_project
    from ..guard.trust import SERVERS

    try:
        return config.replace(mcp_servers={**servers_of_project(content, SERVERS), **config.mcp_servers})
    except ConfigError as error:
        warn(f"{error} None of its servers is used.")
        return config


def _below(folder: str, contents: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    return ((os.path.basename(name), text) for name, text in contents.items() if os.path.dirname(name) == folder)


def _copied(config: Config, tools: Mapping[str, bytes], digest: str, warn: Callable[[str], None]) -> Path | None:
    """Copy the trusted tools to a private folder: later changes in the project have no effect on the copies."""
    from ..util.state_files import make_private_folder, read_trusted, replace_file

    folder = config.state_folder / _COPIES / digest[:32]
    try:
        make_private_folder(folder)
        for name in set(os.listdir(folder)) - tools.keys() - {"__pycache__"}:
            os.unlink(folder / name)
        for name, content in tools.items():
            if read_trusted(folder / name) != content:
                replace_file(folder / name, content)
    except OSError as error:
        warn(f".marvin/tools is not loaded: {folder} cannot be written: {error.strerror}.")
        return None
    return folder


def ask_about_project(config: Config, streams: StandardStreams) -> None:
    """Ask at the terminal whether the extensions of the working directory may be loaded, once for each content.

    Only yes and no are stored; after any other answer the next start asks again.
    """
    if not brings_something(config) or not (streams.stdin_is_terminal() and os.isatty(streams.stderr)):
        return
    from ..guard.trust import TrustStore

    store = TrustStore(config)
    found = store.look(config.working_dir)
    if found.trusted or found.asked or not found.digest:
        return
    lines = [f"  {exact_line(line)}" for line in found.details]
    if len(lines) > _SHOWN:
        rest = f"  and {len(lines) - _SHOWN:,} lines more, which `{command_name()} config show` has"
        lines = [*lines[:_SHOWN], rest]
    changed = " It has changed since you were asked." if "changed" in found.why else ""
    streams.err("\n".join([f"{exact_line(found.folder)} brings what Marvin can load.{changed}", *lines]))
    import termios

    termios.tcflush(streams.stdin, termios.TCIFLUSH)  # discard input that was typed before the question
    streams.err("Trust it? Write yes or no, then Enter. /permissions trust asks again.")
    said = _line(streams.stdin).strip().lower()
    try:
        if said in ("yes", "y"):
            store.trust(found)
        elif said in ("no", "n"):
            store.decline(found)
    except MarvinError as error:
        streams.err(f"marvin: {error}")


def _line(descriptor: int) -> str:
    """Read a line; empty if the terminal is closed."""
    data = b""
    while not data.endswith(b"\n") and len(data) < _LONGEST_ANSWER:
        piece = os.read(descriptor, _LONGEST_ANSWER)
        if not piece:
            return ""
        data += piece
    return data.decode("utf-8", "replace")
