"""A program that inspects archives, databases and PDF documents, in a process of its own with limits.

The request is JSON in its one argument (`what`, `first`, `last`, `limit`), the file is on standard input. The answer
on standard output is JSON: `total`, and `parts`, which are names or the texts of pages.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
import tarfile
import zipfile
from contextlib import suppress
from io import BytesIO
from typing import Any

_MEMORY = 1_000_000_000
"""Bytes of memory."""
_SECONDS = 20
_COUNTED = 100_000
"""Names of an archive that are counted."""


def main(order: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Print the content of the file."""
    if order["what"] == "pdf":
        return _pages(data, order["first"], order["last"], order["limit"])
    names, total = {"zip": _zip, "tar": _tar, "sqlite": _sqlite}[order["what"]](data, order["last"])
    return {"parts": names, "total": total}


def _pages(data: bytes, first: int, last: int, limit: int) -> dict[str, Any]:
    """The texts of pages, until they exceed the limit in characters."""
    from pypdf import PdfReader

    pages = PdfReader(BytesIO(data)).pages
    texts: list[str] = []
    for number in range(first - 1, min(last, len(pages))):
        texts.append(pages[number].extract_text()[: limit + 1])
        limit -= len(texts[-1])
        if limit < 0:
            break
    return {"parts": texts, "total": len(pages)}


def _zip(data: bytes, most: int) -> tuple[list[str], int]:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        entries = archive.infolist()
    return [f"{entry.filename} ({entry.file_size:,} bytes)" for entry in entries[:most]], len(entries)


def _tar(data: bytes, most: int) -> tuple[list[str], int]:
    names: list[str] = []
    total = 0
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        for entry in archive:
            if total < most:
                names.append(f"{entry.name}{'/' if entry.isdir() else f' ({entry.size:,} bytes)'}")
            total += 1
            if total == _COUNTED:
                break
    return names, total


def _sqlite(data: bytes, most: int) -> tuple[list[str], int]:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(data)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    connection.close()
    return names[:most], len(names)


def _limit() -> None:
    for what, most in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_CPU, _SECONDS)):
        with suppress(OSError, ValueError):  # some systems have no such limit
            resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    _limit()
    json.dump(main(json.loads(sys.argv[1]), sys.stdin.buffer.read()), sys.stdout)
