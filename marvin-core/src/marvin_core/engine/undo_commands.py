"""Undo of the changes by commands, from snapshots of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..api.errors import MarvinError
from ..guard.undo.failures import SnapshotFailure
from ..guard.undo.inverses import Inverse, Span
from ..guard.undo.ledger import NOT_LISTED, Claim, LedgerEntry, NeverTakenBack
from ..guard.undo.pieces import usual_mode
from ..guard.undo.restoring import (
    FOLDER,
    blocked_by,
    check_no_link,
    close_folders,
    permissions_now,
    put_files_back,
    put_permissions_back,
    read_now,
    remove_created,
    state_of,
)
from ..guard.undo.snapshots import Snapshots
from ..guard.undo.trees import Change, Kept, folders_of, modes_left, modes_of
from ..guard.undo.unseen import shown_name, shown_names
from ..kit.files.diffs import unified_diff
from ..util.text import counted, cut, shortened
from ..util.threads import in_thread
from .parts import SessionParts

_COMPARED, _DIFF = 1_000_000, 4_000
_NAMED = 20
_SHOWN = 3
"""The maximum number of files in a shown diff."""
_AT_A_TIME = 30_000_000
"""The maximum number of bytes that are restored at a time."""


def snapshots_of(parts: SessionParts, root: Path, top: str = "") -> Snapshots:
    """The snapshots of a folder; `top` is that of the repository when they were taken, if not now."""
    config = parts.config
    found = Snapshots(config.data_folder / "snapshots", root, parts.processes, config.limits, config.timeouts)
    if top:
        found.keep_top(Path(top))
    found.without = parts.workspace.own_places(root)
    return found


async def put_back(parts: SessionParts, entry: LedgerEntry, span: Span, claim: Claim) -> None:
    """Restore the files that commands changed, all of them or none.

    Raises:
        NeverTakenBack: their earlier content is no longer stored.
        MarvinError: one of them was changed since then, or the commands still run.
    """
    if parts.config.writable_files is not None:
        raise MarvinError("This agent may write some files only (MARVIN_WRITABLE_FILES), and this would change others.")
    root = Path(span.root)
    check_no_link(root)
    snapshots = snapshots_of(parts, root, span.top)
    if not span.after:
        await _complete(snapshots, span, claim, is_running=entry.is_open)
        return
    try:
        changes = await snapshots.changes(span.before, span.after)
        sizes = await snapshots.sizes([change.before.content for change in changes if change.before is not None])
        if span.is_shared or span.others or span.moved:
            claim.complete(Inverse(span=span.replace(is_shared=False, others=(), moved=())))
            named = _named(changes, *span.chmods)
            raise MarvinError(
                f"{_why_shared(span)}, so some of these changes may come from elsewhere: {named}. "
                "Repeat the command to undo all of them. Before that, copy what you want to keep."
            )
    except SnapshotFailure as error:
        raise _kept_or_never(error) from error
    todo = await _unchanged_since(snapshots, root, changes)
    await in_thread(lambda: _check_permissions(span, todo))
    done: list[bytes] = []
    try:
        await _restore(snapshots, span, todo, sizes, done)
        await in_thread(lambda: put_permissions_back(root, span.chmods))
    except MarvinError as error:
        raise MarvinError(f"{error} {_told_parts(done, todo)}") from error


def _check_permissions(span: Span, todo: Sequence[Change]) -> None:
    """Raise `MarvinError` if files have neither their earlier permissions nor those that the commands left."""
    expected = dict(span.chmods)
    for one in todo:
        if span.modes_after is None or one.before is None or one.after is None or one.after.is_link:
            continue
        name = os.fsdecode(one.path)
        after = span.modes_after.get(name, usual_mode(one.after))
        expected[name] = span.modes.get(name, usual_mode(one.before)), after
    now = {name: permissions_now(Path(span.root), name) for name in expected}
    others = [
        f"{name} ({mode:03o} instead of {expected[name][1]:03o})"
        for name, mode in now.items()
        if mode is not None and mode not in expected[name]  # what was removed has none
    ]
    if others:
        raise MarvinError(f"These files have other permissions since then: {shortened(others)}. Change them by hand.")


def _why_shared(span: Span) -> str:
    another = "Another Marvin worked in this folder at the same time"
    changed = "changed while no command ran, or through a job after its command had returned"
    others = f"{shortened(span.others, _NAMED)} {changed}"
    moved = f"{shortened(span.moved, _NAMED)} may be the only copy of a file that was elsewhere before"
    return " and ".join([another] * span.is_shared + [others] * bool(span.others) + [moved] * bool(span.moved))


async def _restore(
    snapshots: Snapshots, span: Span, todo: Sequence[Change], sizes: Mapping[str, int], done: list[bytes]
) -> None:
    root = Path(span.root)
    await in_thread(lambda: remove_created(root, todo, span.since, done))
    made: set[str] = set()
    for piece in _pieces(todo, sizes):
        wanted = {change.before.content: sizes[change.before.content] for change in piece if change.before is not None}
        contents = await snapshots.contents(wanted)
        made |= await in_thread(
            lambda piece=piece, contents=contents: put_files_back(root, piece, contents, span.modes, done)  # type: ignore[misc]
        )
    await in_thread(lambda: close_folders(root, made, span.modes))


def _told_parts(done: Sequence[bytes], todo: Sequence[Change]) -> str:
    """Which files are restored if an undo stops halfway."""
    if not done:
        return "No file was restored."
    names = shortened([path.decode("utf-8", "backslashreplace") for path in done], _NAMED)
    return (
        f"{len(done):,} of {counted(len(todo), 'file')} {'is' if len(done) == 1 else 'are'} restored: {names}. "
        "The next /undo is about the rest."
    )


async def _complete(snapshots: Snapshots, span: Span, claim: Claim, *, is_running: bool) -> None:
    """Without a snapshot after commands, the current files count as their result, once they were shown.

    Marvin crashed during the commands, or the snapshot failed.
    """
    if is_running:
        raise MarvinError("Its commands are still running. Wait until they end.")
    try:
        after, changes, left = await snapshots.settled(span.before, await snapshots.take(), span.since)
    except SnapshotFailure as error:
        raise _kept_or_never(error) from error
    if not changes:
        return
    modes, modes_after = modes_of(changes, span.modes), modes_left(changes, snapshots.modes)
    span = span.replace(after=after, modes=modes, modes_after=modes_after, left=shown_names(left))
    claim.complete(Inverse(span=span))
    raise MarvinError(
        "No snapshot was taken when its commands ended, so some of these changes may come from elsewhere: "
        f"{_named(changes)}. Repeat the command to undo all of them. Before that, copy what you want to keep."
    )


def _kept_or_never(error: SnapshotFailure) -> MarvinError:
    """The error of an undo that another try may complete, or that can never be completed."""
    why = str(error).rstrip(".")
    if not error.is_final:
        return MarvinError(f"It cannot be undone at the moment: {why}. It stays listed.")
    return NeverTakenBack(f"It cannot be undone: {why}. {NOT_LISTED}")


async def _unchanged_since(snapshots: Snapshots, root: Path, changes: Sequence[Change]) -> Sequence[Change]:
    """The files to restore, without those that are unchanged.

    Raises:
        MarvinError: a file has neither its earlier content nor the one that the commands left.
    """
    todo: list[Change] = []
    others: list[tuple[Change, Kept | None]] = []
    blocked: list[str] = []
    unread: list[str] = []

    links = {change.path for change in changes if change.after is not None and change.after.is_link}

    def look() -> None:
        for change in changes:
            now: Kept | None = None
            try:
                if not (change.after is None and links.intersection(folders_of(change.path))):
                    now = state_of(root, change.path)
            except OSError as error:
                unread.append(f"{shown_name(change.path)}: {error.strerror or error}")
                continue
            is_folder_now = now is not None and now.mode == FOLDER and change.after is None
            if now == change.after or is_folder_now:  # a folder that is not empty then is in the way, see below
                todo.append(change)
            elif now != change.before:
                others.append((change, now))
        created = {change.path for change in todo if change.before is None}
        for change in todo:
            if change.before is not None:
                blocked.extend(blocked_by(root, change, created))

    await in_thread(look)
    if unread:
        raise MarvinError(f"These files cannot be compared: {shortened(unread)}. Change that, then try again.")
    if blocked:
        raise MarvinError(f"These paths exist again: {shortened(blocked)}. Remove them, or restore the files by hand.")
    if others:
        diffs = [await _difference(snapshots, root, change, now) for change, now in others[:_SHOWN]]
        more = f"\nand {counted(len(others) - _SHOWN, 'more file')}" if len(others) > _SHOWN else ""
        text = "\n".join(diffs) + more
        raise MarvinError(
            f"These files have changed since then. Undo the later change first, or restore them by hand:\n{text}"
        )
    return todo


async def _difference(snapshots: Snapshots, root: Path, change: Change, there: Kept | None) -> str:
    """A diff of the current file and the one that the commands left."""
    name = shown_name(change.path)
    if there is None or there.is_link or there.mode == FOLDER:
        return f"{name} was {_gone(there)}."
    now = await in_thread(lambda: read_now(root, change.path, _COMPARED + 1))
    if now is None:
        return f"{name} cannot be read."
    if change.after is None:
        return f"{name} was restored."
    sizes = await snapshots.sizes([change.after.content])
    if len(now) + sum(sizes.values()) > _COMPARED:
        return f"{name} is too large to show the difference; it had {sum(sizes.values()):,} bytes."
    left = (await snapshots.contents(sizes))[change.after.content]
    try:
        diff = await in_thread(lambda: unified_diff(name, left.decode(), now.decode()))
        return cut(diff, _DIFF) or f"{name} has different permissions."
    except UnicodeDecodeError:
        return f"{name} is not text; it has {len(now):,} bytes, and had {len(left):,}."


def _gone(there: Kept | None) -> str:
    """What became of a file, from what is in its place."""
    return "removed" if there is None else f"replaced by a {'link' if there.is_link else 'folder'}"


def _pieces(changes: Sequence[Change], sizes: Mapping[str, int]) -> Iterator[Sequence[Change]]:
    """The earlier files, in batches that fit into memory."""
    piece: list[Change] = []
    total = 0
    for change in changes:
        if change.before is None:
            continue
        size = sizes[change.before.content]
        if piece and total + size > _AT_A_TIME:
            yield piece
            piece, total = [], 0
        piece.append(change)
        total += size
    yield piece


def _named(changes: Sequence[Change], *chmods: str) -> str:
    """The changes; the created files first, because they will be removed."""
    named = [f"{one.verb} {shown_name(one.path)}" for one in sorted(changes, key=lambda one: one.verb != "created")]
    return shortened([*named, *(f"changed permissions of {name}" for name in chmods)], _NAMED)
