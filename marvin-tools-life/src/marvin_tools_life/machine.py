"""What kind of machine Marvin runs on, and how it is doing."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from marvin_core import ToolContext, ToolResult, in_thread, tool


@tool(access=["read"])
async def system_info(context: ToolContext) -> ToolResult:
    """Tell the operating system, processor, memory, disk, uptime and battery of this machine."""
    folders = [context.paths.root, context.home]
    now = context.clock.now()
    # In a thread: a file system that hangs must not hold up the rest.
    lines = await in_thread(lambda: _lines(folders, now))
    text = "\n".join(f"{name}: {value}" for name, value in lines.items())
    return ToolResult(content=text, details={"table": lines})


def _lines(folders: list[Path], now: float) -> dict[str, str]:
    import humanize  # both only where the tool is used
    import psutil

    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    lines = {
        "System": f"{_system_name()} ({platform.system()} {platform.release()}, {platform.machine()})",
        "Processor": _processor(psutil.cpu_count(logical=False), os.cpu_count()),
        "Memory": f"{_size(memory.available)} of {_size(memory.total)} available ({memory.percent:.0f} % used)",
    }
    if swap.total:
        lines["Swap"] = f"{_size(swap.free)} of {_size(swap.total)} free"
    devices: set[int] = set()
    for folder in folders:
        device = folder.stat().st_dev
        if device not in devices:
            devices.add(device)
            usage = psutil.disk_usage(str(folder))
            lines[f"Disk at {folder}"] = (
                f"{_size(usage.free)} of {_size(usage.total)} free ({usage.percent:.0f} % used)"
            )
    up = max(0, round(now - psutil.boot_time()))
    lines["Up for"] = humanize.precisedelta(up, minimum_unit="minutes", format="%0.0f")
    lines["Battery"] = _battery(psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None)
    return lines


def _system_name() -> str:
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0]}"
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _processor(cores: int | None, threads: int | None) -> str:
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    return f"{_processor_name()}, {cores or threads} cores, {threads} threads; load {load} (1, 5, 15 minutes)"


def _processor_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _battery(battery: Any) -> str:
    if battery is None:
        return "none"
    if battery.power_plugged:
        return f"{battery.percent:.0f} %, plugged in"
    import humanize

    # Negative numbers say that it is not known.
    left = humanize.precisedelta(battery.secsleft, minimum_unit="minutes", format="%0.0f")
    return f"{battery.percent:.0f} %, discharging" + (f", {left} left" if battery.secsleft > 0 else "")


def _size(number: float) -> str:
    import humanize

    return humanize.naturalsize(number, binary=True)
