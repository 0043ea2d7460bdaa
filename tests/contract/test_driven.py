"""Each command, flag and setting of the reference is driven by a test: one that is new there fails here until it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.limits import Limits
from marvin_core.api.record import Record
from marvin_core.api.timeouts import Timeouts
from marvin_core.config.load import load
from marvin_core.config.secrets import Secrets
from marvin_core.plugins.index import load_index
from marvin_core.plugins.model import DeclaredSettings, Index
from marvin_core.plugins.pack_schema import leaves
from marvin_core.plugins.pack_settings import PackSection

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
LINE, FILE = "# Command line", "# config.yaml"
_STRING = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'')


def cells(page: str, heading: str) -> list[str]:
    """The first cell of each row below a heading of a page, where it holds code."""
    text = (REFERENCE / page).read_text("utf-8").partition(f"{heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)


@cache
def strings() -> str:
    """Every string of the tests, each on lines of its own, as it is written there."""
    files = [path for path in (ROOT / "tests").rglob("*") if path.suffix in (".py", ".toml") and path != Path(__file__)]
    found = (_STRING.findall(path.read_text("utf-8")) for path in files)
    return "\n".join(text.strip("\"'").replace("\\n", "\n") for texts in found for text in texts)


def test_each_flag_is_given() -> None:
    flags = [flag for cell in cells("command-line.md", LINE) for flag in re.findall(r"(?<!\S)--?[A-Za-z][\w-]*", cell)]
    assert len(flags) > 30
    assert [flag for flag in flags if not re.search(rf"(?m)(^|\s){flag}($|[\s=])", strings())] == []


def test_each_sub_command_is_run() -> None:
    """Its words stand in one string, or one string after the other."""
    names = [re.match(r"marvin ([a-z]+(?: [a-z]+)?)", cell) for cell in cells("command-line.md", LINE)]
    commands = [name[1].replace(" ", r"\s") for name in names if name]
    assert len(commands) > 30
    assert [name for name in commands if not re.search(rf"\b{name}\b", strings())] == []


def test_each_key_of_the_file_is_set() -> None:
    named = [[word for word in key.split(".") if word != "NAME"][-1] for key in cells("configuration.md", FILE)]
    assert len(named) > 50
    assert [name for name in named if not re.search(rf"(?m)(^|[\s{{,]){name}\s*:", strings())] == []


# --- numbers, and the settings of packs: each is set, and counts -----------------------------------------------------


@pytest.mark.parametrize(("kind", "heading"), [(Limits, "## Limits"), (Timeouts, "## Timeouts")])
def test_each_number_is_set_and_counts(tmp_path: Path, kind: type[Record], heading: str) -> None:
    names = [name.rpartition(".")[2] for name in cells("configuration.md", heading)]
    usual = {name: getattr(kind(), name) for name in names}
    values = {name: [0.25, 0.5] if isinstance(value, tuple) else value + 1 for name, value in usual.items()}
    assert len(values) > 20
    folder = tmp_path / "marvin"
    folder.mkdir()
    section = heading.strip("# ").lower()
    lines = "".join(f"  {name}: {value}\n" for name, value in values.items())
    (folder / "config.yaml").write_text(f"{section}:\n{lines}")
    config, _ = load([], {"HOME": str(tmp_path), "MARVIN_HOME": str(folder)}, cwd=tmp_path)
    counts = getattr(config, section)
    for name, value in values.items():
        assert getattr(counts, name) == (tuple(value) if isinstance(value, list) else value), name


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return load_index(tmp_path_factory.mktemp("cache"))


def other(schema: Mapping[str, Any]) -> Any:
    """A value that fits, and is not the one without a setting."""
    usual = schema.get("default")
    if "enum" in schema:
        return next(value for value in schema["enum"] if value != usual)
    kinds = {one.get("type") for one in (schema, *schema.get("anyOf", ()))}
    if "array" in kinds:
        return (schema.get("items", {}).get("enum", ["a"])[0],)
    if "boolean" in kinds:
        return not usual
    if "object" in kinds:
        return {"high": "a/b"}
    if kinds & {"integer", "number"}:
        more = (usual or 1) + 1
        most = schema.get("maximum", more)
        return more if more <= most else most / 2 if "number" in kinds else most - 1
    return "https://service.example"


def _settings(index: Index) -> Iterator[tuple[str, DeclaredSettings, str, Any]]:
    for _, declared in index.settings:
        for key, schema in leaves(declared.schema):
            if not schema.get("properties"):
                yield f"packs.{declared.name}.{key}", declared, key, other(schema)


def test_each_setting_of_a_pack_is_set_and_counts(index: Index) -> None:
    found = {name: (declared, key, value) for name, declared, key, value in _settings(index)}
    assert sorted(found) == sorted(
        name.removesuffix(".NAME") for name in cells("configuration.md", "## Settings of packs")
    )
    for name, (declared, key, value) in found.items():
        section: dict[str, Any] = {}
        inner = section
        *before, last = key.split(".")
        for word in before:
            inner = inner.setdefault(word, {})
        inner[last] = list(value) if isinstance(value, tuple) else value
        checked: Any = PackSection(declared, section, Secrets({}, Path("/")), Path("/c.yaml")).checked()
        for word in key.split("."):
            checked = getattr(checked, word)
        assert (tuple(checked) if isinstance(value, tuple) else checked) == value, name
