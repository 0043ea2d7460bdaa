"""What a source that is not run says of a pack: whether it may register hooks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from marvin_core.plugins.guards import Memory, source_file
from marvin_core.plugins.model import USER, DeclaredSettings, Loaded, Pack

TOOL = "from marvin_core import hookimpl, tool\n\n# Its hooks do nothing but register tools.\n"
MAY = {
    "the hook": "def marvin_register_hooks(): ...",
    "the class": "from marvin_core import Hook",
    "a hook that is misspelt": "def marvin_regster_hooks(): ...",
    "another that is": "def marvin_register_hok(): ...",
    "whatever another module has": "from acme.guard import *",
    "a name that is made": "globals()['marvin_register_' + 'x'] = 1",
    "another that is made": "setattr(module, name, 1)",
    "code that is made": "exec(code)",
    "a module that answers by itself": "def __getattr__(name): ...",
    "a module that is replaced": "import sys; sys.modules[__name__] = x",
    "nothing at all": "",
}


def pack(path: Path, **fields: Any) -> Pack:
    return Pack(**{"name": "acme", "distribution": "acme", "version": "1.0", "module": str(path), **fields})


@pytest.mark.parametrize("what", MAY)
def test_a_source_that_may_register_hooks(tmp_path: Path, what: str) -> None:
    path = tmp_path / "acme.py"
    path.write_text(f"{TOOL if MAY[what] else ''}{MAY[what]}\n")
    assert Memory(tmp_path).may_guard(pack(path))


def test_a_source_that_registers_none(tmp_path: Path) -> None:
    path = tmp_path / "acme.py"
    path.write_text(TOOL)
    assert not Memory(tmp_path).may_guard(pack(path))
    assert Memory(tmp_path).may_guard(pack(path, distribution=USER, name="hooks/acme.py")), "that is what they are for"


def test_what_cannot_be_read_may_be_anything(tmp_path: Path) -> None:
    (tmp_path / "big.py").write_text("x = 1\n" * 400_000)
    (tmp_path / "damaged.py").write_bytes(b"x = 1\n\0\0\0")
    for path in (tmp_path / "big.py", tmp_path / "damaged.py", tmp_path / "gone.py", tmp_path / "native.so"):
        assert Memory(tmp_path).may_guard(pack(path)), path.name


def test_where_nothing_can_be_remembered_any_pack_may_have_been_a_guard(tmp_path: Path) -> None:
    path = tmp_path / "acme.py"
    path.write_text(TOOL)
    (tmp_path / "cache").write_text("a file in the place of the folder")
    assert Memory(tmp_path / "cache").may_guard(pack(path))
    assert not Memory(tmp_path / "will" / "be" / "made").may_guard(pack(path))


def loaded(path: Path, **fields: Any) -> list[Loaded]:
    return [Loaded(pack=pack(path, **fields))]


def test_what_was_seen_is_remembered_and_nothing_that_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "acme.py"
    path.write_text(TOOL)
    Memory(tmp_path).remember(loaded(path, hooks=("marvin_register_hooks",)))
    Memory(tmp_path).remember(loaded(path, left_out=True))
    assert Memory(tmp_path).may_guard(pack(path, version="2.0"))
    Memory(tmp_path).remember(loaded(path, version="2.0"))
    assert not Memory(tmp_path).may_guard(pack(path, version="2.0"))
    path.unlink()
    assert not Memory(tmp_path).may_guard(pack(path, version="2.0")), "that version was seen without"
    assert Memory(tmp_path).may_guard(pack(path, version="2.1"))


def test_a_version_that_registered_hooks_once_counts_as_one_that_does(tmp_path: Path) -> None:
    """It may have some where a variable is set: a load without them says nothing of the next one."""
    path = tmp_path / "acme.py"
    path.write_text(TOOL)
    Memory(tmp_path).remember(loaded(path, hooks=("marvin_register_hooks",)))
    Memory(tmp_path).remember(loaded(path))
    assert Memory(tmp_path).may_guard(pack(path))


def test_what_another_environment_saw_says_nothing_of_this_one(tmp_path: Path) -> None:
    path = tmp_path / "acme.py"
    path.write_text(TOOL)
    Memory(tmp_path).remember(loaded(path, hooks=("marvin_register_hooks",)))
    Memory(tmp_path, "/another").remember(loaded(path))
    assert Memory(tmp_path).may_guard(pack(path))
    assert not Memory(tmp_path, "/another").may_guard(pack(path))


def test_the_secrets_of_a_pack_are_kept_for_when_it_is_not_loaded(tmp_path: Path) -> None:
    """Each environment keeps its own, and what a version declared once it may read again."""
    path = tmp_path / "acme.py"
    path.write_text(TOOL)

    def declares(*names: str) -> list[Loaded]:
        secrets = dict.fromkeys(names, "A secret")
        settings = DeclaredSettings(name="acme", source="acme", schema={}, variables={}, secrets=secrets)
        return [one.replace(settings=(settings,)) for one in loaded(path)]

    Memory(tmp_path).remember(declares("ACME_ONE"))
    Memory(tmp_path).remember(declares("ACME_TWO"))
    Memory(tmp_path, "/another").remember(declares())
    assert Memory(tmp_path).secrets([pack(path)]) == ("ACME_ONE", "ACME_TWO")
    assert Memory(tmp_path, "/another").secrets([pack(path)]) == ()
    path.write_text(f"{TOOL}KEY = 'ACME_API_KEY'\n")
    assert Memory(tmp_path, "/another").secrets([pack(path)]) == ("ACME_API_KEY",), "its source names it"


@pytest.mark.parametrize("packs", ["[]", '{"acme:acme": 7}', '{"acme:acme": {"colour": 1}}', "7"])
def test_a_damaged_memory_is_none(tmp_path: Path, packs: str) -> None:
    path = tmp_path / "acme.py"
    path.write_text(TOOL)
    Memory(tmp_path).remember(loaded(path, hooks=("marvin_register_hooks",)))
    (kept,) = tmp_path.glob("packs-*.json")
    for content in (packs, "{", f'{{"prefix": "{sys.prefix}", "packs": {packs}}}'):
        kept.write_text(content)
        assert not Memory(tmp_path).may_guard(pack(path)), content


def test_the_file_of_a_module_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "acme_found"
    package.mkdir()
    for name in ("__init__", "plugin"):
        (package / f"{name}.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert source_file("acme_found") == package / "__init__.py"
    assert source_file("acme_found.plugin") == package / "plugin.py"
    for name in ("nothing_has_this_name", "json.nothing", "os.path.nothing", "acme_found.nothing.at.all", "sys"):
        assert source_file(name) is None, name
