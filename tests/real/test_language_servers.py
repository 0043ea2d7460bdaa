"""Language servers that `marvin lsp install` fetches from the registries."""

from __future__ import annotations

import shutil

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
