"""How often the models of a profile called each tool: frequently called ones are offered at once."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from stat import S_ISREG

from ..api.errors import MarvinError
from ..api.events import ToolExecutionEnd
from ..api.timeouts import Timeouts
from ..api.tools import is_tool_name
from ..util.state_files import update_file
from ..util.threads import in_thread
from ..util.untrusted_json import parse_json

_FILE = "tool_calls.json"
_LARGEST = 200_000
"""Bytes of the file; a larger one was not written by Marvin."""
_MOST = 2_000
"""The number of counted calls; beyond it, older calls count half, so that recent use outweighs that of last year."""
_TOOLS = 200
"""The number of counted tools."""


class CalledTools:
    """The counts of the active profile. `folder` gives its folder."""

    def __init__(self, folder: Callable[[], Path], timeouts: Timeouts) -> None:
        self._folder = folder
        self._timeouts = timeouts
        self._fresh: defaultdict[Path, Counter[str]] = defaultdict(Counter)
        """Counts by the folder of the profile that was active at the call."""

    def listen(self, event: ToolExecutionEnd) -> None:
        """Count a successful call of a model."""
        if event.origin == "model" and not event.is_error:
            self._fresh[self._folder()][event.name] += 1

    def counts(self) -> Mapping[str, int]:
        """How often each tool was called; empty if unknown."""
        with suppress(OSError):
            path = self._folder() / _FILE
            status = path.stat()
            if S_ISREG(status.st_mode) and status.st_size <= _LARGEST:  # nobody waits for what writes into a pipe
                return _counts(path.read_bytes())
        return {}

    async def flush(self) -> None:
        """Save the counts. If that is not possible now, it is tried again next time."""
        waiting, self._fresh = self._fresh, defaultdict(Counter)
        for folder, counts in waiting.items():
            try:
                await in_thread(partial(_keep, folder / _FILE, counts, self._timeouts))
            except (OSError, MarvinError):
                self._fresh[folder] += counts


def _keep(path: Path, fresh: Counter[str], timeouts: Timeouts) -> None:
    """Add to the counts of a file. Raises as `update_file`."""
    if not path.exists() or S_ISREG(path.stat().st_mode):
        update_file(path, lambda data: _added(data, fresh), timeouts)


def _counts(data: bytes | None) -> Counter[str]:
    try:
        kept = parse_json(data or b"{}", _LARGEST)
    except ValueError:
        return Counter()
    pairs = kept.items() if isinstance(kept, dict) else ()
    return Counter({name: count for name, count in pairs if is_tool_name(name) and type(count) is int and count > 0})


def _added(data: bytes | None, fresh: Counter[str]) -> bytes:
    older = _counts(data)
    while older and older.total() + fresh.total() > _MOST:
        older = +Counter({name: count // 2 for name, count in older.items()})
    return json.dumps(dict((older + fresh).most_common(_TOOLS)), indent=1).encode()
