"""What system_info tells is what the system says."""

from __future__ import annotations

import os
import platform
import shutil

from marvin_core.testing import ToolRunner


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
