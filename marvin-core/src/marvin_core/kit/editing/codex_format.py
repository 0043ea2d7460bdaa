"""Patches as Codex writes them: `*** Begin Patch`, sections of files, hunks below `@@`, `*** End Patch`.

https://github.com/openai/codex/blob/main/codex-rs/apply-patch/apply_patch_tool_instructions.md
"""

from __future__ import annotations

import re

from .block_format import has_blocks, read_blocks
from .patch import FilePatch, Hunk, PatchError
from .unified_format import RANGES

_SECTION = re.compile(r"\*\*\* (Update|Add|Delete) File:(.*)")
MARK = r"[ \t]*\*\*\* (?:Begin Patch[ \t\r]*$|(?:Update|Add|Delete) File:)"
"""The prefixes of marker lines of this format."""
_MOVE = "*** Move to:"
_BEGIN, _END, _END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_KNOWN = "*** Add File: PATH, *** Update File: PATH and *** Delete File: PATH"


def envelope(text: str) -> str:
    """The text between the first and the last line of a patch; all of it if it has neither.

    Raises:
        PatchError: the last line is missing, for instance because the patch was cut off.
    """
    lines = text.split("\n")
    begin = next((i for i, line in enumerate(lines) if line.strip() == _BEGIN), None)
    if begin is None:
        return text
    ends = [i for i, line in enumerate(lines) if i > begin and line.strip() == _END]
    if not ends:
        raise PatchError(f"The patch has no line {_END!r}, so it may be cut off. Send the whole patch again.")
    return "\n".join(lines[begin + 1 : ends[-1]])


def read_codex(text: str) -> list[FilePatch]:
    """The patches of all files, in order.

    Raises:
        PatchError: the text is not in this format; the message names the line.
    """
    patches: list[FilePatch] = []
    section: _Section | None = None
    for number, line in enumerate(envelope(text).split("\n"), 1):
        header = None if section is not None and section.holds(line) else _SECTION.match(line.strip())
        if header is not None:
            if section is not None:
                patches.append(section.patch())
            section = _Section(header[1], header[2].strip())
        elif section is not None:
            section.take(number, line)
        elif line.strip():
            raise PatchError(f"Line {number} of the patch, {line.strip()[:80]!r}, is not a section. Use {_KNOWN}.")
    if section is None:
        raise PatchError(f"The patch is empty. It needs sections: {_KNOWN}.")
    return [*patches, section.patch()]


class _Section:
    """The lines of one file."""

    def __init__(self, kind: str, path: str) -> None:
        if not path:
            raise PatchError(f"'*** {kind} File:' has no file. Write the path after the colon.")
        self.kind, self.path, self.move_to = kind, path, ""
        self.content: list[str] = []
        self.gaps = 0
        self.hunks: list[_HunkLines] = []
        self.blocks: list[str] = []

    def holds(self, line: str) -> bool:
        """Whether a line belongs to the section although it looks like the beginning of another one."""
        return bool(self.hunks) and line[:1] in (" ", "+", "-") and not line.startswith("  ")

    def take(self, number: int, line: str) -> None:
        """Read the next line."""
        if self.kind == "Add":
            self._take_content(number, line)
        elif self.kind == "Delete":
            if line.strip():
                raise PatchError(
                    f"Line {number} of the patch is below a Delete File section, which may not have lines."
                )
        else:
            self._take_change(number, line)

    def _take_content(self, number: int, line: str) -> None:
        if line.startswith("+"):
            self.content += [*[""] * self.gaps, line[1:]]
            self.gaps = 0
        elif not line.strip():
            self.gaps += 1
        elif line.strip() != _END_OF_FILE:
            raise PatchError(
                f"Line {number} of the patch, {line[:80]!r}, does not begin with '+', as each line of a new file must."
            )

    def _take_change(self, number: int, line: str) -> None:
        bare = line.strip()
        if self.blocks or has_blocks(line):
            self.blocks.append(line)
        elif bare.startswith(_MOVE) and not self.hunks:
            self.move_to = bare.removeprefix(_MOVE).strip()
        elif bare == _END_OF_FILE and not line.startswith((" *", "+", "-")):
            self._hunk().at_end = True
        elif line.startswith("@@"):
            self._open(line)
        elif line.startswith("***"):
            raise PatchError(f"Line {number} of the patch, {bare[:80]!r}, is not a section. Use {_KNOWN}.")
        else:
            self._hunk().take(line)

    def _open(self, line: str) -> None:
        if not self.hunks or self.hunks[-1].lines:
            self.hunks.append(_HunkLines())
        ranges = RANGES.match(line)
        if ranges:
            self.hunks[-1].line = int(ranges[1])
        heading = line.strip() if ranges is None else ""
        heading = heading.removeprefix("@@").removesuffix("@@").strip()
        if heading.strip(".… "):
            self.hunks[-1].headings.append(heading)

    def _hunk(self) -> _HunkLines:
        if not self.hunks:
            self.hunks.append(_HunkLines())
        return self.hunks[-1]

    def patch(self) -> FilePatch:
        """The parsed patch."""
        if self.kind == "Add":
            content = "".join(f"{line}\n" for line in self.content)
            return FilePatch(path=self.path, kind="add", content=content)
        if self.kind == "Delete":
            return FilePatch(path=self.path, kind="delete")
        hunks = [hunk.hunk() for hunk in self.hunks if any(line.strip() for line in hunk.lines)]
        if self.blocks:
            read = read_blocks("\n".join(self.blocks), self.path)
            hunks += [hunk for patch in read for hunk in patch.hunks]
        if not hunks and not self.move_to:
            raise PatchError(f"The section for {self.path!r} changes nothing. Give the lines below '@@', with - and +.")
        return FilePatch(path=self.path, hunks=tuple(hunks), move_to=self.move_to)


class _HunkLines:
    """The lines of a hunk as they are read."""

    def __init__(self) -> None:
        self.headings: list[str] = []
        self.lines: list[str] = []
        self.line = 0
        self.at_end = False

    def take(self, line: str) -> None:
        """Add a line. A line without a sign is taken as context, and must occur in the file."""
        self.lines.append(line if line[:1] in (" ", "+", "-") else f" {line}")

    def hunk(self) -> Hunk:
        """The change; an empty last line only separates it from the next one."""
        lines = list(self.lines)
        while lines and not lines[-1].strip():
            lines.pop()
        return Hunk(
            old="".join(f"{line[1:]}\n" for line in lines if line[0] != "+"),
            new="".join(f"{line[1:]}\n" for line in lines if line[0] != "-"),
            by_lines=True,
            headings=tuple(self.headings),
            line=self.line,
            at_end=self.at_end,
            in_order=True,
            closes_file=True,
        )
