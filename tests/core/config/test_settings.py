"""config.yaml: every mistake is told with its file and line, and what was parsed is kept while it is current."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.errors import ConfigError
from marvin_core.config.settings import KEYS, MEANINGS, read_settings
from tests.support.installing import unprivileged


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def read(file: Path) -> dict[str, object]:
    return read_settings(file, file.with_name("cache.json"))


def said(file: Path, text: str | bytes) -> str:
    """What is said about a file with this content."""
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        read(file)
    assert caught.value.exit_code == 1
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("provider: groq\nmodel: [a\ntools: x\n", 3, "Correct that line."),
        ("provider: 'groq\n", 2, "Correct that line."),
        ("provider: groq\n\tmodel: x\n", 2, "Correct that line."),
        ("provider: groq\nprovider: gemini\n", 2, "Correct that line."),
        ("a: b: c\n", 1, "Correct that line."),
        ("# one\n\nprovidr: groq\n", 3, "unknown key 'providr'. Did you mean 'provider' or 'providers'?"),
        ("zzz: 1\n", 1, f"unknown key 'zzz'. Known keys: {', '.join(sorted(KEYS))}."),
        ("1: x\n", 1, "unknown key '1'"),
        ("timeouts:\n  tool: 1\n  tol: 2\n", 3, "unknown key 'timeouts.tol'. Did you mean 'tool'?"),
        ("providers:\n  p:\n    base-url: x\n", 3, "unknown key 'providers.p.base-url'. Did you mean 'base_url'?"),
        ("provider: 5\n", 1, "provider takes text, found a whole number ('5')."),
        ("provider:\n", 1, "provider takes text, found nothing."),
        ("provider: true\n", 1, "provider takes text, found true or false ('True')."),
        ("\n\nproviders: [a]\n", 3, "providers takes keys below it, found a list"),
        ("child_env: HOME\n", 1, "child_env takes a list, found text ('HOME')."),
        ("timeouts: {tool: soon}\n", 1, "timeouts.tool takes a number, found text ('soon')."),
        ("timeouts:\n  tool: yes\n", 2, "timeouts.tool takes a number, found"),
        ("providers:\n  p:\n    base_url: x\n    max_tools: 1.5\n", 4, "providers.p.max_tools takes a whole number"),
        ("prices: {m: {input: free}}\n", 1, "prices.m.input takes a number, found text ('free')."),
        ("- provider\n", 1, "expected keys such as `provider: groq`, found a list"),
        ("just words\n", 1, "expected keys such as `provider: groq`, found text ('just words')."),
    ],
)
def test_a_mistake_is_told_with_file_and_line(file: Path, text: str, line: int, what: str) -> None:
    told = said(file, text)
    assert told.startswith(f"{file}, line {line}: "), told
    assert what in told


@pytest.mark.parametrize(
    "text",
    [
        b"provider: \xff\n",
        "provider: groq\n---\nmodel: x\n",
        "provider: 2020-99-99\n",
        "provider: !!int lots\n",
        "provider: \x07\n",
        "[" * 500,
        "provider: *nowhere\n",
        "? [a, b]\n: c\n",
    ],
)
def test_whatever_the_file_holds_it_is_named_and_nothing_breaks(file: Path, text: str | bytes) -> None:
    assert str(file) in said(file, text)


def test_text_that_is_not_utf_8_is_told_with_its_place(file: Path) -> None:
    assert said(file, b"tools: \xe4") == f"{file} is not UTF-8 (byte 7). Save it as UTF-8."


def test_a_folder_in_its_place(file: Path) -> None:
    file.mkdir()
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory\. Make it readable or remove it\."):
        read(file)


def test_a_file_where_its_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "marvin").touch()
    with pytest.raises(ConfigError, match="cannot be read: Not a directory"):
        read_settings(tmp_path / "marvin" / "config.yaml", tmp_path / "cache.json")


def test_an_unreadable_file(tmp_path: Path) -> None:
    with unprivileged() as folder:
        (folder / "config.yaml").write_text("provider: groq\n")
        (folder / "config.yaml").chmod(0)
        with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
            read(folder / "config.yaml")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "{}\n", "\ufeff"])
def test_an_empty_file_is_as_good_as_none(file: Path, text: str) -> None:
    assert read(file) == {}
    file.write_text(text)
    assert read(file) == {}


def test_comments_anchors_and_styles_do_not_matter(file: Path) -> None:
    file.write_text(
        "# mine\nprovider: groq # fast\n"
        "prices:\n  base: &base {input: 1, output: 2}\n  m:\n    <<: *base\n    output: 3\n"
        "instructions: >\n  one\n  two\n"
    )
    assert read(file) == {
        "provider": "groq",
        "prices": {"base": {"input": 1.0, "output": 2.0}, "m": {"input": 1.0, "output": 3.0}},
        "instructions": "one two\n",
    }


def test_a_mistake_in_merged_keys_is_told(file: Path) -> None:
    assert "unknown key 'prices.m.inputt'" in said(file, "prices:\n  m:\n    <<: {inputt: 1}\n")


def test_the_file_is_never_written(file: Path) -> None:
    text = "provider:   groq   # two blanks\n\n\n"
    file.write_text(text)
    file.chmod(0o444)
    before = file.stat()
    read(file)
    read(file)
    after = file.stat()
    assert file.read_text() == text
    assert (before.st_mtime_ns, before.st_ino, before.st_mode) == (after.st_mtime_ns, after.st_ino, after.st_mode)


def test_what_was_parsed_is_kept_until_the_file_changes(file: Path) -> None:
    file.write_text("provider: groq\n")
    assert read(file) == {"provider": "groq"}
    kept = file.with_name("cache.json")
    content = json.loads(kept.read_bytes())
    content["data"]["provider"] = "from the cache"
    kept.write_text(json.dumps(content))
    assert read(file) == {"provider": "from the cache"}, "the second look does not parse"

    status = file.stat()
    file.write_text("provider: gork\n")  # the same size
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert read(file) == {"provider": "gork"}

    status = file.stat()
    file.write_text("provider: llama-server\n")  # the same time
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert read(file) == {"provider": "llama-server"}


def test_two_files_do_not_share_what_is_kept(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(f"tools: {name}\n")
        os.utime(tmp_path / name / "config.yaml", ns=(1, 1))
    cache = tmp_path / "cache.json"
    assert [read_settings(tmp_path / name / "config.yaml", cache)["tools"] for name in "aba"] == ["a", "b", "a"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"stamp": 1}', b"\xff", b'{"stamp": null, "data": []}'])
def test_a_damaged_cache_is_ignored(file: Path, damage: bytes) -> None:
    file.write_text("provider: groq\n")
    kept = file.with_name("cache.json")
    kept.write_bytes(damage)
    assert read(file) == {"provider": "groq"}
    assert json.loads(kept.read_bytes())["data"] == {"provider": "groq"}, "and replaced"


def test_a_cache_that_others_may_write_is_ignored(file: Path) -> None:
    file.write_text("permissions: {deny: [run_command]}\n")
    expected = read(file)
    kept = file.with_name("cache.json")
    content = json.loads(kept.read_bytes())
    kept.write_text(json.dumps({**content, "data": {}}))
    kept.chmod(0o666)
    assert read(file) == expected


def test_a_mistake_is_told_each_time(file: Path) -> None:
    assert said(file, "nope: 1\n") == said(file, "nope: 1\n")


def test_a_cache_folder_that_cannot_be_written_costs_only_time(file: Path, tmp_path: Path) -> None:
    file.write_text("provider: groq\n")
    (tmp_path / "no-folder").touch()
    assert read_settings(file, tmp_path / "no-folder" / "cache.json") == {"provider": "groq"}


def test_every_key_has_a_meaning_and_no_other_has() -> None:
    def names(schema: Mapping[Any, Any], prefix: str) -> Iterator[str]:
        for key, value in schema.items():
            name = f"{prefix}{'NAME' if key is str else key}"
            if isinstance(value, Mapping) and key not in ("timeouts", "limits"):
                yield from names(value, f"{name}.")
            elif isinstance(value, tuple):
                yield name
                yield from names(value[1], f"{name}.")
            else:
                yield name

    assert list(names(KEYS, "")) == list(MEANINGS)
