"""Whether a pack that cannot be loaded may be one that guards calls, by what is known of it without its help."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..util.state_files import read_trusted_json, write_cache
from .model import USER, Pack

_HOOKS = "marvin_register_hooks"
# What a module says that registers hooks, or that may give itself names which do not stand in it.
_MAY_REGISTER = re.compile(
    r"_hooks\b|\bHook\b|before_tool|import\s*\*|globals\(|locals\(|vars\(|setattr|exec\(|eval\(|__dict__"
    r"|sys\.modules|__getattr__|marvin_register_h",
)
_KEPT = 2
"""What is kept of each pack at least: its version, and whether it registered hooks."""
_LARGEST = 2_000_000
"""Bytes of a module that are looked through; a larger one may be anything."""


class Memory:
    """What packs did when they were loaded last: their version, whether they registered hooks, their sub-commands.

    It is kept apart from the index, as it outlives what that is made for.
    """

    def __init__(self, cache_folder: Path) -> None:
        self._path = cache_folder / "hooks.json"
        kept = read_trusted_json(self._path)
        self._known: dict[str, Any] = kept if isinstance(kept, dict) else {}
        self._lasts = _can_be_written(cache_folder)

    def remember(self, packs: Sequence[Pack]) -> None:
        """Keep what those of the packs do that are loaded."""
        new = {pack.key: [pack.version, _HOOKS in pack.hooks, *pack.cli] for pack in packs if not pack.left_out}
        if any(self._known.get(key) != value for key, value in new.items()):
            write_cache(self._path, {**self._known, **new})

    def sub_commands(self, pack: Pack) -> tuple[str, ...]:
        """The sub-commands that a pack had: one that is gone is no prompt."""
        _, _, *names = self._of(pack)
        return tuple(map(str, names))

    def guards(self) -> list[Pack]:
        """The packs that registered hooks when they were loaded last, as far as they are known without being there."""
        found = []
        for key in self._known:
            distribution, _, name = key.partition(":")
            pack = Pack(name=name, distribution=distribution, version="", module="")
            version, registered, *_ = self._of(pack)
            if registered:
                found.append(pack.replace(version=str(version)))
        return found

    def _of(self, pack: Pack) -> list[Any]:
        known = self._known.get(pack.key)
        return known if isinstance(known, list) and len(known) >= _KEPT else ["", None]

    def may_guard(self, pack: Pack) -> bool:
        """Whether a pack that cannot be loaded registers hooks, as far as anybody can tell.

        It does if it did so before, in whatever version. Else its source says so; where that cannot be read, only
        a load of the same version without hooks speaks for it. Where nothing can be remembered it counts as a guard: it
        may have been one until now.
        """
        version, registered, *_ = self._of(pack)
        if registered is None and not self._lasts:
            return True
        if registered or (pack.distribution == USER and pack.name.startswith("hooks/")):
            return True
        path = source_file(pack.module)
        text = _text(path) if path is not None else None
        if text is None:
            return registered is None or version != pack.version
        return _MAY_REGISTER.search(text) is not None


def _can_be_written(folder: Path) -> bool:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK)


def source_file(module: str) -> Path | None:
    """The file of a module, found without importing it or what it is in; None where there is none."""
    if module.endswith(".py"):
        return Path(module)
    top, *below = module.split(".")
    try:
        spec = find_spec(top)
        name = top
        for part in below:
            name = f"{name}.{part}"
            spec = PathFinder.find_spec(name, (spec.submodule_search_locations if spec is not None else None) or [])
    except (ImportError, ValueError, AttributeError):  # a finder of a stranger, or a module without a spec
        return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _text(path: Path) -> str | None:
    """What a source file says, as far as it is text."""
    if path.suffix != ".py":
        return None
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except OSError:
        return None
    if len(content) > _LARGEST or b"\0" in content or not content.strip():
        return None  # damaged, or none that people write
    return content.decode("utf-8", "replace")
