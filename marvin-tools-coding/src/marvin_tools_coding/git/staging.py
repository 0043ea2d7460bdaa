"""What git_commit stages, and what it leaves out unless a call names it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import partial

from marvin_core import (
    HABITUALLY_IGNORED,
    KEY_SAMPLE,
    NAME_REFUSED,
    Record,
    ToolContext,
    ToolError,
    in_thread,
    is_there,
    refused_names,
    usually_ignored,
    why_content_left_out,
    why_left_out,
)

from .place import Place
from .running import failure, literal, names, try_write, write

_REPOSITORY, _REFUSED = "/ (another repository)", f" ({NAME_REFUSED})"
_NEVER = re.compile(r"(?:^|/)\.marvin/(?:logs|memories|undo|worktrees)(?:/|$)")
_SHOWN = 20


class Staged(Record):
    """The files that a call staged and left out."""

    left_out: tuple[str, ...] = ()
    """Names, each with the reason, for people."""

    @property
    def note(self) -> str:
        """What was left out, and how to include it; empty if nothing was."""
        if not self.left_out:
            return ""
        own, repositories, refused = (
            sum(map(test, self.left_out)) for test in (is_never_committed, _is_repository, _is_refused)
        )
        can_be_named = own + repositories + refused < len(self.left_out)
        told = (
            f"Left out, not committed: {shortened(self.left_out)}.",
            "To commit such a file, add it to paths." if can_be_named else "",
            "git commits no file with such a name: rename it." if refused else "",
            "To avoid this message, add it to .gitignore.",
            "Marvin's own files are never committed." if own else "",
            "To have a repository as a submodule, run_command: git submodule add URL FOLDER" if repositories else "",
        )
        return " ".join(filter(None, told))


def is_never_committed(path: str) -> bool:
    """Whether a path is one of Marvin's logs, memories, undo copies or worktrees."""
    return _NEVER.search(path) is not None


def _is_repository(left_out: str) -> bool:
    return left_out.endswith(_REPOSITORY)


def _is_refused(left_out: str) -> bool:
    return left_out.endswith(_REFUSED)


def shortened(items: Sequence[str]) -> str:
    """The first names on one line, and how many more there are."""
    rest = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


async def stage(context: ToolContext, place: Place, paths: Sequence[str]) -> Staged:
    """Stage changes below the paths, or below the working directory without paths.

    Tracked files and files that a path names are staged. Other new files are checked first, also in a folder
    that is usually left out but that a path names.

    Raises:
        ToolError: git fails, or a path is Marvin's log, memory or undo folder.
    """
    for path in paths:
        if is_never_committed(path):
            raise ToolError(f"{path} is refused: Marvin's logs, memories and undo copies are never committed.")
    folders = [path for path in paths if _is_folder(context, path)] if paths else ["."]
    told = [path for path in paths if path not in folders]
    if told:
        await write(context, "git add", ["add", "--all", "--", *literal(told)])
    if not folders:
        return Staged()
    kept, left_out = await _sorted(context, folders)
    if paths:
        for folder in folders:  # git add reports unknown names itself
            tried = await try_write(context, ["add", "--all", "--dry-run", "--ignore-errors", "--", *literal([folder])])
            if tried.exit_code != 0:
                raise failure(context, "git add", tried.replace(output=b""))  # a list of files, which may lie outside
    await write(context, "git add", ["add", "--update", "--", *literal(folders)])
    return Staged(left_out=(*left_out, *await _stage_new(context, kept)))


async def _stage_new(context: ToolContext, new: Sequence[str]) -> list[str]:
    """Stage new files, and return those that git refuses, with the reason. One that is gone meanwhile is passed over.

    `git add` compares each file with each path: of 20,000 that takes 8 s, and of 100,000 minutes.
    """
    if not new:
        return []
    arguments = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]
    stdin = "\0".join(new).encode("utf-8", "surrogateescape")
    said = await write(context, "git add", arguments, stdin=stdin)
    return [f"{name}{_REFUSED}" for name in refused_names(said.stderr)]


def _is_folder(context: ToolContext, path: str) -> bool:
    """Whether a path names a folder, which may hold files that nobody meant to commit."""
    return os.path.isdir(context.paths.root / path) and not os.path.islink(context.paths.root / path)


def _is_habitual(path: str) -> bool:
    return any(part in HABITUALLY_IGNORED for part in path.split("/"))


async def _sorted(context: ToolContext, folders: Sequence[str]) -> tuple[list[str], list[str]]:
    """New files to stage, and those left out with the reason.

    git lists folders by their names. A folder may have become a link meanwhile, and what is there is not told.
    """
    excluded = [f"--exclude={name}/" for name in HABITUALLY_IGNORED]
    others, habitual = [path for path in folders if not _is_habitual(path)], list(filter(_is_habitual, folders))
    root, listed = context.paths.root, await _new(context, excluded, others)
    within = await in_thread(lambda: usually_ignored(listed, partial(is_there, root), folders))
    new = [name for name in listed if not within[name.rpartition("/")[0]]]
    new += await _new(context, [], habitual)
    unusual = [f"{name}/" for name in sorted({*within.values()} - {""})]
    unusual += await _habitual(context, excluded, others) if others else []
    reasons = await in_thread(lambda: {name: _reason(context, name) for name in new if is_there(root, name)})
    reasons |= await in_thread(lambda: {name: "usually ignored" for name in unusual if is_there(root, name)})
    left_out = [f"{name} ({reason})" for name, reason in reasons.items() if reason]
    return [name for name, reason in reasons.items() if not reason], left_out


async def _new(context: ToolContext, excluded: Sequence[str], folders: Sequence[str]) -> list[str]:
    if not folders:  # git would list the whole folder
        return []
    options = ["ls-files", "-z", "--others", "--exclude-standard", *excluded, "--", *folders]
    return await names(context, "Listing new files", options)


async def _habitual(context: ToolContext, excluded: Sequence[str], folders: Sequence[str]) -> list[str]:
    """Folders that are usually left out and that the repository's own rules do not ignore."""
    what = "Listing new files"
    options = ["ls-files", "-z", "--others", "--ignored", "--directory", *excluded, "--", *folders]
    found = [
        name
        for name in await names(context, what, options)
        if name.rstrip("/").rpartition("/")[2] in HABITUALLY_IGNORED
    ]
    if not found:
        return []
    stdin = "\0".join(f"./{name}" for name in found).encode("utf-8", "surrogateescape")
    ignored = set(await names(context, what, ["check-ignore", "-z", "--no-index", "--stdin"], stdin=stdin))
    return [name for name in found if f"./{name}" not in ignored]


def _reason(context: ToolContext, name: str) -> str:
    """Why a new file is left out; empty if it is not."""
    return why_left_out(name) or _reason_within(context, name)


def _reason_within(context: ToolContext, name: str) -> str:
    if os.path.islink(context.paths.root / name):
        return ""  # git stores the target of a symbolic link, not its content
    try:
        with context.paths.open(name) as file:
            return why_content_left_out(os.fstat(file.fileno()).st_size, file.read(KEY_SAMPLE))
    except ToolError:
        return ""  # git reports unreadable files itself


def summary(files: Iterable[tuple[str, str]]) -> str:
    """A summary of the staged files, from the status letter and the name of each."""
    return shortened([f"{letter} {name}" for letter, name in files])
