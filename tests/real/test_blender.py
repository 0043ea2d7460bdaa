"""The Blender tools against a real Blender: the module of Python, and the program with the MCP add-on that people use.

The add-on runs in a Blender with a window, on a display without a screen.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from socket import socket

import pytest

from marvin_core import Image
from marvin_core.testing import Outcome, ToolRunner
from tests.real.components import PYTHON, REAL, free_port, required
from tests.tools_life.desktop import need, running, until

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("blender")]

ADD_ON = REAL / "blender-add-on" / "blender_mcp" / "bundled" / "addon.py"
PROGRAMS = Path(__file__).parent
DISPLAY = "320x240x24"
START = 300.0
"""Seconds."""


@pytest.fixture(scope="module", params=["module", "add-on"])
def blender(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Blender that does what it is sent."""
    port, environment = free_port(), dict(os.environ)
    with ExitStack() as stack:
        if request.param == "module":
            argv = [str(PYTHON), "-P", str(PROGRAMS / "blender_program.py"), str(port)]
        else:
            required(ADD_ON)
            need("blender", "Xvfb")
            number, write = os.pipe()
            screen = ["Xvfb", "-displayfd", str(write), "-screen", "0", DISPLAY, "-nolisten", "tcp"]
            stack.enter_context(running(screen, pass_fds=(write,)))
            os.close(write)
            with os.fdopen(number) as told:
                environment |= {"DISPLAY": f":{told.readline().strip()}", "LIBGL_ALWAYS_SOFTWARE": "1"}
            home = str(tmp_path_factory.mktemp("blender"))
            environment |= {"HOME": home, "TMPDIR": home, "BLENDERMCP_NO_UPDATE_CHECK": "1"}
            # The Python inside looks for its libraries beside the first `python3` of PATH.
            environment["PATH"] = "/usr/bin:/bin"
            argv = ["blender", "--factory-startup", "-noaudio", "--python", str(PROGRAMS / "blender_add_on.py")]
            argv += ["--", str(ADD_ON), str(port)]
        stack.enter_context(running(argv, env=environment))
        until(lambda: listens(port), START)
        yield port


def listens(port: int) -> bool:
    """Whether somebody takes connections at a port."""
    with socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def told(outcome: Outcome) -> str:
    assert not outcome.is_error, outcome.text
    return outcome.text


def test_a_real_blender_does_it_and_takes_it_back(marvin_tools: ToolRunner, blender: int) -> None:
    tools = marvin_tools.session(env={"BLENDER_MCP_PORT": str(blender)}, timeouts={"http": 60.0})
    name = "Hat 'x' \"y\" \\ {z}"
    before = told(tools.call("blender_get_scene"))
    assert "Cube (mesh) at (0, 0, 0), material Material" in before
    cube = told(tools.call("blender_get_object", object_name="Cube"))
    assert '"faces": 6' in cube
    made = tools.call("blender_create_object", object_type="cone", name=name, location=[1, 2, 3], rotation=[0, 0, 1.5])
    assert f"Created {name}: location (1, 2, 3), rotation (0, 0, 1.5), scale (1, 1, 1)." == told(made)
    told(tools.call("blender_modify_object", object_name="Cube", location=[5, 5, 5], scale=[2, 2, 2]))
    told(tools.call("blender_set_material", object_name="Cube", color=[1, 0, 0]))
    told(tools.call("blender_set_material", object_name="Cube", material_name="Material", color=[0, 1, 0]))
    told(tools.call("blender_delete_object", object_name="Cube"))
    assert "There is no object 'Cube'" in tools.call("blender_get_object", object_name="Cube").text
    assert len(tools.take_back(5)) == 5
    assert told(tools.call("blender_get_object", object_name="Cube")) == cube
    assert sorted(told(tools.call("blender_get_scene")).splitlines()) == sorted(before.splitlines())
    assert "There is no object" in tools.call("blender_get_object", object_name=name).text


TURNED = """
cube = bpy.data.objects["Cube"]
cube.rotation_mode = "{mode}"
cube.rotation_quaternion = (0.8, 0.0, 0.6, 0.0)
cube.rotation_axis_angle = (1.0, 0.0, 1.0, 0.0)
cube.rotation_euler = (0.5, 0.0, 0.0)
"""
PAINTED = """
for node in bpy.data.materials["Material"].node_tree.nodes:
    if node.type == "BSDF_PRINCIPLED":
        node.inputs["Base Color"].default_value = (1, 0, 0, 1)
        node.inputs["Alpha"].default_value = 0.25
bpy.data.materials["Material"].diffuse_color = (0, 0, 1, 1)
"""
STATE = """
cube = bpy.data.objects["Cube"]
numbers = lambda values: [round(value, 5) for value in values]
print(cube.rotation_mode, numbers(cube.rotation_quaternion), numbers(cube.rotation_axis_angle),
      numbers(cube.rotation_euler), numbers(cube.location), numbers(cube.scale), len(cube.material_slots))
for material in bpy.data.materials:
    print(material.name, numbers(material.diffuse_color))
    for node in material.node_tree.nodes if material.node_tree else ():
        if node.type == "BSDF_PRINCIPLED":
            print(numbers(node.inputs["Base Color"].default_value), round(node.inputs["Alpha"].default_value, 5))
"""


@pytest.mark.parametrize("mode", ["XYZ", "ZYX", "QUATERNION", "AXIS_ANGLE"])
def test_a_real_blender_has_every_number_again(marvin_tools: ToolRunner, blender: int, mode: str) -> None:
    """How an object is turned is kept in several ways, and a material has the colour of its node and its own."""
    tools = marvin_tools.session(env={"BLENDER_MCP_PORT": str(blender)}, timeouts={"http": 60.0})
    told(tools.call("blender_execute_code", code=TURNED.format(mode=mode) + PAINTED))
    before = told(tools.call("blender_execute_code", code=STATE))
    shown = told(tools.call("blender_get_object", object_name="Cube"))
    told(tools.call("blender_modify_object", object_name="Cube", rotation=[1, 1, 1], location=[1, 2, 3]))
    told(tools.call("blender_modify_object", object_name="Cube", scale=[1, 2, 3]))
    told(tools.call("blender_set_material", object_name="Cube", material_name="Material", color=[0, 1, 0, 0.5]))
    told(tools.call("blender_set_material", object_name="Cube", color=[1, 1, 0]))
    assert told(tools.call("blender_execute_code", code=STATE)) != before
    later = marvin_tools.session(env={"BLENDER_MCP_PORT": str(blender)}, timeouts={"http": 60.0})
    assert len(later.take_back(4)) == 4
    assert told(tools.call("blender_execute_code", code=STATE)) == before
    assert told(tools.call("blender_get_object", object_name="Cube")) == shown
    turn = shown.partition("rotation (")[2].partition(")")[0]
    wanted = {"QUATERNION": "0, 1.287, 0", "AXIS_ANGLE": "0, 1, 0"}.get(mode, "0.5, 0, 0")
    assert turn == wanted


def test_a_real_blender_takes_a_first_material_away_again(marvin_tools: ToolRunner, blender: int) -> None:
    tools = marvin_tools.session(env={"BLENDER_MCP_PORT": str(blender)}, timeouts={"http": 60.0})
    told(tools.call("blender_create_object", object_type="cube", name="Bare"))
    code = 'print([one.name for one in bpy.data.materials], len(bpy.data.objects["Bare"].material_slots))'
    before = told(tools.call("blender_execute_code", code=code))
    told(tools.call("blender_set_material", object_name="Bare", color=[1, 0, 0]))
    tools.take_back()
    assert told(tools.call("blender_execute_code", code=code)) == before
    tools.take_back()


@pytest.mark.parametrize("shape", "cube sphere cylinder cone torus plane uv_sphere ico_sphere".split())
def test_a_real_blender_knows_all_shapes(marvin_tools: ToolRunner, blender: int, shape: str) -> None:
    tools = marvin_tools.session(env={"BLENDER_MCP_PORT": str(blender)}, timeouts={"http": 60.0})
    told(tools.call("blender_create_object", object_type=shape, scale=[1, 2, 3]))
    tools.take_back()


def test_a_real_blender_tells_what_is_wrong(marvin_tools: ToolRunner, blender: int) -> None:
    tools = marvin_tools.session(env={"BLENDER_MCP_PORT": str(blender)}, timeouts={"http": 60.0})
    assert "cannot have a material" in tools.call("blender_set_material", object_name="Light", color=[1, 0, 0]).text
    assert "Did you mean 'Cube'" in tools.call("blender_delete_object", object_name="Cub").text
    assert "division by zero" in tools.call("blender_execute_code", code="1/0").text


@pytest.mark.parametrize("blender", ["add-on"], indirect=True)  # without a window there is nothing to take
def test_a_screenshot_of_the_window_is_an_image(marvin_tools: ToolRunner, blender: int) -> None:
    tools = marvin_tools.session(env={"BLENDER_MCP_PORT": str(blender)}, timeouts={"http": 60.0})
    taken = tools.call("blender_screenshot")
    assert told(taken).startswith("The viewport of Blender, ")
    picture = next(block for block in taken.content if isinstance(block, Image))
    assert picture.media_type == "image/png"
    assert b64decode(picture.data).startswith(b"\x89PNG")
