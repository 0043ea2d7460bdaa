"""Selects the new files for a commit; the others have to be named."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate

from ...guard.files.key_files import is_key_file
from ...guard.kept_texts import key_in

HABITUALLY_IGNORED = tuple(
    (
        "node_modules bower_components __pycache__ .venv venv .tox .nox .mypy_cache .pytest_cache .ruff_cache"
        " .hypothesis .gradle .terraform .next .nuxt .cache .parcel-cache .eggs htmlcov"
        " .nyc_output"
    ).split()
)
"""Folders that are usually ignored: their content is fetched or generated."""
_NAMED = frozenset((*HABITUALLY_IGNORED, ".idea"))
_WITHIN = {"pyvenv.cfg": "", "CACHEDIR.TAG": "", "lcov.info": "coverage", "coverage-final.json": "coverage"}
"""Files that show that a program has made the folder that they are in, which has this name, or any if it is empty."""
_BESIDE = {"target": ("Cargo.toml", "pom.xml")}
"""Names of folders, and the files beside them that show the same."""
_NAMES = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r".*\.log(?:[._-](?:\d[\d_-]*|old|txt|json|gz|bz2|xz|zst|zip))*|nohup\.out", "a log"),
        (r".*\.(?:orig|rej|bak|swp|swo|undo)|.*~|\.#.*|#.*#|\.marvin-.*\.tmp", "a copy for undoing"),
        (r"core|core\.\d+|vgcore\.\d+|.*\.(?:core|dump|dmp|hprof|stackdump|heapsnapshot)|hs_err_pid.*", "a dump"),
        (r"(?:creds|credentials|secrets?)(?:\.(?:json|ya?ml|toml|ini|txt))?", "it may hold keys"),
        (r"(?:client_secret|service[-_]account)(?:[^.]*|.*\.(?:json|ya?ml|toml|ini|txt))", "it may hold keys"),
        (r".*\.tfstate(?:\.backup)?|.*\.ovpn|(?:.*[-_.])?kubeconfig(?:\.ya?ml)?", "it may hold keys"),
        (r"\.ds_store|thumbs\.db|desktop\.ini", "a system file"),
        (r".*\.(?:db|sqlite3?)(?:-(?:journal|wal|shm))?", "a database"),
    )
)
"""File names, in lower case, with the reason why they are left out."""
_DUMP = r"(?:(?:my(?:sql)?|pg_?|sql)?dump|backup)s?"
_SQL = r"\.sql(?:\.(?:gz|bz2|xz|zst|zip))?"
_PATHS = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"(?:.*/)?logs/.*\.txt", "a log"),
        (
            rf"(?!(?:.*/)?migrations?/)(?:.*/)?(?:{_DUMP}(?:[\d_.-][^/]*)?|[^/]*[_.-]{_DUMP}[\dt_.-]*){_SQL}",
            "a dump",
        ),
    )
)
"""The same for whole paths."""
_MARVINS = re.compile(r"(?:^|/)\.marvin/(?:(?:logs|memories|report|undo|worktrees)(?:/|$)|\.gitignore$)")
_LARGEST = 20_000_000
_PRIVATE_KEY = re.compile(rb"^-----BEGIN [A-Z ]*PRIVATE KEY", re.MULTILINE)
KEY_SAMPLE = 65_536
"""The number of first bytes that are searched for keys."""
NAME_REFUSED = "git refuses its name"
"""Why a file is left out that git does not stage, such as `git~1`, which is `.git` for another system."""
_REFUSED = re.compile(rb"^Ignoring path (.+)$", re.MULTILINE)


def refused_names(said: bytes) -> Sequence[str]:
    """The files whose names git refuses, from what `git update-index` says; it does not count that as a failure."""
    return [os.fsdecode(name) for name in _REFUSED.findall(said)]


def is_marvins(name: str) -> bool:
    """Whether a file is a log, a memory or other data of Marvin."""
    return _MARVINS.search(name) is not None


def why_left_out(name: str) -> str:
    """Why a new file is left out of a commit, from its name in git; empty if it is not."""
    if name.endswith("/"):
        return "another repository"
    if is_marvins(name):
        return "Marvin's own"
    if is_key_file(name):
        return "it may hold keys"
    path = name.lower()
    base = path.rpartition("/")[2]
    named = (reason for pattern, reason in _NAMES if pattern.fullmatch(base))
    return next(named, "") or next((reason for pattern, reason in _PATHS if pattern.fullmatch(path)), "")


def usually_ignored(new: Iterable[str], is_there: Callable[[str], bool], told: Sequence[str] = ()) -> Mapping[str, str]:
    """For each folder with new files, and each one above it, the topmost one that is usually ignored; else empty.

    A folder is known by its name, or by a file that shows that a program has made it.

    Args:
        new: the paths of the new files, as git lists them.
        is_there: whether there is a file of that path.
        told: paths that somebody has named. A folder that is, or has, one of them is not ignored.
    """
    parts = [(folder, base) for folder, _, base in (name.rpartition("/") for name in new)]
    marked = {folder for folder, base in parts if _WITHIN.get(base) in ("", folder.rpartition("/")[2])}

    def is_ignored(folder: str) -> bool:
        above, slash, name = folder.rpartition("/")
        is_made = (
            name in _NAMED
            or folder in marked
            or any(is_there(f"{above}{slash}{marker}") for marker in _BESIDE.get(name, ()))
        )
        return is_made and not any(f"{path}/".startswith(f"{folder}/") for path in told)

    found = {"": ""}
    for folder in {folder for folder, _ in parts if folder}:
        above = ""
        for one in accumulate(folder.split("/"), "{}/{}".format):
            if one not in found:
                found[one] = found[above] or (one if is_ignored(one) else "")
            above = one
    return found


def why_content_left_out(size: int, sample: bytes, *, is_told: bool = True) -> str:
    """The same, from its size and its first `KEY_SAMPLE` bytes.

    Args:
        is_told: whether somebody is told what is left out. Otherwise texts with tokens stay: tests have made-up ones.
    """
    if size > _LARGEST:
        return f"over {_LARGEST // 1_000_000} MB"
    if _PRIVATE_KEY.search(sample):
        return "it contains a private key"
    kind = "" if b"\0" in sample or not is_told else key_in(sample.decode("latin-1"))
    return f"it contains {kind}" if kind else ""
