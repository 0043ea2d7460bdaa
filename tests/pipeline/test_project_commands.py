"""Which commands a project has is told from its files, whatever they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marvin_pipeline.checks.commands import CommandKind, find_commands


def which(program: str) -> str | None:
    """Where a program is: all are there but `python`."""
    return None if program == "python" else f"/usr/bin/{program}"


def lay(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files, and return their folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def shown(folder: Path, *kinds: CommandKind) -> list[str]:
    return [command.shown for command in find_commands(folder, which).of(*kinds)]


def package(**fields: object) -> str:
    return json.dumps(fields)


PYTEST = "python3 -m pytest"
TESTS: list[tuple[Mapping[str, str], list[str]]] = [
    ({"test_a.py": "def test_a(): pass"}, [PYTEST]),
    ({"tests/test_a.py": "import pytest"}, [PYTEST]),
    ({"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-q'"}, [PYTEST]),
    ({"requirements-dev.txt": "pytest==8"}, [PYTEST]),
    (
        {"tests/test_a.py": "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): ..."},
        ["python3 -m unittest discover -s tests"],
    ),
    ({"tests/test_a.py": "import unittest", "tests/__init__.py": ""}, ["python3 -m unittest"]),
    ({"main.py": "print(1)"}, []),
    ({"package.json": package(scripts={"test": "vitest run"})}, ["npm run test"]),
    ({"package.json": package(scripts={"test": "x"}), "pnpm-lock.yaml": ""}, ["pnpm run test"]),
    (
        {"package.json": package(scripts={"test": "x"}, packageManager="yarn@4.1.0"), "package-lock.json": "{}"},
        ["yarn run test"],
    ),
    ({"package.json": package(scripts={"test": 'echo "Error: no test specified" && exit 1'})}, []),
    ({"package.json": package(devDependencies={"vitest": "3"})}, ["npx --no-install vitest run"]),
    ({"package.json": package(devDependencies={"jest": "30"})}, ["npx --no-install jest"]),
    ({"package.json": package(type="module"), "test/a.test.js": ""}, ["node --test"]),
    ({"src/a.test.js": ""}, ["node --test"]),
    ({"Cargo.toml": ""}, ["cargo test --quiet"]),
    ({"go.mod": ""}, ["go test ./..."]),
    ({"Makefile": "test: build\n\tx\nbuild:\n\ty\n"}, ["make test"]),
    ({"Makefile": "test:\n\tx\n", "test_a.py": "def test_a(): pass"}, [PYTEST]),
    (
        {"backend/pyproject.toml": "pytest", "frontend/package.json": package(scripts={"test": "x"})},
        [f"cd backend && {PYTEST}", "cd frontend && npm run test"],
    ),
    (
        {"tests/test_a.py": "def test_a(): pass", "web/package.json": package(scripts={"test": "x"})},
        [PYTEST, "cd web && npm run test"],
    ),
    (
        {
            "package.json": package(scripts={"test": "x"}, workspaces=["one"]),
            "one/package.json": package(scripts={"test": "y"}),
        },
        ["npm run test"],
    ),
    ({"node_modules/a/package.json": package(scripts={"test": "x"}), ".hidden/setup.py": ""}, []),
]


@pytest.mark.parametrize(("files", "commands"), TESTS)
def test_the_commands_that_test(tmp_path: Path, files: Mapping[str, str], commands: list[str]) -> None:
    assert shown(lay(tmp_path, files), "test") == commands


def test_what_comes_before_and_after_the_tests_of_a_package(tmp_path: Path) -> None:
    scripts = {
        "test": "x",
        "build": "vite build",
        "typecheck": "tsc",
        "test:e2e": "y",
        "dev": "vite",
        "preview": "vite preview",
    }
    lay(tmp_path, {"package.json": package(scripts=scripts, dependencies={"vite": "7"})})
    assert shown(tmp_path, "install", "build", "test", "e2e", "serve") == [
        "npm install",
        "npm run typecheck",
        "npm run build",
        "npm run test",
        "npm run test:e2e",
        "npm run preview -- --port '{port}' --strictPort",
    ]
    (tmp_path / "node_modules").mkdir()
    assert shown(tmp_path, "install") == []


def test_the_environment_of_a_python_project_is_used(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {".venv/bin/python": "", "test_a.py": "def test_a(): pass", "tests/e2e/test_b.py": "def test_b(): pass"},
    )
    assert shown(tmp_path, "test") == [".venv/bin/python -m pytest"]
    assert shown(tmp_path, "e2e") == [".venv/bin/python -m pytest tests/e2e"]


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (
            {"manage.py": "os.environ['DJANGO_SETTINGS_MODULE']"},
            "python3 manage.py runserver --noreload 127.0.0.1:{port}",
        ),
        ({"app.py": "app = Flask(__name__)"}, "python3 -m flask --app app:app run --host 127.0.0.1 --port {port}"),
        (
            {"src/shop/web.py": "api: FastAPI = FastAPI()"},
            "python3 -m uvicorn shop.web:api --host 127.0.0.1 --port {port}",
        ),
        ({"web app/one.py": "app = Flask(__name__)"}, ""),
    ],
)
def test_the_command_that_serves_a_python_project(tmp_path: Path, files: Mapping[str, str], command: str) -> None:
    found = find_commands(lay(tmp_path, files), which).of("serve")
    assert [" ".join(one.argv) for one in found] == [command] * bool(command)


@pytest.mark.slow
def test_folders_without_end_are_not_all_looked_at(tmp_path: Path) -> None:
    """What bounds it is the number of folders, not only that of files: these are empty."""
    for number in range(2_100):
        (tmp_path / f"{number:05}").mkdir()
    lay(tmp_path, {"zzz/test_a.py": "def test_a(): pass"})
    assert shown(tmp_path, "test") == []


def test_links_and_other_things_lead_nowhere(tmp_path: Path) -> None:
    outside, project = tmp_path / "outside", tmp_path / "project"
    lay(outside, {"package.json": package(scripts={"test": "x"}), "test_a.py": "def test_a(): pass"})
    project.mkdir()
    (project / "package.json").symlink_to(outside / "package.json")
    (project / "below").symlink_to(outside)
    (project / "test_a.py").symlink_to(outside / "test_a.py")
    (project / "pyproject.toml").mkdir()
    assert find_commands(project, which).found == ()


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "scripts",
                        "test",
                        "dependencies",
                        "devDependencies",
                        "workspaces",
                        "packageManager",
                        "vitest",
                        "x",
                    ]
                ),
                inner,
            )
        ),
    )
)
def test_any_package_is_read(tmp_path: Path, data: object) -> None:
    (tmp_path / "package.json").write_text(json.dumps(data))
    for command in find_commands(tmp_path, which).found:
        assert all(isinstance(word, str) for word in command.argv)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\0", "deep", '{"scripts": {"test": 3}}'])
def test_a_damaged_package_has_no_commands(tmp_path: Path, text: str) -> None:
    text = "[" * 100_000 if text == "deep" else text
    (tmp_path / "package.json").write_text(text)
    (tmp_path / "pyproject.toml").write_text(text)
    assert find_commands(tmp_path, which).of("test") == ()


def test_very_many_files_are_not_all_looked_at(tmp_path: Path) -> None:
    for number in range(40):
        lay(tmp_path, {f"package{number:02}/go.mod": ""})
    assert len(find_commands(tmp_path, which).found) == 12
