"""Fresh environments with Marvin installed from wheels, as a user gets it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).with_name("uv")


def uv_environment() -> dict[str, str]:
    """The caller's environment, since it says where packages come from, without what names an environment."""
    # The last would have each of pip's many processes compile pip.
    left_out = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT", "PYTHONDONTWRITEBYTECODE")
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


def collect_wheels(folder: Path, wheels: Path, *requirements: str) -> None:
    """Fill a folder with wheels of these requirements and of all that they need, so that pip can do without an index.

    uv reads the index many times faster than pip, and keeps what it fetched. It keeps that unpacked: a
    wheel is made again of the files that it installs.
    """
    with TemporaryDirectory() as unpacked:
        uv("pip", "install", "--quiet", "--python", sys.executable, "--target", unpacked, "--find-links", wheels,
           "--constraint", constraints(folder), *requirements)  # fmt: skip
        for distribution in distributions(path=[unpacked]):
            _pack(distribution, folder)


def _pack(distribution: Distribution, folder: Path) -> None:
    of_installation = {"INSTALLER", "REQUESTED", "RECORD", "direct_url.json"}
    kept = [file for file in distribution.files or () if file.name not in of_installation]
    files = [file for file in kept if file.parts[0] not in ("..", "bin")]  # an installer makes the programs
    (info,) = {file.parts[0] for file in files if file.parts[0].endswith(".dist-info")}
    tags = re.findall(r"^Tag: (.+?)-(.+?)-(.+)$", distribution.read_text("WHEEL") or "", re.M)
    tag = "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))
    with zipfile.ZipFile(folder / f"{info.removesuffix('.dist-info')}-{tag}.whl", "w") as wheel:
        for file in files:
            wheel.write(file.locate(), str(file))
        wheel.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"]))


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
            [marvin, *words], cwd=self.home, env=environment, capture_output=True, text=True, timeout=150,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
