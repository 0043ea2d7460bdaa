"""Computes the result of a patch: all changes are located before any file is written."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Literal, TypeAlias

from ...api.errors import ToolError
from ...api.record import Record
from ...api.tool_context import FileWrite, Paths
from ..files.diffs import unified_diff
from ..files.encodings import UTF8, Codec, count_lines
from .document import Document, Span
from .failures import SHOWN, Problem, problem_of, whole_problem
from .known import KnownFiles, ReadLines
from .locating import Locator, Match
from .patch import FilePatch, Hunk
from .snapshot import Snapshot, note_content, place_of

_DIFF_LIMIT = 1_000_000
"""The maximum length of a text for a diff, in characters."""
EditKind: TypeAlias = Literal["changed", "created", "replaced", "deleted", "moved"]


class EditedPlace(Record):
    """One change: its first line in the new file, the numbers of removed and added lines, and the differences."""

    line: int
    removed: int
    added: int
    how: str = ""


class EditedFile(Record):
    """The result for a file. `before` and `after` are its texts; `path` is the new one of a moved file."""

    path: str
    kind: EditKind
    before: str = ""
    after: str = ""
    places: tuple[EditedPlace, ...] = ()
    moved_from: str = ""
    notes: tuple[str, ...] = ()

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty if it would be too long."""
        if max(len(self.before), len(self.after)) > _DIFF_LIMIT:
            return ""
        return unified_diff(self.path, self.before, self.after)


class Draft:
    """The planned state of a file.

    `snapshot` is its current state, None if it does not exist; `source` is the file that its content comes from.
    """

    def __init__(self, path: str, snapshot: Snapshot | None, missing: ToolError | None) -> None:
        self.path = path
        self.snapshot = snapshot
        self.missing = missing
        self.text: str | None = None
        self.bytes: bytes | None = None
        self.is_gone = snapshot is None
        self.is_touched = False
        self.source = snapshot
        self.moved_from = ""
        self.moved_to = ""
        self.places: list[EditedPlace] = []
        self.whole = False
        self.notes: list[str] = []

    @property
    def codec(self) -> Codec:
        """The target encoding."""
        return UTF8 if self.source is None else self.source.codec

    def document(self) -> Document:
        """The planned text. Raises `ToolError` if there is none."""
        if self.is_gone:
            raise self.missing or ToolError(f"{self.path!r} is deleted by the same patch. Leave out one of the two.")
        if self.text is not None:
            return Document(self.text)
        assert self.source is not None
        return self.source.document

    def take_over(self, other: Draft) -> None:
        """Take over the planned state of another file, which is deleted."""
        assert other.source is not None or other.text is not None
        self.text, self.bytes = other.text, other.bytes
        if self.text is None and self.bytes is None and other.source is not None:
            self.bytes = other.source.data
        self.source, self.places = other.source, other.places
        self.moved_from, self.moved_to = other.moved_from or other.path, ""
        self.is_gone, self.is_touched = False, True
        other.remove()
        other.moved_to = self.path

    def remove(self) -> None:
        """Plan to delete it."""
        self.is_gone = self.is_touched = True
        self.text = self.bytes = None
        self.moved_from = ""

    def put(self, text: str, *, whole: bool = False) -> None:
        """Plan this text."""
        self.text, self.bytes, self.is_gone, self.is_touched = text, None, False, True
        self.moved_to = ""
        self.whole = self.whole or whole

    def read(self, known: KnownFiles) -> ReadLines | None:
        """What the session will know of it; None for all of it."""
        read = None if self.whole or self.source is None else self.source.read(known)
        if read is None or self.text is None:
            return read
        return read.after(_text_of(self.source), self.text)

    def is_known(self, known: KnownFiles) -> bool:
        """Whether the session had read some of the current content, or gives all of it."""
        return self.whole or self.source is None or self.source.standing(known) == "same"

    def data(self) -> bytes:
        """The planned bytes. Raises `ToolError` if its encoding lacks a character."""
        if self.bytes is not None:
            return self.bytes
        return self.codec.encode(self.text or "", self.path)


class Plan:
    """The files that patches change.

    Args:
        stack: closes the files that were read.
        known: the files that the session knows; None to skip that check.
    """

    def __init__(self, paths: Paths, stack: ExitStack, known: KnownFiles | None = None) -> None:
        self._paths = paths
        self._stack = stack
        self._known = known
        self._drafts: dict[str, Draft] = {}
        self.placed = 0

    def add(self, patch: FilePatch) -> list[Problem]:
        """Locate the changes of one file; returns the problems."""
        if any("\0" in text for hunk in patch.hunks for text in (hunk.new,)) or "\0" in patch.content:
            return [
                whole_problem(
                    patch.path, "The new text contains a NUL character, which is not allowed in text. Remove it."
                )
            ]
        try:
            draft = self._draft(patch.path)
            draft.notes += patch.notes
            if patch.kind == "add":
                self._check_new(draft, patch)
                self._check_known(draft)
                draft.put(patch.content, whole=True)
                self.placed += 1
                return []
            if patch.kind == "update" or patch.hunks:
                problems = self._update(draft, patch)
                if problems:
                    return problems
            if patch.kind == "delete":
                self._delete(draft, patch)
            if patch.move_to:
                self._move(draft, patch.move_to)
        except ToolError as error:
            return [whole_problem(patch.path, str(error), error)]
        return []

    def _draft(self, path: str) -> Draft:
        place = place_of(self._paths, path)
        if place not in self._drafts:
            missing: ToolError | None = None
            snapshot: Snapshot | None = None
            try:
                snapshot = Snapshot(self._paths, path, self._stack)
            except ToolError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
                missing = error
            self._drafts[place] = Draft(path, snapshot, missing)
        return self._drafts[place]

    @staticmethod
    def _check_new(draft: Draft, patch: FilePatch) -> None:
        """Refuse to replace a file that the patch expects to be missing."""
        if patch.is_new and not draft.is_gone and draft.document().raw not in ("", patch.content):
            raise ToolError(
                f"{patch.path!r} already exists, but the patch creates it as a new file; nothing was changed. Give "
                "hunks against its content."
            )

    def _check_known(self, draft: Draft) -> None:
        """Refuse to replace or delete a whole file that was changed since it was read."""
        if draft.snapshot and not draft.is_touched and draft.snapshot.standing(self._known) == "changed":
            raise ToolError(
                f"{draft.path!r} was changed after you read it, by the user or another program; nothing was changed. "
                "Read it again."
            )

    def _update(self, draft: Draft, patch: FilePatch) -> list[Problem]:
        if not patch.hunks:
            if draft.is_gone:
                draft.document()
            return []
        if _only_creates(patch.hunks):
            text = "" if draft.is_gone else draft.document().text
            if text and draft.is_touched:
                raise ToolError(_empty_beside_others(patch.path))
            if text and (self._known is None or draft.read(self._known) is not None):
                raise ToolError(_not_empty(patch.path, text))
            draft.put(patch.hunks[0].new, whole=True)
            self.placed += 1
            return []
        document = draft.document()
        locator = Locator(document)
        matches: list[tuple[int, Match]] = []
        problems: list[Problem] = []
        after = 0
        for number, hunk in enumerate(patch.hunks, 1):
            try:
                match = locator.find(hunk, after)
            except ToolError as error:
                secret = draft.snapshot is not None and draft.snapshot.is_secret
                if len(problems) < SHOWN:  # what comes near is looked for in all of the file
                    problems.append(problem_of(patch, number, error, document, secret=secret))
                else:
                    problems.append(whole_problem(patch.path, str(error), error))
                continue
            matches.append((number, match))
            after = match.end
        overlapping = _overlaps(patch, matches)
        if not overlapping:
            self.placed += len(matches)
        problems += overlapping
        if not problems:
            self._check_lenient(draft, [match for _, match in matches])
            self._make(draft, document, [match for _, match in matches])
        return problems

    def _check_lenient(self, draft: Draft, matches: Sequence[Match]) -> None:
        """Refuse inexact matches in a file that was changed since it was read."""
        if any(match.how for match in matches) and draft.snapshot is not None:
            self._check_known(draft)

    @staticmethod
    def _make(draft: Draft, document: Document, matches: Sequence[Match]) -> None:
        found = [(span, match.how) for match in matches for span in match.spans]
        found.sort(key=lambda one: one[0].start)
        line, at, shift = 1, 0, 0
        for span, how in found:
            old = document.text[span.start : span.end]
            line, at = line + document.text.count("\n", at, span.start), span.start
            if old != span.new:
                removed, added = count_lines(old), count_lines(span.new)
                draft.places.append(EditedPlace(line=line + shift, removed=removed, added=added, how=how))
            shift += span.new.count("\n") - old.count("\n")
        spans = [span for span, _ in found]
        draft.put(document.replaced(spans))

    def _delete(self, draft: Draft, patch: FilePatch) -> None:
        if draft.is_gone:
            draft.document()
        if patch.hunks and draft.text:
            raise ToolError(f"{patch.path!r} has lines that the patch does not remove, so it is not deleted. Read it.")
        self._check_known(draft)
        draft.remove()

    def _move(self, draft: Draft, target: str) -> None:
        if draft.is_gone:
            draft.document()
        there = self._draft(target)
        if there is draft:
            return
        if not there.is_gone:
            self._check_known(there)
        there.take_over(draft)

    def writes(self) -> list[FileWrite]:
        """The writes that the plan requires. Raises `ToolError` if a character cannot be encoded."""
        return [_write_of(draft) for draft in self._drafts.values() if _is_changed(draft)]

    def note_written(self) -> None:
        """Note what the session knows of the written files, and forget the deleted ones."""
        known = self._known
        if known is None:
            return
        written = [draft for draft in self._drafts.values() if draft.is_touched and not draft.is_gone]
        read = [(draft, draft.read(known)) for draft in written if draft.is_known(known)]
        for place, draft in self._drafts.items():
            if draft.is_gone:
                known.forget(place)
        for draft, lines in read:
            note_content(self._paths, draft.path, draft.data(), known, lines)

    def result(self) -> tuple[EditedFile, ...]:
        """The result for each file."""
        drafts = [draft for draft in self._drafts.values() if _is_changed(draft) and not draft.moved_to]
        return tuple(self._edited(draft) for draft in drafts)

    def _edited(self, draft: Draft) -> EditedFile:
        before = _text_of(draft.source)
        kind: EditKind = "changed"
        if draft.is_gone:
            kind = "deleted"
        elif draft.moved_from:
            kind = "moved"
        elif draft.snapshot is None:
            kind = "created"
        elif draft.whole:
            kind = "replaced"
        return EditedFile(
            path=draft.path,
            kind=kind,
            before=before,
            after="" if draft.is_gone else draft.text if draft.text is not None else before,
            places=tuple(draft.places),
            moved_from=draft.moved_from,
            notes=tuple(self._notes(draft)),
        )

    def _notes(self, draft: Draft) -> list[str]:
        notes = list(draft.notes)
        if draft.snapshot is not None and not draft.is_gone:
            if draft.snapshot.other_names:
                notes.append(
                    f"It has {draft.snapshot.other_names} other name(s) (hard links), which keep the old content."
                )
            if draft.moved_from:
                notes.append("It replaced an existing file.")
            elif draft.snapshot.standing(self._known) == "changed":
                notes.append("The file was changed by another program after you read it; that change is kept.")
        return notes


def _only_creates(hunks: Sequence[Hunk]) -> bool:
    return len(hunks) == 1 and not hunks[0].old and not hunks[0].in_order


def _not_empty(path: str, text: str) -> str:
    return (
        f"The text to be replaced is empty, which creates a new file; but {path!r} exists, with "
        f"{count_lines(text):,} line(s), and you have not read all of it; nothing was changed. Give lines of it and "
        "their replacement; or read all of it first, then the same call replaces all of it."
    )


def _empty_beside_others(path: str) -> str:
    return (
        f"The text to be replaced is empty in one of several changes of {path!r}, which would replace the whole "
        "file; nothing was changed. Give lines of the file and their replacement. To add text at the end, append to "
        "the file."
    )


def _overlaps(patch: FilePatch, matches: Sequence[tuple[int, Match]]) -> list[Problem]:
    """Changes that overlap."""
    found = [(span, number) for number, match in matches for span in match.spans]
    spans: list[tuple[Span, int]] = sorted(found, key=lambda one: (one[0].start, one[0].end))
    problems = []
    for (first, number), (second, other) in pairwise(spans):
        if second.start < first.end:
            text = f"Changes {number} and {other} overlap. Combine the two into one change."
            problems.append(whole_problem(patch.path, text))
    return problems[:3]


def _is_changed(draft: Draft) -> bool:
    if not draft.is_touched:
        return False
    if draft.is_gone:
        return draft.snapshot is not None
    return draft.snapshot is None or bool(draft.moved_from) or draft.data() != draft.snapshot.data


def _write_of(draft: Draft) -> FileWrite:
    snapshot = draft.snapshot
    write = FileWrite(path=draft.path, data=None if draft.is_gone else draft.data(), create_only=snapshot is None)
    if snapshot is not None:
        write = write.replace(expected=snapshot.status, content=snapshot.content)
    if draft.moved_from and draft.source is not None and not draft.is_gone:
        write = write.replace(mode=stat.S_IMODE(draft.source.status.st_mode))
    return write


def _text_of(snapshot: Snapshot | None) -> str:
    """A text for the diff; empty for binary content."""
    if snapshot is None:
        return ""
    try:
        return snapshot.document.raw
    except ToolError:
        return ""
