"""The calendar of a profile: a file that is read and changed as a whole, locked against other Marvins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from marvin_core import MarvinError, ToolContext, ToolError, in_thread, update_file

from .text import CalendarError, CalendarText

T = TypeVar("T")

_LARGEST = 50_000_000
"""Bytes of a calendar at most."""


class CalendarFile:
    """calendar.ics of the active profile, or the file of another program that it links to."""

    def __init__(self, context: ToolContext) -> None:
        self.path: Path = context.profile_folder / "calendar.ics"
        self._timeouts = context.timeouts

    async def read(self) -> CalendarText:
        """The calendar; an empty one if there is no file.

        Raises:
            ToolError: it cannot be read, or is not a calendar. The file stays unchanged.
        """

        def read() -> CalendarText:
            with self._explained():
                self._check_size()
                return CalendarText(self.path.read_bytes() if self.path.exists() else b"")

        return await in_thread(read)

    async def change(self, work: Callable[[CalendarText], tuple[bytes, T]]) -> T:
        """Replace the calendar with the first result of `work`; returns the second. `work` runs in a thread.

        Raises:
            ToolError: as `read`, or the file cannot be written, or another process holds the lock for too long. The
                file stays unchanged.
        """
        return await in_thread(lambda: self._change(work), to_the_end=True)

    def _change(self, work: Callable[[CalendarText], tuple[bytes, T]]) -> T:
        results: list[T] = []

        def change(content: bytes | None) -> bytes | None:
            after, result = work(CalendarText(content or b""))
            if len(after) > _LARGEST:
                raise CalendarError(f"it would be larger than {_LARGEST:,} bytes")
            CalendarText(after)  # an unreadable result is not written
            results.append(result)
            return None if after == content else after

        with self._explained():
            self._check_size()
            update_file(self.path, change, self._timeouts)
        return results[0]

    def _check_size(self) -> None:
        if self.path.exists() and not self.path.is_file():
            raise CalendarError("it is not a file")
        if self.path.exists() and self.path.stat().st_size > _LARGEST:
            raise CalendarError(f"it is larger than {_LARGEST:,} bytes")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except CalendarError as error:
            raise ToolError(
                f"{self.path} is not a usable calendar: {error}. It was left unchanged. Ask the user to repair it."
            ) from error
        except OSError as error:
            raise ToolError(
                f"{self.path} cannot be read or written: {error.strerror or error}. Tell the user."
            ) from error
        except ToolError:
            raise
        except MarvinError as error:
            raise ToolError(str(error)) from error
