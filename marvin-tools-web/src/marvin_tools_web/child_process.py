"""Shared code of the programs that parse pages, documents and feeds in processes of their own.

Parsing a page may take any time and memory; a process can be killed and has limits. Standard input is a
line of JSON, then the body. Standard output is JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

MEMORY = 800 * 1024 * 1024
"""Bytes of memory that such a process may use."""


def serve(work: Callable[[Mapping[str, Any], bytes], Any], memory: int | None = MEMORY) -> None:
    """Answer one request from standard input, within `memory` bytes; None if its own child processes need more."""
    try:
        import resource

        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except (ImportError, ValueError, OSError):
        pass  # not every system has that limit; the timeout of the caller still holds
    asked = json.loads(sys.stdin.buffer.readline())
    answer = work(asked, sys.stdin.buffer.read())
    # Lone surrogates, which some documents contain, cannot be encoded.
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def program(module: str) -> tuple[str, ...]:
    """The command that runs a module of this pack; `-P` keeps the working directory out of the import path."""
    return (sys.executable, "-P", "-m", module)


def question(asked: Mapping[str, Any], body: bytes = b"") -> bytes:
    """The standard input of such a program."""
    return json.dumps(asked).encode() + b"\n" + body
