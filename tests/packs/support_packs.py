"""Fresh environments with Marvin installed from wheels, as a stranger gets it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).with_name("uv")


def uv_environment() -> dict[str, str]:
    """The caller's environment, since it says where packages come from, without what names an environment."""
    left_out = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT")
    return {name: value for name, value in os.environ.items() if name not in left_out}


def uv(*words: str | Path, cwd: Path = ROOT) -> str:
    """Run uv; what it says on failure is the message of the error."""
    done = subprocess.run([UV, *words], cwd=cwd, env=uv_environment(), capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise AssertionError(f"uv {' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build_wheels(source: Path, folder: Path, *options: str) -> None:
    """Build the wheels of a project into a folder, with the build backend that is installed here."""
    uv("build", "--quiet", "--wheel", *options, "--no-build-isolation", "--python", sys.executable, "--out-dir", folder,
       cwd=source)  # fmt: skip


def constraints(folder: Path) -> Path:
    """The versions of the lock, without hashes, so that every run installs the same."""
    pins = re.findall(r"^[a-z0-9._-]+==[^\s;\\]+(?: ; [^\\\n]+)?", (ROOT / "requirements/dev.lock").read_text(), re.M)
    path = folder / "constraints.txt"
    path.write_text("\n".join(pins) + "\n")
    return path


class Installed:
    """An environment of its own, with a home of its own."""

    def __init__(self, folder: Path, wheels: Sequence[Path], *requirements: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self._links = [word for links in wheels for word in ("--find-links", str(links))]
        uv("venv", "--quiet", "--python", sys.executable, folder / "venv")
        self.install(*requirements)

    def install(self, *requirements: str) -> None:
        """Add distributions."""
        pins = constraints(self.folder)
        uv("pip", "install", "--quiet", "--python", self.python, *self._links, "--constraint", pins, *requirements)

    def uninstall(self, *names: str) -> None:
        """Take distributions away."""
        uv("pip", "uninstall", "--quiet", "--python", self.python, *names)

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "venv" / "bin" / "python"

    def distributions(self) -> set[str]:
        """The names of what is installed."""
        return {line.partition("==")[0] for line in uv("pip", "freeze", "--python", self.python).split()}

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run its `marvin`."""
        path = f"{self.folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", **variables}
        marvin = self.folder / "venv" / "bin" / "marvin"
        return subprocess.run(
            [marvin, *words], cwd=self.home, env=environment, capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
