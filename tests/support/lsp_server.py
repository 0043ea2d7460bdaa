"""A misbehaving language server: `python lsp_server.py WAY`. It writes its process id to lsp.pid.

Ways: good, late, hang_start, hang_request, hang_shutdown, crash_start, crash_request, crash_once, flood, old_version,
no_version, utf_16, garbage, huge, nested, wrong_types, asks, curious.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

WAY = sys.argv[1]


def send(message: object, charset: str = "utf-8") -> None:
    """Send one message."""
    body = json.dumps(message).encode(charset)
    kind = "" if charset == "utf-8" else f"Content-Type: application/vscode-jsonrpc; charset={charset}\r\n"
    sys.stdout.buffer.write(f"{kind}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    sys.stdout.buffer.flush()


def receive() -> dict[str, Any]:
    """The next message; ends the program at the end of the input."""
    length = 0
    while line := sys.stdin.buffer.readline():
        if line == b"\r\n":
            message: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
            return message
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    if WAY == "hang_shutdown":
        time.sleep(600)
    sys.exit(0)


def publish(uri: str, version: int | None, text: str, charset: str = "utf-8") -> None:
    """Say that the first line with the word `wrong` is wrong, if there is one."""
    lines = [number for number, line in enumerate(text.splitlines()) if "wrong" in line]
    said: list[Any] = [
        {"range": {"start": {"line": number, "character": 0}}, "severity": 1, "message": f"wrong here ü\x1b[31m {WAY}"}
        for number in lines
    ]
    if WAY == "wrong_types":
        said = [None, 7, {"range": []}, {"range": {"start": {"line": "x"}}, "message": 3}, *said]
    parameters: dict[str, Any] = {"uri": uri, "diagnostics": said}
    if version is not None:
        parameters["version"] = version
    send({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": parameters}, charset)


def tried(word: str) -> str:
    """What became of an attempt: `write=PATH`, `read=PATH`, `reach=PORT` of this machine."""
    what, _, target = word.partition("=")
    try:
        if what == "write":
            Path(target).write_text("owned")
        elif what == "read":
            return f"{what} {Path(target).read_text()}"
        else:
            socket.create_connection(("127.0.0.1", int(target)), 2).close()
    except OSError as error:
        return f"{what} {type(error).__name__}"
    return f"{what} done"


def looked_at(document: dict[str, Any], text: str) -> None:
    """Answer for a text as the way has it."""
    uri, version = document["uri"], document["version"]
    if WAY == "hang_request":
        time.sleep(600)
    elif WAY in ("crash_request", "crash_once"):
        if WAY == "crash_request" or not Path("crashed").exists():
            Path("crashed").touch()
            os._exit(3)
        publish(uri, version, text)
    elif WAY == "flood":
        while True:
            publish(uri, version - 1, "wrong\n" * 1_000)
    elif WAY == "old_version":
        publish(uri, version - 1, "wrong\n")
        publish(f"{uri}.other", version, "wrong\n")
    elif WAY == "garbage":
        sys.stdout.buffer.write(b"\x00\xff" * 10_000)
        sys.stdout.buffer.flush()
    elif WAY == "huge":
        sys.stdout.buffer.write(b"Content-Length: 99999999999999999999999\r\n\r\n")
        sys.stdout.buffer.flush()
    elif WAY == "nested":
        body = b"[" * 1_000_000
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        sys.stdout.buffer.flush()
    elif WAY == "curious":
        said = ", ".join(tried(word) for word in text.split() if "=" in word and len(word) > 1)
        place = {"start": {"line": 0, "character": 0}}
        parameters = {"uri": uri, "version": version, "diagnostics": [{"range": place, "message": said}]}
        send({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": parameters})
    elif WAY == "late":
        time.sleep(1.5)
        publish(uri, version, text)
    elif WAY == "no_version":
        publish(uri, None, "wrong\n")  # of what was there before
        time.sleep(0.1)
        publish(uri, None, text)
    else:
        publish(uri, version, text, "utf-16" if WAY == "utf_16" else "utf-8")


def main() -> None:
    """Serve until the input ends."""
    Path("lsp.pid").write_text(str(os.getpid()))
    signal.signal(signal.SIGTERM, signal.SIG_IGN if WAY == "hang_shutdown" else signal.SIG_DFL)
    if WAY == "hang_start":
        time.sleep(600)
    if WAY == "crash_start":
        sys.exit(2)
    while True:
        message = receive()
        method, given = message.get("method"), message.get("params") or {}
        if method == "shutdown" and WAY == "hang_shutdown":
            time.sleep(600)
        elif method == "exit":
            Path("lsp.left").write_text("cleanly")
            return
        elif method == "textDocument/didOpen":
            looked_at(given["textDocument"], given["textDocument"]["text"])
        elif method == "textDocument/didChange":
            looked_at(given["textDocument"], given["contentChanges"][0]["text"])
        elif method == "initialize" and WAY == "asks":
            for number, asked in enumerate(
                ("workspace/configuration", "workspace/applyEdit", "client/registerCapability")
            ):
                send({"jsonrpc": "2.0", "id": f"s{number}", "method": asked, "params": {"items": [{"section": "a.b"}]}})
            send({"jsonrpc": "2.0", "id": message["id"], "result": {"capabilities": {}}})
        elif "id" in message and "method" in message:
            send({"jsonrpc": "2.0", "id": message["id"], "result": {"capabilities": {}}})


main()
