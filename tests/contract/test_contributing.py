"""What contributors read, CONTRIBUTING.md and the page about the architecture, names only what exists."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer

from marvin_core.cli.commands import all as sub_commands
from marvin_pipeline.plugin import marvin_extend_cli

ROOT = Path(__file__).parents[2]
CORE = ROOT / "marvin-core" / "src" / "marvin_core"
ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"
PAGES = (ROOT / "CONTRIBUTING.md", ARCHITECTURE)
PLACES = (
    "",
    "marvin-core/src/marvin_core/",
    "marvin-core/src/marvin_core/providers/chat_completions/",
    "marvin-pipeline/src/marvin_pipeline/evidence/syntax/",
    "marvin-*/",
    "marvin-*/src/*/",
)
"""What paths are relative to: the repository, the core, a wire format, readers of tests, each distribution."""
WORDS = {"slow", "words", "tk", "ruff", "marvin_core.testing"}
"""What is in backticks and is no name of the code: a mark, an argument, programs, a package."""


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def quoted(text: str) -> set[str]:
    """What stands in backticks, outside of fenced blocks."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)))


def is_path(word: str) -> bool:
    return re.fullmatch(r"[\w./-]+", word) is not None and (
        "/" in word or re.search(r"\.(py|toml|md|json|yml)$", word) is not None
    )


def exists(path: str) -> bool:
    """Whether there is such a file or folder; NAME in it stands for anything."""
    pattern = path.rstrip("/").replace("NAME", "*")
    return any(any(ROOT.glob(place + pattern)) for place in PLACES)


def defined(tree: ast.AST, owner: str = "") -> Iterator[str]:
    """The names that a module defines, and those of its classes as `Class.member`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
            yield f"{owner}{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from defined(node, f"{node.name}.")
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


@cache
def names() -> frozenset[str]:
    """Every name that the code and what the tests share define, and every module and folder."""
    files = [*ROOT.glob("marvin-*/src/**/*.py"), *(ROOT / "tests").rglob("*.py")]
    folders = {path.name for path in ROOT.glob("marvin-*/src/**/") if path.is_dir()}
    found = {path.stem for path in files} | folders
    for file in files:
        found.update(defined(ast.parse(file.read_bytes())))
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_path_exists(page: Path) -> None:
    found = {word for word in quoted(text_of(page)) if is_path(word)}
    tree = re.search(r"^```text\n(.*?)^```$", text_of(page), re.DOTALL | re.MULTILINE)
    found.update(re.findall(r"(?<![\w/])[\w-]+/[\w/-]*", tree[1]) if tree else ())
    assert len(found) > 20
    assert {path for path in found if not exists(path)} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_link_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text_of(page))
    assert links
    assert [link for link in links if "://" not in link and not (page.parent / link).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_make_target_and_command_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    app = typer.Typer()
    sub_commands.extend(app)
    marvin_extend_cli(app)
    known = {group.name for group in app.registered_groups} | {one.name for one in app.registered_commands} | {"NAME"}
    text = text_of(page)
    assert set(re.findall(r"(?:`|^|\()make ([a-z-]+)", text, re.MULTILINE)) - targets == set()
    assert set(re.findall(r"`marvin (\w+)", text)) - known == set()


def test_every_make_target_of_a_contributor_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", text_of(ROOT / "Makefile"), re.MULTILINE))
    page = text_of(ROOT / "CONTRIBUTING.md")
    assert {name for name in targets - {"help", "clean", "wheels"} if f"make {name}" not in page} == set()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_name_is_defined(page: Path) -> None:
    words = {re.sub(r"^@|\(.*\)$", "", word) for word in quoted(text_of(page)) if not is_path(word)}
    found = {word for word in words if re.fullmatch(r"[A-Za-z_][\w.]*", word)} - WORDS
    assert len(found) > 10
    assert found - names() == set()


def test_a_row_names_what_its_file_holds() -> None:
    """A name that exists elsewhere is no help to who looks for it in that file."""
    wrong = []
    for row in re.findall(r"^\| (.*`.*) \| (.+) \|$", text_of(ROOT / "CONTRIBUTING.md"), re.MULTILINE):
        files = [
            ROOT / word for word in quoted(row[0]) if word.startswith(("marvin-", "tests/")) and word.endswith(".py")
        ]
        code = "\n".join(text_of(file) for file in files)
        named = {word.lstrip("@") for word in quoted(row[1]) if not is_path(word)}
        wrong += [
            (row[0], name) for name in named if code and name.isidentifier() and not re.search(rf"\b{name}\b", code)
        ]
    assert wrong == []


def test_the_page_has_the_folders_in_the_order_of_the_contract() -> None:
    settings = tomllib.loads(text_of(ROOT / "pyproject.toml"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = [
        set(row.split(" | "))
        for row in next(contract["layers"] for contract in contracts if contract["containers"] == ["marvin_core"])
    ]
    page = text_of(ARCHITECTURE)
    table = page.partition("|---|---|\n")[2].partition("\n\n")[0]
    rows = [set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in table.splitlines()]
    assert rows == layers
    picture = re.findall(r"^ {4}(\S+(?: {2}\w+)*)", page, re.MULTILINE)
    assert [set(row.split()) for row in picture] == layers


def test_every_folder_has_a_row() -> None:
    page = text_of(ARCHITECTURE)
    folders = {path.name for path in CORE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {folder for folder in folders if f"`{folder}`" not in page} == set()
    tests = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {folder for folder in tests if f"tests/{folder}/" not in page} == set()


def test_what_the_guide_has_people_add_fits_into_its_files() -> None:
    """A module has at most 400 lines: a row of the guide that leads to a full one leads nowhere."""
    text = text_of(ROOT / "CONTRIBUTING.md").partition("## Add a setting")[2]
    files = {ROOT / word for word in quoted(text) if word.startswith("marvin-") and word.endswith(".py")}
    lengths = {str(file.relative_to(ROOT)): len(text_of(file).splitlines()) for file in files if file.is_file()}
    assert len(lengths) > 20
    assert {file: length for file, length in lengths.items() if length > 396} == {}
