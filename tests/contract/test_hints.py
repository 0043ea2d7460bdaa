"""Every hint that names a command of Marvin's names it as it is typed here: `marvin` may not be on PATH."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_core.config.flags import SUBCOMMANDS

ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(rf"\bmarvin (--\w|({'|'.join(SUBCOMMANDS)})\b)")
TABLES = {"config/environment.py", "config/flags.py", "config/settings.py"}
"""Texts of the reference pages and of --help, whose last lines say how Marvin is started here."""


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts of a module that are no documentation."""
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node


@pytest.mark.slow
def test_no_text_names_the_command_as_if_it_were_on_the_path() -> None:
    found = []
    for path in sorted(ROOT.glob("marvin-*/src/*/**/*.py")):
        package = path.relative_to(ROOT).parts[2]
        module = path.relative_to(ROOT).as_posix().partition(f"/src/{package}/")[2]
        source = path.read_text(encoding="utf-8")
        if module in TABLES or not re.search(r"\bmarvin\b", source):  # parsing takes time
            continue
        tree = ast.parse(source)
        found += [f"{module}:{node.lineno}: {node.value!r}" for node in texts(tree) if COMMAND.search(str(node.value))]
    assert found == []
