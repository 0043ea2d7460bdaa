"""Blender as a module (bpy), behind the protocol of the MCP add-on, at the port that it is given."""

from __future__ import annotations

import contextlib
import io
import json
import socket
import sys
from typing import Any

import bpy  # type: ignore[import-not-found, unused-ignore]


def done(order: dict[str, Any]) -> dict[str, Any]:
    """The answer to an order."""
    printed = io.StringIO()
    try:
        if order["type"] == "get_scene_info":
            return {"status": "success", "result": {"name": bpy.context.scene.name}}
        if order["type"] != "execute_code":
            return {"status": "error", "message": f"Unknown command type: {order['type']}"}
        with contextlib.redirect_stdout(printed):
            exec(order["params"]["code"], {"bpy": bpy})
    except Exception as error:
        return {"status": "error", "message": str(error)}
    return {"status": "success", "result": {"executed": True, "result": printed.getvalue()}}


def main() -> None:
    """Serve one connection after the other, until the program is ended."""
    server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    while True:
        connection, _ = server.accept()
        with connection:
            received = b""
            while chunk := connection.recv(65_536):
                received += chunk
                with contextlib.suppress(ValueError):
                    order = json.loads(received)
                    received = b""
                    connection.sendall(json.dumps(done(order)).encode())


if __name__ == "__main__":
    main()
