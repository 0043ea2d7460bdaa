"""What the watch of a check sees, in a process of its own: an audit hook cannot be taken back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, os, shutil, socket, sqlite3, subprocess, sys
from pathlib import Path
from marvin_core.testing.grading.watch import Watch

place, scratch, outside = map(Path, sys.argv[1:])
watch = Watch([place], (__file__,), scratch, False)
seen = {}

def tried(name, work):
    watch.begin()
    try:
        work()
        refused = False
    except OSError:
        refused = True
    watch.end()
    seen[name] = [refused, sorted(watch.deeds)]

(place / "there.txt").write_text("x")
(place / "tree").mkdir()
full = outside.with_name("full")
full.mkdir()
(full / "kept.txt").touch()
tried("read", lambda: (place / "there.txt").read_text())
tried("read elsewhere", lambda: Path(__file__).read_text())
tried("write", lambda: (place / "new.txt").write_text("x"))
tried("write elsewhere", lambda: outside.write_text("x"))
tried("scratch", lambda: (scratch / "x").write_text("x"))
tried("append elsewhere", lambda: os.open(outside, os.O_WRONLY | os.O_CREAT))
tried("folder elsewhere", lambda: outside.mkdir())
tried("rename elsewhere", lambda: os.rename(place / "new.txt", outside))
tried("link elsewhere", lambda: os.symlink(place, outside))
tried("remove elsewhere", lambda: os.remove(__file__))
tried("rename away", lambda: os.rename(__file__, place / "mine.py"))
tried("mode elsewhere", lambda: os.chmod(__file__, 0))
tried("times elsewhere", lambda: os.utime(__file__))
tried("tree elsewhere", lambda: shutil.rmtree(full))
tried("by descriptor", lambda: os.remove("kept.txt", dir_fd=os.open(full, os.O_RDONLY)))
tried("signal", lambda: os.kill(os.getpid(), 0))
tried("signal to a group", lambda: os.killpg(os.getpgid(0), 0))
tried("tree", lambda: shutil.rmtree(place / "tree"))
tried("memory", lambda: sqlite3.connect(":memory:").close())
tried("database elsewhere", lambda: sqlite3.connect(outside))
tried("connect", lambda: socket.create_connection(("127.0.0.1", 9), 1))
tried("name", lambda: socket.getaddrinfo("localhost", 80))
tried("program", lambda: subprocess.run(["true"]))
tried("shell", lambda: os.system("true"))
tried("fork", lambda: os.fork())
tried("own program", lambda: subprocess.run([sys.executable, __file__, "child"], check=True))
tried("null", lambda: open(os.devnull, "w").close())
seen["kept"] = (full / "kept.txt").exists() and Path(__file__).exists()
seen["there"] = outside.exists() or os.path.lexists(outside)
print(json.dumps(seen))
"""


def test_what_is_seen_and_what_is_refused(tmp_path: Path) -> None:
    (place := tmp_path / "place").mkdir()
    (scratch := tmp_path / "scratch").mkdir()
    script = tmp_path / "deeds.py"
    script.write_text('import sys\nif sys.argv[1] == "child": sys.exit()\n' + SCRIPT)
    done = subprocess.run(
        [sys.executable, "-P", "-B", script, place, scratch, tmp_path / "outside"],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen == {
        "read": [False, ["read"]],
        "read elsewhere": [False, []],
        "write": [False, ["write"]],
        "write elsewhere": [True, ["write"]],
        "scratch": [False, []],
        "append elsewhere": [True, ["write"]],
        "folder elsewhere": [True, ["write"]],
        "rename elsewhere": [True, ["write"]],
        "link elsewhere": [True, ["write"]],
        "remove elsewhere": [True, ["write"]],
        "rename away": [True, ["write"]],
        "mode elsewhere": [True, ["write"]],
        "times elsewhere": [True, ["write"]],
        "tree elsewhere": [True, ["write"]],
        "by descriptor": [True, ["write"]],
        "signal": [True, ["exec"]],
        "signal to a group": [True, ["exec"]],
        "tree": [False, ["read", "write"]],
        "memory": [False, []],
        "kept": True,
        "database elsewhere": [True, ["write"]],
        "connect": [True, ["net"]],
        "name": [True, ["net"]],
        "program": [True, ["exec"]],
        "shell": [True, ["exec"]],
        "fork": [True, ["exec"]],
        "own program": [False, []],
        "null": [False, []],
        "there": False,
    }
