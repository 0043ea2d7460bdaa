"""The locations of a pack: its code, its metadata, and the project that it was installed from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.metadata import Distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ...api.errors import PluginError
from ...api.record import Record
from ...plugins.model import Pack


class PackPlace(Record):
    """The locations of one pack.

    `package` is the folder of its code, or its only file. `code` is the beginning of its file names in stack frames.
    `project` is None if it was installed from a wheel.
    """

    package: Path
    code: tuple[str, ...]
    distribution: Distribution
    project: Path | None

    @property
    def sources(self) -> list[Path]:
        """The Python files of the pack."""
        return sorted(self.package.rglob("*.py")) if self.package.is_dir() else [self.package]

    def texts(self, *folders: str, pattern: str) -> Iterator[Path]:
        """The matching files in these folders of the project, and of a workspace around it."""
        if self.project is None:
            return
        for root in (self.project, self.project.parent):
            if root == self.project or _is_workspace(root):
                for folder in folders:
                    yield from sorted((root / folder).rglob(pattern))


def place_of(pack: Pack) -> PackPlace:
    """Find the locations of a pack.

    Raises:
        PluginError: the module of the pack cannot be found.
    """
    top = pack.module.partition(".")[0]
    spec = find_spec(top)
    if spec is None or not spec.origin:
        raise PluginError(f"The module {top} of the pack {pack.name} cannot be found. Reinstall {pack.distribution}.")
    origin = Path(os.path.realpath(spec.origin))
    distribution = Distribution.from_name(pack.distribution)
    is_package = origin.name == "__init__.py"
    starts = [f"{file.parent}{os.sep}" if is_package else str(file) for file in (Path(spec.origin), origin)]
    return PackPlace(
        package=origin.parent if is_package else origin,
        code=tuple(dict.fromkeys(starts)),
        distribution=distribution,
        project=_project(distribution),
    )


def _project(distribution: Distribution) -> Path | None:
    """The source folder of an editable installation; see https://peps.python.org/pep-0610/"""
    try:
        stated = json.loads(distribution.read_text("direct_url.json") or "{}")
        editable = stated.get("dir_info", {}).get("editable")
        path = Path(unquote(urlsplit(stated["url"]).path)) if editable else None
    except (ValueError, KeyError, AttributeError):
        return None
    return path if path is not None and path.is_dir() else None


def _is_workspace(folder: Path) -> bool:
    try:
        return "[tool.uv.workspace]" in (folder / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
