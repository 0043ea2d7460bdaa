"""Selects the new files for a commit; the others have to be named."""

from __future__ import annotations

import re

from ...guard.files.key_files import is_key_file

HABITUALLY_IGNORED = tuple(
    (
        "node_modules bower_components __pycache__ .venv venv .tox .nox .mypy_cache .pytest_cache .ruff_cache"
        " .hypothesis .gradle .terraform .next .nuxt .cache .parcel-cache .eggs"
    ).split()
)
"""Folders that are usually ignored: their content is fetched or generated."""
_NAMES = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r".*\.log|.*\.log\.\w+|npm-debug\.log.*|nohup\.out", "a log"),
        (r".*\.(?:orig|rej|bak|swp|swo|undo)|.*~|\.#.*|#.*#|\.marvin-.*\.tmp", "a copy for undoing"),
        (r"core|core\.\d+|vgcore\.\d+|.*\.(?:core|dump|dmp|hprof|stackdump|heapsnapshot)|hs_err_pid.*", "a dump"),
        (
            r"(?:creds|credentials|secrets?|client_secret.*|service[-_]account.*)(?:\.(?:json|ya?ml|toml|ini|txt))?",
            "it may hold keys",
        ),
        (r".*\.tfstate(?:\.backup)?|.*\.ovpn", "it may hold keys"),
        (r"\.ds_store|thumbs\.db|desktop\.ini", "a system file"),
    )
)
"""File names, in lower case, with the reason why they are left out."""
_MARVINS = re.compile(r"(?:^|/)\.marvin/(?:(?:logs|memories|report|undo|worktrees)(?:/|$)|\.gitignore$)")
_LARGEST = 20_000_000
_PRIVATE_KEY = re.compile(rb"^-----BEGIN [A-Z ]*PRIVATE KEY", re.MULTILINE)
KEY_SAMPLE = 4_096
"""The number of first bytes that are searched for a private key."""


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
    base = name.rpartition("/")[2].lower()
    return next((reason for pattern, reason in _NAMES if pattern.fullmatch(base)), "")


def why_content_left_out(size: int, sample: bytes) -> str:
    """The same, from its size and its first `KEY_SAMPLE` bytes."""
    if size > _LARGEST:
        return f"over {_LARGEST // 1_000_000} MB"
    return "it contains a private key" if _PRIVATE_KEY.search(sample) else ""
