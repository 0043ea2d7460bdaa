"""Starts the MCP add-on in a Blender with a window and has it listen at a port.

Blender runs this: `--python blender_add_on.py -- ADD-ON PORT`.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import bpy  # type: ignore[import-not-found, unused-ignore]


def main() -> None:
    """Load the add-on from its file, as Blender itself does after an installation."""
    path, port = sys.argv[sys.argv.index("--") + 1 :]
    spec = importlib.util.spec_from_file_location("blender_mcp_add_on", path)
    assert spec is not None
    assert spec.loader is not None
    add_on: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = add_on
    spec.loader.exec_module(add_on)
    add_on.register()
    bpy.context.scene.blendermcp_port = int(port)


if __name__ == "__main__":
    main()
