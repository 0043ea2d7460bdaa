"""JSON and YAML stores: whole whatever happens, no change lost, nothing damaged overwritten."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from marvin_core import JsonFile, ToolError, YamlFile
from marvin_core.kit.stored_file import StoredFile
from marvin_core.util.state_files import locked

T = TypeVar("T")

# One process that starts eight writers, each a process of its own: what is to be imported is imported once. A writer
# says what it has stored, once it is stored. After so many lines all of them are killed.
WRITERS = """
import asyncio, os, signal, sys
from pathlib import Path
from marvin_core import JsonFile, YamlFile
kind, path, enough = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
def store():
    return JsonFile(path, dict) if kind == "json" else YamlFile(path)
asyncio.run(store().read())
reading, writing = os.pipe()
async def write(name):
    def count(data):
        data[name] = data.get(name, 0) + 1
        data["of all"] = data.get("of all", 0) + 1
        return data[name]
    while True:
        os.write(writing, f"{name}\\n".encode() if await store().change(count) else b"")
children = []
for number in range(8):
    child = os.fork()
    if not child:
        try:
            asyncio.run(write(f"writer-{number}"))
        finally:
            os._exit(1)
    children.append(child)
os.close(writing)
lines = []
with os.fdopen(reading) as stream:
    for line in stream:
        lines.append(line)
        if len(lines) == enough:
            for child in children:
                os.kill(child, signal.SIGKILL)
for child in children:
    os.waitpid(child, 0)
sys.stdout.write("".join(lines))
"""


def read(store: StoredFile[T]) -> T:
    return asyncio.run(store.read())


def change(store: StoredFile[Any], work: Callable[[Any], T]) -> T:
    return asyncio.run(store.change(work))


def failure(store: StoredFile[Any], work: Callable[[Any], object] | None = None) -> str:
    """What a change, or without one a reading, raises."""
    with pytest.raises(ToolError) as raised:
        change(store, work) if work else read(store)
    return str(raised.value)


def put(data: Any) -> None:
    data["new"] = 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_eight_writers_that_are_killed_lose_nothing_that_was_stored(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"data.{kind}"
    before: Counter[str] = Counter()
    for _ in range(2):
        enough = 60 if kind == "json" else 20
        argv = [sys.executable, "-P", "-c", WRITERS, kind, str(path), str(enough)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=150, check=False)
        assert done.returncode == 0, done.stderr
        told = before + Counter(done.stdout.split())
        data: dict[str, int] = read(JsonFile(path, dict) if kind == "json" else YamlFile(path))
        total = data.pop("of all")
        assert sum(data.values()) == total, "each change is there as a whole"
        # Who was killed between storing and saying so has stored one more.
        assert all(told[name] <= data[name] <= told[name] + 1 for name in data | told)
        before = Counter(data)
    assert not list(tmp_path.glob("*.damaged-*"))


@pytest.mark.parametrize("store", [lambda folder: JsonFile(folder / "deep" / "x.json", dict),
                                   lambda folder: YamlFile(folder / "deep" / "x.yaml")])  # fmt: skip
def test_what_is_stored_is_read_again(tmp_path: Path, store: Callable[[Path], StoredFile[dict[str, Any]]]) -> None:
    kept = store(tmp_path)
    assert read(kept) == {}
    assert not kept.path.parent.exists()
    assert change(kept, lambda data: data.setdefault("a", {"ä": [1, None, True, "x: y"]})) is not None
    assert read(store(tmp_path)) == {"a": {"ä": [1, None, True, "x: y"]}}
    assert kept.path.stat().st_mode & 0o777 == 0o600
    assert kept.path.parent.stat().st_mode & 0o077 == 0


def test_an_array_is_kept_as_well(tmp_path: Path) -> None:
    store = JsonFile(tmp_path / "x.json", list)
    change(store, lambda items: items.append("a"))
    assert read(store) == ["a"]


def test_nothing_is_written_where_nothing_changes_or_the_work_fails(tmp_path: Path) -> None:
    for store in (JsonFile(tmp_path / "x.json", dict), YamlFile(tmp_path / "x.yaml")):
        change(store, lambda data: None)
        assert not store.path.exists()
        store.path.write_text('{"a":\n  1}')
        change(store, lambda data: None)

        def fail(data: dict[str, Any]) -> None:
            data["b"] = 1
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            change(store, fail)
        assert store.path.read_text() == '{"a":\n  1}'


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_what_json_cannot_hold_is_told_and_not_written(tmp_path: Path, value: object) -> None:
    store = JsonFile(tmp_path / "x.json", dict)
    change(store, put)
    assert "cannot store this" in failure(store, lambda data: data.update(a=value))
    assert read(store) == {"new": 1}


def nested(deep: int) -> dict[str, Any]:
    return {"a": nested(deep - 1)} if deep else {}


@pytest.mark.parametrize("value", [nested(150), list(range(600_000))], ids=["deep", "long"])
def test_what_would_count_as_damage_when_it_is_read_is_not_written(tmp_path: Path, value: object) -> None:
    store = JsonFile(tmp_path / "x.json", dict)
    change(store, put)
    assert "cannot store this" in failure(store, lambda data: data.update(a=value))
    assert read(store) == {"new": 1}


def test_data_that_do_not_pass_the_check_are_not_written(tmp_path: Path) -> None:
    def check(data: dict[str, Any]) -> None:
        if len(data) > 1:
            raise ValueError("it has too many keys")

    for store in (JsonFile(tmp_path / "x.json", dict, check), YamlFile(tmp_path / "x.yaml", check)):
        change(store, put)
        assert "it has too many keys. Nothing was changed" in failure(store, lambda data: data.update(a=1))
        assert read(store) == {"new": 1}


def test_half_a_surrogate_pair_is_kept(tmp_path: Path) -> None:
    store = JsonFile(tmp_path / "x.json", dict)
    change(store, lambda data: data.update(a="\ud800ä"))
    assert read(store) == {"a": "\ud800ä"}


DAMAGED = [b"", b'{"a": ', b"[1]", b"\xff\xfe", b"3", b"[" * 100_000, b'{"a": 1}x']


@pytest.mark.parametrize("content", DAMAGED)
@pytest.mark.parametrize("work", [None, put])
def test_a_damaged_json_file_is_moved_aside_and_told(
    tmp_path: Path, content: bytes, work: Callable[[Any], object] | None
) -> None:
    store = JsonFile(tmp_path / "x.json", dict)
    store.path.write_bytes(content)
    text = failure(store, work)
    (moved,) = tmp_path.glob("x.json.damaged-*")
    assert "x.json is damaged: " in text
    assert f"It was moved to {moved.name}" in text
    assert "Tell the user" in text
    assert moved.read_bytes() == content
    assert read(store) == {}
    change(store, put)
    assert read(store) == {"new": 1}


def test_what_is_not_what_was_kept_counts_as_damage(tmp_path: Path) -> None:
    def check(data: dict[str, Any]) -> None:
        if not all(isinstance(value, int) for value in data.values()):
            raise ValueError("a value is not a number")

    store = JsonFile(tmp_path / "x.json", dict, check)
    store.path.write_text('{"a": "x"}')
    assert "is damaged: a value is not a number" in failure(store)
    assert read(store) == {}


def test_two_damaged_files_are_both_kept(tmp_path: Path) -> None:
    store = JsonFile(tmp_path / "x.json", dict)
    for content in ("one", "two"):
        store.path.write_text(content)
        failure(store, put)
    assert sorted(path.read_text() for path in tmp_path.glob("x.json.damaged-*")) == ["one", "two"]


@pytest.mark.parametrize("content", ["a: [1", "- a\n- b", "a: 1\na: 2\n", "just text"])
def test_a_yaml_file_that_a_person_broke_is_left_alone_by_reading(tmp_path: Path, content: str) -> None:
    store = YamlFile(tmp_path / "x.yaml")
    store.path.write_text(content)
    assert "It was left unchanged. Ask the user to repair it" in failure(store)
    assert store.path.read_text() == content
    assert "It was moved to x.yaml.damaged-" in failure(store, put)
    change(store, put)
    assert read(store) == {"new": 1}


def test_no_pipe_and_no_huge_file_is_read(tmp_path: Path) -> None:
    store = JsonFile(tmp_path / "x.json", dict)
    os.mkfifo(store.path)
    assert "x.json is not a file" in failure(store)
    assert "x.json is not a file" in failure(store, put)
    store.path.unlink()
    with store.path.open("wb") as stream:
        stream.truncate(10**10)
    assert "is larger than" in failure(store, put)


def test_a_place_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    store = JsonFile(tmp_path / "file" / "x.json", dict)
    assert "cannot be read or written" in failure(store, put)
    (tmp_path / "y.json").mkdir()
    assert "y.json" in failure(JsonFile(tmp_path / "y.json", dict))


@pytest.mark.slow
def test_a_lock_that_is_held_for_too_long_is_told(tmp_path: Path) -> None:
    store = JsonFile(tmp_path / "x.json", dict)
    with locked(store.path, 1, 0.01):
        assert "is locked by another process. Try again when that process has finished" in failure(store, put)


def test_the_event_loop_goes_on_while_a_lock_is_waited_for(tmp_path: Path) -> None:
    store = JsonFile(tmp_path / "x.json", dict)

    async def run() -> int:
        ticks = 0
        with locked(store.path, 1, 0.01):
            waiting = asyncio.ensure_future(store.change(put))
            while ticks < 20:
                await asyncio.sleep(0.001)
                ticks += 1
            assert not waiting.done()
        await waiting
        return ticks

    assert asyncio.run(run()) == 20
    assert read(store) == {"new": 1}


def test_comments_order_and_quotes_of_a_person_stay(tmp_path: Path) -> None:
    text = "# Mine\n\nb: 'x'   # why\n# about a\na:\n  - 1 # one\n  # between\n  - 2\n# the end\n"
    store = YamlFile(tmp_path / "x.yaml")
    store.path.write_text(text)
    change(store, lambda data: data.update(c={"d": [1, 2]}))
    after = store.path.read_text()
    assert after.startswith("# Mine\n\nb: 'x'   # why\n# about a\na:\n")
    assert all(comment in after for comment in ("# one", "# between", "# the end"))
    change(store, lambda data: data.pop("a"))
    assert [line for line in store.path.read_text().splitlines() if line.startswith("#")] == [
        "# Mine", "# about a", "# between", "# the end"
    ]  # fmt: skip
    assert read(store) == {"b": "x", "c": {"d": [1, 2]}}


def test_the_stores_leave_no_file_behind_but_their_locks(tmp_path: Path) -> None:
    for store in (JsonFile(tmp_path / "x.json", dict), YamlFile(tmp_path / "x.yaml")):
        change(store, put)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["x.json", "x.json.lock", "x.yaml", "x.yaml.lock"]
    assert json.loads((tmp_path / "x.json").read_text()) == {"new": 1}
