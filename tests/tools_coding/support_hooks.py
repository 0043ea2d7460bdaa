"""Authors of commits, and hooks, for tests of git."""

from __future__ import annotations

from pathlib import Path

from .support_shell import Folder

AUTHOR = {"GIT_AUTHOR_NAME": "A U Thor", "GIT_AUTHOR_EMAIL": "a@example.org"}
AUTHOR |= {"GIT_COMMITTER_NAME": "A U Thor", "GIT_COMMITTER_EMAIL": "a@example.org"}


def hook(repo: Folder, script: str, name: str = "pre-commit") -> Path:
    """Write a hook of a repository."""
    file = repo.root / ".git" / "hooks" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file
