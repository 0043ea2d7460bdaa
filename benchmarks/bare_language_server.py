"""A language server without Marvin: it gets a file and its changes, and the script waits for the diagnostics."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

_CAN = {
    "textDocument": {"synchronization": {"didSave": True}, "publishDiagnostics": {"versionSupport": True}},
    "workspace": {"configuration": True, "workspaceFolders": True},
}


class BareServer:
    """A server that looks at the file a.py of a folder. It says of which version its diagnostics are."""

    def __init__(self, argv: Sequence[str], root: Path, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._file = root / "a.py"
        self._version = 0
        self._process = subprocess.Popen(
            argv, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.pid = self._process.pid
        uri = root.as_uri()
        self._send(
            {
                "id": 1,
                "method": "initialize",
                "params": {
                    "processId": None,
                    "rootUri": uri,
                    "workspaceFolders": [{"uri": uri, "name": root.name}],
                    "capabilities": _CAN,
                },
            }
        )
        while self._receive().get("id") != 1:
            pass
        self._send({"method": "initialized", "params": {}})

    def look_at(self, text: str) -> int:
        """Send a text; returns the number of diagnostics."""
        self._file.write_text(text)
        self._version += 1
        known = {"uri": self._file.as_uri(), "version": self._version}
        if self._version == 1:
            document = {**known, "languageId": "python", "text": text}
            self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        else:
            change = {"textDocument": known, "contentChanges": [{"text": text}]}
            self._send({"method": "textDocument/didChange", "params": change})
        self._send({"method": "textDocument/didSave", "params": {"textDocument": {"uri": known["uri"]}}})
        while True:
            message = self._receive()
            if message.get("method") == "textDocument/publishDiagnostics":
                if message["params"].get("version") == self._version:
                    return len(message["params"]["diagnostics"])
            elif "method" in message and "id" in message:
                asked = message.get("params") or {}
                items = asked.get("items", []) if message["method"] == "workspace/configuration" else None
                result = items if items is None else [self._settings.get(one.get("section"), {}) for one in items]
                self._send({"id": message["id"], "result": result})

    def _send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        length = 0
        while (line := stream.readline()) != b"\r\n":
            if not line:
                raise EOFError("the server has ended")
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        message: dict[str, Any] = json.loads(stream.read(length))
        return message

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.kill()
        self._process.communicate()
