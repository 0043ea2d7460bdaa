"""Shows due jobs: on the desktop, by a sound, and on the phone. Runs without Marvin."""

from __future__ import annotations

import html
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import wave
from array import array
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from .job import Job

if TYPE_CHECKING:
    from marvin_core import NtfyServer, Push

_DESKTOP_SECONDS = 15
_SOUND_SECONDS = 15
_PUSH_SECONDS = 30
_LATE = 120
"""Seconds after which a notice says when it was due."""
_RATE = 22_050
_PLAYERS = (("pw-play",), ("paplay",), ("aplay", "-q"), ("afplay",))
_NO_PLAYER = "no sound player is installed (pw-play, paplay, aplay, afplay)"
_NO_NOTICES = "notify-send is not installed (install the package libnotify-bin)"
_SCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


def shown(job: Job, environment: Mapping[str, str], push: Sequence[str]) -> dict[str, str]:
    """Show a job in every way; returns the ways that failed, with the reason.

    Args:
        environment: of the scheduler.
        push: the command that publishes the notice, if it has a topic.
    """
    environment = _environment(job.environment or {}, environment)
    with ThreadPoolExecutor() as pool:  # in parallel: a network that does not answer must not delay a notice
        ways = {
            "desktop": pool.submit(_on_desktop, job.title, _text(job), environment),
            "sound": pool.submit(_played, environment),
        }
        if job.push is not None:
            ways["push"] = pool.submit(_tried, push, environment, _PUSH_SECONDS)
        return {way: why for way, asked in ways.items() if (why := asked.result())}


def missing_ways(kept: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Which of `desktop` and `sound` cannot work on this machine, with the reason."""
    environment = _environment(kept, now)
    missing = {"desktop": _why_no_desktop(environment), "sound": "" if _player(environment) else _NO_PLAYER}
    return {way: why for way, why in missing.items() if why}


def _why_no_desktop(environment: Mapping[str, str]) -> str:
    if sys.platform == "darwin":
        return ""
    if _found("notify-send", environment) is None:
        return _NO_NOTICES
    has_display = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    return "" if has_display and environment.get("DBUS_SESSION_BUS_ADDRESS") else "there is no display"


def _text(job: Job) -> str:
    if time.time() - job.due <= _LATE:
        return job.text
    return f"{job.text}\n(It was due at {time.strftime('%Y-%m-%d %H:%M', time.localtime(job.due))}.)"


def _on_desktop(title: str, text: str, environment: Mapping[str, str]) -> str:
    """Show a desktop notice; returns why that failed, or nothing."""
    if sys.platform == "darwin":
        words = [word for line in _SCRIPT for word in ("-e", line)]
        return _tried(["osascript", *words, "--", title, text], environment, _DESKTOP_SECONDS)
    if _found("notify-send", environment) is None:
        return _NO_NOTICES
    # Servers render some HTML in the text, but none in the title.
    body = html.escape(text, quote=False)
    argv = ["notify-send", "-a", "Marvin", "-u", "critical", "-i", "alarm-clock", "--", title, body]
    return _tried(argv, environment, _DESKTOP_SECONDS)


def _environment(kept: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """The environment of programs: the current one, completed from when the job was made."""
    environment = {**kept, **now}
    for name in ("PATH", "HOME"):
        if kept.get(name):  # schedulers set a shorter one
            environment[name] = kept[name]
    runtime = Path(environment.setdefault("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}"))
    address = environment.get("DBUS_SESSION_BUS_ADDRESS", "")
    socket = address.removeprefix("unix:path=").partition(",")[0]
    is_gone = address.startswith("unix:path=") and not Path(socket).exists()
    # The bus of an earlier session is gone; systemd's is always at the same address.
    if (not address or is_gone) and (runtime / "bus").exists():
        environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={runtime / 'bus'}"
    return environment


def pushed(job: Job) -> str:
    """Publish the notice of a job; returns why that failed, or nothing."""
    import asyncio

    import httpx

    from marvin_core import MarvinError, publish

    notice, server = notice_of(job)

    async def send() -> None:
        async with httpx.AsyncClient(timeout=_PUSH_SECONDS) as http:
            await publish(http, notice, server)

    try:
        asyncio.run(send())
    except (MarvinError, OSError, ValueError) as error:
        return str(error)
    return ""


def notice_of(job: Job) -> tuple[Push, NtfyServer]:
    """The notice of a job, and where it is published. Raises `ValueError` if it has no topic."""
    from marvin_core import NtfyServer, Push

    if job.push is None:
        raise ValueError("the job has no topic")
    server = NtfyServer(address=job.push.server, token=job.push.token)
    notice = Push(topic=job.push.topic, text=_text(job), title=job.title, priority="high", tags=("alarm_clock",))
    return notice, server


def _played(environment: Mapping[str, str]) -> str:
    player = _player(environment)
    if player is None:
        return _NO_PLAYER
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "alarm.wav"
        _write_tones(path)
        return _tried([*player, str(path)], environment, _SOUND_SECONDS)


def _player(environment: Mapping[str, str]) -> Sequence[str] | None:
    return next((one for one in _PLAYERS if _found(one[0], environment)), None)


def _write_tones(path: Path) -> None:
    """Three short tones of 880 Hz."""
    samples = array("h")
    for _ in range(3):
        samples.extend(
            round(12_000 * math.sin(2 * math.pi * 880 * number / _RATE) * min(1, (6_000 - number) / 500))
            for number in range(6_000)
        )
        samples.extend([0] * 4_000)
    if sys.byteorder == "big":
        samples.byteswap()
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(_RATE)
        sound.writeframes(samples.tobytes())


def _found(program: str, environment: Mapping[str, str]) -> str | None:
    return shutil.which(program, path=environment.get("PATH"))


def _tried(argv: Sequence[str], environment: Mapping[str, str], seconds: float) -> str:
    """Run a program; returns why it failed, or nothing."""
    try:
        told = subprocess.run(
            argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{argv[0]} did not end in time"
    except OSError as error:
        return f"{argv[0]}: {error.strerror or error}"
    if told.returncode == 0:
        return ""
    said = (told.stderr or told.stdout).decode("utf-8", "replace").strip()
    return f"{argv[0]}: {said[-200:] or f'exit code {told.returncode}'}"
