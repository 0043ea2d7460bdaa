"""A pack that uses every hook passes the strictest checks of mypy and pyright, and what is wrong in one is found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from marvin_core.api.hookspecs import SINCE

ROOT = Path(__file__).resolve().parents[2]
PACK = Path(__file__).resolve().parent / "marvin-complete" / "marvin_complete.py"
BIN = Path(sys.executable).parent

MISTAKES = '''
from marvin_core import Event, ToolContext, tool


@tool(access=["read"])
async def add(text: str, *, context: ToolContext) -> str:
    """Add."""
    return text


async def use(event: Event, context: ToolContext) -> None:
    await add("a", nonsense=3, context=context)  # WRONG
    await add("a")  # WRONG
    number: int = await add("a", context=context)  # WRONG
    print(event.delta)  # WRONG
    if event.type == "message_update":
        print(event.delta, number)
    if event.type == "notice":
        print(event.delta)  # WRONG
    context.mode = "coding"  # WRONG
    await add(context.secret("KEY", None) or "", context=context)
    await add(context.secret("KEY", "none"), context=context)
    await add(context.secret("KEY", None), context=context)  # WRONG


@tool(access=["raed"])  # WRONG
async def other() -> str:
    """Other."""
    return ""
'''


def mypy(file: Path, folder: Path) -> set[int]:
    """The lines that mypy finds wrong."""
    config = folder / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\npython_version = 3.11\n")
    argv = [sys.executable, "-P", "-m", "mypy", "--config-file", config, "--cache-dir", folder / "cache"]
    argv += ["--no-error-summary", "--no-pretty", "--output", "json", file]
    found = _run(argv, folder)
    return {json.loads(line)["line"] for line in found.splitlines() if json.loads(line)["severity"] == "error"}


def pyright(file: Path, folder: Path) -> set[int]:
    """The lines that pyright finds wrong, in its strict mode."""
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "include": [str(file)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    argv = [BIN / "basedpyright", "--outputjson", "--project", folder, "--pythonpath", sys.executable]
    found = json.loads(_run(argv, folder))["generalDiagnostics"]
    return {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"}


def _run(argv: Sequence[object], folder: Path) -> str:
    done = subprocess.run(list(map(str, argv)), cwd=folder, capture_output=True, text=True, timeout=170)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


CHECKERS = pytest.mark.parametrize("check", [mypy, pyright])


def test_the_pack_implements_every_hook() -> None:
    text = PACK.read_text(encoding="utf-8")
    assert [name for name in SINCE if f"def {name.removeprefix('Hook.')}(" not in text] == []


@pytest.mark.slow
@CHECKERS
def test_a_pack_with_every_hook_passes(check: object, tmp_path: Path) -> None:
    assert callable(check)
    assert check(PACK, tmp_path) == set()


@pytest.mark.slow
@CHECKERS
def test_each_mistake_is_found_and_nothing_else(check: object, tmp_path: Path) -> None:
    assert callable(check)
    file = tmp_path / "mistakes.py"
    file.write_text(MISTAKES)
    wrong = {number for number, line in enumerate(MISTAKES.splitlines(), 1) if "# WRONG" in line}
    assert check(file, tmp_path) == wrong
