"""config.yaml: every mistake is told with its file and line, and what was parsed is kept while it is current."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import ConfigError
from marvin_core.config.file.model import file_schema
from marvin_core.config.file.sections import FileSettings, record_of
from marvin_core.config.settings import parse_settings, read_settings
from marvin_core.util.schemas.texts import members_of
from tests.support.examples import examples
from tests.support.installing import unprivileged
from tests.support.yaml_values import UNREADABLE


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def read(file: Path) -> dict[str, Any]:
    return read_settings(file, file.with_name("cache.json"))


def said(file: Path, text: str | bytes, changed: int | None = None) -> str:
    """What is said about a file with this content, last changed at this moment (ns), else now."""
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    if changed is not None:
        os.utime(file, ns=(changed, changed))
    with pytest.raises(ConfigError) as caught:
        read(file)
    assert caught.value.exit_code == 1
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (
            "provider: groq\nmodel: [a\ntools: x\n",
            2,
            "the bracket that begins here is not closed, or a comma is missing.",
        ),
        ("model: x\nprovider: 'groq\nseed: on\n", 2, "the quote that begins here is not closed."),
        ("provider: groq\n\tmodel: x\n", 2, "a tab is not allowed here. Use spaces."),
        ("provider: groq\nprovider: gemini\n", 2, "the key 'provider' is there twice. Remove one of the two."),
        ("a: b: c\n", 1, "a colon is not allowed here. Check the indentation, and put text that contains a colon in"),
        ("seed: on\nprovider\ntheme: dark\n", 2, "the colon after the key is missing."),
        ("seed: on\nprovider:groq\n", 2, "the colon after the key is missing."),
        ("instructions: @you\n", 1, "a value cannot begin with @. Put it in quotes."),
        ("provider: *nowhere\n", 1, "text that begins with * refers to an anchor, and there is none"),
        ("provider: groq\n---\nmodel: x\n", 2, "a second document begins here. Keep only one."),
        ('instructions: "C:\\Users"\n', 1, "a backslash in double quotes begins an escape sequence, and this is none."),
        ("seed: on\nprovider: 'a' b\n", 2, "this does not fit the lines above. Check the indentation and the quotes."),
        ("seed: on\nlabels: &a\n  web: [*a]\n", 2, "the value of &a contains itself. Make it simpler."),
        ("seed: on\ntools: " + "[" * 200, 2, "it is nested more than 100 deep. Make it simpler."),
        ("seed: on\nmodel: 2020-99-99\n", 2, "this is not a valid date. Put it in quotes if it is text."),
        ("seed: on\nmodel: !!int lots\n", 2, "this is not a valid number. Put it in quotes if it is text."),
        ("seed: on\ntools: !!set {a, b}\n", 2, "the tag !!set is not supported. Remove it."),
        ("model: !mine x\n", 1, "text that begins with ! is taken for a tag. Put it in quotes."),
        ("seed: on\ntheme: 0x_\n", 2, "this is not a valid number. Put it in quotes if it is text."),
        ("seed: on\ntheme: !!bool x\n", 2, "this is not a valid yes or no. Put it in quotes if it is text."),
        ("timeouts:\n  <<: {tool: soon}\n", 2, 'timeouts.tool: must be a number of at least 0; found "soon".'),
        ("timeouts.tool: 5\n", 1, "unknown key 'timeouts.tool'. Write `tool` below `timeouts:`."),
        ("timeouts: {tool: .nan}\n", 1, "timeouts.tool: must be a number of at least 0; found .nan."),
        ("timeouts: {tool: 'nan'}\n", 1, 'timeouts.tool: must be a number of at least 0; found "nan".'),
        ("limits: {answer: -.inf}\n", 1, "limits.answer: must be an integer of at least 1; found -.inf."),
        ("prices: {m: {input: 2026-01-01}}\n", 1, "prices.m.input: must be a number of at least 0; found 2026-01-01."),
        ("telemetry: yes\n", 1, 'telemetry: must be one of "on", "off" or a mapping; found "yes".'),
        ("permissions: {allow: [true]}\n", 1, "permissions.allow[0]: true is not a rule."),
        (
            "network: {hosts: ['https://a.example/x']}\n",
            1,
            "network.hosts[0]: 'https://a.example/x' is the address of a",
        ),
        ("# one\n\nprovidr: groq\n", 3, "unknown key 'providr'. Did you mean 'provider' or 'providers'?"),
        ("zzz: 1\n", 1, f"unknown key 'zzz'. Known keys: {', '.join(sorted(FileSettings._defaults))}."),
        ("1: x\n", 1, "unknown key '1'"),
        ("timeouts:\n  tool: 1\n  tol: 2\n", 3, "unknown key 'timeouts.tol'. Did you mean 'tool'?"),
        ("providers:\n  p:\n    base-url: x\n", 3, "unknown key 'providers.p.base-url'. Did you mean 'base_url'?"),
        ("ui:\n  name: plain\n  mardown: off\n", 3, "unknown key 'ui.mardown'. Did you mean 'markdown'?"),
        ("network: {kind: all}\n", 1, "unknown key 'network.kind'. Known keys: hosts."),
        ("seed: on\nmarkdown: off\n", 2, "unknown key 'markdown'. Did you mean 'ui.markdown'?"),
        ("limits: {tool: 5}\n", 1, "unknown key 'limits.tool'. Did you mean 'timeouts.tool'?"),
        ("answer: 5\n", 1, "unknown key 'answer'. Did you mean 'timeouts.answer' or 'limits.answer'?"),
        ("ui:\n  theme: light\n", 2, "unknown key 'ui.theme'. Did you mean 'theme'?"),
        ("seed: on\nprovider: a\0b\n", 2, "the character U+0000 is not allowed. Remove it."),
        ("provider: 5\n", 1, "provider: must be text; found 5."),
        ("provider:\n", 1, "provider: must be text; found nothing."),
        ("provider: true\n", 1, "provider: must be text; found true."),
        ("\n\nproviders: [a]\n", 3, 'providers: must be a mapping; found ["a"].'),
        ("child_env: HOME\n", 1, 'child_env: must be a list, each item text; found "HOME".'),
        ("child_env:\n  - A\n  - [b]\n", 3, 'child_env[1]: must be text; found ["b"].'),
        ("timeouts: {tool: soon}\n", 1, 'timeouts.tool: must be a number of at least 0; found "soon".'),
        ("timeouts:\n  tool: yes\n", 2, 'timeouts.tool: must be a number of at least 0; found "yes".'),
        ("timeouts:\n  tool: true\n", 2, "timeouts.tool: must be a number of at least 0; found true."),
        ("providers:\n  p:\n    max_tools: 1.5\n", 3, "providers.p.max_tools: must be an integer of at least 1"),
        ("providers:\n  p:\n    windows: {m: 0}\n", 3, "providers.p.windows.m: must be an integer of at least 1"),
        ("prices: {1: {input: free}}\n", 1, 'prices.1.input: must be a number of at least 0; found "free".'),
        ("prices: {m: {input: 1e13}}\n", 1, "prices.m.input: must be USD, from 0 on; found"),
        ("seed: maybe\n", 1, 'seed: must be one of "on", "off"; found "maybe".'),
        ("sandbox: requird\n", 1, """found "requird". Did you mean 'required'?"""),
        ("transport: quick\n", 1, 'transport: must be one of "direct", "stock"; found "quick".'),
        ("models:\n  high: a\n  hihg: b\n", 3, "models.hihg: there is no tier 'hihg'. Did you mean 'high'?"),
        ("labels: {web: [send, sent]}\n", 1, "labels.web[1]: must be one of"),
        ("hooks:\n  before_tol: [x]\n", 2, "hooks.before_tol: there is no such event. Did you mean 'before_tool'"),
        ("hooks:\n  turn.end:\n    - a\n    - {comand: b}\n", 4, "hooks.turn.end[1]: unknown key 'comand' of a hook."),
        ("hooks: {before_tool: x}\n", 1, 'hooks.before_tool: must be a list; found "x".'),
        ("packs:\n  garden: 5\n", 2, "packs.garden: must be a mapping; found 5."),
        ("network:\n  hosts:\n    - a.example\n    - 'b c'\n", 4, "network.hosts[1]: 'b c' is not a host."),
        ("- provider\n", 1, "expected keys such as `provider: groq`, with a blank after the colon; found a list."),
        ("just words\n", 1, "expected keys such as `provider: groq`, with a blank after the colon; found a value"),
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
    assert said(file, b"# here\ntools: \xe4") == f"{file}, line 2: byte 14 is not UTF-8. Save the file as UTF-8."


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


def test_several_mistakes_are_told_at_once(file: Path) -> None:
    told = said(file, "providr: x\nseed: maybe\ntimeouts:\n  tool: soon\n").splitlines()
    assert [line.removeprefix(str(file))[:8] for line in told] == [", line 1", ", line 2", ", line 4"]


def test_many_mistakes_are_told_from_the_first_line_on_and_the_rest_is_counted(file: Path) -> None:
    told = said(file, "".join(f"key{number}: 1\n" for number in range(12))).splitlines()
    assert [line.split(": ")[0] for line in told[:-1]] == [f"{file}, line {number}" for number in range(1, 11)]
    assert told[-1] == "There are 2 more problems."


def test_a_file_that_is_too_large_is_refused_before_it_is_parsed(file: Path) -> None:
    """Its beginning is no YAML: parsing would say that, and a file of this size would take minutes and gigabytes."""
    with file.open("wb") as stream:
        stream.write(b"[")
        stream.truncate(100_000_000)
    with pytest.raises(ConfigError) as caught:
        read(file)
    assert str(caught.value) == f"{file} has more than 1,000,000 bytes, the maximum for this file. Make it shorter."


def test_two_values_of_a_key_are_not_shown(file: Path) -> None:
    told = said(file, "providers: {p: {headers: {A: sk-0123456789, A: sk-9876543210}}}\n")
    assert "the key 'A' is there twice" in told
    assert "sk-" not in told


def test_a_mistake_where_a_key_or_a_header_belongs_does_not_show_the_value(file: Path) -> None:
    for entry in ("key: [sk-0123456789]", "key: sk-0123456789", "headers: {X-Key: [sk-0123456789]}"):
        assert "sk-0123456789" not in said(file, f"providers: {{p: {{{entry}}}}}\n")


def test_an_empty_text_is_as_good_as_no_key(file: Path) -> None:
    file.write_text("".join(f"{key}: ''\n" for key in FileSettings._defaults))
    assert read(file) == {}


def test_on_and_off_may_be_written_as_true_and_false(file: Path) -> None:
    file.write_text("seed: false\nscreen_reader: true\nui: {markdown: off, thinking: true}\nlabels: {unattended: on}\n")
    found = record_of(FileSettings, read(file))
    assert (found.seed, found.screen_reader, found.labels.unattended) == (False, True, True)
    assert (found.ui.markdown, found.ui.thinking) == (False, True)


def test_what_the_check_passes_is_the_record_that_declares_it(file: Path) -> None:
    file.write_text("packs: {off: [a], sections: {x: 1}, rest: {}}\nlimits: {values: 7}\nui: vi\n")
    found = record_of(FileSettings, read(file))
    assert dict(found.packs.sections) == {"sections": {"x": 1}, "rest": {}}, "packs may have any name but ours"
    assert (found.packs.off, found.limits.values, found.ui.name) == (("a",), 7, "vi")
    assert record_of(FileSettings, {}) == FileSettings()


def test_a_file_with_headers_is_not_checked_again_and_its_headers_are_not_kept(file: Path) -> None:
    """They may be keys: the file alone has them."""
    text = (
        "providers:\n  p:\n    base_url: https://u:pw@x.example\n    models: [1, m]\n    headers: {X: 5, Y: secret}\n"
    )
    file.write_text(text)
    first = read(file)
    kept = file.with_name("cache.json")
    assert not any(word in kept.read_text() for word in ("secret", "u:pw"))
    content = json.loads(kept.read_bytes())
    content["data"]["providers"]["p"]["models"] = ["from the cache"]
    kept.write_text(json.dumps(content))
    second = read(file)
    assert second["providers"] == {"p": {**first["providers"]["p"], "models": ["from the cache"]}}
    assert second["providers"]["p"]["headers"] == {"X": "5", "Y": "secret"}


KEYS = """\
# The servers of the team: käse.
mcp_servers:
  one: {command: npx, args: [-y, 8080, 'a: b'], env: {API_TOKEN: FIRST-SECRET-OF-MINE, LEVEL: 3}}
  two: {url: "https://x.example/mcp?key=SECOND-SECRET", headers: {Authorization: 'Bearer käse-THIRD-SECRET'}}
providers: {p: {base_url: 'http://x.example', headers: {X: FIRST-SECRET-OF-MINE}}}
"""


def test_keys_in_the_file_cost_a_start_no_parsing_and_are_not_kept(file: Path) -> None:
    file.write_text(KEYS)
    first = read(file)
    code = (
        "import sys; from pathlib import Path; from marvin_core.config.settings import read_settings as r; "
        f"d = r(Path({str(file)!r}), Path({str(file.parent / 'cache.json')!r})); "
        "assert not {'ruamel', 'ruamel.yaml', 'pydantic'} & set(sys.modules), 'parsed'; print(repr(d))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout) == first
    assert first["mcp_servers"]["two"]["headers"] == {"Authorization": "Bearer käse-THIRD-SECRET"}
    kept = (file.parent / "cache.json").read_text()
    assert not [part for part in ("FIRST", "SECOND", "THIRD", "npx -y") if part in kept]


@pytest.mark.parametrize(
    ("old", "new"),
    [("FIRST-SECRET", "OTHER-SECRET"), ("npx", "npy"), ("LEVEL: 3", "LEVEN: 3"), ("THIRD", "FIFTH"), ("8080", "8081")],
)
def test_a_change_of_a_file_with_keys_that_nothing_shows_counts(file: Path, old: str, new: str) -> None:
    """An editor may restore the time of a file, and the size can be the same."""
    file.write_text(KEYS)
    read(file)
    status = file.stat()
    changed = KEYS.replace(old, new)
    file.write_text(changed)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert read(file) == parse_settings(changed.encode(), file)


def test_of_two_servers_with_one_key_each_gets_its_own_when_one_is_changed(file: Path) -> None:
    file.write_text(KEYS)
    read(file)
    status = file.stat()
    changed = KEYS.replace("FIRST-SECRET", "OTHER-SECRET", 1)
    file.write_text(changed)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert read(file) == parse_settings(changed.encode(), file)
    assert read(file)["providers"]["p"]["headers"] == {"X": "FIRST-SECRET-OF-MINE"}


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers: {one: {url: 'https://x.example/mcp?api_key=ONLY-SECRET-OF-MINE'}}\n",
        "mcp_servers: {one: {command: npx, args: [--token, ONLY-SECRET-OF-MINE]}}\n",
        "providers: {p: {base_url: 'https://user:ONLY-SECRET-OF-MINE@x.example'}}\n",
    ],
)
def test_a_key_in_an_address_or_an_argument_is_not_kept(file: Path, text: str) -> None:
    file.write_text(text)
    first = read(file)
    assert "ONLY-SECRET" not in (file.parent / "cache.json").read_text()
    assert read(file) == first == parse_settings(text.encode(), file)


@pytest.mark.parametrize("damage", ["5", "x:y", "1:2:3", ":", "999999:9999999"])
def test_damaged_places_of_keys_are_ignored(file: Path, damage: str) -> None:
    file.write_text(KEYS)
    first = read(file)
    kept = file.parent / "cache.json"
    content = json.loads(kept.read_text())
    content["places"]["texts"]["mcp_servers"]["one"]["env"]["API_TOKEN"] = damage
    kept.write_text(json.dumps(content))
    assert read(file) == first


def test_keys_that_are_written_with_escapes_are_read_as_they_are_meant(file: Path) -> None:
    file.write_text('mcp_servers: {one: {command: npx, env: {API_TOKEN: "FIRST-\\x53ECRET-OF-MINE"}}}\n')
    assert read(file) == read(file)
    assert read(file)["mcp_servers"]["one"]["env"] == {"API_TOKEN": "FIRST-SECRET-OF-MINE"}


def test_a_file_with_headers_that_changed_unseen_is_checked_as_a_new_one(file: Path) -> None:
    file.write_text("providers: {p: {base_url: 'http://x', headers: {A: b}}}\n")
    read(file)
    status = file.stat()
    for text, told in (("[a]", "providers: must be"), ("{p: {headers: [a]}}", "providers.p.headers: must be")):
        new = f"providers: {text} # ".ljust(status.st_size, ".")
        assert f"line 1: {told} a mapping" in said(file, new, status.st_mtime_ns)
        assert file.stat().st_size == status.st_size


def test_every_key_has_a_meaning() -> None:
    def unsaid(schema: Mapping[str, Any], name: str) -> Iterator[str]:
        schema = members_of(schema)
        for key, inner in schema.get("properties", {}).items():
            below = list(unsaid(inner, f"{name}.{key}"))
            yield from below
            if not below and not inner.get("description") and not members_of(inner).get("properties"):
                yield f"{name}.{key}"

    others = [
        key for key in unsaid(file_schema(described=True), "") if key not in (".providers", ".prices", ".mcp_servers")
    ]
    assert others == [], "those three have keys of their own"


NAMES = st.sampled_from([*FileSettings._defaults, "hosts", "off", "tool", "input", "kind", "high", "x", "1"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["on", "all", "m"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@examples(300)
@given(st.dictionaries(NAMES, VALUES, max_size=3))
def test_any_file_is_settings_that_a_record_takes_or_mistakes_that_are_told(content: dict[str, Any]) -> None:
    told, found = "", {}
    try:
        found = parse_settings(json.dumps(content).encode(), Path("config.yaml"))
    except ConfigError as error:
        told = str(error)
    assert [line for line in told.splitlines() if not line.startswith("config.yaml, line 1: ")] == []
    assert json.loads(json.dumps(found)) == found
    assert isinstance(record_of(FileSettings, found), FileSettings)


@pytest.mark.parametrize("value", UNREADABLE)
def test_what_the_library_cannot_read_is_told(file: Path, value: str) -> None:
    assert str(file) in said(file, f"provider: {value}\n")


@pytest.mark.parametrize("value", ["*hunter2", "!hunter2 x", "!!int hunter2", "!!float hunter2"])
def test_no_value_is_shown_where_yaml_is_wrong(file: Path, value: str) -> None:
    """It may be a password that begins with a sign of YAML."""
    assert "hunter2" not in said(file, f"packs:\n  mail:\n    password: {value}\n")


def test_very_many_wrong_numbers_as_keys_are_told_at_once(file: Path) -> None:
    lines = "".join(f"  {number}: x\n" for number in range(20_000))
    assert "more problems" in said(file, f"prices:\n{lines}")
