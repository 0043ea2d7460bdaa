"""Language servers that `marvin lsp install` fetches from the registries, and those that are used from PATH only."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from marvin_core.testing import PackRunner
from marvin_tools_coding import plugin

PATH = "/usr/local/bin:/usr/bin:/bin"
SETTINGS = {"coding": {"lsp": {"wait": 30, "install": "never"}}}


@pytest.mark.real
@pytest.mark.skipif(shutil.which("npm", path=PATH) is None, reason="npm is not installed")
def test_typescript_is_installed_and_looks_at_edits(marvin_pack: PackRunner) -> None:
    assert marvin_pack.cli(plugin, "lsp", "install", "typescript-language-server").code == 0
    session = marvin_pack.session(env={"PATH": PATH}, settings=SETTINGS)
    said = session.call("create_file", path="a.ts", content="export const x: number = 'a';\n").text
    assert "\na.ts:1: error: Type 'string' is not assignable to type 'number'. [2322]" in said
    said = session.call("create_file", path="b.ts", content="import {y} from './a';\nexport const q = y;\n").text
    assert "\nb.ts:1: error: Module '\"./a\"' has no exported member 'y'. [2305]" in said
    said = session.call("write_file", path="a.ts", content="export const y = 1;\n").text
    assert "No problems in a.ts (typescript-language-server)." in said


@pytest.mark.real
def test_clangd_is_installed_and_looks_at_edits(marvin_pack: PackRunner) -> None:
    assert marvin_pack.cli(plugin, "lsp", "install", "clangd").code == 0
    session = marvin_pack.session(env={"PATH": PATH}, settings=SETTINGS)
    said = session.call("create_file", path="a.c", content="int main(void) { return missing; }\n").text
    assert "\na.c:1: error: Use of undeclared identifier 'missing' [undeclared_var_use]" in said


def with_programs(*names: str) -> str:
    """A search path with these programs of the machine. Skips the test where one is not installed."""
    folders = []
    for name in names:
        program = shutil.which(name)
        if program is None:
            pytest.skip(f"{name} is not installed")
        folders.append(str(Path(program).parent))
    return ":".join([*folders, PATH])


@pytest.mark.real
def test_gopls_of_the_path_looks_at_edits(marvin_pack: PackRunner) -> None:
    session = marvin_pack.session(env={"PATH": with_programs("gopls", "go")}, settings=SETTINGS)
    session.call("create_file", path="go.mod", content="module example.org/a\n\ngo 1.15\n")
    said = session.call("create_file", path="a.go", content='package a\n\nfunc F() int { return "x" }\n').text
    assert "\na.go:3: error: cannot use" in said
    said = session.call("write_file", path="a.go", content="package a\n\nfunc F() int { return 1 }\n").text
    assert "No problems in a.go (gopls)." in said
