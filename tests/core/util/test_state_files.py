"""Marvin's own state files: replaced in one step, locked across processes, trusted only if ours."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.util.state_files import forgotten, locked, read_trusted_json, replace_file, write_cache

HOLDER = """
import sys
from pathlib import Path
from marvin_core.util.state_files import locked
with locked(Path(sys.argv[1]), 50, 0.01):
    print("held", flush=True)
    sys.stdin.readline()
"""
COUNTER = """
import sys
from pathlib import Path
from marvin_core.util.state_files import locked, replace_file
path = Path(sys.argv[1])
for _ in range(25):
    with locked(path, 50, 0.001):
        replace_file(path, str(int(path.read_text()) + 1).encode())
"""
WRITER = """
import sys
from pathlib import Path
from marvin_core.util.state_files import replace_file
path = Path(sys.argv[1])
while not path.with_name("stop").exists():
    for letter in b"ab":
        replace_file(path, bytes([letter]) * 200_000)
"""


def child(script: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def test_a_new_file_is_private_and_its_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "state.json"
    replace_file(path, b"data")
    assert path.read_bytes() == b"data"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o400])
def test_the_mode_of_an_existing_file_is_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    umask = os.umask(0o077)
    try:
        replace_file(path, b"new")
    finally:
        os.umask(umask)
    assert path.stat().st_mode & 0o777 == mode
    assert path.read_bytes() == b"new"


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "file"
    target.write_text("old")
    link = tmp_path / "link"
    link.symlink_to("real/file")
    replace_file(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_reader_sees_the_old_content_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_file(path, b"a" * 200_000)
    writer = child(WRITER, path)
    try:
        seen = set()
        deadline = time.monotonic() + 50
        while time.monotonic() < deadline:
            content = path.read_bytes()
            assert len(content) == 200_000
            assert len(set(content)) == 1
            seen.add(content[:1])
            if len(seen) == 2:
                break
            time.sleep(0.005)
        assert seen == {b"a", b"b"}, "the writer was at work meanwhile"
    finally:
        (tmp_path / "stop").touch()
        writer.communicate(timeout=150)


def test_a_failure_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(TypeError):
        replace_file(path, "text, not bytes")  # type: ignore[arg-type]
    assert path.read_text() == "old"
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        replace_file(folder, b"data")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


def test_a_full_disk_leaves_the_old_content(tmp_path: Path) -> None:
    """A file-size limit stands for it: the write fails half-way."""
    path = tmp_path / "file"
    path.write_text("old")
    script = (
        "import resource, signal, sys\nfrom pathlib import Path\n"
        "from marvin_core.util.state_files import replace_file\n"
        "sys.dont_write_bytecode = True\n"  # it would be cut off, too, and stay so
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: replace_file(Path(sys.argv[1]), b'x' * 100_000)\nexcept OSError: print('refused')\n"
    )
    out, _ = child(script, path).communicate(timeout=150)
    assert out == "refused\n"
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_held_elsewhere_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    holder = child(HOLDER, path)
    assert pipe(holder.stdout).readline() == "held\n"
    began = time.monotonic()
    with pytest.raises(MarvinError, match=r"state\.json is locked by another process\. Try again"):
        with locked(path, 0.2, 0.01):
            raise AssertionError("two hold it")
    assert time.monotonic() - began >= 0.2
    holder.communicate("\n", timeout=150)
    with locked(path, 0.2, 0.01):
        assert path.with_name("state.json.lock").exists()
    assert path.with_name("state.json.lock").exists(), "removing it would let two processes in"


def test_a_holder_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    holder = child(HOLDER, path)
    assert pipe(holder.stdout).readline() == "held\n"
    holder.kill()
    holder.communicate()
    with locked(path, 1, 0.01):
        pass


def test_an_error_inside_frees_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside"), locked(tmp_path / "f", 1, 0.01):
        raise ValueError("inside")
    with locked(tmp_path / "f", 0, 0.01):
        pass


def test_no_update_of_two_processes_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "count"
    path.write_text("0")
    children = [child(COUNTER, path) for _ in range(2)]
    for one in children:
        one.communicate(timeout=150)
        assert one.returncode == 0
    assert path.read_text() == "50"


def test_a_cache_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "cache.json"
    write_cache(path, {"a": [1, "ü"]})
    assert read_trusted_json(path) == {"a": [1, "ü"]}


@pytest.mark.parametrize("mode", [0o660, 0o620, 0o602, 0o666, 0o777])
def test_a_cache_that_others_may_write_is_not_trusted(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "cache.json"
    write_cache(path, [1])
    path.chmod(mode)
    assert read_trusted_json(path) is None
    write_cache(path, [2])
    assert read_trusted_json(path) == [2], "what we write in its place is ours alone"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_cache_of_another_user_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    write_cache(path, [1])
    os.chown(path, 12345, -1)
    assert read_trusted_json(path) is None


def test_a_cache_behind_a_link_is_neither_trusted_nor_written_through(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "cache.json"
    write_cache(real, [1])
    link.symlink_to(real)
    assert read_trusted_json(link) is None
    write_cache(link, [2])
    assert (read_trusted_json(link), read_trusted_json(real)) == ([2], [1])


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"nonsense"])
def test_a_damaged_cache_is_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cache.json"
    path.write_bytes(content)
    path.chmod(0o600)
    assert read_trusted_json(path) is None


def test_no_cache_and_a_folder_in_its_place(tmp_path: Path) -> None:
    assert read_trusted_json(tmp_path / "missing") is None
    assert read_trusted_json(tmp_path) is None
    write_cache(tmp_path, [1])
    write_cache(tmp_path / "x" / ".." / "y", [1])


SWEEPER = """
import sys
from pathlib import Path
from marvin_core.util.state_files import replace_file
replace_file(Path(sys.argv[1]), b"new")
"""


def test_what_killed_writers_left_goes_with_the_next_write_there(tmp_path: Path) -> None:
    """As the names are those of real ones: the process is stopped in the middle of a write, and killed."""
    path = tmp_path / "state.json"
    with child(WRITER, path) as process:
        deadline = time.monotonic() + 50
        while not (left := list(tmp_path.glob(".state.json.*"))) and time.monotonic() < deadline:
            os.kill(process.pid, 0)
        process.kill()
    left = list(tmp_path.glob(".state.json.*"))
    fresh, other = tmp_path / ".state.json.1.2.marvin-tmp", tmp_path / ".profile.1.2"
    for kept in (fresh, other):
        kept.write_text("mine")
    old = time.time() - 7_200
    for path_left in (*left, other):
        os.utime(path_left, (old, old))
    subprocess.run([sys.executable, "-c", SWEEPER, str(path)], check=True, timeout=50)
    assert path.read_bytes() == b"new"
    assert [forgotten for forgotten in left if forgotten.exists()] == []
    assert fresh.exists()
    assert other.exists()


def test_every_folder_that_is_made_is_for_this_user_alone(tmp_path: Path) -> None:
    replace_file(tmp_path / "a" / "b" / "state.json", b"x")
    with locked(tmp_path / "c" / "d" / "state.json", 1.0, 0.01):
        pass
    for folder in ("a", "a/b", "c", "c/d"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o700


def test_what_is_gone_while_a_folder_is_swept_stops_nothing(tmp_path: Path) -> None:
    """Another Marvin sweeps the same folder: what it removed first cannot be looked at any more."""
    for number in range(20):
        path = tmp_path / f"copy-{number}"
        path.touch()
        os.utime(path, (1, 1))
    asked: list[str] = []

    def is_ours(name: str) -> bool:
        asked.append(name)
        if len(asked) > 1:
            (tmp_path / name).unlink()
        return True

    assert forgotten(tmp_path, is_ours, 60) == asked[:1]
    assert len(asked) == 20


def test_only_what_is_old_and_ours_is_forgotten(tmp_path: Path) -> None:
    for name in ("old", "fresh", "other"):
        (tmp_path / name).touch()
        if name != "fresh":
            os.utime(tmp_path / name, (1, 1))
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        for folder in (tmp_path, descriptor):
            assert forgotten(folder, lambda name: name != "other", 60) == ["old"]
    finally:
        os.close(descriptor)
