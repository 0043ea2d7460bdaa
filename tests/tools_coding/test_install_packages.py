"""install_packages: the manager that a project uses, where packages go, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Tool, ToolError, ToolResult
from marvin_core.engine.calls.processes import CallProcesses
from marvin_core.engine.calls.timer import CallTimer
from marvin_core.engine.network import SessionNetwork
from marvin_core.guard.files.sandbox import SandboxPaths
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.http.clients import Clients
from marvin_core.tools.schema import describe
from marvin_core.util.bus import Bus
from marvin_tools_coding.shell import installing
from marvin_tools_coding.shell.installing import install_packages
from marvin_tools_coding.shell.package_managers import Manager, find
from tests.support.registries import Registry, registry
from tests.support.sandboxes import Place, in_sandbox

from .support_shell import Folder

PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
NO_NAMES = ["-r requirements.txt", "--no-deps", "-e", "-", "", " ", " tiny", "ti\0ny", "ti\nny"]
NO_NAMES += ["; rm -rf x", "& x", "tiny; rm -rf x", "tiny huge", "$(tiny)"]


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program, path=PATH) is None, reason=f"{program} is not installed")


@pytest.fixture(scope="module")
def served() -> Iterator[Registry]:
    with registry() as made:
        yield made


def folder_with(tmp_path: Path, files: Mapping[str, str], **env: str) -> Folder:
    root = tmp_path / "project"
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    root.mkdir(exist_ok=True)
    return Folder(root, PATH=PATH, **env)


PROJECT = '[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.11"\n'
POETRY = '[tool.poetry]\nname = "app"\n'
PACKAGE = '{"name": "app", "version": "1.0.0"}'


@pytest.mark.parametrize(
    ("files", "managers"),
    [
        ({"uv.lock": "", "pyproject.toml": PROJECT}, ["uv"]),
        ({"uv.lock": "", "requirements.txt": ""}, ["uv"]),
        ({"pyproject.toml": f"{PROJECT}[tool.uv]\n"}, ["uv"]),
        ({"pyproject.toml": PROJECT, "uv.toml": ""}, ["uv"]),
        ({"poetry.lock": "", "pyproject.toml": PROJECT}, ["poetry"]),
        ({"pyproject.toml": POETRY}, ["poetry"]),
        ({"pyproject.toml": f'{PROJECT}[build-system]\nbuild-backend = "poetry.core.masonry.api"\n'}, ["poetry"]),
        ({"pyproject.toml": POETRY, "requirements.txt": ""}, ["poetry"]),
        ({"requirements.txt": ""}, ["pip"]),
        ({"requirements-dev.txt": ""}, ["pip"]),
        ({"pyproject.toml": PROJECT}, ["pip"]),
        ({"setup.py": ""}, ["pip"]),
        ({"setup.cfg": ""}, ["pip"]),
        ({"Pipfile": "", "Pipfile.lock": ""}, ["pipenv"]),
        ({"pdm.lock": "", "pyproject.toml": PROJECT}, ["pdm"]),
        ({"uv.lock": "", "poetry.lock": "", "pyproject.toml": PROJECT}, ["uv", "poetry"]),
        ({"package.json": PACKAGE}, ["npm"]),
        ({"package.json": PACKAGE, "package-lock.json": "{}"}, ["npm"]),
        ({"package.json": PACKAGE, "npm-shrinkwrap.json": "{}", "package-lock.json": "{}"}, ["npm"]),
        ({"package.json": PACKAGE, "pnpm-lock.yaml": ""}, ["pnpm"]),
        ({"package.json": PACKAGE, "pnpm-workspace.yaml": ""}, ["pnpm"]),
        ({"package.json": PACKAGE, "yarn.lock": ""}, ["yarn"]),
        ({"package.json": PACKAGE, ".yarnrc.yml": ""}, ["yarn"]),
        ({"package.json": '{"packageManager": "pnpm@9.1.0"}', "package-lock.json": "{}"}, ["pnpm"]),
        ({"package.json": "\ufeff{}", "yarn.lock": "", "package-lock.json": "{}"}, ["npm", "yarn"]),
        ({"package.json": PACKAGE, "bun.lock": ""}, ["bun"]),
        ({"yarn.lock": ""}, []),
        ({"Cargo.toml": ""}, ["cargo"]),
        ({"Cargo.toml": "", "package.json": PACKAGE, "pyproject.toml": PROJECT}, ["pip", "npm", "cargo"]),
        ({"go.mod": ""}, ["go"]),
        ({"README.md": ""}, []),
        ({"package.json": "[]"}, ["npm"]),
        ({"pyproject.toml": "tool = 3"}, ["pip"]),
    ],
)
def test_the_manager_is_told_by_the_files_of_the_project(
    tmp_path: Path, files: Mapping[str, str], managers: list[str]
) -> None:
    assert [manager.name for manager in find(folder_with(tmp_path, files).paths)] == managers


def test_two_that_fit_are_named_with_the_command_of_each(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, {"package.json": PACKAGE, "yarn.lock": "", "package-lock.json": "{}"})
    said = folder.error(install_packages, packages=["left-pad", "@a/b@1"], dev=True)
    assert "npm (package-lock.json) and yarn (yarn.lock)" in said
    assert "npm install --no-audit --no-fund --save-dev -- left-pad @a/b@1\nyarn add --dev left-pad @a/b@1" in said
    assert "run_command" in said
    assert sorted(os.listdir(folder.root)) == ["package-lock.json", "package.json", "yarn.lock"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"README.md": ""},
            "has no file of a package manager. Change to the project",
        ),
        (
            {"Pipfile": ""},
            "uses pipenv (Pipfile), which this tool does not support. Use run_command: pipenv install tiny",
        ),
        ({"package.json": "{"}, "package.json cannot be read"),
        ({"package.json": "[" * 100_000}, "package.json cannot be read"),
        ({"pyproject.toml": "[tool"}, "pyproject.toml cannot be read"),
    ],
)
def test_what_does_not_fit_is_told_with_what_to_do(tmp_path: Path, files: Mapping[str, str], said: str) -> None:
    assert said in folder_with(tmp_path, files).error(install_packages, packages=["tiny"])


def test_a_manager_that_is_missing_is_named(tmp_path: Path) -> None:
    bare = folder_with(tmp_path, {"poetry.lock": ""})
    bare.env["PATH"] = str(tmp_path)
    assert "uses poetry (poetry.lock), which is not installed" in bare.error(install_packages, packages=["tiny"])


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    """I27."""
    folder = folder_with(tmp_path, {"package.json": PACKAGE})
    assert "Nothing was installed" in folder.error(install_packages, packages=["tiny", name])
    assert os.listdir(folder.root) == ["package.json"]


@given(name=st.text(max_size=10), manager=st.sampled_from(["uv", "pip", "poetry", "npm", "pnpm", "yarn", "cargo"]))
def test_no_name_that_passes_is_an_option(name: str, manager: str) -> None:
    """I27."""
    try:
        installing._refuse_names([name])
    except ToolError:
        return
    command = Manager(name=manager, because="").adding([name], dev=True)
    assert command[-1] == name
    assert not name.startswith("-")


def test_a_lock_above_leads_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "top" / ".git").mkdir(parents=True)
    (tmp_path / "top" / "pnpm-lock.yaml").touch()
    folder = folder_with(tmp_path / "top", {"package.json": PACKAGE})
    said = folder.error(install_packages, packages=["tiny"])
    assert f"whose lock file is {tmp_path}/top/pnpm-lock.yaml. Change to its folder" in said
    (tmp_path / "top" / "pnpm-lock.yaml").rename(tmp_path / "pnpm-lock.yaml")  # outside of the repository
    assert [manager.name for manager in find(SandboxPaths(folder.root))] == ["npm"]


@pytest.mark.slow
def test_pip_installs_into_the_environment_of_the_project(tmp_path: Path, served: Registry) -> None:
    """It is made where it is missing, whatever environment Marvin was started from."""
    own = tmp_path / "own"
    (own / "bin").mkdir(parents=True)
    files = {"requirements.txt": "", "requirements-dev.txt": "", "json.py": "raise SystemExit('shadowed')\n"}
    env = {"PIP_INDEX_URL": served.simple, "VIRTUAL_ENV": str(own), "PIP_TARGET": str(own), "PIP_USER": "1"}
    folder = folder_with(tmp_path, files, **env)
    said = folder.call(install_packages, packages=["tiny<2"])
    assert "pip has installed them into .venv but has not recorded them: add them to requirements.txt" in said
    assert "run_command: .venv/bin/python -m pip uninstall --yes tiny" in said
    assert "Successfully installed tiny-1.0" in said
    assert any("tiny" in told for told in folder.told)
    (version,) = (folder.root / ".venv").glob("lib/python*/site-packages/tiny.py")
    assert version.read_text() == "VERSION = '1.0'\n"
    assert [path.name for path in own.rglob("*")] == ["bin"]
    assert (folder.root / "requirements.txt").read_text() == ""

    said = folder.error(install_packages, packages=["no-such-package"], dev=True)
    assert "pip failed with exit code 1" in said
    assert "No matching distribution found for no-such-package" in said

    folder.sh(".venv/bin/python -m pip uninstall --yes --quiet pip")
    said = folder.call(install_packages, packages=["tiny"], dev=True)  # an environment without pip gets one
    assert "add them to requirements-dev.txt" in said


@pytest.mark.parametrize("link", [False, True])
def test_an_environment_elsewhere_is_left_alone(tmp_path: Path, link: bool) -> None:
    folder = folder_with(tmp_path, {"requirements.txt": ""})
    (folder.root / ".venv").symlink_to(sys.prefix if link else tmp_path / "nothing")
    said = folder.error(install_packages, packages=["tiny"])
    assert "leads out of the working directory" in said
    assert not (tmp_path / "nothing").exists()


def test_marvin_in_the_working_directory_is_left_alone(tmp_path: Path) -> None:
    """As where one works on Marvin itself: its environment is the `.venv` of the project."""
    environment = Path(sys.prefix)
    if environment.name != ".venv":
        pytest.skip("the environment of the tests is no .venv")
    said = Folder(environment.parent, PATH=PATH).error(install_packages, packages=["tiny"])
    assert f"Marvin itself runs from {environment}" in said


@pytest.mark.slow
@needs("uv")
def test_uv(tmp_path: Path, served: Registry) -> None:
    env = {"UV_DEFAULT_INDEX": served.simple, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_NO_PROGRESS": "1"}
    files = {"pyproject.toml": PROJECT, "uv.lock": 'version = 1\nrequires-python = ">=3.11"\n'}
    folder = folder_with(tmp_path, files, UV_PROJECT_ENVIRONMENT=str(tmp_path / "elsewhere"), **env)
    said = folder.call(install_packages, packages=["tiny"], dev=True)
    assert "uv (uv.lock) has added them; to undo this, run_command: uv remove --dev tiny" in said
    assert 'dev = [\n    "tiny>=2.0",\n]' in (folder.root / "pyproject.toml").read_text()
    assert list((folder.root / ".venv").glob("lib/python*/site-packages/tiny.py"))
    assert not (tmp_path / "elsewhere").exists()
    assert "uv failed with exit code 1" in folder.error(install_packages, packages=["no-such-package"])
    folder.sh("uv remove --quiet --dev tiny")
    assert "tiny" not in (folder.root / "pyproject.toml").read_text()


@pytest.mark.slow
@needs("npm")
def test_npm(tmp_path: Path, served: Registry) -> None:
    files = {
        "package.json": PACKAGE,
        ".npmrc": f"registry={served.url}\ncache={tmp_path}/cache\n",
    }
    folder = folder_with(tmp_path, files, npm_config_global="true")
    said = folder.call(install_packages, packages=["tiny@1.0.0"])
    assert "npm (package.json) has added them; to undo this, run_command: npm uninstall tiny" in said
    assert json.loads((folder.root / "package.json").read_text())["dependencies"] == {"tiny": "^1.0.0"}
    assert (folder.root / "node_modules" / "tiny" / "index.js").read_text() == "module.exports = '1.0.0'\n"
    said = folder.error(install_packages, packages=["no-such-package"])
    assert "npm failed with exit code 1" in said
    assert "404" in said


@needs("cargo")
def test_cargo(tmp_path: Path) -> None:
    """From a folder of crates that stands for the registry."""
    crate = '[package]\nname = "{}"\nversion = "0.2.0"\nedition = "2021"\n'
    crates = tmp_path / "crates"
    source = f'[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = "{crates}"\n'
    (crates / "tiny" / "src").mkdir(parents=True)
    (crates / "tiny" / "src" / "lib.rs").touch()
    (crates / "tiny" / "Cargo.toml").write_text(crate.format("tiny"))
    (crates / "tiny" / ".cargo-checksum.json").write_text('{"files": {}, "package": null}')
    files = {"Cargo.toml": crate.format("app"), "src/main.rs": "fn main() {}\n", ".cargo/config.toml": source}
    tools = {"RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")), "CARGO_HOME": str(tmp_path)}
    folder = folder_with(tmp_path, files, **tools)
    said = folder.call(install_packages, packages=["tiny"], dev=True)
    assert "cargo (Cargo.toml) has added them; to undo this, run_command: cargo remove --dev tiny" in said
    assert '[dev-dependencies]\ntiny = "0.2.0"\n' in (folder.root / "Cargo.toml").read_text()
    assert "cargo failed with exit code 101" in folder.error(install_packages, packages=["no-such-crate"])


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        (Manager(name="poetry", because=""), "poetry add --no-interaction --group dev -- a"),
        (Manager(name="pnpm", because="", extra=("--workspace-root",)), "pnpm add --workspace-root --save-dev a"),
        (Manager(name="yarn", because=""), "yarn add --dev a"),
    ],
)
def test_the_commands_of_managers_that_are_not_tried_here(manager: Manager, command: str) -> None:
    assert " ".join(manager.adding(["a"], dev=True)) == command


@pytest.mark.parametrize(
    ("name", "package", "bare"),
    [
        ("uv", "httpx[http2]>=0.27,<1", "httpx"),
        ("pip", "a.b-c_d==1 ; python_version > '3'", "a.b-c_d"),
        ("pip", "git+https://example.org/a.git", ""),
        ("uv", "a @ https://example.org/a.whl", ""),
        ("npm", "@scope/name@^1.2", "@scope/name"),
        ("npm", "left-pad", "left-pad"),
        ("npm", "github:a/b", ""),
        ("npm", "./folder", ""),
        ("cargo", "serde@1.0", "serde"),
    ],
)
def test_how_to_take_back_names_packages_without_versions(name: str, package: str, bare: str) -> None:
    told = Manager(name=name, because="").removing([package], dev=False)
    assert told.rpartition(" ")[2] == bare


@pytest.mark.slow
@needs("npm")
@pytest.mark.parametrize(
    ("answer", "settings", "why"),
    [
        ("session", "allow_addresses: [127.0.0.2]\n", ""),
        ("no", "allow_addresses: [127.0.0.2]\n", ". Do without it"),
        ("session", "", "private network: allow_addresses in config.yaml allows it"),
    ],
)
def test_in_the_sandbox_the_user_is_asked_about_the_registry(
    tmp_path: Path, answer: str, settings: str, why: str
) -> None:
    """What was not reached is named; what is allowed is installed into the working directory.

    A registry in a private network, such as a company's, is not reached if only its name is allowed.
    """
    with registry("127.0.0.2") as there:  # what is at 127.0.0.1 is the sandbox's own
        questions: list[str] = []

        async def person(question: str, choices: Sequence[str]) -> str:
            questions.append(question)
            return answer

        async def work(place: Place) -> None:
            (place.root / "package.json").write_text(PACKAGE)
            (place.root / ".npmrc").write_text(f"registry={there.url}\nfetch-retries=0\n")
            folder = Folder(place.root)
            seen = CallProcesses(place.runner, CallTimer(50), outside=False)
            folder.processes = cast("ProcessRunner", seen)
            call = install_packages.function(folder.context, packages=["tiny"])
            if not why:
                assert isinstance(await call, ToolResult)
                assert (place.root / "node_modules" / "tiny").is_dir()
                return
            with pytest.raises(ToolError, match="npm failed"):
                await call
            assert f"did not let commands reach 127.0.0.2:{there.port}" in seen.held_back[0]
            assert why in seen.held_back[0]

        in_sandbox(
            tmp_path,
            work,
            settings=settings,
            decides=lambda given: SessionNetwork(given, Clients(given), Bus(), person, {}),
        )
        assert len(questions) == 1
        assert f"reach 127.0.0.2:{there.port}" in questions[0]


def test_all_of_a_long_output_is_in_a_file(tmp_path: Path) -> None:
    """A manager that prints a lot: the model sees head and tail, and where the rest is."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "yarn").write_text("#!/bin/sh\nseq 1 20000\n")
    (programs / "yarn").chmod(0o755)
    folder = folder_with(tmp_path, {"package.json": PACKAGE, "yarn.lock": ""})
    folder.env["PATH"] = f"{programs}:{PATH}"
    said = folder.call(install_packages, packages=["tiny"])
    assert len(said) < 21_000
    assert "All of it is in " in said
    assert said.splitlines()[0] == "1"


def test_its_schema() -> None:
    spec = describe(install_packages)
    assert spec.timeout == 900
    assert spec.parameters["properties"]["packages"] == {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "maxItems": 50,
        "description": "Names, with a version if one is needed",
    }
    assert isinstance(install_packages, Tool)
