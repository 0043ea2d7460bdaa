"""The tool install_packages."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated

from marvin_core import Field, ProcessResult, ToolContext, ToolError, ToolResult, output_text, tool

from .commands import exit_text, shown_path
from .package_managers import ENVIRONMENT, REQUIREMENTS, Manager, by_hand, find, lock_above

_LIMIT = 900.0
_OUTPUT_LIMIT = 20_000
_LONGEST_NAME = 500
_BEGINNING = re.compile(r"[\w@~./-]")
"""How a name begins, a scope of npm or a path. An option has an error of its own."""
_ONE_NAME = re.compile(r"@?[^\s@;]+(?:@.*)?")
"""A name, optionally with a version, in the syntax of npm, pnpm and yarn. For `a; b`, npm would install the package
"undefined"."""
_SHOWN = 100
_LEADING_ELSEWHERE = (
    "VIRTUAL_ENV CONDA_PREFIX PYTHONHOME PYTHONPATH PYTHONUSERBASE PIP_TARGET PIP_PREFIX PIP_ROOT PIP_USER PIP_PYTHON "
    "UV_PROJECT UV_PROJECT_ENVIRONMENT UV_SYSTEM_PYTHON UV_WORKING_DIR UV_WORKING_DIRECTORY npm_config_global "
    "NPM_CONFIG_GLOBAL npm_config_prefix NPM_CONFIG_PREFIX npm_config_location NPM_CONFIG_LOCATION CARGO_INSTALL_ROOT"
).split()
"""Variables with which a package manager would install into another environment than the project's."""
_ALONE = ["env", *(part for name in _LEADING_ELSEWHERE for part in ("-u", name))]
_WITHIN = {
    "POETRY_VIRTUALENVS_IN_PROJECT": "true",
    "POETRY_VIRTUALENVS_CREATE": "true",
    "PIP_REQUIRE_VIRTUALENV": "1",
    "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
    "NO_COLOR": "1",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
}
_NO_PIP = b"No module named pip"


@tool(access=["write", "exec", "net"], confirm=True, group="shell", timeout=_LIMIT, snapshot=True)
async def install_packages(
    context: ToolContext,
    packages: Annotated[list[str], Field(min_length=1, max_length=50), "Names, with a version if one is needed"],
    dev: Annotated[bool, "Only for development"] = False,
) -> ToolResult:
    """Add dependencies with the project's own package manager: uv, pip (into .venv), poetry, npm, pnpm, yarn or cargo.

    Lock files and manifests here tell which one it is.
    """
    _refuse_names(packages)
    manager = _manager(context, packages, dev=dev)
    if manager.is_python:
        _refuse_foreign_environment(context)
    elif strange := next((name for name in packages if not _ONE_NAME.fullmatch(name)), None):
        raise _no_name(strange)
    if manager.name == "pip":
        await _make_environment(context)
    result = await _run(context, manager.adding(packages, dev=dev))
    if manager.name == "pip" and result.exit_code != 0 and _NO_PIP in result.output:
        await _run_well(context, manager, [_python_of_project(), "-I", "-m", "ensurepip"])
        result = await _run(context, manager.adding(packages, dev=dev))
    if result.exit_code != 0:
        raise _failure(context, manager, result)
    said = _output(context, result)
    return ToolResult(
        content="\n".join(filter(None, (said, f"[{_done(context, manager, packages, dev=dev)}]"))),
        details={"manager": manager.name, "exit_code": result.exit_code, "elapsed": result.elapsed},
    )


def _refuse_names(packages: Sequence[str]) -> None:
    for name in packages:
        if not name.isprintable() or len(name) > _LONGEST_NAME or not _BEGINNING.match(name) or name != name.strip():
            raise _no_name(name)
        if name.startswith("-"):
            raise ToolError(
                f"Nothing was installed: {name!r} is an option, not a package. Pass only names; dev=true adds "
                "development dependencies, and for other options use run_command with the manager itself."
            )


def _no_name(name: str) -> ToolError:
    return ToolError(f"Nothing was installed: {name[:_LONGEST_NAME]!r} is not a package name. Pass only names.")


def _manager(context: ToolContext, packages: Sequence[str], *, dev: bool) -> Manager:
    """The one package manager of the project. Raises `ToolError` if there is none, or more than one."""
    root = context.paths.root
    above = lock_above(context.paths)
    if above:
        raise ToolError(
            f"Nothing was installed: {root} is part of a project whose lock file is {above}. Change to its folder "
            "with set_working_dir; to add the packages only to this part, use run_command there with the package "
            "manager and the name of the part."
        )
    found = find(context.paths)
    if not found:
        raise ToolError(
            f"Nothing was installed: {root} has no file of a package manager. Change to the project with "
            "set_working_dir, or create one: run_command uv init, npm init -y or cargo init; for pip create "
            "requirements.txt."
        )
    if len(found) > 1:
        names = " and ".join(f"{manager.name} ({manager.because})" for manager in found)
        raise ToolError(
            f"Nothing was installed: {len(found)} package managers fit {root}: {names}. Choose one and use "
            "run_command with its line below; if one of the files is obsolete, ask the user to remove "
            f"it.\n{by_hand(found, packages, dev=dev)}"
        )
    manager = found[0]
    if not manager.is_known:
        raise ToolError(
            f"Nothing was installed: the project uses {manager.name} ({manager.because}), which this tool does not "
            f"support. Use run_command: {by_hand(found, packages, dev=dev)}"
        )
    if manager.name != "pip" and context.processes.which(manager.name) is None:
        raise ToolError(
            f"Nothing was installed: the project uses {manager.name} ({manager.because}), which is not installed, or "
            "not in PATH. Ask the user to install it."
        )
    return manager


def _refuse_foreign_environment(context: ToolContext) -> None:
    """Refuse Marvin's own environment, and environments elsewhere, which the error names."""
    if not context.paths.exists(ENVIRONMENT):
        return
    place = os.path.realpath(context.paths.root / ENVIRONMENT)
    if place in (os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)):
        raise ToolError(
            f"Nothing was installed: Marvin itself runs from {place}. Ask the user to install the packages, or to "
            "install Marvin in a separate virtual environment."
        )
    if context.paths.stat(ENVIRONMENT).kind != "folder":
        raise ToolError(f"Nothing was installed: {ENVIRONMENT} is not a folder. Move it away first.")


def _python_of_project() -> str:
    return f"{ENVIRONMENT}/bin/python"


async def _make_environment(context: ToolContext) -> None:
    """Create the project's environment if it has none."""
    if context.paths.exists(f"{ENVIRONMENT}/pyvenv.cfg"):
        return
    python = context.processes.which("python3") or context.processes.which("python")
    if python is None:
        raise ToolError(
            "Nothing was installed: there is no Python in PATH to create .venv with. Ask the user to install one."
        )
    context.progress(f"making {ENVIRONMENT}")
    await _run_well(context, Manager(name="pip", because=""), [python, "-I", "-m", "venv", ENVIRONMENT])


async def _run(context: ToolContext, command: Sequence[str]) -> ProcessResult:
    return await context.processes.run(
        [*_ALONE, *command],
        output_limit=_OUTPUT_LIMIT,
        merge_stderr=True,
        keep_output=True,
        on_output=context.progress,
        env=_WITHIN,
    )


async def _run_well(context: ToolContext, manager: Manager, command: Sequence[str]) -> None:
    result = await _run(context, command)
    if result.exit_code != 0:
        raise _failure(context, manager, result)


def _failure(context: ToolContext, manager: Manager, result: ProcessResult) -> ToolError:
    return ToolError(
        f"{manager.name} failed with {exit_text(result.exit_code or 0)}. Check its output for a name that does not "
        f"exist, versions that conflict, or a registry that cannot be reached.\n{_output(context, result)}"
    )


def _output(context: ToolContext, result: ProcessResult) -> str:
    where = f"All of it is in {shown_path(result.file, context.paths.root)}." if result.file is not None else ""
    return output_text(result.output, result.omitted, where).strip()


def _done(context: ToolContext, manager: Manager, packages: Sequence[str], *, dev: bool) -> str:
    back = manager.removing(packages, dev=dev)
    parts = [f"{manager.name} ({manager.because}) has added them"]
    if manager.name == "pip":
        files = [name for name in REQUIREMENTS if context.paths.exists(name)]
        wanted = [name for name in files if "dev" in name] or files if dev else files
        parts = [f"pip has installed them into {ENVIRONMENT} but has not recorded them: add them to "]
        parts[0] += wanted[0] if wanted else manager.because
    parts.append(f"to undo this, run_command: {back}" if back else "")
    return "; ".join(filter(None, parts))
