"""The rules that keep the parts apart, read from the source: imports, time-outs, sizes.

Which folder may import which stands in pyproject.toml, and import-linter checks it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import marvin_core

# On one worker, so that each file is parsed once.
pytestmark = pytest.mark.xdist_group("sources")

ROOT = Path(__file__).parents[2]
CORE = ROOT / "marvin-core" / "src" / "marvin_core"
BATCH = ROOT / "marvin-pipeline" / "src" / "marvin_pipeline" / "batch"
JOBS = ROOT / "marvin-tools-life" / "src" / "marvin_tools_life" / "scheduling"
CODING = ROOT / "marvin-tools-coding" / "src" / "marvin_tools_coding"
WEB = ROOT / "marvin-tools-web" / "src" / "marvin_tools_web"
RUN = ROOT / "marvin-pipeline" / "src" / "marvin_pipeline" / "run"
REPORTERS = ROOT / "marvin-pipeline/src/marvin_pipeline/evidence/reports/runners/marvin_reporters"
PACKS = ("marvin_tools_coding", "marvin_tools_web", "marvin_tools_life", "marvin_pipeline")
SOURCES = [path for folder in sorted(ROOT.glob("marvin-*/src")) for path in sorted(folder.rglob("*.py"))]


def module_name(path: Path) -> str:
    """`http.client` for marvin_core/http/client.py; the empty string for the package."""
    parts = path.relative_to(CORE).with_suffix("").parts
    return ".".join(parts).removesuffix("__init__").rstrip(".")


MODULES = {module_name(path): path for path in sorted(CORE.rglob("*.py"))}


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """The trees are let go at the end: a million objects would slow every later collection of garbage."""
    yield
    tree.cache_clear()
    nodes.cache_clear()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Every node of a file."""
    return list(ast.walk(tree(path)))


def at_run_time(node: ast.AST) -> Iterator[ast.stmt]:
    """Every statement but those under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            continue  # an expression has no statement in it
        if isinstance(child, ast.stmt):
            yield child
        inside: ast.AST = child
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            inside = ast.Module(child.orelse, [])
        yield from at_run_time(inside)


@pytest.mark.slow
def test_the_core_imports_itself_relatively() -> None:
    found = {name: list(imports_of_marvin(path)) for name, path in MODULES.items()}
    assert {name: imports for name, imports in found.items() if imports} == {}


def test_packages_of_the_core_hold_nothing_themselves() -> None:
    """What a folder's `__init__` re-exports would be imported with each of its modules."""
    packages = [path for name, path in MODULES.items() if path.name == "__init__.py" and name not in ("", "testing")]
    assert packages
    assert {path.parent.name: path.read_text(encoding="utf-8") for path in packages if path.stat().st_size} == {}


def test_no_folder_of_the_core_holds_more_than_20_modules() -> None:
    folders = Counter(path.parent for path in MODULES.values() if path.name != "__init__.py")
    assert {folder.name: count for folder, count in folders.items() if count > 20} == {}


def outside_imports(path: Path) -> set[str]:
    """The top-level packages that a file imports at run time, itself and relative ones aside."""
    found: set[str] = set()
    for node in at_run_time(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return found


def test_typer_and_rich_appear_only_in_the_command_line_and_the_interfaces() -> None:
    """Discovery and the check of a pack make an empty typer application to learn which sub-commands it adds.

    The other two take over what a pack adds, command by command.
    """
    users = {name for name, path in MODULES.items() if outside_imports(path) & {"typer", "rich", "click"}}
    assert {name for name in users if name.split(".")[0] not in ("ui", "cli")} <= {
        "builtin",
        "plugins.discovery",
        "testing.grading.registration",
        "plugins.manager",
        "plugins.sub_commands",
    }


def imports_of_marvin(path: Path) -> Iterator[tuple[str, str]]:
    """Each import of a distribution of ours, type checking included: the module and the name."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.startswith("marvin_"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("marvin_") and not node.level:
            yield from ((node.module or "", alias.name) for alias in node.names)


@pytest.mark.slow
@pytest.mark.parametrize("pack", PACKS)
def test_a_pack_imports_only_public_names_of_the_core_and_no_other_pack(pack: str) -> None:
    paths = [path for path in SOURCES if pack in path.parts]
    assert paths
    for path in paths:
        for module, name in imports_of_marvin(path):
            public = module == "marvin_core.testing" or (module == "marvin_core" and name in marvin_core.__all__)
            assert public or module.split(".")[0] == pack, f"{path.relative_to(ROOT)}: {module} {name}"


@pytest.mark.parametrize("pack", PACKS)
def test_the_plugin_module_of_a_pack_imports_only_the_core(pack: str) -> None:
    (path,) = [path for path in SOURCES if path.parent.name == pack and path.name == "plugin.py"]
    assert outside_imports(path) - sys.stdlib_module_names <= {"marvin_core"}
    # Inside a function, that is when a hook is called, its own modules may follow.
    assert not [node for node in tree(path).body if isinstance(node, ast.ImportFrom) and node.level]


# The home folder counts as environment, too. Who may read what, and why.
ENVIRONMENT_ALLOWED = {
    CORE / "__main__.py": {"os.environ"},  # hands it on as it is
    CORE / "config" / "environment.py": {"os.environ"},  # whether variables are as they were
    CORE / "cli" / "hook_process.py": {"os.environ"},  # hands it on as it is: what runs in the sandbox is no Marvin
    CORE / "plugins" / "trial_process.py": {"os.environ"},  # hands it on as it is
    CORE / "plugins" / "trial_worker.py": {"os.environ", "os.environb"},  # notes which variables packs read
    BATCH / "child.py": {"os.environ"},  # hands it on: a worker is no Marvin, and what it starts is one
    JOBS / "program.py": {"os.environ"},  # hands it on: a scheduler starts it, and no Marvin runs then
    WEB / "pages" / "browser.py": {"os.environ"},  # hands it on, with another home folder: it is a program of its own
    CODING / "git" / "write_inside.py": {"os.environ"},  # hands it on, with another folder for temporary files
    RUN / "git" / "private_tree.py": {"os.environ"},  # runs in the sandbox, where no Marvin is
    REPORTERS / "lines.py": {"os.environ"},  # runs in the Python of a project, where no Marvin is
    CORE / "testing" / "environment.py": {"os.environ", "os.environ.pop", "os.environ.update"},  # where tests run
}
ENVIRONMENT_READERS = {"environ", "environb", "getenv", "getenvb", "putenv", "expanduser", "expandvars"}


def reads_of_the_environment(path: Path) -> set[str]:
    return {
        ast.unparse(node)
        for node in nodes(path)
        if (isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT_READERS)
        or (isinstance(node, ast.Attribute) and ast.unparse(node) == "Path.home")
        or (isinstance(node, ast.alias) and node.name in ENVIRONMENT_READERS)
    }


def test_only_config_reads_the_environment() -> None:
    """I21: what Marvin does depends on `Config` alone."""
    others = [path for path in SOURCES if path != CORE / "config" / "load.py"]
    used = {path: reads_of_the_environment(path) - ENVIRONMENT_ALLOWED.get(path, set()) for path in others}
    assert {path: reads for path, reads in used.items() if reads} == {}


WAITING = {"sleep", "timeout", "timeout_at", "wait_for", "call_later", "select", "settimeout", "wait", "poll", "alarm"}


def literal_waits(path: Path) -> Iterator[str]:
    """Calls that wait for a number of seconds that stands in the source."""
    for node in nodes(path):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        named = [word.value for word in node.keywords if (word.arg or "").startswith("timeout")]
        # A tool declares its own time-out; that is part of its contract and no wait of ours.
        given = [*(node.args if name in WAITING else []), *(named if name != "tool" else [])]
        if any(
            isinstance(one, ast.Constant) and isinstance(one.value, (int, float)) and one.value > 0 for one in given
        ):
            yield f"{path.name}:{node.lineno}: {ast.unparse(node)}"


def test_every_wait_is_a_field_of_waits() -> None:
    assert not [found for path in SOURCES for found in literal_waits(path)]


def test_a_literal_wait_would_be_found(tmp_path: Path) -> None:
    for number, code in enumerate(["time.sleep(1)", "asyncio.timeout(0.5)", "f(timeout=3)", "select([], [], [], 2)"]):
        path = tmp_path / f"{number}.py"
        path.write_text(code)
        assert list(literal_waits(path)) == [f"{path.name}:1: {code}"]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function of a file, and its lines."""
    for node in nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{path.stem}.{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_files_and_functions_stay_readable() -> None:
    # The package itself is a list of names, which has no idea to be found in it.
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {path: length for path, length in lengths.items() if length > 400 and path != CORE / "__init__.py"} == {}
    assert [(path, name, lines) for path in SOURCES for name, lines in functions(path) if lines > 60] == []


def test_the_session_only_wires() -> None:
    assert len((CORE / "engine" / "session.py").read_text(encoding="utf-8").splitlines()) < 150


def test_tools_keep_nothing_in_their_modules() -> None:
    """I20: a tool gets everything by its context; a module of a pack holds only constants."""
    for path in SOURCES:
        if not any(pack in path.parts for pack in PACKS):
            continue
        for node in nodes(path):
            assert not isinstance(node, ast.Global), f"{path.relative_to(ROOT)}:{node.lineno}"
        for statement in tree(path).body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(
                statement.value, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
            ):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                names = {ast.unparse(target).strip("_") for target in targets}
                constant = all(name.isupper() for name in names) or names == {"all"}
                assert constant, f"{path.relative_to(ROOT)}:{statement.lineno}: {names} can be changed by a tool"


TESTS = [path for path in sorted((ROOT / "tests").rglob("*.py")) if "__pycache__" not in path.parts]
TESTS_OF_CORE = ROOT / "tests" / "core"


PATCHING = {"setattr", "delattr", "setitem", "delitem"}
MAY_PATCH = re.compile(rf"mock|unittest|{'|'.join(PATCHING)}")
"""Found in each source that mocks something, so that the others need not be parsed."""


def mocks(source: str) -> Iterator[int]:
    """The lines of a test that put something else in the place of code."""
    if not MAY_PATCH.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
            if {"mock", "unittest", "pytest_mock"} & {module.split(".")[0] for module in modules}:
                yield node.lineno
        if (
            isinstance(node, ast.Attribute)
            and node.attr in PATCHING
            and ast.unparse(node.value) in ("monkeypatch", "mp", "patch")
        ):
            yield node.lineno
        if isinstance(node, ast.arg) and node.arg in ("mocker", "mock"):
            yield node.lineno


def test_there_are_no_mocks() -> None:
    """I6: tests use the real thing; environment variables and the current folder are not code of ours."""
    found = {path: list(mocks(path.read_text(encoding="utf-8"))) for path in TESTS}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import unittest.mock",
        "from unittest import mock",
        "import mock",
        "from pytest_mock import MockerFixture",
        "monkeypatch.setattr(marvin, 'run', None)",
        "with pytest.MonkeyPatch.context() as mp: mp.delitem(values, 'key')",
        "def test_it(mocker): pass",
    ],
)
def test_a_mock_would_be_found(source: str) -> None:
    assert list(mocks(source)) == [1]
    assert list(mocks("monkeypatch.setenv('A', 'b')\nmonkeypatch.chdir(folder)\nsetattr(own, 'name', 1)")) == []


def test_file_names_of_tests_are_unique() -> None:
    """Two files of one name in folders of one name would hide each other in reports."""
    names = [(path.parent.name, path.name) for path in TESTS if path.name not in ("conftest.py", "__init__.py")]
    assert len(names) == len(set(names))


def test_the_folders_of_the_tests_are_those_of_the_core() -> None:
    folders = {path.parent.relative_to(TESTS_OF_CORE) for path in TESTS if path.is_relative_to(TESTS_OF_CORE)}
    assert folders
    assert {folder for folder in folders if not (CORE / folder).is_dir()} == set()
