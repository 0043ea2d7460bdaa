"""Which new files belong into a commit."""

from __future__ import annotations

import pytest

from marvin_core import why_content_left_out, why_left_out


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("src/main.py", ""),
        ("logs/readme.md", ""),
        ("core.py", ""),
        (".marvin/spec.md", ""),
        (".marvin/logs/x.txt", "Marvin's own"),
        ("deep/.marvin/worktrees/t/x", "Marvin's own"),
        (".marvin/.gitignore", "Marvin's own"),
        ("vendor/tool/", "another repository"),
        (".env", "it may hold keys"),
        ("deploy/id_rsa", "it may hold keys"),
        ("Secrets.YAML", "it may hold keys"),
        ("a/b/server.log", "a log"),
        ("core.1234", "a dump"),
        ("x.py.orig", "a copy for undoing"),
        (".DS_Store", "a system file"),
    ],
)
def test_names(name: str, reason: str) -> None:
    """Each is told from its name alone."""
    assert why_left_out(name) == reason


def test_contents() -> None:
    """Keys by what they begin with, and what is too large for a repository."""
    assert why_content_left_out(10, b"x = 1\n") == ""
    assert why_content_left_out(21_000_000, b"") == "over 20 MB"
    assert why_content_left_out(10, b"note\n-----BEGIN EC PRIVATE KEY-----\n") == "it contains a private key"
