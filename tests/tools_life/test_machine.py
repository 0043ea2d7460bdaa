"""What system_info tells is what the system says."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from marvin_core.testing import ToolRunner
from marvin_tools_life.machine import battery_text


def test_everything_that_was_asked_for_is_there(marvin_tools: ToolRunner) -> None:
    text = marvin_tools.call("system_info").text
    lines = dict(line.split(": ", 1) for line in text.splitlines())
    assert platform.machine() in lines["System"]
    assert f"{os.cpu_count()} threads" in lines["Processor"]
    assert "available" in lines["Memory"]
    assert any(name.startswith("Disk at ") for name in lines)
    assert {"Up for", "Battery"} <= lines.keys()


def test_disks_are_told_once_each(marvin_tools: ToolRunner) -> None:
    outcome = marvin_tools.call("system_info")
    assert outcome.details is not None
    disks = [value for name, value in outcome.details["table"].items() if name.startswith("Disk")]
    assert len(disks) == 1, "home and working directory are on one disk here"
    total = shutil.disk_usage(marvin_tools.working_dir).total
    assert f"of {total / 1024**3:.1f} GiB" in disks[0] or "TiB" in disks[0]


WITHOUT = """
import sys
from pathlib import Path

import psutil

psutil.PROCFS_PATH = sys.argv[3]
from marvin_core.testing import ToolRunner

with ToolRunner(Path(sys.argv[1]), Path(sys.argv[2])) as tools:
    outcome = tools.call("system_info")
    assert not outcome.is_error, outcome.text
    print(outcome.text)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a machine by files")
def test_what_a_machine_hides_is_unknown_and_the_rest_is_told(marvin_tools: ToolRunner, tmp_path: Path) -> None:
    """As in a container: psutil is pointed to a folder without the files of the kernel."""
    (tmp_path / "proc").mkdir()
    argv = [sys.executable, "-P", "-W", "ignore", "-c", WITHOUT]
    places = [str(marvin_tools.home), str(marvin_tools.working_dir), str(tmp_path / "proc")]
    told = subprocess.run([*argv, *places], capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    lines = dict(line.split(": ", 1) for line in told.stdout.splitlines())
    assert (lines["Memory"], lines["Up for"]) == ("unknown", "unknown")
    assert platform.machine() in lines["System"]
    assert any(value.endswith("% used)") for name, value in lines.items() if name.startswith("Disk"))


def test_a_folder_that_is_gone_hides_only_its_disk(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("system_info")
    marvin_tools.working_dir.rmdir()
    text = marvin_tools.call("system_info").text
    assert f"Disk at {marvin_tools.working_dir}: unknown" in text
    assert f"Disk at {marvin_tools.home}: " in text


@pytest.mark.parametrize(
    ("percent", "left", "plugged", "told"),
    [
        (79.6, 3_700, False, "80 %, discharging, 1 hour and 2 minutes left"),
        (80, -1, False, "80 %, discharging"),
        (80, None, None, "80 %"),
        (100, -2, True, "100 %, plugged in"),
    ],
)
def test_a_battery_is_told_as_far_as_it_is_known(
    percent: float, left: float | None, plugged: bool | None, told: str
) -> None:
    assert battery_text(percent, left, plugged=plugged) == told
