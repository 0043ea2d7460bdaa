"""One side of a comparison: a checkout, a lab of its own, and the data that its rows need."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks import packs
from benchmarks.lab import Lab

# Module names differ between commits: what imports them comes from the checkout's own files.
_SCRIPTS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from benchmarks import compaction, packs, sessions
print(json.dumps({"sessions": sessions._TIMED, "compaction": compaction._TIMED, "index": packs._LOAD}))
"""
_SESSION = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from benchmarks.sessions import _session
print(json.dumps(str(_session(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4])))))
"""


class Side:
    """The old or the new Marvin. Its data is built on first use."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._sessions: dict[str, Path] = {}

    @cached_property
    def scripts(self) -> dict[str, str]:
        """How this checkout's suite measures `sessions`, `compaction` and the `index` in a process of its own."""
        return dict(self._child(_SCRIPTS))

    def session(self, name: str) -> Path:
        """The file of a session of 10,000 messages, `compacted` or `whole`."""
        if name not in self._sessions:
            folder = str(self.lab.folder / "sessions")
            self._sessions[name] = Path(self._child(_SESSION, folder, name, str(self.lab.work)))
        return self._sessions[name]

    def packs(self, count: int, source: str) -> Path:
        """A folder with this many packs of this source."""
        folder = self.lab.folder / f"packs-{count}-{'hooks' if source == packs.HOOKS else 'tools'}"
        return folder if folder.exists() else packs.installed(folder, count, source)

    @cached_property
    def distributions(self) -> Path:
        """A folder with distributions that are no packs."""
        return packs.distributions(self.lab.folder / "distributions")

    def _child(self, script: str, *arguments: str) -> Any:
        program = self.lab.program
        return json.loads(
            self.lab.run([program.python, "-c", script, str(program.root), *arguments], piped=True).output
        )
