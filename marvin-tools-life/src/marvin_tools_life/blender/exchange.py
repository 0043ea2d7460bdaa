"""Sends one request to Blender's MCP add-on: a JSON order on standard input, the answer on standard output.

The order has `host`, `port`, `timeout` in seconds, `most` bytes of an answer, and `request`, which is sent unchanged.
The first line of the output is one word: answered, refused, failed, late, ended, large or strange. The answer, or the
system's error message, follows.
"""

from __future__ import annotations

import json
import re
import socket
import sys
from typing import Any

_CHUNK = 64 * 1024
_TOKEN = re.compile(rb'["{}\[\]]|\\.', re.DOTALL)


def main(order: dict[str, Any]) -> tuple[str, bytes]:
    """Carry out an order."""
    try:
        with socket.create_connection((order["host"], order["port"]), timeout=order["timeout"]) as connection:
            connection.sendall(order["request"].encode())
            return _answer(connection, order["most"])
    except TimeoutError:
        return "late", b""
    except ConnectionRefusedError:
        return "refused", b""
    except OSError as error:
        return "failed", (error.strerror or str(error)).encode()


def _answer(connection: socket.socket, most: int) -> tuple[str, bytes]:
    """The bytes of one JSON object, up to its closing bracket, as the connection stays open."""
    content = bytearray()
    scanner = Scanner()
    while not scanner.is_over:
        chunk = connection.recv(_CHUNK)
        content += chunk
        scanner.feed(chunk)
        if not chunk:
            return "ended", b""
        if len(content) > most:
            return "large", b""
        if scanner.is_wrong:
            return "strange", b""
    return "answered", bytes(content[: scanner.end])  # anything after it is not an answer to this request


class Scanner:
    """Finds the end of a JSON object; looks at each byte once."""

    def __init__(self) -> None:
        self.is_over = False
        self.is_wrong = False
        self.end = 0
        """The length of the object in bytes, with what precedes it."""
        self._seen = 0
        self._depth = 0
        self._in_text = False
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Scan the next bytes."""
        data = self._rest + chunk
        begin = self._seen - len(self._rest)
        self._seen += len(chunk)
        if self._depth == 0 and data.lstrip()[:1] not in (b"", b"{"):
            self.is_wrong = True
            return
        # A backslash at the end escapes the first byte of the next chunk.
        ends = len(data) - len(data.rstrip(b"\\"))
        self._rest = b"\\" if ends % 2 else b""
        for match in _TOKEN.finditer(data[: len(data) - ends % 2]):
            self._take(match[0])
            if self.is_over:
                self.end = begin + match.end()
                return

    def _take(self, token: bytes) -> None:
        if token == b'"':
            self._in_text = not self._in_text
        elif not self._in_text and token in (b"{", b"["):
            self._depth += 1
        elif not self._in_text and token in (b"}", b"]"):
            self._depth -= 1
            self.is_over = self._depth <= 0


if __name__ == "__main__":
    outcome, content = main(json.load(sys.stdin))
    sys.stdout.buffer.write(outcome.encode() + b"\n" + content)
