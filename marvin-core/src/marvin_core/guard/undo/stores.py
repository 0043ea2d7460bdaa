"""The folders of snapshots: their users, and the removal of old ones."""

from __future__ import annotations

import json
import os
import shutil
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha1
from pathlib import Path

from ...api.limits import Limits
from ...util.state_files import make_private_folder, private, read_trusted, trusted_json, update_file
from .ledger import is_live, this_process
from .repositories import objects_in, share_objects

_READY, _USER, _SHARES, _BOOT = "ready", "user-", "shares", "boot"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MODES = "modes.json"
_DAY = 86_400
_BLOCK, _DIGEST = 1_000_000, 20
_FILES = {
    "HEAD": "ref: refs/heads/none\n",
    "config": "[core]\nrepositoryformatversion = 0\nbare = false\nsharedRepository = 0600\n",
    # Files are stored byte by byte, whatever attributes the user's repository has.
    "info/attributes": "* -text !eol !crlf -ident !filter !working-tree-encoding\n",
}


def used(store: Path) -> bool:
    """Register this process as a user of a store; False if the store is incomplete."""
    if not (store / _READY).exists():
        return False
    _use(store)
    return True


def make_store(base: Path, store: Path, limits: Limits, top: Path) -> None:
    """Create a store for a folder of the repository at `top`, after removing old and excess ones."""
    make_private_folder(base)
    sweep_stores(base, limits, time.time())
    make_private_folder(store)
    _use(store)
    for folder in ("refs", "objects", "objects/pack", "info"):
        make_private_folder(store / folder)
    for name, text in _FILES.items():
        _write(store / name, text)
    shares = share_objects(top, store / "objects")
    _write(store / _READY, _SHARES if shares else "")


def renew_store(base: Path, store: Path, limits: Limits, top: Path) -> None:
    """Repair a damaged store: files are read and stored again; intact objects of earlier snapshots stay.

    git would not write an object again while a damaged file has its name.
    """
    for name in (_READY, "index"):
        (store / name).unlink(missing_ok=True)
    for path in objects_in(store / "objects"):
        with suppress(OSError):
            if not _is_whole(path):
                path.unlink()
    make_store(base, store, limits, top)


def lost_power(store: Path) -> bool:
    """Whether the machine was started again since the last use of a store, and objects have lost their content.

    git writes objects without a wait for the disk, and does not notice this while it writes a snapshot.
    """
    try:
        boot = _BOOT_ID.read_text(encoding="ascii")
    except OSError:
        return False
    with suppress(OSError, ValueError):
        if (store / _BOOT).read_text(encoding="ascii") == boot:
            return False
    if any(_size_of(path) == 0 for path in objects_in(store / "objects")):
        return True
    _write(store / _BOOT, boot)
    return False


def _size_of(path: Path) -> int:
    with suppress(OSError):
        return path.lstat().st_size
    return -1


def _is_whole(path: Path) -> bool:
    """Whether a pack, its index or a loose object has its end. Raises OSError."""
    digest, inflating, tail = sha1(usedforsecurity=False), zlib.decompressobj(), b""
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            if path.parent.name == "pack":
                digest.update((tail + block)[:-_DIGEST])
                tail = (tail + block)[-_DIGEST:]
                continue
            try:
                inflating.decompress(block)
            except zlib.error:
                return False
    return tail == digest.digest() if path.parent.name == "pack" else inflating.eof


def _use(store: Path) -> None:
    pid, started = this_process()
    (store / f"{_USER}{pid}-{started}").touch(mode=0o600)


def _write(file: Path, text: str) -> None:
    with open(file, "w", encoding="utf-8", opener=private) as stream:
        stream.write(text)


def shares_objects(store: Path) -> bool:
    """Whether a store contains objects of the user's repository."""
    return (store / _READY).read_text(encoding="utf-8") == _SHARES


def read_modes(store: Path) -> dict[str, int]:
    """The permissions of files that have unusual ones, by name."""
    try:
        return _modes(read_trusted(store / _MODES))
    except OSError:
        return {}


def merge_modes(store: Path, old: Mapping[str, int], new: Mapping[str, int]) -> None:
    """Store what differs between two states of them; another Marvin may have changed others meanwhile.

    Raises:
        OSError, MarvinError: they cannot be stored.
    """
    changed = {name: new.get(name) for name in (*old, *new) if old.get(name) != new.get(name)}

    def merged(kept: bytes | None) -> bytes:
        found = {**_modes(kept), **changed}
        return json.dumps({name: mode for name, mode in found.items() if mode is not None}).encode()

    if changed:
        update_file(store / _MODES, merged)


def _modes(text: bytes | None) -> dict[str, int]:
    try:
        return {str(name): int(mode) for name, mode in (trusted_json(text) or {}).items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def sweep_stores(base: Path, limits: Limits, now: float) -> None:
    """Remove stores that were unused for too long, and the least recently used ones while the total is too large."""
    found = []
    with suppress(OSError):
        found = [(_last_use(store), store) for store in base.iterdir() if store.is_dir() and not _is_in_use(store)]
    total = 0
    for last, store in sorted(found, reverse=True):
        total += _size(store)
        if total > limits.undo_snapshots or last < now - limits.undo_days * _DAY:
            shutil.rmtree(store, ignore_errors=True)


def _last_use(store: Path) -> float:
    with suppress(OSError):
        return (store / "index").stat().st_mtime
    with suppress(OSError):
        return store.stat().st_mtime
    return 0.0


def _is_in_use(store: Path) -> bool:
    """Whether a running Marvin uses it; registrations of ended ones are removed."""
    in_use = False
    with suppress(OSError):
        for user in store.glob(f"{_USER}*"):
            pid, _, started = user.name.removeprefix(_USER).partition("-")
            if pid.isdecimal() and started.isdecimal() and is_live((int(pid), int(started))):
                in_use = True
            else:
                user.unlink(missing_ok=True)
    return in_use


def _size(store: Path) -> int:
    """The number of bytes that its removal would free."""
    total = 0
    for folder, _, names in os.walk(store):
        for name in names:
            with suppress(OSError):
                status = os.lstat(os.path.join(folder, name))
                total += status.st_size if status.st_nlink == 1 else 0
    return total
