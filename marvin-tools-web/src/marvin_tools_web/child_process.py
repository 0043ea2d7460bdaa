"""What the programs share that read pages, documents and feeds in processes of their own.

What a page holds may take any time and memory to parse; a process can be ended and has a limit. Standard input is a
line of JSON, then the body. Standard output is JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

MEMORY = 800 * 1024 * 1024
"""Bytes that such a process may take."""


def serve(work: Callable[[Mapping[str, Any], bytes], Any], memory: int | None = MEMORY) -> None:
    """Answer one question from standard input, within `memory` bytes; None where its own children need more."""
    try:
        import resource

        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except (ImportError, ValueError, OSError):
        pass  # not every system has that limit; the time-out of the caller holds
    asked = json.loads(sys.stdin.buffer.readline())
    answer = work(asked, sys.stdin.buffer.read())
    # Halves of surrogate pairs, which some documents hold, are no text.
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def program(module: str) -> tuple[str, ...]:
    """The command that runs a module of this pack; `-P` keeps the working directory out of its imports."""
    return (sys.executable, "-P", "-m", module)


def question(asked: Mapping[str, Any], body: bytes = b"") -> bytes:
    """What such a program reads."""
    return json.dumps(asked).encode() + b"\n" + body
