"""Keeps what is uncommitted as objects of git: the index with its conflicts, and the files at a path."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from marvin_core import ToolContext, ToolError, in_thread

from .aside import aside
from .contents import FILE_MODES, Stored, differing, in_index, in_tree, index_info, why_differing
from .conversions import content_of, conversions
from .place import Place, remove_left
from .running import failure, is_locked, keep, keep_unlocked, names, try_read

SNAPSHOTS = "refs/marvin/snapshots"
_CONFLICTS = "\nConflicts: "
"""The beginning of the line of a snapshot's message that has the entries of files in conflict, which no tree can."""
_AUTHOR = {
    "GIT_AUTHOR_NAME": "Marvin",
    "GIT_AUTHOR_EMAIL": "marvin@localhost",
    "GIT_COMMITTER_NAME": "Marvin",
    "GIT_COMMITTER_EMAIL": "marvin@localhost",
}


async def staged_tree(context: ToolContext, what: str) -> str:
    """The tree of what is staged; empty during conflicts. Raises `ToolError` if another git changes it right now."""
    result = await keep_unlocked(context, ["write-tree"])
    if is_locked(result):
        raise failure(context, what, result)
    return result.output.decode().strip() if result.exit_code == 0 else ""


async def staged_with_conflicts(
    context: ToolContext, place: Place, what: str, base: str, path: str
) -> tuple[str, Sequence[str]]:
    """The tree of what is staged, with files in conflict as in a commit, and the entries of those at a path.

    The tree is empty if git cannot make one for another reason, such as a missing object.

    Raises:
        ToolError: another git changes it right now, or it cannot be kept.
    """
    if tree := await staged_tree(context, what):
        return tree, ()
    staged = await in_index(context, place, [])
    if not any(one.status == "U" for one in staged):
        return "", ()
    conflicts = await names(context, what, ["ls-files", "--unmerged", "--full-name", "-z", "--", path])
    with _own_index(place) as env:
        await _kept(context, ["read-tree", base or "--empty"], env)
        await _kept(
            context, ["update-index", "-z", "--index-info"], env, index_info(one for one in staged if one.status != "U")
        )
        return await _kept(context, ["write-tree"], env), conflicts


async def stage_conflicts(context: ToolContext, conflicts: Sequence[str], resolved: set[str]) -> None:
    """Have files be in conflict again, from their entries, without those that somebody has resolved since."""
    listed = (entry.partition("\t") for entry in conflicts)
    entries = [(facts, name) for facts, _, name in listed if name not in resolved]
    if not entries:
        return
    removed = [f"0 {facts.split()[1]}\t{name}\0" for facts, name in entries]
    stdin = "".join([*removed, *(f"{facts}\t{name}\0" for facts, name in entries)])
    await keep_unlocked(context, ["update-index", "-z", "--index-info"], stdin.encode("utf-8", "surrogateescape"))


async def conflicts_in(context: ToolContext, snapshot: str) -> Sequence[str]:
    """The entries of files that were in conflict in a snapshot."""
    said = "".join(await names(context, "git checkout", ["cat-file", "commit", snapshot]))
    found: list[str] = json.loads(said.partition(_CONFLICTS)[2] or "[]")
    return found


async def saved(context: ToolContext, place: Place, located: str) -> str:
    """Save the files and the index at a path as a commit with a ref of its own, which is returned.

    Its first parent is HEAD, if there is one, its last the index. No branch, index or stash is touched.
    """
    head = await try_read(context, ["rev-parse", "--verify", "--quiet", "HEAD"])
    parents = [head.output.decode().strip()] if head.exit_code == 0 else []
    title = f"Before git_checkout of {located}\n".encode("utf-8", "surrogateescape")
    base = parents[0] if parents else ""
    await in_thread(lambda: remove_left(place.git_dir))
    tree, conflicts = await staged_with_conflicts(context, place, "Keeping a snapshot", base, located)
    if conflicts:
        title += f"{_CONFLICTS}{json.dumps(conflicts)}\n".encode()
    parents.append(await _committed(context, tree, parents, title))
    with _own_index(place) as env:
        await _kept(context, ["read-tree", base or "--empty"], env)
        everywhere = ["-c", "core.sparseCheckout=false"]  # also files that a sparse checkout leaves out, and are there
        await _kept(context, [*everywhere, "add", "--force", "--all", "--", located], env)
        tree = await _kept(context, ["write-tree"], env)
        stored = await in_tree(context, place, tree, base)
        if other := await differing(context, stored, saved=True):
            await _save_as_read(context, [one for one in stored if one.path in other], env)
            tree = await _kept(context, ["write-tree"], env)
    commit = await _committed(context, tree, parents, title)
    name = f"{SNAPSHOTS}/{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{commit[:8]}"
    await _kept(context, ["update-ref", name, commit], _AUTHOR)
    return name


async def _committed(context: ToolContext, tree: str, parents: Sequence[str], title: bytes) -> str:
    options = [option for parent in parents for option in ("-p", parent)]
    return await _kept(context, ["commit-tree", *options, "-F", "-", tree], _AUTHOR, title)


@contextmanager
def _own_index(place: Place) -> Iterator[Mapping[str, str]]:
    """The variable of an index beside that of the repository, which is removed at the end."""
    index = place.git_dir / f"marvin-snapshot-{os.getpid()}-{time.monotonic_ns()}"
    try:
        yield {"GIT_INDEX_FILE": str(index)}
    finally:
        index.unlink(missing_ok=True)


async def _save_as_read(context: ToolContext, files: Sequence[Stored], env: Mapping[str, str]) -> None:
    """Stage for a snapshot what is read of files here, where git has read something else.

    A program changes them all the time, or their filter makes something else each time. Raises `ToolError` if a file
    cannot be read, as when its folder became a link.
    """
    known = await conversions(context, [one.path for one in files], alone=True)
    entries = []
    async with aside(context, alone=True) as kept:
        for one in files:
            content = await content_of(context, one.path) if one.mode in FILE_MODES else None
            given = known[one.path].attributes
            made = content is not None and await kept.hash(one.path, content, given, keep=True)
            if not made:
                raise ToolError(f"Nothing was restored: {why_differing([one.path], 'git stash push')}")
            entries.append(f"{one.mode} {made}\t{one.name}\0")
    stdin = "".join(entries).encode("utf-8", "surrogateescape")
    await _kept(context, ["update-index", "-z", "--index-info"], env, stdin)


async def _kept(context: ToolContext, arguments: list[str], env: Mapping[str, str], stdin: bytes | None = None) -> str:
    result = await keep(context, arguments, env, stdin=stdin)
    if result.exit_code != 0:
        said = failure(context, "Keeping a snapshot", result)
        raise ToolError(f"Nothing was changed, because what is uncommitted could not be saved first. {said}")
    return result.output.decode("utf-8", "replace").strip()
