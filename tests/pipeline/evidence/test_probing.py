"""A second look at tests that pass: copies of a project whose code does nothing, and what is in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_pipeline.checks.commands import ProjectCommand, configured_test, find_commands
from marvin_pipeline.evidence.mutations.copying import link_modules, write_inside
from marvin_pipeline.evidence.mutations.parts import parts_of
from marvin_pipeline.evidence.syntax.gutting import gutted

needs_node = pytest.mark.skipif(not shutil.which("node"), reason="node is missing")
MARKER = "/nowhere/loaded"
PYTHON = '''#!/usr/bin/env python3
"""Adds."""
from __future__ import annotations

import sys

LIMIT = 5


def add(a, b):
    return a + b


class Adder:
    start = 0

    async def add(self, a):
        return self.start + a


if __name__ == "__main__":
    print(add(int(sys.argv[1]), int(sys.argv[2])))
'''


def run(program: str, folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    path = folder / "adder"
    path.write_text(text)
    return subprocess.run([program, str(path), *words], cwd=folder, capture_output=True, text=True, check=False)


def test_python_defines_what_it_did_and_does_nothing(tmp_path: Path) -> None:
    made = gutted("adder.py", PYTHON, MARKER) or ""
    assert made.startswith("#!/usr/bin/env python3\n")
    assert run(sys.executable, tmp_path, PYTHON, "2", "3").stdout == "5\n"
    assert "There is no code here." in run(sys.executable, tmp_path, made, "2", "3").stderr
    marker = tmp_path / "loaded"
    names: dict[str, object] = {"__name__": "adder"}
    exec(compile(gutted("adder.py", PYTHON, str(marker)) or "", "adder.py", "exec"), names)
    assert marker.exists(), "it shows that this copy was loaded"
    assert names["LIMIT"] == 5
    add = names["add"]
    assert callable(add)
    with pytest.raises(RuntimeError):
        add(2, 3)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("adder/__init__.py", '"""Adds."""\n\nfrom .core import add\n'),
        ("adder/__init__.py", ""),
        ("index.js", "export { add } from './add.js';\n"),
        ("types.ts", "import { A } from './a';\ninterface B { c: A }\n"),
    ],
)
def test_what_only_hands_on_has_nothing_to_take_out(path: str, text: str) -> None:
    assert gutted(path, text, MARKER) is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("rates.py", "RATES = {'EUR': 1}\n"),
        ("adder.py", "def add(:\n"),
        ("adder.py", "\0"),
        ("adder.py", f"x = {'(' * 5_000}{')' * 5_000}\n"),
        ("adder.js", "console.log(process.argv[2] + 1);\n"),
        ("adder.js", "function ( {\n"),
        ("adder.go", "package adder\n\nfunc Add(a, b int) int { return a + b }\n"),
        ("adder.zig", "fn add() void {}\n"),
    ],
)
def test_what_nothing_can_be_kept_of(path: str, text: str) -> None:
    assert gutted(path, text, MARKER) == ""


@pytest.mark.parametrize(
    "text",
    [
        "import sys\n\ndef unused():\n    pass\n\nprint(sum(map(int, sys.argv[1:])))\n",
        "import sys\n\ndef unused():\n    pass\n\nfor each in [5]:\n    sys.stdout.write(f'{each}\\n')\n",
        "def unused():\n    pass\n\nwith open('out', 'w') as file:\n    print(5)\n",
    ],
)
def test_work_at_the_top_of_a_module_is_code_as_well(tmp_path: Path, text: str) -> None:
    """Else tests of it would seem to need no code."""
    assert run(sys.executable, tmp_path, text, "2", "3").stdout == "5\n"
    assert run(sys.executable, tmp_path, gutted("adder.py", text, MARKER) or "", "2", "3").returncode == 1


JAVASCRIPT = [
    "const add = (a, b) => a + b;\nif (require.main === module) console.log(add(2, 3));\nmodule.exports = { add };\n",
    "function add(a, b) {\n  return (() => a + b)();\n}\nconsole.log(add(2, 3));\n",
    "class Adder {\n  add(a, b) { return a + b; }\n}\nconst adder = new Adder();\nconsole.log(adder.add(2, 3));\n",
    "function unused() {}\nconsole.log(2 + 3);\n",
]


@needs_node
@pytest.mark.parametrize("text", JAVASCRIPT)
def test_javascript_throws(tmp_path: Path, text: str) -> None:
    made = gutted("adder.js", text, str(tmp_path / "loaded")) or ""
    assert run("node", tmp_path, text).stdout == "5\n"
    done = run("node", tmp_path, made)
    assert (done.returncode, done.stdout) == (1, "")
    assert "There is no code here." in done.stderr
    assert "SyntaxError" not in done.stderr
    assert (tmp_path / "loaded").exists()


@needs_node
def test_a_module_of_javascript_says_that_it_was_loaded(tmp_path: Path) -> None:
    text = "import { sep } from 'node:path';\nexport const add = (a, b) => a + b;\n"
    (tmp_path / "a.mjs").write_text(gutted("a.mjs", text, str(tmp_path / "loaded")) or "")
    (tmp_path / "b.mjs").write_text("import { add } from './a.mjs';\nconsole.log(typeof add);\n")
    done = subprocess.run(["node", "b.mjs"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("function\n", "")
    assert (tmp_path / "loaded").exists()


def test_typescript_and_rust_keep_what_they_define() -> None:
    typed = "export async function add(a: number): Promise<number> {\n  return a;\n}\nexport type A = number;\n"
    made = gutted("adder.ts", typed, MARKER) or ""
    assert made.startswith("// @ts-nocheck\n"), (
        "what types do not let pass would have the tests fail for another reason"
    )
    assert made.endswith(typed.replace("{\n  return a;\n}", '{ throw new Error("There is no code here."); }'))
    rust = "pub fn add(a: i32) -> i32 { a }\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() { a(); }\n}\n"
    made = gutted("src/lib.rs", rust, MARKER) or ""
    assert made.partition("{")[0] == rust.partition("{")[0]
    assert 'panic!("There is no code here.")' in made
    assert "fn adds() { a(); }" in made, "tests are none of the code"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cargo"), reason="cargo is missing")
def test_rust_compiles_and_panics(tmp_path: Path) -> None:
    code = "use std::fmt;\n\npub struct Sum(pub i32);\n\nimpl fmt::Display for Sum {\n"
    code += "    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {\n        self.0.fmt(out)\n    }\n}\n"
    test = '#[test]\nfn adds() {\n    assert_eq!(ada::Sum(5).to_string(), "5");\n}\n'
    lay(tmp_path, {"Cargo.toml": '[package]\nname = "ada"\nversion = "1.0.0"\n', "tests/sum.rs": test})
    ends = []
    for text in (code, gutted("src/lib.rs", code, str(tmp_path / "loaded")) or ""):
        lay(tmp_path, {"src/lib.rs": text})
        done = subprocess.run(["cargo", "test", "--offline"], cwd=tmp_path, capture_output=True, text=True, check=False)
        ends.append((done.returncode, "There is no code here." in done.stdout))
    assert ends == [(0, False), (101, True)]
    assert (tmp_path / "loaded").exists()


@given(st.text(), st.sampled_from(["a.py", "a.js", "a.tsx", "a.rs", "a.go", "a"]))
def test_nothing_that_stands_in_a_file_stops_it(text: str, path: str) -> None:
    made = gutted(path, text, MARKER)
    assert made is None or isinstance(made, str)


def test_only_files_of_the_copy_are_written(tmp_path: Path) -> None:
    outside, copy = tmp_path / "outside", tmp_path / "copy"
    for place in (outside, copy):
        place.mkdir()
        (place / "a.py").write_text("a = 1\n")
    (copy / "link.py").symlink_to(outside / "a.py")
    (copy / "folder").symlink_to(outside)
    assert [write_inside(copy, name, b"x") for name in ("a.py", "link.py", "folder/a.py", "none.py")] == [
        True,
        False,
        False,
        False,
    ]
    assert (outside / "a.py").read_text() == "a = 1\n"


def lay(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


ASKS = "console.log(require('@ada/core').add(2, 3) + ':' + require('left').name);\n"
CORE = "exports.add = (a, b) => a + b;\n"


@needs_node
@pytest.mark.parametrize("layout", ["npm", "pnpm"])
def test_packages_of_a_workspace_are_those_of_the_copy(tmp_path: Path, layout: str) -> None:
    """As package managers link them; else a change in the copy would change nothing."""
    root, copy = (tmp_path / "project").resolve(), tmp_path / "project" / ".marvin" / "copy"
    sources = {
        "package.json": '{"workspaces": ["packages/*"]}',
        "packages/app/index.js": ASKS,
        "packages/core/index.js": CORE,
    }
    lay(root, sources)
    lay(copy, {**sources, "packages/core/index.js": CORE.replace("+", "-")})
    if layout == "npm":
        lay(root, {"node_modules/left/index.js": "exports.name = 'left';\n"})
        (root / "node_modules/@ada").mkdir()
        (root / "node_modules/@ada/core").symlink_to("../../packages/core")
        (root / "node_modules/.bin").mkdir()
        (root / "node_modules/.bin/core").symlink_to("../@ada/core/index.js")
    else:
        lay(root, {"node_modules/.pnpm/left@1/node_modules/left/index.js": "exports.name = 'left';\n"})
        own = root / "packages/app/node_modules"
        (own / "@ada").mkdir(parents=True)
        (own / "left").symlink_to("../../../node_modules/.pnpm/left@1/node_modules/left")
        (own / "@ada/core").symlink_to("../../../core")
    link_modules(root, copy)
    asked = {
        place: subprocess.run(["node", "index.js"], cwd=place / "packages/app", capture_output=True, text=True).stdout
        for place in (root, copy)
    }
    assert asked == {root: "5:left\n", copy: "-1:left\n"}
    if layout == "npm":
        program = (copy / "node_modules/.bin/core").resolve()
        assert program == copy / "packages/core/index.js", "a program of the workspace is that of the copy as well"


def test_what_the_project_has_committed_of_its_modules_stays(tmp_path: Path) -> None:
    root, copy = tmp_path / "project", tmp_path / "copy"
    for place in (root, copy):
        lay(place, {"node_modules/left/index.js": ""})
    link_modules(root.resolve(), copy)
    assert not (copy / "node_modules/left").is_symlink()


def command(*argv: str, folder: str = ".") -> ProjectCommand:
    return ProjectCommand(kind="test", argv=argv, folder=folder)


def test_new_code_belongs_to_the_nearest_command_that_tests_its_language() -> None:
    tests = [command("npm", "run", "test"), command("npm", "run", "test", folder="packages/app"), command("python3")]
    new = {"a.js": [1], "packages/app/src/b.js": [2], "packages/core/c.js": [3]}
    parts, untested = parts_of(tests, new, ("npm",))
    assert untested == []
    assert {part.command.folder: list(part.new) for part in parts} == {
        ".": ["a.js", "packages/core/c.js"],
        "packages/app": ["packages/app/src/b.js"],
    }
    assert parts_of(tests[1:2], new, ("npm",))[1] == ["a.js", "packages/core/c.js"]
    assert parts_of(tests[2:], new, ("npm",)) == ([], list(new))
    for one in (command("make", "test"), configured_test("uv run pytest"), command(".venv/bin/python3.12")):
        (part,), untested = parts_of([one], {"a.py": [1]}, ("python",))
        assert (part.command, untested) == (one, [])


PACKAGE = '{"name": "@ada/NAME", "scripts": {"test": "node --test"}}'


@pytest.mark.parametrize(
    ("files", "manager"),
    [
        ({"package.json": '{"workspaces": ["packages/*", "!packages/old", "../up"]}'}, "npm"),
        ({"package.json": '{"workspaces": {"packages": ["./packages/**"]}}', "yarn.lock": ""}, "yarn"),
        ({"package.json": "{}", "pnpm-workspace.yaml": "packages:\n  - 'packages/*'\n", "pnpm-lock.yaml": ""}, "pnpm"),
    ],
)
def test_packages_of_a_workspace_without_a_test_of_its_own_are_tested_one_by_one(
    tmp_path: Path, files: dict[str, str], manager: str
) -> None:
    packages = {f"packages/{name}/package.json": PACKAGE.replace("NAME", name) for name in ("app", "core")}
    packages["packages/app/test/a.test.js"] = ""  # which Node's own runner would find from the top
    lay(tmp_path, {**files, **packages, "packages/none/package.json": "{}", "node_modules/x/package.json": PACKAGE})
    found = find_commands(tmp_path, lambda name: name).of("test")
    assert {one.shown for one in found} == {f"cd packages/{name} && {manager} run test" for name in ("app", "core")}
    lay(
        tmp_path,
        {
            "package.json": files["package.json"]
            .replace("{", '{"scripts": {"test": "node all.js"}, ', 1)
            .replace(", }", "}")
        },
    )
    (only,) = find_commands(tmp_path, lambda name: name).of("test")
    assert (only.folder, only.argv) == (".", (manager, "run", "test")), "a test at the top is the one that is meant"


def test_patterns_of_a_workspace_are_looked_for_in_bounded_time(tmp_path: Path) -> None:
    for number in range(20):
        os.makedirs(tmp_path / f"a{number}/b/c/d/e/f/g")
    lay(tmp_path, {"package.json": '{"workspaces": ["**/**/**/**/*", "**/*/*", "*/*/*/*/*/*/*/*/*", "[", ""]}'})
    assert find_commands(tmp_path, lambda name: name).of("test") == ()
