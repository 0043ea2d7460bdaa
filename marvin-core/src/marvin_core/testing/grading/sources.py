"""Checks a pack without running it: imports, types, metadata, tests and docs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from ...api.tools import ToolSpec
from .findings import Finding, found
from .place import PackPlace

_CORE = "marvin_core"
_SHORTEST_README = 200


def source_findings(place: PackPlace, tools: Sequence[ToolSpec]) -> list[Finding]:
    """The findings from reading the pack."""
    trees = dict(_parsed(place.sources))
    return [
        found("public names", [problem for path, tree in trees.items() for problem in _private_names(path, tree)]),
        found("typed", [*_untyped(place), *(name for path, tree in trees.items() for name in _bare(path, tree))]),
        _tested(place, tools),
        found("docs", [*_metadata(place), *_undocumented(place, tools)]),
    ]


def _parsed(sources: Sequence[Path]) -> Iterator[tuple[Path, ast.Module]]:
    """The syntax trees of the files. Invalid files are skipped: they cannot be imported, which is another finding."""
    for path in sources:
        try:
            yield path, ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue


def _private_names(path: Path, tree: ast.Module) -> Iterator[str]:
    """The imports of Marvin's private modules and names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            private = [name for name in names if name.startswith(f"{_CORE}.") and name != f"{_CORE}.testing"]
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == _CORE:
            names = [alias.name for alias in node.names]
            private = [f"{node.module}.{name}" for name in names if name not in _public(node.module or "")]
        else:
            continue
        yield from (f"{path.name}:{node.lineno} imports {name}" for name in private)


def _public(module: str) -> Sequence[str]:
    if module not in (_CORE, f"{_CORE}.testing"):
        return ()
    return [*import_module(module).__all__, "testing"]


def _untyped(place: PackPlace) -> list[str]:
    if not place.package.is_dir():
        return [f"{place.package.name} is a single module, which cannot ship py.typed; make it a package"]
    return [] if (place.package / "py.typed").is_file() else [f"{place.package.name} has no py.typed"]


def _bare(path: Path, tree: ast.Module) -> Iterator[str]:
    """The functions with missing annotations."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            bare = [word.arg for word in named if word.annotation is None and word.arg not in ("self", "cls")]
            if bare or (node.returns is None and node.name != "__init__"):
                what = ", ".join(bare) or "the result"
                yield f"{path.name}:{node.lineno} {node.name}: {what} has no annotation"


def _tested(place: PackPlace, tools: Sequence[ToolSpec]) -> Finding:
    if place.project is None:
        why = "only an installation with --editable shows the tests of a pack"
        return Finding(criterion="tests", unmeasured=why)
    files = [*place.texts("tests", pattern="*.py"), *place.project.glob("test_*.py")]
    if not files:
        return found("tests", [f"{place.project} has no tests"])
    text = _joined(files)
    return found("tests", [f"{spec.name} is not named in any test" for spec in tools if spec.name not in text])


def _metadata(place: PackPlace) -> Iterator[str]:
    metadata = place.distribution.metadata
    names = {name.lower() for name in metadata}
    if not metadata["Summary"]:
        yield "pyproject.toml has no description"
    if not names & {"license", "license-expression", "license-file"}:
        yield "pyproject.toml has no licence"
    if "requires-python" not in names:
        yield "pyproject.toml has no requires-python"
    if not any(word.replace("_", "-").startswith("marvin-core") for word in place.distribution.requires or ()):
        yield "pyproject.toml does not depend on marvin-core"
    if len(_readme(place)) < _SHORTEST_README:
        yield f"the README has fewer than {_SHORTEST_README} characters"


def _undocumented(place: PackPlace, tools: Sequence[ToolSpec]) -> Iterator[str]:
    text = _readme(place) + _joined(place.texts("docs", pattern="*.md"))
    yield from (f"{spec.name} is named neither in the README nor in docs" for spec in tools if spec.name not in text)


def _readme(place: PackPlace) -> str:
    payload = place.distribution.metadata.get_payload()  # type: ignore[attr-defined]  # it is an email.message.Message
    return str(payload or place.distribution.metadata["Description"] or "")


def _joined(files: Sequence[Path] | Iterator[Path]) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)
