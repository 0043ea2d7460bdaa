"""Every module can be imported alone, with warnings as errors: none relies on another having come first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
    for source in ROOT.glob("marvin-*/src")
    for path in source.rglob("*.py")
    if path.name != "__main__.py"
)
# Each import in a process of its own, forked from one that has imported nothing of ours yet.
# What is not ours is imported once.
IMPORT_EACH = """
import os, sys
import asyncio, httpx, importlib.metadata, pluggy, prompt_toolkit, pytest, typer
import pydantic.functional_validators, pydantic.main
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            __import__(name)
        except BaseException as error:
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
GROUPS = 2


def test_all_modules_are_found() -> None:
    assert {"marvin_core.engine.session", "marvin_core.api.providers", "marvin_tools_coding.plugin"} <= set(MODULES)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_each_module_is_imported_alone_without_a_warning(group: int) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", IMPORT_EACH, *MODULES[group::GROUPS]],
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
        check=True,
    )
    assert done.stdout + done.stderr == ""
