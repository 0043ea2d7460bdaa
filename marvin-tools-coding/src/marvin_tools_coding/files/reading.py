"""What read_file shows of a text: its lines, how to read on, and the limits of all calls together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import BinaryIO, NamedTuple

from marvin_core import KnownFiles, Record, TextSection, TextSource, ToolContext, ToolError, counted

HEAD_LIMIT = 10_240
"""Bytes of a file that are shown without a range, and of a long line in one call."""

CALL_LIMIT = 51_200
CALL_LINES = 2_000
"""Bytes of UTF-8, line numbers included, and lines that one call shows."""

WARN_AT = 200_000
BLOCK_AT = 300_000
"""Characters of outputs of `READERS` in the live context from which on reads warn, and are refused."""
READERS = ("read_file", "github_read_file")

_EXAMPLE_LINES = 200


class Range(NamedTuple):
    """A requested range of lines, pages or cells, counted from 1. None means from the first, or to the last."""

    first: int | None
    last: int | None


class ReadTool(Record):
    """How a tool that reads files is named in its results, which suggest further calls.

    `search` is the tool that searches the same files. `edits` says whether there are tools that edit them.
    """

    name: str = "read_file"
    first: str = "start_line"
    last: str = "end_line"
    search: str = "code_grep"
    edits: bool = True


READ_FILE = ReadTool()


class ReadCall:
    """One call that reads a file.

    Args:
        files: the context whose files are read.
        path: as the model names it.
        repo: the repository of the files, where calls have to name it.
    """

    def __init__(
        self, context: ToolContext, files: ToolContext, path: str, tool: ReadTool = READ_FILE, repo: str = ""
    ) -> None:
        self.context = context
        self.files = files
        self.path = path
        self.tool = tool
        self.repo = repo
        self.located = path
        """The file's real path, relative to the folder whose files are read: the same for all spellings once it is
        open."""

    @property
    def real_path(self) -> str:
        """The file's real absolute path, once it is open."""
        return os.path.join(self.files.paths.root, self.located)

    def open(self) -> BinaryIO:
        """Open the file. Raises `ToolError` as `Paths.open` does."""
        file = self.files.paths.open(self.path)
        self.located = file.name
        return file

    def used(self) -> int:
        """Characters of read output that are in the live context."""
        return sum(map(self.context.session.output_characters, READERS))

    def example(self, first: int, last: int) -> str:
        """An example of a call that reads a range."""
        return self._call({self.tool.first: first, self.tool.last: last})

    def at_column(self, number: int, column: int) -> str:
        """A call that reads a line from a column on."""
        return self._call({self.tool.first: number, "column": column})

    def _call(self, wanted: Mapping[str, int]) -> str:
        import json

        arguments = {**({"repo": self.repo} if self.repo else {}), "path": self.path, **wanted}
        return f"{self.tool.name}({json.dumps(arguments, ensure_ascii=False)})"

    @property
    def place(self) -> str:
        """The located path, after the name of the repository if there is one."""
        return f"{self.repo}/{self.located}" if self.repo else self.located


class Reading:
    """One call that reads lines of a text file.

    Args:
        content: all of the file, if it is small.
    """

    def __init__(self, call: ReadCall, source: TextSource, content: bytes | None) -> None:
        self._call = call
        self._content = content
        self._known = KnownFiles(call.context.state)
        self._path = call.path
        self._source = source
        self._used = call.used()

    async def lines(self, first: int, last: int | None, limit: int) -> str:
        """The requested lines, as far as the limits allow, and how to read on.

        Args:
            limit: bytes of UTF-8; `HEAD_LIMIT` means that no range was requested.

        Raises:
            ToolError: there are no such lines, or the budget of all calls is used up.
        """
        room = min(limit, BLOCK_AT - self._used)
        section = await self._source.section(first, last, limit=max(0, room), most=CALL_LINES)
        if section.total is not None and first > section.total:
            raise ToolError(self._beyond(first, section.total))
        if not section.lines:
            raise ToolError(await self._blocked(first, last))
        self._known.note_lines(self._call.real_path, self._source.status, self._content, section)
        if limit == HEAD_LIMIT:
            notes = [await self._head_note(section)]
        else:
            notes = self._range_notes(section, first, last, is_short=room < limit)
        notes += [*self._long_notes(section), *_format_notes(section, self._source, edits=self._call.tool.edits)]
        return self._shown(section.numbered(), notes)

    async def long_line(self, number: int, column: int) -> str:
        """Part of a line, from a column on."""
        room = min(HEAD_LIMIT, BLOCK_AT - self._used)
        if room <= 0:
            raise ToolError(await self._blocked(number, number))
        part = await self._source.part(number, column, limit=room)
        if part is None:
            raise ToolError(self._beyond(number, (await self._source.lines())[0]))
        if not part.text:
            raise ToolError(
                f"Line {number:,} of {self._path!r} has {part.last:,} characters, so none from {column:,} on. "
                f"Its beginning: {self._call.example(number, number)}."
            )
        total, is_exact = await self._source.lines()
        self._known.note_part(
            self._call.real_path,
            self._source.status,
            self._content,
            part,
            number=number,
            total=total if is_exact else None,
        )
        note = f"Characters {part.first:,} to {part.last:,} of line {number:,}, which ends there."
        if part.is_cut:
            onward = self._call.at_column(number, part.last + 1)
            note = f"Characters {part.first:,} to {part.last:,} of line {number:,}. Continue with: {onward}."
        return self._shown(f"{number}\t{part.text}", [note])

    def _shown(self, text: str, notes: list[str]) -> str:
        used = self._used + len(text)
        if used >= WARN_AT:
            notes.append(
                f"{self._call.tool.name} has used {used:,} of {BLOCK_AT:,} characters. Read small ranges, find "
                f"places with {self._call.tool.search}, or free space with compact_history."
            )
        return "\n".join([text, *(f"[{note}]" for note in notes)])

    async def _size(self) -> str:
        """The number of lines and of bytes; the lines of a large file are an estimate."""
        lines, is_exact = await self._source.lines()
        return f"{'' if is_exact else 'about '}{counted(lines, 'line')} and {counted(self._source.size, 'byte')}"

    async def _head_note(self, section: TextSection) -> str:
        size = await self._size()
        if not section.is_cut:
            return f"That is the whole file: {size}."
        start = section.last + 1
        next_call = self._call.example(start, start + _EXAMPLE_LINES - 1)
        then = self._call.example(start + _EXAMPLE_LINES, start + 2 * _EXAMPLE_LINES - 1)
        return (
            f"The first {section.last:,} of {size}: without a range, at most 10 KB are shown. Continue with: "
            f"{next_call}, then {then}. Or find the place with {self._call.tool.search}."
        )

    def _range_notes(self, section: TextSection, first: int, last: int | None, *, is_short: bool) -> list[str]:
        total = "" if section.total is None else f" of {section.total:,}"
        if section.is_cut:
            why = "the budget is used up" if is_short else "one call shows at most 50 KB or 2,000 lines"
            following = section.last + 1
            onward = self._call.example(following, following + _EXAMPLE_LINES - 1)
            return [f"Cut after line {section.last:,}{total}: {why}. Continue with: {onward}."]
        if first == 1 and last is None:
            return []
        if last is not None and section.last < last:
            return [f"Lines {first:,} to {section.last:,}: the file ends there."]
        return [f"Lines {first:,} to {section.last:,}{total}."]

    def _long_notes(self, section: TextSection) -> list[str]:
        if not section.long_lines:
            return []
        number = section.long_lines[0]
        onward = self._call.at_column(number, section.line_limit + 1)
        return [f"{len(section.long_lines)} long line(s) cut where marked. The rest of line {number:,}: {onward}."]

    def _beyond(self, first: int, total: int) -> str:
        start = max(1, total - _EXAMPLE_LINES + 1)
        return (
            f"{self._path!r} has {total:,} lines, so none from line {first:,} on. Its end: "
            f"{self._call.example(start, total)}."
        )

    async def _blocked(self, first: int, last: int | None) -> str:
        section = await self._source.section(first, last, limit=BLOCK_AT)
        lines = f"{section.first}-{section.last}"
        try:
            kept = f"Lines {lines} of {self._path!r} were saved to {_dump(self._call, lines, section)}."
        except ToolError as error:
            kept = f"Nothing was saved ({str(error).splitlines()[0]})"
        read = self._known.read_of(self._call.real_path, self._source.status, self._content)
        before = "all" if read is None else ", ".join(f"lines {first:,} to {last:,}" for first, last in read.lines)
        return (
            f"{self._call.tool.name} has used {self._used:,} of its {BLOCK_AT:,} characters and shows no more. "
            f"The file has {await self._size()}; read so far: {before or 'nothing'}. {kept} "
            f"Free space with compact_history and then read smaller ranges, or search with {self._call.tool.search}."
        )


def _format_notes(section: TextSection, source: TextSource, *, edits: bool) -> list[str]:
    """Encoding and line endings if they are unusual, and how edits treat them."""
    notes = []
    codec = source.codec
    if codec is None:
        uncertain = "The encoding of the file is not certain; bytes that are not UTF-8 are shown as in \\xe9"
        notes.append((uncertain, ". It cannot be edited as text"))
    elif codec.name.startswith("utf-16"):
        notes.append(("The file is UTF-16", "; edits keep that"))
    elif codec.name != "utf-8":
        notes.append((f"The file is in {codec.name}", "; edits keep that"))
    elif codec.mark:
        notes.append(("The file starts with a byte order mark", "; edits keep it"))
    if section.has_crlf:
        notes.append(("Line endings are CRLF", "; apply_patch keeps them"))
    if section.ends_without_newline:
        notes.append(("No newline at the end of the file", ""))
    return [f"{fact}{of_edits if edits else ''}." for fact, of_edits in notes]


def _dump(call: ReadCall, lines: str, section: TextSection) -> str:
    """Write the requested text to the memory folder; returns where."""
    context = call.context
    name = f"dump-{call.place.replace('/', '__')[:150]}-{lines}.txt"
    target = context.session.memory_folder / name
    data = section.plain().encode("utf-8", "replace")
    if target.is_relative_to(context.paths.root):
        # Through the sandbox: the repository may contain a symbolic link of that name that leads elsewhere.
        shown = target.relative_to(context.paths.root).as_posix()
        context.paths.replace(shown, data)
        return shown
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(target, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
            stream.write(data)
    except OSError as error:
        raise ToolError(f"{target} cannot be written: {error.strerror}.") from error
    return str(target)
