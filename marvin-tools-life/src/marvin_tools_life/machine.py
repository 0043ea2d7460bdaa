"""The tool system_info: the machine, its load and its battery."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path

from marvin_core import ToolContext, ToolResult, in_thread, tool


@tool(access=["read"])
async def system_info(context: ToolContext) -> ToolResult:
    """Show the operating system, processor, memory, disk, uptime and battery of this machine."""
    folders = [context.paths.root, context.home]
    now = context.clock.now()
    # In a thread: a file system that hangs must not block Marvin.
    lines = await in_thread(lambda: _lines(folders, now))
    text = "\n".join(f"{name}: {value}" for name, value in lines.items())
    return ToolResult(content=text, details={"table": lines})


def _lines(folders: list[Path], now: float) -> dict[str, str]:
    """The facts by name. A machine, a container or a sandbox may hide any of them; the others are shown."""
    lines = {
        "System": _told(lambda: f"{_system_name()} ({platform.system()} {platform.release()}, {platform.machine()})"),
        "Processor": _told(_processor),
        "Memory": _told(_memory),
        "Swap": _told(_swap),
        **_disks(folders),
        "Up for": _told(lambda: _uptime(now)),
        "Battery": _told(_battery),
    }
    return {name: value for name, value in lines.items() if value}


def _system_name() -> str:
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0]}"
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _told(tell: Callable[[], str]) -> str:
    """A line; psutil raises many kinds of errors where a system hides a value."""
    try:
        return tell()
    except (OSError, RuntimeError, ArithmeticError, AttributeError, LookupError, ValueError):
        return "unknown"


def _memory() -> str:
    import psutil  # only where the tool is used

    memory = psutil.virtual_memory()
    return f"{_size(memory.available)} of {_size(memory.total)} available ({memory.percent:.0f} % used)"


def _swap() -> str:
    import psutil

    swap = psutil.swap_memory()
    return f"{_size(swap.free)} of {_size(swap.total)} free" if swap.total else ""


def _disks(folders: list[Path]) -> dict[str, str]:
    lines: dict[str, str] = {}
    devices: set[int] = set()
    for folder in folders:
        try:
            device = folder.stat().st_dev
        except OSError:  # it was removed, or is on a disconnected disk
            lines[f"Disk at {folder}"] = "unknown"
            continue
        if device not in devices:
            devices.add(device)
            lines[f"Disk at {folder}"] = _told(lambda folder=folder: _disk(folder))  # type: ignore[misc]
    return lines


def _disk(folder: Path) -> str:
    usage = shutil.disk_usage(folder)
    used = 100 * usage.used / ((usage.used + usage.free) or 1)
    return f"{_size(usage.free)} of {_size(usage.total)} free ({used:.0f} % used)"


def _uptime(now: float) -> str:
    import humanize
    import psutil

    up = max(0, round(now - psutil.boot_time()))
    return humanize.precisedelta(up, minimum_unit="minutes", format="%0.0f")


def _processor() -> str:
    import psutil

    threads = os.cpu_count()
    cores = psutil.cpu_count(logical=False) or threads
    load = _told(lambda: ", ".join(f"{value:.2f}" for value in os.getloadavg()))
    return f"{_processor_name()}, {cores} cores, {threads} threads; load {load} (1, 5, 15 minutes)"


def _processor_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _battery() -> str:
    import psutil

    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    return "none" if battery is None else battery_text(battery.percent, battery.secsleft, plugged=battery.power_plugged)


def battery_text(percent: float, seconds_left: float | None, *, plugged: bool | None) -> str:
    """The charge of a battery and its remaining time; `plugged` is None if unknown.

    Args:
        seconds_left: None or negative if unknown.
    """
    if plugged:
        return f"{percent:.0f} %, plugged in"
    import humanize

    known = max(seconds_left or 0, 0)
    left = humanize.precisedelta(known, minimum_unit="minutes", format="%0.0f") if known else ""
    state = ", discharging" if plugged is False else ""
    return f"{percent:.0f} %{state}" + (f", {left} left" if left else "")


def _size(number: float) -> str:
    import humanize

    return humanize.naturalsize(number, binary=True)
