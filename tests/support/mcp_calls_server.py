"""A server with one tool, `do`, that answers each call in the way that the call names."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

MODERN = "modern" in sys.argv
"""Whether it speaks a protocol in which results ask for input."""
SLOW = "slow" in sys.argv
"""Whether it takes a second to begin, and another to end."""
RESTLESS = "restless" in sys.argv
"""Whether its list of tools changes while it is asked for the first time."""
KEPT = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if MODERN else {}
UNREADABLE = {"large": '"' + "x" * 16_010_000 + '"', "wide": f"[{'1,' * 600_000}1]", "deep": "[" * 200 + "]" * 200}
"""Values for which a message is too large or too complex to be read."""
told: list[bool] = []
changes = 0
"""How often its list of tools has changed."""
calls: list[Any] = []
cancelled: list[Any] = []
held: list[Any] = []


def send(**message: Any) -> None:
    """Write a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(said: str) -> dict[str, Any]:
    """The result of a call."""
    return {"content": [{"type": "text", "text": said}], **({"resultType": "complete"} if MODERN else {})}


def raw(line: bytes) -> None:
    """Write a line of any bytes."""
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.flush()


def call(number: Any, how: str, params: dict[str, Any]) -> None:
    """Answer a call, or not."""
    global changes
    calls.append(number)
    if how in ("calls", "cancelled"):
        send(id=number, result=text(json.dumps(calls if how == "calls" else cancelled)))
    elif how == "params":
        send(id=number, result=text(json.dumps(params)))
    elif how == "twice":
        send(id=number, result=text("first"))
        send(id=number, result=text("second"))
    elif how == "text id":
        send(id=str(number), result=text("with a text"))
    elif how == "float id":
        send(id=float(number), result=text("with a float"))
    elif how == "strange":
        never: list[Any] = [
            None,
            1.5,
            1e300,
            10**9 + 0.5,
            [],
            {"a": 1},
            True,
            10**9 + 500,
            str(10**9 + 501),
            "9" * 5000,
        ]
        for one in never:
            send(id=one, result=text("nobody asked"))
        send(id=number, result=text("right"))
    elif how == "error":
        send(id=number, error={"code": -32000, "message": "no cheese"})
    elif how == "odd error":
        send(id=number, error="oops")
    elif how == "neither":
        send(id=number)
    elif how == "no content":
        send(id=number, result={"content": "none"})
    elif how == "progress":
        for value in (1, "two", None, True, [3], 3):
            progress(params, value)
        send(id=number, result=text("done"))
        progress(params, 4)
    elif how == "huge progress":
        for value, total in ((10**400, 1), (1, 10**400)):
            progress(params, value, total)
        send(id=number, result=text("done"))
    elif how == "asks":
        question = {"mode": "form", "message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}
        asked = {"which": {"method": "elicitation/create", "params": question}}
        first = {"resultType": "input_required", "requestState": "x", "inputRequests": asked if MODERN else {}}
        told = text(json.dumps([params.get("requestState"), params.get("inputResponses"), calls]))
        send(id=number, result=told if "requestState" in params else first)
    elif how in ("other kind", "no kind"):
        send(id=number, result={**text(json.dumps(calls)), "resultType": "other" if how == "other kind" else None})
    elif how == "sleep":
        time.sleep(60)
    elif how in ("last words", "many last words"):
        send(id=number, result=text("bye" if how == "last words" else "bye " * 1_000_000))
        sys.exit(0)
    elif how == "last error":
        send(id=number, error={"code": -32000, "message": "no cheese"})
        os._exit(1)  # in the same moment
    elif how == "latin":
        raw(json.dumps({"jsonrpc": "2.0", "id": number, "result": text("caf#")}).encode().replace(b"#", b"\xe9"))
    elif how in UNREADABLE:
        raw(f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":[],"a":{UNREADABLE[how]}}}}}'.encode())
    elif how in ("output closes", "input closes"):
        print("there is no cheese", file=sys.stderr, flush=True)
        if how == "input closes":
            send(id=number, result=text("done"))
        os.close(1 if how == "output closes" else 0)
        time.sleep(60)
    elif how == "logs":
        raw(json.dumps({"id": number, "level": "info", "msg": "called"}).encode())
        send(id=number, result=text("done"))
    elif how == "prints":
        raw(b"called\n" * 8)
        send(id=number, result=text(json.dumps(calls)))
    elif how == "asks the user":
        schema = {"type": "object", "properties": {}}
        send(id="q", method="elicitation/create", params={"message": "Which?", "requestedSchema": schema})
    elif how == "changes":
        changes += 1
        send(method="notifications/tools/list_changed")
        send(id=number, result=text("changed"))
    elif how == "die":
        print("there is no cheese", file=sys.stderr)
        sys.exit(1)
    elif how == "reverse":
        held.append(number)
        if len(held) == 3:
            for one in reversed(held):
                send(id=one, result=text(str(held.index(one))))


def progress(params: dict[str, Any], value: Any, total: Any = None) -> None:
    """Report progress, with a valid value or another one."""
    told = {"progressToken": params["_meta"]["progressToken"], "progress": value, "message": "step"}
    send(method="notifications/progress", params=told if total is None else {**told, "total": total})


def serve() -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "server/discover" and MODERN:
            send(id=number, result={**KEPT, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        elif method == "initialize":
            time.sleep(1 if SLOW else 0)
            info = {"name": "trial", "version": "1"}
            able = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
            send(id=number, result=able)
        elif method == "tools/list":
            schema = {"type": "object", "properties": {"how": {"type": "string"}}}
            tools = [{"name": name, "inputSchema": schema} for name in (["do"], ["other"])[changes % 2]]
            if RESTLESS and not told:
                send(method="notifications/tools/list_changed")
                told.append(True)
                time.sleep(0.3)
            send(id=number, result={**KEPT, "tools": tools})
        elif method == "notifications/cancelled":
            cancelled.append(params["requestId"])
            send(id=params["requestId"], result=text("too late"))
        elif method == "tools/call":
            call(number, params["arguments"]["how"], params)
        elif number is not None:
            send(id=number, error={"code": -32601, "message": "unknown method"})


if __name__ == "__main__":
    serve()
    time.sleep(1 if SLOW else 0)
