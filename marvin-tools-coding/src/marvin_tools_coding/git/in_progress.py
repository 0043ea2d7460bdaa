"""A merge, cherry-pick, revert, rebase or bisect in progress: what a commit removes of it, and an undo puts back."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType

from marvin_core import NeverUndone, Record, ToolContext, ToolError, in_thread, open_without_links

from .place import Place
from .running import keep, try_read

_REMOVED = (
    *("MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "MERGE_RR", "SQUASH_MSG", "AUTO_MERGE"),
    *("CHERRY_PICK_HEAD", "REVERT_HEAD"),
    *("sequencer/head", "sequencer/todo", "sequencer/opts", "sequencer/abort-safety"),
)
"""The files of an operation in progress that git removes or empties once its last commit is made."""
_STEPS = (
    *("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer/head", "sequencer/todo", "BISECT_LOG"),
    *("rebase-merge/orig-head", "rebase-merge/onto", "rebase-merge/done"),
    *("rebase-apply/orig-head", "rebase-apply/onto", "rebase-apply/next"),
)
"""The files that change with each step of an operation, or tell it from another one."""
_LARGEST = 10_000_000


class Operation(Record):
    """What an undo of a commit needs of the operation in progress in which it was made."""

    files: Mapping[str, bytes] = MappingProxyType({})
    """The files that the commit has removed, by their names in the git directory."""
    conflicts: Sequence[str] = ()
    """The entries of files in conflict before it."""
    steps: Mapping[str, bytes] = MappingProxyType({})
    """The files of the steps right after it."""


def files_in_progress(git_dir: Path) -> dict[str, bytes]:
    """The files that a commit removes. Blocks."""
    return _contents(git_dir, _REMOVED)


def steps_in_progress(git_dir: Path) -> dict[str, bytes]:
    """The files of the steps. Blocks."""
    return _contents(git_dir, _STEPS)


def _contents(git_dir: Path, names: Iterable[str]) -> dict[str, bytes]:
    found = {}
    for name in names:
        with suppress(OSError), open_without_links(git_dir, name) as file:
            found[name] = file.read()
    return found


async def kept_operation(
    context: ToolContext, place: Place, before: Mapping[str, bytes], conflicts: Sequence[str]
) -> str | None:
    """Keep what an undo of a commit just made needs of its operation, among the objects of the repository.

    Args:
        before: the files of the operation before the commit.
        conflicts: the entries of files in conflict before it.

    Returns:
        The name of the object; empty if no operation is or was in progress, None if it cannot be kept.
    """
    now = await in_thread(lambda: files_in_progress(place.git_dir))
    steps = await in_thread(lambda: steps_in_progress(place.git_dir))
    removed = {name: content for name, content in before.items() if now.get(name) != content}
    if not (removed or conflicts or steps):
        return ""
    data = {"files": _texts(removed), "conflicts": [*conflicts], "steps": _texts(steps)}
    made = await keep(context, ["hash-object", "-w", "--stdin"], {}, stdin=json.dumps(data).encode())
    return made.output.decode().strip() if made.exit_code == 0 else None


async def operation_of(context: ToolContext, name: str) -> Operation:
    """What `kept_operation` has kept. Raises `NeverUndone` if git has removed it."""
    if not name:
        return Operation()
    said = await try_read(context, ["cat-file", "blob", name], _LARGEST)
    try:
        data = json.loads(said.output)
        return Operation(files=_bytes(data["files"]), conflicts=data["conflicts"], steps=_bytes(data["steps"]))
    except (ValueError, KeyError) as error:
        raise NeverUndone("The commit was not undone: git has removed what was kept of its merge.") from error


def _texts(contents: Mapping[str, bytes]) -> dict[str, str]:
    return {name: content.decode("latin-1") for name, content in contents.items()}


def _bytes(texts: Mapping[str, str]) -> dict[str, bytes]:
    return {name: text.encode("latin-1") for name, text in texts.items()}


@asynccontextmanager
async def resumed(git_dir: Path, files: Mapping[str, bytes]) -> AsyncIterator[None]:
    """Have an operation be in progress again; not if the body fails.

    Were the branch moved first, a Marvin that is killed would leave the content of a merge without the merge.

    Raises:
        ToolError: a file cannot be written.
    """
    made: list[Path] = []
    try:
        await in_thread(partial(resume, git_dir, files, made), to_the_end=True)
        yield
    except BaseException as error:
        await in_thread(partial(_remove, git_dir, made), to_the_end=True)
        if isinstance(error, OSError):
            raise ToolError(f"The commit was not undone: {error.filename}: {error.strerror}.") from error
        raise


def _remove(git_dir: Path, made: Iterable[Path]) -> None:
    for path in made:
        path.unlink(missing_ok=True)
    with suppress(OSError):  # it is not empty, or was not made; an empty one counts as an operation
        (git_dir / "sequencer").rmdir()


def resume(git_dir: Path, files: Mapping[str, bytes], made: list[Path]) -> None:
    """Write the files of an operation, except over those of another one. Blocks.

    Args:
        made: each file is added to it once it exists.
    """
    for name, content in files.items():
        path = git_dir / name
        path.parent.mkdir(exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666), "wb") as file:
            if not os.fstat(file.fileno()).st_size:  # git empties MERGE_RR
                made.append(path)
                file.write(content)
