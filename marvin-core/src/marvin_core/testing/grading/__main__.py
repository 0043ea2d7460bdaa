"""The child process of `marvin packs check`: it makes one kind of measurements of one pack, and writes the findings.

Its only argument is JSON: `part` is "registration" or "calls", `pack` and `distribution` name the pack, `problems` are
its known problems, `place` is a temporary folder, and `out` is the file for the findings. All printed output is of the
pack.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from ...api.errors import PluginError
from ...config.load import load
from ...plugins.model import Pack
from ..tool_runner import installed_tools
from .calls import Trial
from .findings import found
from .place import place_of
from .registration import registration_findings
from .watch import Watch


def main(order: dict[str, Any]) -> None:
    """Make the requested measurements."""
    _limit(order["memory"], order["file"])
    place, out = Path(order["place"]), Path(order["out"])
    pack = _pack(order["pack"], order["distribution"], order["problems"])
    try:
        where = place_of(pack)
    except PluginError as error:
        _write(out, {"findings": [found("loads", [str(error)]).as_json()]})
        return
    # Marvin's own files for the calls are written there, too.
    watch = Watch([place], where.code, Path(gettempdir()), order["programs"])
    if order["part"] == "registration":
        config, _ = load((), {"HOME": str(place)}, cwd=place)
        findings = registration_findings(pack, where, watch, config)
    else:
        tools = [spec for spec in installed_tools() if spec.source == pack.distribution]
        trial = Trial(
            place,
            watch,
            seconds=order["seconds"],
            beat=order["beat"],
            told=lambda name: _write(out, {"at": name}),
        )
        findings = trial.run(tools)
    _write(out, {"findings": [finding.as_json() for finding in findings]})


def _pack(name: str, distribution: str, problems: Sequence[str]) -> Pack:
    for entry in entry_points(group="marvin", name=name):
        if entry.dist is not None and entry.dist.name == distribution:
            version, module = entry.dist.version, entry.module
            return Pack(name=name, distribution=distribution, version=version, module=module, problems=tuple(problems))
    raise LookupError(f"{distribution} has no entry point {name}")


def _limit(memory: int, file: int) -> None:
    """Limit the memory and the file sizes of this process, as far as the system supports it. Both are in bytes."""
    for kind, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_FSIZE, file), (resource.RLIMIT_CORE, 0)):
        try:
            _, hard = resource.getrlimit(kind)
            resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        except (OSError, ValueError):
            continue


def _write(out: Path, record: dict[str, Any]) -> None:
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
    os._exit(0)  # does not wait for threads and calls of the pack that do not end
