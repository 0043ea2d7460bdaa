"""Reading the prompt of a non-interactive run: from a flag, a file or standard input."""

from __future__ import annotations

import os

from ..api.config import Config
from ..api.errors import MarvinError
from ..util.streams import StandardStreams

_LARGEST = 10_000_000
_CHUNK = 65_536


def read_prompt(config: Config, streams: StandardStreams) -> str:
    """The prompt. Standard input is read only where no other was given and it is not a terminal.

    Raises:
        MarvinError: where there is none, it cannot be read, or it is empty.
    """
    if config.prompt is not None:
        text = config.prompt
    elif config.prompt_file is not None:
        try:
            text = config.prompt_file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise MarvinError(f"{config.prompt_file} is not UTF-8 (byte {error.start}). Save it as UTF-8.") from error
        except OSError as error:
            reason = error.strerror or error
            raise MarvinError(f"The prompt file {config.prompt_file} cannot be read: {reason}.") from error
    elif streams.stdin_is_terminal():
        raise MarvinError("There is no prompt. Give one with --prompt TEXT, --prompt-file PATH, or standard input.")
    else:
        text = _read_stdin(streams, config.timeouts.stdin_idle)
    if not text.strip():
        raise MarvinError("The prompt is empty. Give one with --prompt TEXT, --prompt-file PATH, or standard input.")
    return text


def _read_stdin(streams: StandardStreams, idle: float) -> str:
    import select

    data = bytearray()
    try:
        while True:
            if not select.select([streams.stdin], [], [], idle)[0]:
                raise MarvinError(f"Standard input was silent for {idle:g} s. Close it, or use --prompt TEXT.")
            chunk = os.read(streams.stdin, _CHUNK)
            if not chunk:
                return data.decode("utf-8")
            data += chunk
            if len(data) > _LARGEST:
                raise MarvinError(f"Standard input holds more than {_LARGEST:,} bytes. Put the material into a file.")
    except UnicodeDecodeError as error:
        raise MarvinError(f"Standard input is not UTF-8 (byte {error.start}). Convert it first.") from error
    except (OSError, ValueError) as error:
        raise MarvinError(f"Standard input cannot be read: {error}. Use --prompt TEXT.") from error
