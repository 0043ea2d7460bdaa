"""What git would replace although no snapshot keeps it, such as a folder with a repository of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from marvin_core import ToolContext, ToolError, in_thread

from .contents import SUBMODULE, in_tree, is_file_there
from .place import Place
from .restaging import within
from .running import names, try_read
from .staging import shortened


async def check_switch(context: ToolContext, target: str) -> None:
    """Refuse a switch that would replace a folder with a repository in it, as that of a submodule, by a file.

    git itself refuses to replace other files that are not stored.
    """
    head, commit = await commit_of(context, "HEAD"), await commit_of(context, target)
    if not (head and commit):
        return
    options = ["-r", "-z", "--name-only", "--no-renames", "--diff-filter=T", "--ignore-submodules=none"]
    files = await names(context, "git checkout", ["diff-tree", *options, head, commit])
    found = await in_thread(lambda: [path for path in files if _has_repository(context.paths.root / path)])
    if found:
        raise ToolError(f"Nothing was switched: {_why(found[0])}")


async def commit_of(context: ToolContext, target: str) -> str:
    """The commit to which a switch leads; empty if it is unknown."""
    for name in ["@{-1}"] if target == "-" else [f"refs/heads/{target}", target]:
        asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
        if (said := await try_read(context, asked)).exit_code == 0:
            return said.output.decode().strip()
    asked = ["for-each-ref", "--count=1", "--format=%(objectname)", f"refs/remotes/*/{target}"]
    return (await try_read(context, asked)).output.decode().strip()


async def has_path(context: ToolContext, place: Place, commit: str, located: str) -> bool:
    """Whether a commit has a path. A partial clone may not have its content yet."""
    whole = place.name_of(located)
    listed = ["ls-tree", "-z", "--full-tree", commit, "--", *filter(None, [whole])]
    return not whole or bool(await names(context, "git checkout", listed))


async def check_restore(context: ToolContext, located: str, commit: str) -> None:
    """Refuse to restore a path from a commit if no snapshot of it could keep what would be replaced."""
    if found := await in_thread(lambda: _file_above(context.paths.root, located)):
        raise ToolError(
            f"Nothing was restored: {found} is not a folder, and would be replaced by one. Move it away first."
        )
    listed = await names(context, "git checkout", ["ls-tree", "-r", "-z", commit, "--", located])
    files = [name for kind, _, name in (entry.partition("\t") for entry in listed) if not kind.startswith(SUBMODULE)]
    if found := await in_thread(lambda: _repository_of(context.paths.root, files)):
        raise ToolError(f"Nothing was restored: {_why(found)}")


async def replaced_by(context: ToolContext, place: Place, located: str, commits: tuple[str, str]) -> Sequence[str]:
    """What to restore: the path, or for an undo the files there that restoring the first of two commits has replaced.

    Others that the second commit has stay as they are: somebody may have changed them since. Raises `ToolError` if
    somebody has made new files since in a folder that would be replaced.
    """
    if not commits[0]:
        return [located]
    root, found = context.paths.root, within(await in_tree(context, place, commits[1], commits[0]), [located])
    files = [one for one in found if one.mode != SUBMODULE]  # git restores nothing in another repository
    missing = await in_thread(lambda: {one.path for one in files if one.is_new and not is_file_there(root, one.path)})
    known = {one.path for one in files if one.is_deleted}
    if new := await in_thread(lambda: [path for path in _files_below(root, missing) if path not in known]):
        raise ToolError(f"Nothing was restored: {shortened(new)} is new since then. Move it away first.")
    return [one.path for one in files if not one.is_deleted and (not one.is_new or one.path in missing)]


def _files_below(root: Path, paths: Iterable[str]) -> Iterable[str]:
    """The files in those of the paths that are folders."""
    for path in paths:
        for folder, _, found in os.walk(root / path):
            yield from (os.path.relpath(os.path.join(folder, name), root) for name in found)


def _why(folder: str) -> str:
    return (
        f"{folder} is or has a repository of its own, whose files would be replaced and cannot be saved. Move it away "
        "first, or deinit the submodule with run_command."
    )


def _file_above(root: Path, path: str) -> str:
    places = ((folder, root / folder) for folder in _folders_of(path))
    return next((folder for folder, place in places if os.path.lexists(place) and not place.is_dir()), "")


def _repository_of(root: Path, files: Sequence[str]) -> str:
    """A folder with a repository of its own in which files of these names would be written, or in their place."""
    folders = {folder for path in files for folder in _folders_of(path)}
    inside = (folder for folder in sorted(folders) if os.path.lexists(root / folder / ".git"))
    return next(inside, "") or next((path for path in files if _has_repository(root / path)), "")


def _folders_of(path: str) -> Iterable[str]:
    """The folders that a path names, from the outermost one."""
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


def _has_repository(place: Path) -> bool:
    """Whether it is a folder, and in it or below it lies a repository."""
    return not place.is_symlink() and any(".git" in (*folders, *files) for _, folders, files in os.walk(place))
