"""Facts about packs without loading them: whether they may register hooks, and their secrets."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

from ..api.record import Record
from ..util.state_files import read_trusted_json, write_cache
from .entry_points import normal_name
from .model import USER, Loaded, Pack
from .stored import stated, tuples

_HOOKS = "marvin_register_hooks"
# Source text that registers hooks, or may define names dynamically.
_MAY_REGISTER = re.compile(
    r"_hooks\b|\bHook\b|before_tool|import\s*\*|globals\(|locals\(|vars\(|setattr|exec\(|eval\(|__dict__"
    r"|sys\.modules|__getattr__|marvin_register_h",
)
_LARGEST = 2_000_000
"""The maximum size of a module that is examined; a larger one counts as unknown."""
# Environment variables in source text, and those with the name of a secret.
_SECRET = re.compile(
    r"""["']([A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS)[A-Z0-9_]*)["']"""
)
_FILES = 100
_SEARCHED = 500_000
"""The maximum number of characters of an examined file."""


class Seen(Record):
    """The result of the last load of a pack."""

    version: str = ""
    hooks: bool | None = None
    """Whether this version ever registered hooks; None if it was never loaded."""
    cli: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """The variables that this version ever declared as secrets."""


class Memory:
    """The results of the last load of each pack: its version, whether it registered hooks, its secrets.

    This is stored separately from the index, because it must survive a rebuild. Each environment has its own file: a
    version of a pack may behave differently in another one. `prefix` is `sys.prefix` of the environment.
    """

    def __init__(self, cache_folder: Path, prefix: str = sys.prefix) -> None:
        self._prefix = prefix
        self._path = cache_folder / f"packs-{crc32(os.fsencode(prefix)):08x}.json"
        kept = read_trusted_json(self._path)
        right = isinstance(kept, dict) and kept.get("prefix") == prefix and isinstance(kept.get("packs"), dict)
        self._known: dict[str, Any] = kept["packs"] if right else {}
        self._lasts = _can_be_written(cache_folder)

    def remember(self, loaded: Sequence[Loaded]) -> None:
        """Store the results of the packs that were loaded."""
        seen = {one.pack.key: stated(self._seen(one)) for one in loaded if not one.pack.left_out}
        new = {**self._known, **json.loads(json.dumps(seen))}
        if new != self._known:
            self._known = new
            write_cache(self._path, {"prefix": self._prefix, "packs": self._known})

    def _seen(self, loaded: Loaded) -> Seen:
        pack, before = loaded.pack, self.of(loaded.pack)
        # A hook or a secret may depend on the environment, and be missing in some loads.
        same = before if before.version == pack.version else Seen()
        return Seen(
            version=pack.version,
            hooks=_HOOKS in pack.hooks or bool(same.hooks),
            cli=pack.cli,
            tools=tuple(spec.name for spec in loaded.tools),
            secrets=tuple(sorted(_declared(loaded).union(same.secrets))),
        )

    def guards(self) -> list[Pack]:
        """The packs that registered hooks at their last load, and that may be missing now."""
        distributions = dict.fromkeys(key.partition(":")[0] for key in self._known)
        return [pack for name in distributions for pack in self.packs(name) if pack.guards]

    def of(self, pack: Pack) -> Seen:
        """The stored results of a pack; empty if it was never loaded."""
        try:
            return Seen(**tuples(self._known[pack.key]))
        except (KeyError, TypeError, AttributeError):
            return Seen()

    def packs(self, distribution: str) -> list[Pack]:
        """The packs of a distribution when it was last read; `guards` says which of them registered hooks."""
        found = []
        for key in self._known:
            owner, _, name = key.partition(":")
            if normal_name(owner) == normal_name(distribution):
                pack = Pack(name=name, distribution=owner, version="", module="")
                found.append(pack.replace(version=self.of(pack).version, guards=bool(self.of(pack).hooks)))
        return found

    def secrets(self, packs: Iterable[Pack]) -> tuple[str, ...]:
        """The secrets of packs that are not loaded: those declared earlier, and those found in the source."""
        names: set[str] = set()
        for pack in packs:
            names.update(self.of(pack).secrets)
            for file in _sources(pack):
                names.update(_SECRET.findall(_beginning(file)))
        return tuple(sorted(names))

    def may_guard(self, pack: Pack) -> bool:
        """Whether a pack that cannot be loaded may register hooks.

        It may if any version did so before, or if its source contains a hook. If the source cannot be read, it may
        unless the same version was once loaded and had no hooks. If nothing can be stored, every pack may: it may have
        registered hooks before.
        """
        seen = self.of(pack)
        if seen.hooks is None and not self._lasts:
            return True
        if seen.hooks or (pack.distribution == USER and pack.name.startswith("hooks/")):
            return True
        path = source_file(pack.module)
        text = _text(path) if path is not None else None
        if text is None:
            return seen.hooks is None or seen.version != pack.version
        return _MAY_REGISTER.search(text) is not None


def _can_be_written(folder: Path) -> bool:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK)


def source_file(module: str) -> Path | None:
    """The file of a module, found without importing it or its package; None if there is none."""
    if module.endswith(".py"):
        return Path(module)
    top, *below = module.split(".")
    try:
        spec = find_spec(top)
        name = top
        for part in below:
            name = f"{name}.{part}"
            spec = PathFinder.find_spec(name, (spec.submodule_search_locations if spec is not None else None) or [])
    except (ImportError, ValueError, AttributeError):  # a third-party finder, or a module without a spec
        return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _text(path: Path) -> str | None:
    """The text of a source file, if it can be decoded."""
    if path.suffix != ".py":
        return None
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except OSError:
        return None
    if len(content) > _LARGEST or b"\0" in content or not content.strip():
        return None  # damaged, or generated
    return content.decode("utf-8", "replace")


def _declared(loaded: Loaded) -> set[str]:
    of_tools = {name for spec in loaded.tools for name in spec.secrets}
    of_providers = {name for one in loaded.providers for name in (*one.key_variables, *one.home_key_variables)}
    return of_tools | of_providers | {name for one in loaded.settings for name in one.secrets}


def _sources(pack: Pack) -> Iterator[Path]:
    """The source files of a pack that can be found without importing it."""
    file = source_file(pack.module)
    if file is None or file.suffix != ".py":
        return
    yield file
    if "." in pack.module and not pack.module.endswith(".py"):
        yield from islice((other for other in file.parent.rglob("*.py") if other != file), _FILES)


def _beginning(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(_SEARCHED)
    except OSError:
        return ""
