"""Small real distributions in a folder, and Marvin run with that folder on its module path."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

MARVIN = (sys.executable, "-P", "-m", "marvin_core")


@contextmanager
def unprivileged() -> Iterator[Path]:
    """A folder, and a process to which modes apply: where the tests run as root, it is another user's for a while."""
    folder = Path(tempfile.mkdtemp())  # not in pytest's own folder, which is closed to others
    is_root = os.getuid() == 0
    try:
        if is_root:
            os.chown(folder, 12345, 12345)
            os.setresuid(12345, 12345, 0)
        yield folder
    finally:
        if is_root:
            os.setresuid(0, 0, 0)
        for made in (folder, *folder.rglob("*")):
            made.chmod(0o700)
        shutil.rmtree(folder)


def index_data(index: Path) -> dict[str, Any]:
    """What a start reads of an index: its first line. What few tools are asked for stands in the others."""
    data: dict[str, Any] = json.loads(index.read_bytes().partition(b"\n")[0])
    return data


def put_index_data(index: Path, data: Mapping[str, Any]) -> None:
    """Change the first line of an index."""
    index.write_bytes(json.dumps(data).encode() + b"\n" + index.read_bytes().partition(b"\n")[2])


class Ended(NamedTuple):
    """How a run ended."""

    code: int
    out: str
    err: str


class Place:
    """A home folder, and a folder for the distributions that this Marvin finds beside those of the environment."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.packages = folder / "packages"
        self.home.mkdir(parents=True)
        # An existing folder for bytecode, because creating it would change this folder and so rebuild the index.
        (self.packages / "__pycache__").mkdir(parents=True)

    def install(
        self,
        distribution: str,
        plugin: str,
        *,
        pack: str = "",
        modules: Mapping[str, str] | None = None,
        entry_points: str = "",
    ) -> Path:
        """Write a distribution whose plugin module holds this source; returns that module's file.

        `modules` are further files by name; `entry_points` replaces the usual text of that file.
        """
        module = distribution.replace("-", "_")
        for name, source in {module: plugin, **(modules or {})}.items():
            (self.packages / f"{name}.py").write_text(dedent(source), encoding="utf-8")
        info = self.packages / f"{module}-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        usual = f"[marvin]\n{pack or module} = {module}\n"
        (info / "entry_points.txt").write_text(entry_points or usual)
        (info / "RECORD").write_text(f"{module}.py,,\n")
        return self.packages / f"{module}.py"

    def environment(self, **env: str) -> dict[str, str]:
        """What a run is given."""
        given = {"PATH": os.environ["PATH"], "HOME": str(self.home), "PYTHONPATH": str(self.packages)}
        return {**given, "MARVIN_HOME": str(self.home / "marvin"), **env}

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", **env: str) -> Ended:
        """Run a program to its end."""
        done = subprocess.run(
            argv, input=stdin, capture_output=True, env=self.environment(**env), cwd=self.home, timeout=150, check=False
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    def marvin(self, *argv: str, **env: str) -> Ended:
        """Run Marvin."""
        return self.run([*MARVIN, *argv], stdin=b"", **env)

    def python(self, code: str, **env: str) -> Ended:
        """Run a snippet."""
        return self.run([sys.executable, "-P", "-c", dedent(code)], stdin=b"", **env)

    def tools(self, **env: str) -> dict[str, dict[str, Any]]:
        """The tools that `marvin tools list` names."""
        ended = self.marvin("tools", "list", "--json", **env)
        assert ended.code == 0, ended.err
        return {entry["name"]: entry for entry in json.loads(ended.out)}

    @property
    def indexes(self) -> list[Path]:
        """The cached indexes."""
        return sorted((self.home / "marvin" / "cache").glob("index-*.json"))


def tool_pack(tool: str, answer: str = "") -> str:
    """The source of a plugin with one tool, which returns `answer`."""
    return f'''
    from marvin_core import hookimpl, tool

    @tool(access=["read"])
    async def {tool}() -> str:
        """Say something about {tool}."""
        return {answer or tool!r}

    @hookimpl
    def marvin_register_tools():
        return [{tool}]
    '''
