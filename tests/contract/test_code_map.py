"""The page about the code: it names every folder of the core, in the order that import-linter holds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "code-map.md").read_text(encoding="utf-8")
CORE = ROOT / "marvin-core" / "src" / "marvin_core"
IN_EACH_WIRE_FORMAT = {"provider.py", "request.py", "stream.py"}


def test_the_page_has_the_folders_in_the_order_of_the_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["containers"] == ["marvin_core"])
    table = PAGE.partition("|---|---|\n")[2].partition("\n\n")[0]
    rows = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines()]
    assert rows == [layer.split(" | ") for layer in layers]


def test_each_file_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`([\w/]+\.(?:py|toml))`", PAGE)) - IN_EACH_WIRE_FORMAT
    assert len(named) > 15
    assert {name for name in named if not ((CORE / name).exists() or (ROOT / name).exists())} == set()


def test_every_folder_has_a_row() -> None:
    folders = {path.name for path in CORE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {folder for folder in folders if f"`{folder}`" not in PAGE} == set()
