"""The system's schedulers, which start a program at a time, whether Marvin runs or not.

Source: crontab(5), at(1), systemd.timer(5), systemd.syntax(7), launchd.plist(5).
"""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

_SECONDS = 20
"""Seconds for one call of a scheduler's program."""
_MINUTE = 60
_AHEAD = 5
"""Seconds. A job that is due sooner may be due before a scheduler has read the new entry."""
_ENDED = ("Z", "X")
"""States of processes that have exited but were not reaped: in containers they stay."""
_FIXED_PLACES = ("/run/crond.pid", "/var/run/crond.pid")


_NONE_YET = (b"no crontab for", b"No such file or directory")
"""What `crontab -l` says where the user has no crontab: Debian and Fedora, and busybox."""


class SchedulerError(Exception):
    """A scheduler failed; the text says why and what to do."""


class Scheduler(ABC):
    """A way to start a command once, at a time."""

    name: str

    @abstractmethod
    def why_not(self) -> str:
        """Why it cannot be used here, and what would help; empty if it can."""

    @abstractmethod
    def add(self, job: str, due: float, command: Sequence[str]) -> str:
        """Schedule a command, to start at most a minute late; returns a handle.

        Raises:
            SchedulerError: the system refuses.
        """

    @abstractmethod
    def remove(self, job: str, handle: str) -> None:
        """Remove a job; nothing happens if it is already gone."""

    @abstractmethod
    def known(self, jobs: Mapping[str, str]) -> set[str]:
        """Which of these jobs, given with their handles, are scheduled."""


class Cron(Scheduler):
    """The user's crontab. Entries have no year, so the program checks the date itself."""

    name = "cron"

    def why_not(self) -> str:
        """Without a running cron, nobody would read the crontab."""
        if shutil.which("crontab") is None:
            return "cron is not installed (install the package cron)"
        if not daemon_runs("cron", "crond", "busybox-crond", places=_FIXED_PLACES):
            return "cron is installed but not running (start it: sudo service cron start)"
        try:
            self._read()
        except SchedulerError as error:  # an administrator may forbid it to users
            return f"cron cannot be used ({error})"
        return ""

    def add(self, job: str, due: float, command: Sequence[str]) -> str:
        """Add a line at the top, where no variable in the user's lines affects it."""
        at = datetime.fromtimestamp(_minute(due), _system_zone())
        line = " ".join(shlex.quote(word) for word in command).replace("%", r"\%")
        entry = f"{at.minute} {at.hour} {at.day} {at.month} * {line} >/dev/null 2>&1 {_mark(job)}\n".encode()
        if b"\n" in entry[:-1]:
            raise SchedulerError("a crontab cannot contain a path with a line break")
        self._write(entry + self._read())
        if job not in self.known({job: ""}):  # somebody else wrote it at the same moment
            raise SchedulerError("the crontab was changed by another program at the same time; try again")
        return "crontab"

    def remove(self, job: str, handle: str) -> None:
        """Remove the marked line; all others stay unchanged, byte for byte."""
        before = self._read()
        # Split at line feeds only: other separators are parts of lines here.
        after = b"".join(line for line in re.findall(rb"[^\n]*\n|[^\n]+", before) if _marked(line) != job)
        if after != before:
            self._write(after)

    def known(self, jobs: Mapping[str, str]) -> set[str]:
        """The jobs with a line."""
        return {_marked(line) for line in self._read().split(b"\n")} & set(jobs)

    def _read(self) -> bytes:
        told = _run(["crontab", "-l"])
        if told.returncode == 0:
            return told.stdout
        if any(words in told.stderr for words in _NONE_YET):
            return b""
        raise SchedulerError(f"crontab -l: {_said(told)}")

    def _write(self, content: bytes) -> None:
        if content and not content.endswith(b"\n"):
            content += b"\n"
        told = _run(["crontab", "-"], content) if content else _run(["crontab", "-r"])
        if told.returncode != 0:
            raise SchedulerError(f"crontab: {_said(told)}")


class At(Scheduler):
    """The queue of at, which also starts jobs that were missed while the machine was off."""

    name = "at"

    def why_not(self) -> str:
        """Without its daemon no job starts."""
        if shutil.which("at") is None:
            return "at is not installed (install the package at)"
        if not daemon_runs("atd", places=("/run/atd.pid", "/var/run/atd.pid")):
            return "at is installed but atd is not running (start it: sudo service atd start)"
        return ""

    def add(self, job: str, due: float, command: Sequence[str]) -> str:
        """Schedule a job; returns the number that at prints."""
        minute = max(-(-due // _MINUTE), time.time() // _MINUTE + 1) * _MINUTE
        line = " ".join(shlex.quote(word) for word in command)
        told = _run(
            ["at", "-M", "-t", time.strftime("%Y%m%d%H%M", time.localtime(minute))],
            f"{line} >/dev/null 2>&1 {_mark(job)}\n".encode(),
        )
        number = re.search(rb"\bjob (\d+) at\b", told.stderr + told.stdout)
        if told.returncode != 0 or number is None:
            raise SchedulerError(f"at: {_said(told)}")
        return number[1].decode()

    def remove(self, job: str, handle: str) -> None:
        """Remove a job by its number, if that is still its own: at reuses numbers."""
        if handle.isdigit() and self._is_own(job, handle):
            _run(["atrm", handle])

    def known(self, jobs: Mapping[str, str]) -> set[str]:
        """The jobs in the queue."""
        queued = {
            line.split()[0] for line in _run(["atq"]).stdout.decode("utf-8", "replace").splitlines() if line.split()
        }
        return {job for job, number in jobs.items() if number in queued and self._is_own(job, number)}

    def _is_own(self, job: str, number: str) -> bool:
        return _mark(job).encode() in _run(["at", "-c", number]).stdout


class Systemd(Scheduler):
    """Timers of the user's systemd, as files, which survive a restart of the machine."""

    name = "systemd"

    def __init__(self, config_home: Path) -> None:
        self._folder = config_home / "systemd" / "user"

    def why_not(self) -> str:
        """It needs a running systemd of the user."""
        if shutil.which("systemctl") is None:
            return "systemd is not installed"
        told = _run(["systemctl", "--user", "show-environment"])
        return "" if told.returncode == 0 else f"the user's systemd does not answer ({_said(told)})"

    def add(self, job: str, due: float, command: Sequence[str]) -> str:
        """Write a timer and a service, and start the timer."""
        unit = _unit(job)
        self._folder.mkdir(parents=True, exist_ok=True)
        at = max(due, time.time() + _AHEAD)
        for kind, text in units(at, command).items():
            (self._folder / f"{unit}.{kind}").write_text(text, encoding="utf-8")
        told = _run(["systemctl", "--user", "daemon-reload"])
        if told.returncode == 0:
            told = _run(["systemctl", "--user", "enable", "--now", f"{unit}.timer"])
        if told.returncode != 0:
            self.remove(job, unit)
            raise SchedulerError(f"systemctl: {_said(told)}")
        if time.time() >= at:  # a timer that is loaded after its time never elapses
            _run(["systemctl", "--user", "start", "--no-block", f"{unit}.service"])
        return unit

    def remove(self, job: str, handle: str) -> None:
        """Stop the timer and remove both files."""
        unit = _unit(job)
        if (self._folder / f"{unit}.timer").exists():
            _run(["systemctl", "--user", "disable", "--now", f"{unit}.timer"])
        for kind in ("timer", "service"):
            (self._folder / f"{unit}.{kind}").unlink(missing_ok=True)
        _run(["systemctl", "--user", "daemon-reload"])

    def known(self, jobs: Mapping[str, str]) -> set[str]:
        """The jobs whose timer is active."""
        return {
            job
            for job in jobs
            if _run(["systemctl", "--user", "is-active", "--quiet", f"{_unit(job)}.timer"]).returncode == 0
        }


class Launchd(Scheduler):
    """The user's launchd agents. Entries have no year, so the program checks the date itself."""

    name = "launchd"

    def __init__(self, home: Path) -> None:
        self._folder = home / "Library" / "LaunchAgents"
        self._domain = f"gui/{os.getuid()}"

    def why_not(self) -> str:
        """It exists on macOS only."""
        return "" if shutil.which("launchctl") else "launchd is not available"

    def add(self, job: str, due: float, command: Sequence[str]) -> str:
        """Write a file that launchd reads at each login, and load it."""
        label = _unit(job)
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{label}.plist"
        path.write_bytes(agent(label, due, command, _system_zone()))
        told = _run(["launchctl", "bootstrap", self._domain, str(path)])
        if told.returncode != 0:
            path.unlink(missing_ok=True)
            raise SchedulerError(f"launchctl: {_said(told)}")
        return label

    def remove(self, job: str, handle: str) -> None:
        """Remove the file first: unloading kills the process that the entry started."""
        (self._folder / f"{_unit(job)}.plist").unlink(missing_ok=True)
        _run(["launchctl", "bootout", f"{self._domain}/{_unit(job)}"])

    def known(self, jobs: Mapping[str, str]) -> set[str]:
        """The jobs that launchd has loaded."""
        return {job for job in jobs if _run(["launchctl", "print", f"{self._domain}/{_unit(job)}"]).returncode == 0}


def schedulers(home: Path, config_home: Path) -> tuple[Scheduler, ...]:
    """All schedulers, the best one first."""
    return (Systemd(config_home), Launchd(home), Cron(), At())


def _run(argv: Sequence[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(argv, input=stdin, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 1, b"", b"it did not end in time")
    except OSError as error:
        return subprocess.CompletedProcess(argv, 1, b"", (error.strerror or str(error)).encode())


def _said(told: subprocess.CompletedProcess[bytes]) -> str:
    text = (told.stderr or told.stdout).decode("utf-8", "replace").strip()
    return text.splitlines()[-1][:200] if text else f"exit code {told.returncode}"


def daemon_runs(*names: str, places: Sequence[str]) -> bool:
    """Whether a daemon runs: by its process, or by its pid file where processes of other users are hidden."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, state = _process((folder / "stat").read_text(errors="replace"))
        except (OSError, ValueError):
            continue
        if name in names and state not in _ENDED:
            return True
    return not Path("/proc").exists() or (_is_hidden() and any(Path(place).exists() for place in places))


def _process(stat: str) -> tuple[str, str]:
    """The name and the state of a process, proc_pid_stat(5)."""
    end = stat.rindex(")")
    return stat[stat.index("(") + 1 : end], stat[end + 2 : end + 3]


def _is_hidden() -> bool:
    """Whether processes of other users are hidden (option hidepid of /proc)."""
    return not Path("/proc/1/comm").exists()


def _minute(due: float) -> float:
    """The start of the minute in which a job is started, in seconds since the epoch."""
    return max(-(-due // _MINUTE), (time.time() + _AHEAD) // _MINUTE + 1) * _MINUTE


def _mark(job: str) -> str:
    return f"# marvin job {job}"


def _marked(line: bytes) -> str:
    """The job of a line; empty for a line of the user's own."""
    found = re.search(rb"# marvin job ([0-9a-f]{12})\s*$", line)
    return found[1].decode() if found else ""


def _unit(job: str) -> str:
    return f"marvin-job-{job}"


def units(due: float, command: Sequence[str]) -> dict[str, str]:
    """The two systemd files that start a command at a time, by suffix."""
    line = " ".join(_systemd_word(word) for word in command)
    at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(due))
    head = "[Unit]\nDescription=A reminder of Marvin\n\n"
    return {
        "service": f"{head}[Service]\nType=oneshot\nExecStart={line}\n",
        "timer": (
            f"{head}[Timer]\nOnCalendar={at}\nAccuracySec=1s\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
        ),
    }


def agent(label: str, due: float, command: Sequence[str], zone: tzinfo) -> bytes:
    """The launchd file that starts a command at a time, in the system's time zone."""
    at = datetime.fromtimestamp(_minute(due), zone)
    when = {"Month": at.month, "Day": at.day, "Hour": at.hour, "Minute": at.minute}
    return plistlib.dumps({"Label": label, "ProgramArguments": list(command), "StartCalendarInterval": when})


def _systemd_word(word: str) -> str:
    quoted = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + quoted.replace("%", "%%").replace("$", "$$") + '"'


def _system_zone() -> tzinfo:
    """The system's time zone, which cron uses whatever TZ says."""
    try:
        with open("/etc/localtime", "rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        return UTC
