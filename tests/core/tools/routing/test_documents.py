"""The words by which tools are found, in the cache: whatever is in it, the tools are found by their own words."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from marvin_core.tools.routing.documents import documents
from marvin_core.tools.routing.ranking import Ranking, words_of
from marvin_core.version import __version__
from tests.support.engine import spec

TOOLS = tuple(
    spec(f"tool_{name}").replace(description=f"Handle the {name}.") for name in ("apple", "brick", "cloud", "drum")
)
OTHERS = tuple(spec(f"other_{number}").replace(description=f"Handle number {number}.") for number in range(50))
COUNTED = [Counter(words_of(tool)) for tool in TOOLS]


def kept(folder: Path) -> dict[str, Any]:
    words: dict[str, Any] = json.loads((folder / "stems.json").read_text())["words"]
    return words


def stamp(folder: Path) -> int:
    return (folder / "stems.json").stat().st_ino


def test_what_was_counted_once_is_read_and_not_written_again(tmp_path: Path) -> None:
    assert documents(TOOLS, tmp_path) == COUNTED
    before = stamp(tmp_path)
    assert documents(TOOLS, tmp_path) == COUNTED
    assert documents(TOOLS[:2], tmp_path) == COUNTED[:2]
    assert documents([*TOOLS, TOOLS[0]], tmp_path) == [*COUNTED, COUNTED[0]], "one that is there twice"
    assert stamp(tmp_path) == before


def test_environments_and_selections_that_share_the_cache_do_not_take_it_from_each_other(tmp_path: Path) -> None:
    documents(TOOLS, tmp_path)
    documents(OTHERS, tmp_path)
    before = stamp(tmp_path)
    documents(TOOLS, tmp_path)
    documents(OTHERS, tmp_path)
    assert stamp(tmp_path) == before


@pytest.mark.slow
def test_the_cache_does_not_grow_without_an_end(tmp_path: Path) -> None:
    for number in range(45):
        documents([spec(f"t_{number}_{each}") for each in range(50)], tmp_path)
    documents(TOOLS, tmp_path)
    assert len(kept(tmp_path)) == 2_000
    before = stamp(tmp_path)
    assert documents(TOOLS, tmp_path) == COUNTED
    assert stamp(tmp_path) == before, "what was used last stays"


def test_a_tool_that_changed_is_counted_anew(tmp_path: Path) -> None:
    documents(TOOLS, tmp_path)
    changed = TOOLS[0].replace(description="Handle the violin.")
    assert documents([changed], tmp_path) == [Counter(words_of(changed))]


def _spoilt(folder: Path, counts: object, version: str = __version__) -> None:
    documents(TOOLS, folder)
    words = dict.fromkeys(kept(folder), counts)
    (folder / "stems.json").write_text(json.dumps({"version": version, "words": words}))


@pytest.mark.parametrize(
    "counts",
    [None, [], "apple", {"apple": "1"}, {"apple": -1}, {"apple": 0}, {"apple": True}, {"apple": 10**400}, {"a": 1.5}],
)
def test_counts_that_are_none_are_made_anew(tmp_path: Path, counts: object) -> None:
    _spoilt(tmp_path, counts)
    found = documents(TOOLS, tmp_path)
    assert found == COUNTED
    assert [one.name for one, _ in Ranking(TOOLS, found).best("apple", 3)] == ["tool_apple"]
    assert documents(TOOLS, tmp_path) == COUNTED


def test_words_that_another_version_counted_do_not_count(tmp_path: Path) -> None:
    _spoilt(tmp_path, {"wrong": 1}, version="0.0.1")
    assert documents(TOOLS, tmp_path) == COUNTED
    _spoilt(tmp_path, {"wrong": 1})
    assert documents(TOOLS, tmp_path) != COUNTED, "of this version they are believed, or the cache would be for nothing"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"version": 1}', '{"words": {}}', "[" * 100_000, "\x00\xff"])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "stems.json").write_bytes(text.encode("latin-1"))
    assert documents(TOOLS, tmp_path) == COUNTED
    assert len(kept(tmp_path)) == len(TOOLS)


def test_where_nothing_can_be_written_the_words_are_counted_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert documents(TOOLS, tmp_path / "file") == COUNTED
    (tmp_path / "folder" / "stems.json").mkdir(parents=True)
    assert documents(TOOLS, tmp_path / "folder") == COUNTED
    assert documents(TOOLS, Path("/proc/none/cache")) == COUNTED


ROOT = Path(__file__).parents[4]
_FULL = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
from marvin_core.tools.routing.documents import documents
from tests.core.tools.routing.test_documents import COUNTED, TOOLS
assert documents(TOOLS, Path(sys.argv[1])) == COUNTED
assert not [*Path(sys.argv[1]).iterdir()], "and nothing half-written stays"
"""


@pytest.mark.slow
def test_a_full_disk_costs_only_the_time_to_count(tmp_path: Path) -> None:
    done = subprocess.run(
        # -B: where a file cannot be longer, what Python keeps of a module would be cut, for all who import it later.
        [sys.executable, "-B", "-c", _FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr


def test_a_file_that_others_may_write_is_not_believed(tmp_path: Path) -> None:
    _spoilt(tmp_path, {"wrong": 1})
    (tmp_path / "stems.json").chmod(0o666)
    assert documents(TOOLS, tmp_path) == COUNTED


def test_several_at_once_leave_a_sound_file_and_each_has_its_words(tmp_path: Path) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        mine = [*TOOLS, *(tool.replace(description=f"For {number}.") for tool in OTHERS[:10])]
        counted = [Counter(words_of(tool)) for tool in mine]
        wrong.extend(number for _ in range(5) if documents(mine, tmp_path) != counted)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(kept(tmp_path)) >= len(TOOLS)
