"""The cached index of what is installed: read where it is current and ours, built anew where it is not."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import marvin_core
from marvin_core.api.tools import ToolSpec
from marvin_core.plugins.index import load_index
from marvin_core.plugins.model import Index
from marvin_core.plugins.stored import index_from_json, index_to_json, late_to_json
from marvin_core.tools.sets import select
from tests.support.installing import MARVIN, Place, index_data, tool_pack

TOUCHES = """
from pathlib import Path
from marvin_core import hookimpl

@hookimpl
def marvin_register_tools():
    with Path(__file__).with_suffix(".loads").open("a") as log:
        log.write("loaded\\n")
    return []
"""


FIND = """
from pathlib import Path
from marvin_core.plugins.index import load_index
from marvin_core.tools.finding import Finder
cache = Path.home() / "marvin" / "cache"
tools = [spec for _, spec in load_index(cache).tools]
print(Finder(tools, cache).find("say something about juggle", 1)[0].name)
"""


def texts(tools: Sequence[ToolSpec]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(spec.description, spec.module, spec.as_dict()) for spec in tools]


def loads(place: Place, module: str) -> int:
    """How often a pack written as above was loaded for an index."""
    log = place.packages / f"{module}.loads"
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """The file of an index that is built and current."""
    load_index(tmp_path)
    (path,) = tmp_path.glob("index-*.json")
    return path


def is_built_anew(index: Path) -> bool:
    """Whether the next look at the index makes a new file of it; it must be complete in either case."""
    before = index.lstat()
    assert any(pack.name == "core" for pack in load_index(index.parent).packs)
    after = index.lstat()
    return (before.st_ino, before.st_mtime_ns) != (after.st_ino, after.st_mtime_ns)


@pytest.mark.slow
def test_a_second_start_loads_no_pack(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("watched", TOUCHES)
    (place.packages / "watched.loads").touch()
    assert place.marvin("packs", "list").code == 0
    before = loads(place, "watched")
    assert place.marvin("packs", "list").code == 0
    assert loads(place, "watched") == before


@pytest.mark.slow
def test_a_current_index_is_kept(index: Path) -> None:
    assert not is_built_anew(index)


@pytest.mark.slow
def test_a_damaged_index_is_built_anew(index: Path) -> None:
    good = index.read_bytes()
    half, junk, other = (index_data(index) for _ in range(3))
    del half["index"]["tools"]
    junk["index"]["packs"] = [{"what": 1}]
    other["key"] = "of another environment"
    cut = [good[: len(good) // 2], good[:-1], good[:-9], good.partition(b"\n")[0], good.partition(b"\n")[0] + b"\n"]
    *lines, phrases, end = good.split(b"\n")
    cut += [b"\n".join([*lines, phrases]), b"\n".join([*lines, end]), b"\n".join([*lines[:-1], phrases, end])]
    cut += [b"\n".join([*lines, phrases[: phrases.rindex(b"]", 0, -2) + 1]])]  # it ends as a whole line does
    made = [json.dumps(data).encode() + b"\n[]" for data in (half, junk, other)]
    for damaged in [b"", *cut, b"[]", b"\xff\xfe", *made]:
        index.write_bytes(damaged)
        assert is_built_anew(index), damaged[:40]
        assert index_data(index) == json.loads(good.partition(b"\n")[0])


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_an_index_that_others_may_write_is_not_trusted_and_replaced_by_one_that_is(index: Path, mode: int) -> None:
    index.chmod(mode)
    assert is_built_anew(index)
    assert index.stat().st_mode & 0o777 == 0o600
    assert not is_built_anew(index)


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_an_index_of_another_user_is_not_trusted(index: Path) -> None:
    os.chown(index, 12345, -1)
    assert is_built_anew(index)
    assert index.stat().st_uid == 0


@pytest.mark.slow
def test_an_index_behind_a_link_is_not_trusted(index: Path) -> None:
    index.rename(index.with_name("elsewhere.json"))
    index.symlink_to(index.with_name("elsewhere.json"))
    assert is_built_anew(index)
    assert not index.is_symlink()


@pytest.mark.slow
def test_a_pack_that_is_edited_added_or_removed_is_noticed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    source = place.install("acme", tool_pack("wave", "one"))
    assert place.tools()["wave"]["description"] == "Say something about wave."

    source.write_text(source.read_text().replace("Say something", "Say another thing"))
    assert place.tools()["wave"]["description"] == "Say another thing about wave."

    place.install("newcomer", tool_pack("bow"))
    assert {"wave", "bow"} <= set(place.tools())

    for file in (place.packages / "newcomer-1.0.dist-info").iterdir():
        file.unlink()
    (place.packages / "newcomer-1.0.dist-info").rmdir()
    assert "bow" not in place.tools()


@pytest.mark.slow
def test_the_module_of_a_lazy_group_is_watched_too(tmp_path: Path) -> None:
    place = Place(tmp_path)
    plugin = """
    from marvin_core import ToolGroup, hookimpl

    @hookimpl
    def marvin_register_tools():
        return [ToolGroup(name="g", module="lazy_tools.inner", tools=("wave",))]
    """
    place.install("lazy", plugin)
    inner = place.packages / "lazy_tools" / "inner.py"
    inner.parent.mkdir()
    (inner.parent / "__init__.py").touch()
    inner.write_text("from marvin_core import tool\n\n@tool\nasync def wave() -> str:\n    'First.'\n    return ''\n")
    assert place.tools()["wave"]["description"] == "First."
    inner.write_text(inner.read_text().replace("First.", "Second."))
    assert place.tools()["wave"]["description"] == "Second."


@pytest.mark.slow
def test_a_helper_module_of_a_pack_is_watched_too(tmp_path: Path) -> None:
    """What the plugin module only imports: the module of its tools, and what that takes its texts from."""
    place = Place(tmp_path)
    place.install("acme", "", entry_points="[marvin]\nacme = acme_pack.plugin\n")
    package = place.packages / "acme_pack"
    package.mkdir()
    plugin = "from marvin_core import hookimpl\nfrom .tools import wave\n\n@hookimpl\n"
    (package / "plugin.py").write_text(f"{plugin}def marvin_register_tools():\n    return [wave]\n")
    source = "from typing import Annotated\nfrom marvin_core import tool\nfrom .texts import HAND\n\n@tool\n"
    (package / "tools.py").write_text(f"{source}async def wave(hand: Annotated[str, HAND]) -> str:\n    'Wave.'\n")
    texts = package / "texts.py"
    for text in ("Left or right", "Left, right or both"):
        texts.write_text(f"HAND = {text!r}\n")
        assert place.tools()["wave"]["parameters"]["properties"]["hand"]["description"] == text


@pytest.mark.slow
def test_mending_any_file_of_a_broken_pack_is_noticed(tmp_path: Path) -> None:
    """The failure lies in a module that the plugin module imports, in a folder that is no path entry."""
    place = Place(tmp_path)
    place.install("mended", "from mended_parts.deep import wave\n" + "raise SystemExit\n")
    deep = place.packages / "mended_parts" / "deep.py"
    deep.parent.mkdir()
    (deep.parent / "__init__.py").touch()
    deep.write_text("def wave(:\n")
    assert "SyntaxError" in place.marvin("packs", "list").out
    deep.write_text("def wave(): 1 / 0\nwave()\n")
    assert "ZeroDivisionError" in place.marvin("packs", "list").out
    deep.write_text("def wave(): pass\n")
    assert "SystemExit" in place.marvin("packs", "list").out
    (place.packages / "mended.py").write_text(dedent(tool_pack("mended_tool")))
    assert "mended  mended 1.0, 1 tool\n" in place.marvin("packs", "list").out


@pytest.mark.slow
def test_two_environments_keep_their_own_indexes(tmp_path: Path) -> None:
    """Two sets of packages, used in turns with one cache folder."""
    one, two = Place(tmp_path / "one"), Place(tmp_path / "two")
    one.install("watched", TOUCHES)
    two.install("other", tool_pack("bow"))
    shared = {"MARVIN_HOME": str(one.home / "marvin")}
    (one.packages / "watched.loads").touch()
    for place in (one, two):
        assert place.marvin("packs", "list", **shared).code == 0
    before = loads(one, "watched")
    for _ in range(2):
        assert "watched  watched 1.0" in one.marvin("packs", "list", **shared).out
        assert "other  other 1.0" in two.marvin("packs", "list", **shared).out
    assert loads(one, "watched") == before, "neither overwrote the index of the other"
    assert len(one.indexes) == 2


@pytest.mark.slow
def test_another_interpreter_prefix_has_its_own_index(tmp_path: Path) -> None:
    """A virtual environment of its own, with the same module path."""
    place = Place(tmp_path)
    prefix = tmp_path / "venv"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
    python = prefix / "bin" / "python"
    python.symlink_to(os.path.realpath(sys.executable))
    path = os.pathsep.join([str(place.packages), *filter(os.path.isabs, sys.path)])
    assert place.marvin("packs", "list", PYTHONPATH=path).code == 0
    assert len(place.indexes) == 1
    assert place.run([str(python), *MARVIN[1:], "packs", "list"], PYTHONPATH=path).code == 0
    assert len(place.indexes) == 2


@pytest.mark.slow
def test_the_index_survives_the_way_through_the_file(tmp_path: Path) -> None:
    built = load_index(tmp_path)
    read = load_index(tmp_path)
    assert read == built
    assert read is not built
    assert read.packs[0].name == "core"
    assert all(isinstance(spec.access, frozenset) for _, spec in read.tools)


@pytest.mark.slow
def test_a_cache_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert load_index(tmp_path / "file" / "cache").packs


@pytest.mark.slow
def test_configuration_folders_share_an_index_until_one_has_packs_of_its_own(tmp_path: Path) -> None:
    plain, own = tmp_path / "plain", tmp_path / "own"
    cache = tmp_path / "cache"
    for folder in (plain, own):
        assert "wave" not in {spec.name for _, spec in load_index(cache, folder).tools}
    assert len(list(cache.glob("index-*.json"))) == 1
    (own / "tools").mkdir(parents=True)
    (own / "tools" / "wave.py").write_text(
        "from marvin_core import tool\n\n@tool\nasync def wave() -> str:\n    'Wave.'\n"
    )
    assert "wave" in {spec.name for _, spec in load_index(cache, own).tools}
    assert "wave" not in {spec.name for _, spec in load_index(cache, plain).tools}
    assert len(list(cache.glob("index-*.json"))) == 2
    (own / "tools" / "wave.py").unlink()
    assert "wave" not in {spec.name for _, spec in load_index(cache, own).tools}


@pytest.mark.slow
def test_of_the_core_only_what_it_registers_is_watched(tmp_path: Path) -> None:
    """Each file that is watched is looked at in every start; a version that changes has another index anyway."""
    load_index(tmp_path)
    (kept,) = tmp_path.glob("index-*.json")
    core = Path(marvin_core.__file__).parent
    watched = {Path(name) for name in index_data(kept)["stamps"]}
    assert {str(path.relative_to(core)) for path in watched if path.is_relative_to(core) and path.is_file()} == {
        "builtin.py", "tools/session_tools.py", "tools/asking.py", "tools/phrases.toml",
    }  # fmt: skip


EDITS = """
from pathlib import Path
from marvin_core import hookimpl

other = Path(__file__).with_name("aa_first.py")
if "bow" not in other.read_text():
    other.write_text(other.read_text().replace("wave", "bow"))

@hookimpl
def marvin_register_tools():
    return []
"""
INSTALLS = """
from pathlib import Path
from marvin_core import hookimpl

new = Path(__file__).with_name("late-1.0.dist-info")
if not new.exists():
    new.mkdir()
    (new / "METADATA").write_text("Metadata-Version: 2.1\\nName: late\\nVersion: 1.0\\n")
    (new / "entry_points.txt").write_text("[marvin]\\nlate = aa_first\\n")

@hookimpl
def marvin_register_tools():
    return []
"""


@pytest.mark.slow
def test_a_file_that_is_edited_while_packs_are_loaded_is_looked_at_once_more(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("aa-first", tool_pack("wave"))
    place.install("mm-editor", EDITS)
    assert "wave" in place.tools()
    assert "bow" in place.tools()
    (built,) = place.indexes
    assert "bow" in place.tools()
    before = built.stat().st_ino
    assert "bow" in place.tools()
    assert built.stat().st_ino == before, "an index of what nobody edits stays"


@pytest.mark.slow
def test_what_is_installed_while_packs_are_loaded_is_found_at_the_next_start(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("aa-first", tool_pack("wave"))
    place.install("mm-installer", INSTALLS)
    assert "late" not in place.marvin("packs", "list").out
    assert "late" in place.marvin("packs", "list").out


@pytest.mark.slow
def test_a_start_reads_neither_what_a_search_needs_nor_the_text_of_tools_that_nobody_asks_for(index: Path) -> None:
    head, *late, end = index.read_bytes().split(b"\n")
    index.write_bytes(b"\n".join([head, *(b"?" for _ in late), end]))
    before = index.stat().st_ino
    tools = [spec for _, spec in load_index(index.parent).tools]
    assert index.stat().st_ino == before
    assert "read_file" in select(tools, "coding") <= {spec.name for spec in tools}
    assert any(spec.changes for spec in tools)
    assert any(spec.secrets for spec in tools)
    with pytest.raises(ValueError, match="Expecting value"):
        print(tools[0].description)


@pytest.mark.slow
def test_a_search_finds_what_was_installed_just_now_and_after_its_index_was_cut(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert place.python(FIND).out.splitlines()[-1] != "juggle"
    place.install("acme", tool_pack("juggle"))
    assert place.python(FIND).out.splitlines()[-1] == "juggle"
    (index,) = (each for each in place.indexes if b"juggle" in each.read_bytes())
    index.write_bytes(index.read_bytes()[:-200])
    for _ in range(2):  # built anew, and as it was kept then
        found = place.python(FIND)
        assert (found.out.splitlines()[-1], found.err) == ("juggle", "")


@pytest.mark.slow
def test_a_tool_that_several_threads_ask_for_at_once_is_whole_for_each(index: Path) -> None:
    for _ in range(20):
        tools = [spec for _, spec in load_index(index.parent).tools]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(texts, [tools] * 4))
        assert all(each == found[0] for each in found)


@pytest.mark.slow
def test_phrases_are_there_when_they_are_asked_for(tmp_path: Path) -> None:
    """A start does not parse them, so the first index holds them as loaded and the second as they were kept."""
    fresh, kept = (
        {spec.name: spec for _, spec in index.tools} for index in (load_index(tmp_path), load_index(tmp_path))
    )
    said = {name: list(spec.phrases) for name, spec in kept.items()}
    assert said == {name: list(spec.phrases) for name, spec in fresh.items()}
    assert sum(map(len, said.values())) > len(kept)
    assert fresh == kept


def test_what_is_read_late_is_what_was_put_into_the_index() -> None:
    shape = {"type": "object", "properties": {"place": {"type": "string", "description": 'Where "it" is\n'}}}
    plain = ToolSpec(name="look", description="Look.", parameters=shape, access=frozenset({"read"}))
    spoken = plain.replace(name="say", requires=("env:VOICE",), phrases=({"say": "hello"},), parameters={})
    index = Index(packs=(), others=(), providers=(), uis=(), tools=(("a:a", plain), ("b:b", spoken)))
    late = [json.dumps(one).encode() for one in late_to_json(index)]

    def read(lines: list[bytes]) -> Index:
        return index_from_json(json.loads(json.dumps(index_to_json(index))), b"\n".join([b"{}", *lines]))

    assert read(late) == index
    (_, look), (_, say) = read(late).tools
    assert (look.name, look.parameters, say.parameters) == ("look", shape, {})
    assert look == plain
    assert plain == read(late).tools[0][1]
    assert read(late).tools[0][1].replace(name="see").as_dict() == plain.replace(name="see").as_dict()
    assert say.phrases == spoken.phrases
    for damaged in (late[:-1], [*late, b"{}"]):
        with pytest.raises(ValueError, match="incomplete"):
            read(damaged)
