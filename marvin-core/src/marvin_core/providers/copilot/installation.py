"""Whether Copilot can be used here: its SDK, the program that the SDK runs, and a login. Only files are examined.

Each `environment` is that of Copilot's program, including HOME. The logins are described at
https://docs.github.com/copilot/how-tos/copilot-cli/set-up-copilot-cli/authenticate-copilot-cli.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...api.errors import ConfigError
from ...guard.search_path import without_projects

TOKENS = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
"""Variables for a GitHub token, in the order in which Copilot's program reads them."""

SDK_MISSING = (
    "Copilot needs its SDK, which is not installed where Marvin runs. "
    'Install it with: pip install "marvin-core[copilot]"'
)
PROGRAM_MISSING = (
    "Copilot needs its program `copilot`, which was not found. Install it with: npm install -g @github/copilot\nIf "
    "it is installed elsewhere, set COPILOT_CLI_PATH to its path."
)
LOG_IN = "Run `gh auth login`, or `copilot` and then /login, with an account that has Copilot."

_PACKAGE = "@github/copilot"
_KEPT = frozenset(("COPILOT_HOME", "COPILOT_CACHE_HOME", "COPILOT_GH_HOST", *TOKENS))
_GH_LOGIN = re.compile(r"^\s+(oauth_token|user):\s*\S", re.MULTILINE)
_OWN_LOGIN = re.compile(r'"(logged_?in_?users|copilot_?tokens)"\s*:\s*[\[{]\s*["{]', re.IGNORECASE)


def ready(environment: Mapping[str, str]) -> str:
    """The reason why Copilot can be used; empty if its SDK, its program or a login is missing."""
    if not has_sdk() or not find_program(environment):
        return ""
    return _login(environment)


def has_sdk() -> bool:
    """Whether the SDK is installed. It is not imported, since the import takes seconds."""
    if "copilot" in sys.modules:
        return True
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("copilot")
    # A namespace, as any folder of that name is, has no origin.
    return spec is not None and spec.origin is not None


def required_program(environment: Mapping[str, str]) -> str:
    """The path of Copilot's program.

    Raises:
        ConfigError: the program or the SDK is missing; the text says how to install it.
    """
    if not has_sdk():
        raise ConfigError(SDK_MISSING)
    named = environment.get("COPILOT_CLI_PATH", "")
    found = find_program(environment)
    if not found:
        raise ConfigError(f"COPILOT_CLI_PATH names {named!r}, which cannot be run." if named else PROGRAM_MISSING)
    return found


def find_program(environment: Mapping[str, str]) -> str:
    """The program named by COPILOT_CLI_PATH, otherwise the one on PATH or in npm's global folder; empty if there is
    none.
    """
    named = environment.get("COPILOT_CLI_PATH", "")
    if named:
        return named if _is_program(named) else ""
    for folder in _path(environment):
        program = os.path.join(folder, "copilot")
        if _is_program(program):
            return _native(Path(program).resolve()) or program
    for root in _npm_folders(environment):
        native = _native(root / _PACKAGE / "npm-loader.js")
        if native:
            return native
    return ""


def program_environment(environment: Mapping[str, str], *, with_login: bool) -> dict[str, str]:
    """The environment of the program. Of its own settings it contains only those that identify the user.

    COPILOT_ALLOW_ALL or COPILOT_PROVIDER_BASE_URL would change what the user agreed with Marvin.
    """
    dropped = () if with_login else TOKENS
    found = {
        name: value
        for name, value in environment.items()
        if name not in dropped and (name in _KEPT or not name.startswith("COPILOT_"))
    }
    if found.get("SSL_CERT_FILE"):
        found.setdefault("NODE_EXTRA_CA_CERTS", found["SSL_CERT_FILE"])
    return found


def own_folder(environment: Mapping[str, str]) -> Path:
    """The folder in which Copilot's program stores its login and settings."""
    return Path(environment.get("COPILOT_HOME") or Path(environment["HOME"]) / ".copilot")


def _login(environment: Mapping[str, str]) -> str:
    token = next((name for name in TOKENS if environment.get(name)), "")
    if token:
        return f"{token} is set"
    if _GH_LOGIN.search(_text(_gh_folder(environment) / "hosts.yml")):
        return "the GitHub command line `gh` is logged in"
    if _OWN_LOGIN.search(_text(own_folder(environment) / "config.json")):
        return "the program `copilot` is logged in"
    return ""


def _gh_folder(environment: Mapping[str, str]) -> Path:
    given = environment.get("GH_CONFIG_DIR")
    if given:
        return Path(given)
    return Path(environment.get("XDG_CONFIG_HOME") or Path(environment["HOME"]) / ".config") / "gh"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _path(environment: Mapping[str, str]) -> Iterator[str]:
    """The folders of PATH without those of projects, to which commands can write."""
    here = frozenset([os.path.realpath(os.curdir)])
    return filter(None, without_projects(environment.get("PATH", os.defpath), here).split(os.pathsep))


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _npm_folders(environment: Mapping[str, str]) -> Iterator[Path]:
    """The folders to which npm may have installed global programs, according to files."""
    home = environment["HOME"]
    prefixes = [environment.get(name, "") for name in ("NPM_CONFIG_PREFIX", "npm_config_prefix")]
    prefixes += re.findall(r"^\s*prefix\s*=\s*[\"']?([^\"'\n]+)", _text(Path(home) / ".npmrc"), re.MULTILINE)
    node = next((program for folder in _path(environment) if _is_program(program := f"{folder}/node")), "")
    if node:
        prefixes += [str(Path(node).parents[1]), str(Path(node).resolve().parents[1])]
    for prefix in [*filter(None, prefixes), "/usr/local", "/usr"]:
        yield Path(prefix.strip().replace("${HOME}", home).replace("~", home, 1)) / "lib" / "node_modules"


def _native(loader: Path) -> str:
    """The program that npm's loader script would start. Starting it directly avoids a process in between."""
    if loader.name != "npm-loader.js":
        return ""
    package = loader.parent
    # npm puts it beside the package, or below it where that was installed with -g.
    for folder in (package.parent, package / "node_modules" / "@github"):
        for candidate in sorted(folder.glob("copilot-*/copilot")):
            if _fits(candidate.parent.name) and _is_program(str(candidate)):
                return str(candidate)
    return ""


def _fits(package: str) -> bool:
    """Whether copilot-SYSTEM-PROCESSOR is built for this machine."""
    processor = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    system = "linux" if sys.platform == "linux" else sys.platform
    return package in (f"copilot-{system}-{processor}", f"copilot-{system}musl-{processor}")
