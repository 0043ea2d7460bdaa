"""What is known of a pack without its help: whether it may be one that guards calls, and its secrets."""

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
# What a module says that registers hooks, or that may give itself names which do not stand in it.
_MAY_REGISTER = re.compile(
    r"_hooks\b|\bHook\b|before_tool|import\s*\*|globals\(|locals\(|vars\(|setattr|exec\(|eval\(|__dict__"
    r"|sys\.modules|__getattr__|marvin_register_h",
)
_LARGEST = 2_000_000
"""Bytes of a module that are looked through; a larger one may be anything."""
# What a source names as a variable, and what by its name is a secret.
_SECRET = re.compile(
    r"""["']([A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS)[A-Z0-9_]*)["']"""
)
_FILES = 100
_SEARCHED = 500_000
"""Characters of a file that are looked through."""


class Seen(Record):
    """What a pack did when it was loaded last."""

    version: str = ""
    hooks: bool | None = None
    """Whether it registered hooks, in this version at any time; None where it was never loaded."""
    cli: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """The variables that it declared as secrets, in this version at any time."""


class Memory:
    """What packs did when they were loaded last: their version, whether they registered hooks, what they brought.

    It is kept apart from the index, as it outlives what that is made for. Each environment has one of its own: the
    same version of a pack may do in one what it does not do in another. `prefix` is that of the environment.
    """

    def __init__(self, cache_folder: Path, prefix: str = sys.prefix) -> None:
        self._prefix = prefix
        self._path = cache_folder / f"packs-{crc32(os.fsencode(prefix)):08x}.json"
        kept = read_trusted_json(self._path)
        right = isinstance(kept, dict) and kept.get("prefix") == prefix and isinstance(kept.get("packs"), dict)
        self._known: dict[str, Any] = kept["packs"] if right else {}
        self._lasts = _can_be_written(cache_folder)

    def remember(self, loaded: Sequence[Loaded]) -> None:
        """Keep what those of the packs did that could be loaded."""
        seen = {one.pack.key: stated(self._seen(one)) for one in loaded if not one.pack.left_out}
        new = {**self._known, **json.loads(json.dumps(seen))}
        if new != self._known:
            self._known = new
            write_cache(self._path, {"prefix": self._prefix, "packs": self._known})

    def _seen(self, loaded: Loaded) -> Seen:
        pack, before = loaded.pack, self.of(loaded.pack)
        # A hook or a secret may be there today and not tomorrow, as the pack finds its surroundings.
        same = before if before.version == pack.version else Seen()
        return Seen(
            version=pack.version,
            hooks=_HOOKS in pack.hooks or bool(same.hooks),
            cli=pack.cli,
            tools=tuple(spec.name for spec in loaded.tools),
            secrets=tuple(sorted(_declared(loaded).union(same.secrets))),
        )

    def guards(self) -> list[Pack]:
        """The packs that registered hooks when they were loaded last, as far as they are known without being there."""
        distributions = dict.fromkeys(key.partition(":")[0] for key in self._known)
        return [pack for name in distributions for pack in self.packs(name) if pack.guards]

    def of(self, pack: Pack) -> Seen:
        """What is remembered of a pack; nothing where it was never loaded."""
        try:
            return Seen(**tuples(self._known[pack.key]))
        except (KeyError, TypeError, AttributeError):
            return Seen()

    def packs(self, distribution: str) -> list[Pack]:
        """The packs that a distribution had when it was looked at; `guards` says which of them registered hooks."""
        found = []
        for key in self._known:
            owner, _, name = key.partition(":")
            if normal_name(owner) == normal_name(distribution):
                pack = Pack(name=name, distribution=owner, version="", module="")
                found.append(pack.replace(version=self.of(pack).version, guards=bool(self.of(pack).hooks)))
        return found

    def secrets(self, packs: Iterable[Pack]) -> tuple[str, ...]:
        """The secrets of packs that are not loaded: what they declared before, and what their source names."""
        names: set[str] = set()
        for pack in packs:
            names.update(self.of(pack).secrets)
            for file in _sources(pack):
                names.update(_SECRET.findall(_beginning(file)))
        return tuple(sorted(names))

    def may_guard(self, pack: Pack) -> bool:
        """Whether a pack that cannot be loaded registers hooks, as far as anybody can tell.

        It does if it did so before, in whatever version. Else its source says so; where that cannot be read, only
        a load of the same version without hooks speaks for it. Where nothing can be remembered it counts as a guard: it
        may have been one until now.
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


def _declared(loaded: Loaded) -> set[str]:
    of_tools = {name for spec in loaded.tools for name in spec.secrets}
    of_providers = {name for one in loaded.providers for name in (*one.key_variables, *one.home_key_variables)}
    return of_tools | of_providers | {name for one in loaded.settings for name in one.secrets}


def _sources(pack: Pack) -> Iterator[Path]:
    """The source files of a pack, as far as they are found without importing it."""
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
