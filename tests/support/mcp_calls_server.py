"""A server with one tool, `do`, that answers each call in the way that the call names."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

MODERN = "modern" in sys.argv
"""Whether it speaks a protocol in which results ask for input."""
SLOW = "slow" in sys.argv
"""Whether it takes a second to begin, and another to end."""
KEPT = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if MODERN else {}
calls: list[Any] = []
cancelled: list[Any] = []
held: list[Any] = []


def send(**message: Any) -> None:
    """Write a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(said: str) -> dict[str, Any]:
    """The result of a call."""
    return {"content": [{"type": "text", "text": said}], **({"resultType": "complete"} if MODERN else {})}


def call(number: Any, how: str, params: dict[str, Any]) -> None:
    """Answer a call, or not."""
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
            send(id=number, result={**KEPT, "tools": [{"name": "do", "inputSchema": schema}]})
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
