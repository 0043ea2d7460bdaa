"""Which new files belong into a commit."""

from __future__ import annotations

import pytest

from marvin_core import usually_ignored, why_content_left_out, why_left_out


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
        ("Thumbs.db", "a system file"),
        ("dump.sql", "a dump"),
        ("db/backup.sql", "a dump"),
        ("mysqldump.sql.gz", "a dump"),
        ("prod_dump-2026-01-01.sql", "a dump"),
        ("backup_prod.sql", "a dump"),
        ("db/schema.sql", ""),
        ("001_init.sql", ""),
        ("sql/add_backup_table.sql", ""),
        ("dumper.sql", ""),
        ("backup/schema.sql", ""),
        ("db/migrations/007_backup.sql", ""),
        ("users.dump", "a dump"),
        ("app.db", "a database"),
        ("a/cache.sqlite3", "a database"),
        ("a/x.sqlite-wal", "a database"),
        ("db.py", ""),
        ("client_secret_1-a.apps.googleusercontent.com.json", "it may hold keys"),
        ("gcp/Service-Account-Prod.json", "it may hold keys"),
        ("service_account", "it may hold keys"),
        ("service_account.py", ""),
        ("client_secret_loader.test.ts", ""),
        ("kubeconfig", "it may hold keys"),
        ("prod.kubeconfig", "it may hold keys"),
        ("kubeconfig.py", ""),
        ("logs/run/today.txt", "a log"),
        ("catalogs/today.txt", ""),
        ("x.log.1", "a log"),
        ("x.log.2.gz", "a log"),
        ("npm-debug.log.123", "a log"),
        ("x.log-20260101.gz", "a log"),
        ("x.log.old", "a log"),
        ("src/audit.log.ts", ""),
        ("user.log.entity.ts", ""),
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


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('token = "ghp_' + "a1B2" * 9 + '"', "it contains a GitHub token"),
        ("aws_access_key_id = AKIAQ2W3E4R5T6Y7U8I9", "it contains an AWS access key"),
        ("aws_access_key_id = AKIAIOSFODNN7EXAMPLE", ""),
        ("xoxb-123456789012-abcdefghij", "it contains a Slack token"),
        ("sk-ant-api03-abcdefghij0123456789", "it contains an API key (sk-...)"),
        ('{"key": "-----BEGIN PRIVATE KEY-----\\nMII\\n-----END PRIVATE KEY-----"}', "it contains a private key"),
        ("SLACK_TOKEN=xoxb-your-token-here", ""),
        ("ghp_" + "x" * 36, ""),
        ("AKIAXXXXXXXXXXXXXXXX", ""),
        ("sk_live_" + "0" * 24, ""),
        ("-----BEGIN PRIVATE KEY-----\\nAAAAAAAAAAAA////////\\n-----END PRIVATE KEY-----", "it contains a private key"),
        (".sk-folding-cube-and-other-classes { }", ""),
        ('if "-----BEGIN PRIVATE KEY-----" in text: return', ""),
        ("\0 sk-ant-api03-abcdefghij0123456789", ""),
    ],
)
def test_keys_in_a_text(content: str, reason: str) -> None:
    """By their form, apart from the examples of AWS and from binary files."""
    assert why_content_left_out(10, content.encode()) == reason


@pytest.mark.parametrize(
    ("folder", "marker", "expected"),
    [
        ("a/node_modules", "", True),
        (".idea", "", True),
        (".vscode", "", False),
        ("env", "env/pyvenv.cfg", True),
        ("env", "env/main.py", False),
        ("env", "env/sub/pyvenv.cfg", False),
        ("a/target", "a/Cargo.toml", True),
        ("target", "pom.xml", True),
        ("a/target", "Cargo.toml", False),
        ("src", "Cargo.toml", False),
        ("out", "out/CACHEDIR.TAG", True),
        ("coverage", "coverage/lcov.info", True),
        ("lcov", "lcov/lcov.info", False),
        ("coverage", "coverage/parser.py", False),
        ("dist", "dist/a.js", False),
    ],
)
def test_folders(folder: str, marker: str, *, expected: bool) -> None:
    """By the name, or by a file that shows that a program has made the folder. One beside it may be committed."""
    new = [f"{folder}/deep/x", *filter(None, [marker])]
    found = usually_ignored(new, lambda path: path == marker)
    assert found[f"{folder}/deep"] == (folder if expected else "")
    assert usually_ignored(new, lambda path: path == marker, [f"{folder}/deep"])[f"{folder}/deep"] == ""


def test_of_nested_folders_the_topmost_one_counts() -> None:
    new = ["a/env/pyvenv.cfg", "a/env/lib/node_modules/x", "a/b", "top", "a/repository/"]
    assert usually_ignored(new, lambda path: False) == {
        "": "",
        "a": "",
        "a/env": "a/env",
        "a/env/lib": "a/env",
        "a/env/lib/node_modules": "a/env",
        "a/repository": "",
    }


def test_the_files_are_asked_only_beside_folders_that_may_be_made() -> None:
    """20,000 folders took half a minute."""
    asked: list[str] = []

    def is_there(path: str) -> bool:
        asked.append(path)
        return False

    usually_ignored([f"a/{number}/b/target/x" for number in range(3)], is_there)
    assert sorted(asked) == [f"a/{number}/b/{name}" for number in range(3) for name in ("Cargo.toml", "pom.xml")]


def test_a_made_up_token_keeps_a_file_out_only_where_that_is_told() -> None:
    sample = b'TOKEN = "ghp_' + b"a1" * 18 + b'"\n'
    assert why_content_left_out(len(sample), sample) == "it contains a GitHub token"
    assert why_content_left_out(len(sample), sample, is_told=False) == ""
    key = b"-----BEGIN PRIVATE KEY-----\n"
    assert why_content_left_out(len(key), key, is_told=False) == "it contains a private key"
