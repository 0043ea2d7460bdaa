"""The secrets of packs that a run does not load stay secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.app import App
from marvin_core.config.load import load
from marvin_core.plugins.index import load_index
from marvin_core.plugins.model import Selection

TOOL = """
from marvin_core import ToolContext, tool

@tool(access=["read"], secrets=["ACME_PIN"])
async def acme(context: ToolContext) -> str:
    \"\"\"Do something.\"\"\"
    return context.secret("ACME_PIN", "")
"""
PIN = "pin-0123456789"


def tool_file(tmp_path: Path, content: str) -> Path:
    file = tmp_path / "config" / "tools" / "acme.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return file


@pytest.mark.slow
def test_what_a_pack_declared_is_remembered_when_it_is_broken_or_off(tmp_path: Path) -> None:
    cache, config = tmp_path / "cache", tmp_path / "config"
    tool_file(tmp_path, TOOL)
    first = load_index(cache, config)
    assert "ACME_PIN" not in first.secrets, "it is loaded, so its tools declare it"
    name = next(pack.name for pack in first.packs if "acme" in pack.name)
    off = load_index(cache, config, selection=Selection(off=frozenset({name})))
    assert "ACME_PIN" in off.secrets
    assert "ACME_PIN" in load_index(cache, config, selection=Selection(off=frozenset({name}))).secrets, "and kept so"
    tool_file(tmp_path, "def broken(:\n")
    assert "ACME_PIN" in load_index(cache, config).secrets


@pytest.mark.slow
def test_the_source_of_a_pack_that_never_was_loaded_names_its_secrets(tmp_path: Path) -> None:
    tool_file(tmp_path, "import missing_library\n\nKEY = 'ACME_API_KEY'\nOTHER = 'ACME_COLOUR'\n")
    assert load_index(tmp_path / "cache", tmp_path / "config").secrets == ("ACME_API_KEY",)


@pytest.mark.slow
def test_such_a_secret_is_redacted_and_reaches_no_child(tmp_path: Path) -> None:
    home = tmp_path / "home"
    file = home / "marvin" / "tools" / "acme.py"
    file.parent.mkdir(parents=True)
    file.write_text("import missing_library\n\nKEY = 'ACME_API_KEY'\n")
    env = {"HOME": str(home), "MARVIN_HOME": str(home / "marvin"), "ACME_API_KEY": PIN}
    config, secrets = load([], env, cwd=home)
    App(config, secrets, lambda text: None)
    assert PIN in secrets.known()
    assert PIN not in secrets.child_environment().values()
