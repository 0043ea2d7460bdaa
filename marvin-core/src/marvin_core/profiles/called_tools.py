"""How often the models of a profile called each tool: the tools of its work are offered at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from ..api.errors import MarvinError
from ..api.events import ToolExecutionEnd
from ..api.timeouts import Timeouts
from ..util.state_files import update_file
from ..util.threads import in_thread
from ..util.untrusted_json import parse_json

_FILE = "tool_calls.json"
_LARGEST = 200_000
"""Bytes of the file; a larger one is none of ours."""
_MOST = 2_000
"""Calls that are counted; beyond, older ones count half, so that what somebody does today outweighs last year."""
_TOOLS = 200
"""Tools that are counted."""


class CalledTools:
    """The counts of the active profile. `folder` gives its folder."""

    def __init__(self, folder: Callable[[], Path], timeouts: Timeouts) -> None:
        self._folder = folder
        self._timeouts = timeouts
        self._fresh: Counter[str] = Counter()

    def listen(self, event: ToolExecutionEnd) -> None:
        """Count a call of a model that did its work."""
        if event.origin == "model" and not event.is_error:
            self._fresh[event.name] += 1

    def counts(self) -> Mapping[str, int]:
        """How often each tool was called; none where that is not known."""
        with suppress(OSError):
            path = self._folder() / _FILE
            if path.stat().st_size <= _LARGEST:
                return _counts(path.read_bytes())
        return {}

    async def flush(self) -> None:
        """Keep what was counted. Where that is not possible now, it is tried again next time."""
        if not self._fresh:
            return
        fresh, self._fresh = self._fresh, Counter()
        path = self._folder() / _FILE
        try:
            await in_thread(lambda: update_file(path, lambda data: _added(data, fresh), self._timeouts))
        except (OSError, MarvinError):
            self._fresh += fresh


def _counts(data: bytes | None) -> Counter[str]:
    try:
        kept = parse_json(data or b"{}")
    except ValueError:
        return Counter()
    pairs = kept.items() if isinstance(kept, dict) else ()
    return Counter({name: count for name, count in pairs if type(count) is int and count > 0})


def _added(data: bytes | None, fresh: Counter[str]) -> bytes:
    counts = _counts(data) + fresh
    if counts.total() > _MOST:
        counts = Counter({name: count // 2 for name, count in counts.items()})
    return json.dumps(dict(counts.most_common(_TOOLS)), indent=1).encode()
