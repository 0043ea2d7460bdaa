"""Patches in the formats of other tools, read far enough to show the calls that do the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from marvin_core import Record

_CALLS_SHOWN = 3
_CALL_CHARACTERS = 2_000
_CODEX_FILE = re.compile(r"\*\*\* (Update|Add|Delete) File: (.+)")
_UNIFIED_FILE = re.compile(r"(?:---|\+\+\+) (?:[ab]/)?([^\t]+)")
_SEARCH = re.compile(r"<{5,9} *SEARCH")
_MIDDLE = re.compile(r"={5,9}$")
_REPLACE = re.compile(r">{5,9} *REPLACE")


class Change(Record):
    """One change: `kind` is Update, Add or Delete; `old` becomes `new`."""

    kind: str
    path: str
    old: str
    new: str


class _Reader:
    """Reads a patch line by line. `side` is what the lines belong to: "", hunk, search or replace."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.kind, self.path, self.side = "Update", "", ""
        self.old: list[str] = []
        self.new: list[str] = []
        self.last_text = ""

    def flush(self, side: str = "") -> None:
        if self.old or self.new or self.kind == "Delete":
            old, new = "\n".join(self.old), "\n".join(self.new)
            self.changes.append(Change(kind=self.kind, path=self.path, old=old, new=new))
            self.kind = "Update" if self.kind == "Delete" else self.kind
        self.old, self.new, self.side = [], [], side

    def read(self, line: str) -> None:
        codex = _CODEX_FILE.match(line)
        if codex:
            self.flush()
            self.kind, self.path = codex[1], codex[2].strip()
            self.side = "hunk"
        elif line.startswith("*** "):
            return
        elif _SEARCH.match(line):
            self.flush("search")
            self.path = self.last_text or self.path
        elif self.side in ("search", "replace"):
            self._read_block(line)
        elif line.startswith(("--- ", "+++ ")):
            self._read_unified_file(line)
        elif line.startswith("@@"):
            self.flush("hunk")
        elif self.side == "hunk":
            self._read_hunk(line)
        elif line.strip() and not line.startswith("```"):
            self.last_text = line.strip().strip("`*#:").strip()

    def _read_block(self, line: str) -> None:
        if _REPLACE.match(line):
            self.flush()
        elif self.side == "search" and _MIDDLE.match(line):
            self.side = "replace"
        else:
            (self.old if self.side == "search" else self.new).append(line)

    def _read_unified_file(self, line: str) -> None:
        self.flush()
        found = _UNIFIED_FILE.match(line)
        name = found[1].strip() if found else ""
        is_old = line.startswith("---")
        if is_old:
            self.kind = "Update"
        if name == "/dev/null":
            self.kind = "Add" if is_old else "Delete"
        else:
            self.path = name

    def _read_hunk(self, line: str) -> None:
        if line.startswith("\\"):
            return
        if line[:1] in ("-", " ", ""):
            self.old.append(line[1:])
        if line[:1] in ("+", " ", ""):
            self.new.append(line[1:])


def format_name(patch: str) -> str:
    """What a patch is written in, with its article."""
    if "*** Begin Patch" in patch or _CODEX_FILE.search(patch):
        return "a Codex patch (*** Begin Patch)"
    if _SEARCH.search(patch):
        return "a patch of SEARCH/REPLACE blocks"
    if re.search(r"^(@@ |diff --git |--- )", patch, re.MULTILINE):
        return "a unified diff"
    return "a text in no known patch format"


def changes_in(patch: str) -> list[Change]:
    """The changes of a patch, as far as they can be told."""
    reader = _Reader()
    for line in patch.rstrip("\n").split("\n"):
        reader.read(line.rstrip("\r"))
    reader.flush()
    return reader.changes


def explain_refusal(patch: str, path: str | None) -> str:
    """What was received, that nothing was changed, and the calls that do the same.

    Args:
        path: the file named beside the patch, for changes that name none.
    """
    changes = [change if change.path else change.replace(path=path or "") for change in changes_in(patch)]
    files = ", ".join(dict.fromkeys(change.path for change in changes if change.path))
    received = f"patch holds {format_name(patch)}" + (f" for {files}" if files else "")
    text = (
        f"{received}; nothing was changed. This version of apply_patch replaces one exact, unique match a call, "
        "given as path, old_str and new_str."
    )
    calls = [_call(change) for change in changes]
    if not calls:
        return f'{text} Call: apply_patch({{"path": "FILE", "old_str": "EXACT TEXT", "new_str": "NEW TEXT"}})'
    shown = "\n".join(call[:_CALL_CHARACTERS] for call in calls[:_CALLS_SHOWN])
    rest = f"\nand {len(calls) - _CALLS_SHOWN} more in the same way." if len(calls) > _CALLS_SHOWN else ""
    return f"{text} Instead of this patch call:\n{shown}{rest}"


def _call(change: Change) -> str:
    arguments: Mapping[str, str]
    if change.kind == "Delete":
        return f"(deleting {change.path}: with run_command)"
    if change.kind == "Add" or not change.old:
        name, arguments = "create_file", {"path": change.path, "content": f"{change.new}\n"}
    else:
        name = "apply_patch"
        arguments = {"path": change.path, "old_str": change.old, "new_str": change.new}
    return f"{name}({json.dumps(arguments, ensure_ascii=False)})"
