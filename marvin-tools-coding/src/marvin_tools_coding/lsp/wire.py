"""The wire format of language servers: JSON-RPC messages after a header with their length."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from typing import Any

_HEADER_LIMIT = 4_096
_BODY_LIMIT = 16_000_000
"""Bytes of one message."""


class WireError(ValueError):
    """A server sent bytes that are not of the protocol."""


def packed(message: Mapping[str, Any]) -> bytes:
    """A message as bytes with its header."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class MessageReader:
    """Parses a stream of bytes into messages."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._length = -1
        self._charset = "utf-8"

    def feed(self, chunk: bytes) -> Iterator[Mapping[str, Any]]:
        """Add bytes; returns the messages that are complete.

        Raises:
            WireError: the bytes are not messages, or one is too long.
        """
        self._data += chunk
        while True:
            if self._length < 0:
                end = self._data.find(b"\r\n\r\n")
                if end < 0:
                    if len(self._data) > _HEADER_LIMIT:
                        raise WireError("it sent no header")
                    return
                self._take_header(bytes(self._data[:end]))
                del self._data[: end + 4]
            if len(self._data) < self._length:
                return
            body = bytes(self._data[: self._length])
            del self._data[: self._length]
            self._length = -1
            yield self._message(body)

    def _take_header(self, header: bytes) -> None:
        fields = {}
        for line in header.decode("latin-1").split("\r\n"):
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        length = fields.get("content-length", "")
        if not (length.isascii() and length.isdigit()) or len(length) > len(str(_BODY_LIMIT)):
            raise WireError("it sent a header without a length")
        self._length = int(length)
        if self._length > _BODY_LIMIT:
            raise WireError(f"it sent a message of {self._length:,} bytes")
        _, _, charset = fields.get("content-type", "").partition("charset=")
        self._charset = charset.strip('"; ') or "utf-8"

    def _message(self, body: bytes) -> Mapping[str, Any]:
        try:
            # "utf8" is the spelling of the first version of the protocol.
            message = json.loads(body.decode(codecs.lookup(self._charset).name))
        except (ValueError, LookupError, RecursionError) as error:
            raise WireError(f"it sent what is not valid JSON: {error}") from error
        if not isinstance(message, dict):
            raise WireError("it sent something that is not a message")
        return message
