"""Writes the repository of a new pack, completely or not at all."""

from __future__ import annotations

import os
import shutil
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import mkdtemp

from ...api.errors import UsageError
from ...version import __version__
from .names import PackNames

_ENDING = ".template"


def write_pack(names: PackNames, parent: Path) -> Path:
    """Write the repository of a new pack to a subfolder of `parent`, and return that subfolder.

    The repository is written to a temporary folder, which is renamed when it is complete.

    Raises:
        UsageError: the folder already exists, or cannot be written.
    """
    folder = parent / names.distribution
    if os.path.lexists(folder):
        raise UsageError(f"{folder} already exists. Nothing was changed. Choose another name or --folder.")
    words = {f"__{field}__": str(value) for field, value in names.as_dict().items()} | {"__version__": __version__}
    try:
        making = Path(mkdtemp(prefix=f".{names.distribution}-", dir=parent))
        try:
            made = making / names.distribution
            _write(files(__package__) / "template", made, words)
            os.rename(made, folder)  # fails if another process has created the folder, since it is not empty
        finally:
            shutil.rmtree(making)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"{folder} cannot be written: {reason}. Choose another --folder.") from error
    return folder


def _write(source: Traversable, target: Path, words: dict[str, str]) -> None:
    target.mkdir()
    for entry in source.iterdir():
        name = _filled(entry.name, words)
        if entry.is_dir():
            _write(entry, target / name, words)
        else:
            text = _filled(entry.read_text(encoding="utf-8"), words)
            (target / name.removesuffix(_ENDING)).write_text(text, encoding="utf-8")


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
