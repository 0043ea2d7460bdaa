"""Reads the prompt of a run from a flag, a file or standard input."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..api.config import Config
from ..api.errors import MarvinError
from ..util.streams import StandardStreams

_LARGEST = 10_000_000
_CHUNK = 65_536
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def read_prompt(config: Config, streams: StandardStreams) -> str:
    """Read the prompt. Standard input is used only if there is no other prompt and it is not a terminal.

    Raises:
        MarvinError: there is no prompt, it cannot be read, or it is empty.
    """
    if config.prompt is not None:
        text = config.prompt
    elif config.prompt_file is not None:
        text = _read_file(config.prompt_file, config.timeouts.stdin_idle)
    elif streams.stdin_is_terminal():
        raise MarvinError("No prompt was given. Use --prompt TEXT, --prompt-file PATH, or standard input.")
    else:
        text = _read_stdin(streams, config.timeouts.stdin_idle)
    if not text.strip():
        raise MarvinError("The prompt is empty. Use --prompt TEXT, --prompt-file PATH, or standard input.")
    return text


def read_what_came(config: Config, streams: StandardStreams) -> str:
    """Read standard input if it has data now, without waiting for the first byte; otherwise return an empty text.

    Raises:
        MarvinError: standard input cannot be read, or does not end.
    """
    import select

    try:
        came = bool(select.select([streams.stdin], [], [], 0)[0])
    except (OSError, ValueError):  # standard input is closed
        return ""
    return _read_stdin(streams, config.timeouts.stdin_idle) if came else ""


def _read_file(path: Path, idle: float) -> str:
    """Read a file or a pipe, for instance of the shell's `<(...)`. The limits of standard input apply."""
    name = f"The prompt file {path}"
    try:
        descriptor = os.open(path, _OPEN)
        try:
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise IsADirectoryError(21, "Is a directory")
            text = _decoded(_read(descriptor, idle, name), name, "Save it as UTF-8.")
            return text.replace("\r\n", "\n").replace("\r", "\n")
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise MarvinError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _read_stdin(streams: StandardStreams, idle: float) -> str:
    name = "Standard input"
    try:
        return _decoded(_read(streams.stdin, idle, name), name, "Convert it first.")
    except (OSError, ValueError) as error:
        raise MarvinError(f"{name} cannot be read: {error}. Use --prompt TEXT.") from error


def _read(descriptor: int, idle: float, name: str) -> bytes:
    """Read to the end, up to a maximum size. `idle` is the maximum time until the next byte, in seconds."""
    import select

    data = bytearray()
    while True:
        if not select.select([descriptor], [], [], idle)[0]:
            raise MarvinError(f"{name} was silent for {idle:g} s. Close it, or use --prompt TEXT.")
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:  # another reader was faster
            continue
        if not chunk:
            return bytes(data)
        data += chunk
        if len(data) > _LARGEST:
            raise MarvinError(f"{name} holds more than {_LARGEST:,} bytes. Put it into a file of the project.")


def _decoded(data: bytes, name: str, remedy: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MarvinError(f"{name} is not UTF-8 (byte {error.start}). {remedy}") from error
