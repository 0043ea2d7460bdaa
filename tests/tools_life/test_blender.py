"""Blender: the protocol of its MCP add-on, and the tools against a Blender that is a module of Python."""

from __future__ import annotations

import base64
import json
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Image
from marvin_core.testing import PackRunner, ToolRunner
from marvin_tools_life.blender.exchange import Scanner
from marvin_tools_life.plugin import marvin_register_commands

Answer: TypeAlias = "bytes | Callable[[dict[str, Any]], bytes]"


class Addon:
    """What listens at a port and answers each request with the next answer; an empty one ends the connection.

    `orders` are the requests. What is left unanswered stays open until the end.
    """

    def __init__(self) -> None:
        self.orders: list[dict[str, Any]] = []
        self.answers: list[Answer] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self._open.append(connection)
                received = b""
                while True:
                    received += connection.recv(65_536)
                    with suppress(ValueError):
                        self.orders.append(json.loads(received))
                        break
                if not self.answers:
                    continue
                answer = self.answers.pop(0)
                content = answer if isinstance(answer, bytes) else answer(self.orders[-1])
                with suppress(OSError):
                    connection.sendall(content)
                if not content:
                    connection.close()

    def close(self) -> None:
        """End it, and all connections."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()
        for connection in self._open:
            connection.close()


def success(result: Any) -> bytes:
    return json.dumps({"status": "success", "result": result}).encode()


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x7f" * 3 * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.fixture
def addon() -> Iterator[Addon]:
    found = Addon()
    yield found
    found.close()


@pytest.fixture
def tools(marvin_tools: ToolRunner, addon: Addon) -> ToolRunner:
    return marvin_tools.session(env={"BLENDER_MCP_PORT": str(addon.port)}, timeouts={"http": 20.0})


CALLS: dict[str, dict[str, Any]] = {
    "blender_get_scene": {},
    "blender_get_object": {"object_name": "Cube"},
    "blender_create_object": {"object_type": "cube"},
    "blender_modify_object": {"object_name": "Cube", "location": [1, 2, 3]},
    "blender_delete_object": {"object_name": "Cube"},
    "blender_set_material": {"object_name": "Cube", "color": [1, 0, 0]},
    "blender_execute_code": {"code": "print(1)"},
    "blender_screenshot": {},
}


@pytest.mark.parametrize("tool", CALLS)
def test_without_blender_each_tool_says_how_to_start_it(marvin_tools: ToolRunner, tool: str) -> None:
    """I10."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    outcome = marvin_tools.session(env={"BLENDER_MCP_PORT": str(port)}).call(tool, **CALLS[tool])
    assert outcome.is_error
    assert f"Blender does not answer at 127.0.0.1:{port}. Start Blender with its MCP add-on" in outcome.text


@pytest.mark.slow
@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"", "closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is not the MCP add-on"),
        (b'{"hello": "world"}', "is not the MCP add-on"),
        (b'{"status": "success", "result": }', "is not the MCP add-on"),
        (b'{"status": "error", "message": "Unknown command type: x"}', "Blender says: Unknown command type: x"),
        (b'{"status": "success", "result": {"error": "No 3D viewport found"}}', "Blender says: No 3D viewport"),
        (b'{"status": "error", "message": "\\u001b[31mred\\nline"}', "Blender says: red line"),
    ],
)
def test_what_blender_answers_wrongly_is_explained(
    tools: ToolRunner, addon: Addon, tool: str, answer: bytes, says: str
) -> None:
    addon.answers = [answer]
    outcome = tools.call(tool, **CALLS[tool])
    assert outcome.is_error
    assert says in outcome.text
    assert len(outcome.text) < 1_000


def test_an_error_names_the_line_of_the_code(tools: ToolRunner, addon: Addon) -> None:
    trace = 'Traceback\n  File "addon.py", line 9, in f\n  File "<string>", line 3, in <module>\nValueError: no'
    message = json.dumps({"exception_type": "ValueError", "message": "no", "traceback": trace})
    addon.answers = [json.dumps({"status": "error", "message": message}).encode()]
    told = tools.call("blender_execute_code", code="x")
    assert "Blender says: ValueError: no (line 3 of the code)." in told.text


def test_silence_ends_with_the_time_out(marvin_tools: ToolRunner, addon: Addon) -> None:
    tools = marvin_tools.session(env={"BLENDER_MCP_PORT": str(addon.port)}, timeouts={"http": 0.5})
    outcome = tools.call("blender_get_scene")
    assert "did not answer in 0.5 seconds. It may be rendering" in outcome.text


def test_an_answer_that_never_ends_is_bounded(tools: ToolRunner, addon: Addon) -> None:
    addon.answers = [b'{"status": "success", "result": "' + b"x" * 17_000_000]
    assert "sent more than 16,777,216 bytes" in tools.call("blender_execute_code", code="1").text


@pytest.mark.parametrize(
    "more", [b"\n", success({"result": "of somebody else"}), b'{"half": ', b"\x89PNG", b"}" * 100_000]
)
def test_what_comes_behind_an_answer_is_passed_over(tools: ToolRunner, addon: Addon, more: bytes) -> None:
    """Two answers in one packet: the first one is ours."""
    addon.answers = [b"  \n" + success({"result": "mine"}) + more]
    assert tools.call("blender_execute_code", code="print(1)").text == "mine"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "is not the MCP add-on"),
        (b'{"status": "success", "result": "' + b"\xff\xfe" * 9 + b'"}', "is not the MCP add-on"),
        (b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "is not the MCP add-on"),
        (b"[1, 2]", "is not the MCP add-on"),
        (b'{"status": "success"}', "Blender did not report a result"),
        (b'{"status": "success", "result": 3}', "Blender did not report a result"),
        (success({"result": "marvin:{"}), "Blender did not report a result"),
        (success({"result": "marvin:[]"}), "Blender did not report a result"),
        (success({"result": "marvin:{}"}), "Blender did not report a result"),
        (success({"result": 'marvin:{"objects": 3, "name": []}'}), "Blender did not report a result"),
    ],
)
@pytest.mark.parametrize("tool", [name for name in CALLS if name not in ("blender_execute_code", "blender_screenshot")])
def test_an_answer_of_another_kind_is_explained(
    tools: ToolRunner, addon: Addon, tool: str, answer: bytes, says: str
) -> None:
    addon.answers = [answer]
    outcome = tools.call(tool, **CALLS[tool])
    assert outcome.is_error, outcome.text
    assert says in outcome.text
    assert len(outcome.text) < 1_000


def test_half_an_answer_and_then_nothing_is_late(marvin_tools: ToolRunner, addon: Addon) -> None:
    tools = marvin_tools.session(env={"BLENDER_MCP_PORT": str(addon.port)}, timeouts={"http": 0.5})
    addon.answers = [b'{"status": "success", "result": {"na']
    assert "did not answer in 0.5 seconds" in tools.call("blender_get_scene").text


@pytest.mark.parametrize("code", ["", "  \n", "x" * 200_001])
def test_code_is_neither_empty_nor_endless(tools: ToolRunner, addon: Addon, code: str) -> None:
    assert "Give 1 to 200,000" in tools.call("blender_execute_code", code=code).text
    assert addon.orders == []


def test_what_code_prints_comes_back(tools: ToolRunner, addon: Addon) -> None:
    addon.answers = [success({"executed": True, "result": '}{ "é" \\ \n'}), success({"result": ""})]
    assert tools.call("blender_execute_code", code="print(1)").text == '}{ "é" \\'
    assert addon.orders[0] == {"type": "execute_code", "params": {"code": "print(1)"}}
    assert tools.call("blender_execute_code", code="pass").text == "Done. The code printed nothing."


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("blender_create_object", {"object_type": "monkey"}, "object_type"),
        ("blender_create_object", {"object_type": "cube", "location": [1, 2]}, "location"),
        ("blender_create_object", {"object_type": "cube", "name": "x" * 64}, "at most 63 bytes"),
        ("blender_modify_object", {"object_name": "Cube"}, "No change was given"),
        ("blender_set_material", {"object_name": "Cube", "color": [1, 2, 3]}, "color"),
        ("blender_set_material", {"object_name": "Cube", "color": [1, 1]}, "color"),
        ("blender_screenshot", {"max_size": 10}, "max_size"),
    ],
)
def test_wrong_arguments_reach_no_blender(
    tools: ToolRunner, addon: Addon, tool: str, arguments: dict[str, Any], says: str
) -> None:
    refused = tools.call(tool, **arguments)
    assert refused.is_error
    assert says in refused.text
    assert addon.orders == []


def test_a_screenshot_is_an_image(tools: ToolRunner, addon: Addon) -> None:
    content = png(64, 32)

    def write(order: dict[str, Any]) -> bytes:
        Path(order["params"]["filepath"]).write_bytes(content)
        return success({"success": True, "width": 64, "height": 32})

    addon.answers = [write]
    outcome = tools.call("blender_screenshot", max_size=64)
    image = outcome.content[1]
    assert isinstance(image, Image)
    assert (image.media_type, base64.b64decode(image.data)) == ("image/png", content)
    assert "64 × 32 pixels" in outcome.text
    assert addon.orders[0]["params"]["max_size"] == 64
    assert not Path(addon.orders[0]["params"]["filepath"]).exists()


@pytest.mark.parametrize("content", [None, b"", b"no image"])
def test_a_screenshot_that_is_not_there_is_explained(tools: ToolRunner, addon: Addon, content: bytes | None) -> None:
    def write(order: dict[str, Any]) -> bytes:
        if content is not None:
            Path(order["params"]["filepath"]).write_bytes(content)
        return success({"success": True})

    addon.answers = [write]
    assert "took a screenshot, but Marvin cannot find the image" in tools.call("blender_screenshot").text


def test_the_command_says_whether_blender_answers(marvin_pack: PackRunner, addon: Addon) -> None:
    (command,) = marvin_register_commands()
    env = {"BLENDER_MCP_PORT": str(addon.port)}
    addon.answers = [success({"name": "Scene\x1b[31m"})]
    told = marvin_pack.session(env=env).command(command)
    assert told == f"Blender answers at 127.0.0.1:{addon.port}, with the scene 'Scene'."
    gone = marvin_pack.session(env={"BLENDER_MCP_HOST": "127.0.0.1", "BLENDER_MCP_PORT": "1"}).command(command)
    assert gone is not None
    assert gone.startswith("Blender does not answer at 127.0.0.1:1. Start Blender")


@pytest.mark.slow
@given(
    st.recursive(st.text() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)), st.data()
)
def test_the_end_of_an_object_is_found_wherever_it_is_cut(value: Any, data: st.DataObject) -> None:
    content = json.dumps({"a": value}, ensure_ascii=data.draw(st.booleans())).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    scanner = Scanner()
    for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
        assert not scanner.is_over or start == len(content)
        if not scanner.is_over:
            scanner.feed(content[start:end] + (b"}{\\" if end == len(content) else b""))
    assert scanner.is_over
    assert scanner.end == len(content)
    assert not scanner.is_wrong
