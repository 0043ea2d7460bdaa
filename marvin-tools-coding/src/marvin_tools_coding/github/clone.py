"""The tool github_clone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from marvin_core import ToolContext, ToolError, in_thread, one_line, tool

from ..git.running import try_read
from .adapters import CLONE_IGNORED, CLONE_NAMES, clone_arguments
from .api import SETTINGS, TOKENS, get, program
from .cloning import Order, Workshop
from .repositories import FOLDER, Clones, Repository, host_of, named

_LIMIT = 900.0
_TOP = 60
"""Names of the top folder that are listed."""
_ATTRIBUTES = 100_000
_LINE = 200
_DAY = 86_400


@tool(
    access=["net", "write"],
    group="github",
    timeout=_LIMIT,
    secrets=TOKENS,
    settings=SETTINGS,
    aliases=CLONE_NAMES,
    unlisted=["refresh"],
    ignores=CLONE_IGNORED,
    adapt=clone_arguments,
)
async def github_clone(
    context: ToolContext,
    repo: Annotated[str, "OWNER/REPO or its address"],
    shallow: Annotated[bool, "Only the newest commit"] = True,
    refresh: Annotated[bool, "Clone it again if it already exists"] = False,
) -> str:
    """Clone a repository into ~/github-clones/OWNER/REPO to read it, or tell where it already is."""
    clones = Clones(context.home)
    wanted = named(repo, host_of(context))
    if not refresh and (told := await _told(context, clones, wanted, shallow=shallow)):
        return told
    program(context)
    if context.processes.which("git") is None:
        raise ToolError("git is not installed, or not in PATH. Ask the user to install it.")
    found = await get(context, f"the repository {wanted}", f"repos/{wanted}")
    if not isinstance(found, Mapping) or not isinstance(found.get("full_name"), str):
        raise ToolError("GitHub sent an unexpected answer about the repository. Try again later.")
    actual = named(found["full_name"])
    workshop = Workshop(context, clones)
    async with workshop.alone(actual):
        if not refresh and (told := await _told(context, clones, actual, shallow=shallow)):
            return told
        there = clones.find(actual)
        if there is not None:
            await _check_untouched(context, there)
        place = there or clones.place(actual)
        size = found.get("size")
        kilobytes = size if isinstance(size, int) else 0
        replaces = there is not None
        await workshop.clone(Order(repository=actual, shallow=shallow, replaces=replaces, kilobytes=kilobytes), place)
    renamed = "" if str(actual).lower() == str(wanted).lower() else f"{wanted} is now called {actual}."
    done = f"Cloned {actual} to {_shown(place)}, {'its newest commit only' if shallow else 'with its history'}."
    return "\n".join(filter(None, (renamed, done, *_facts(found), await _look(context, place))))


def _shown(place: Path) -> str:
    return f"~/{FOLDER}/{place.parent.name}/{place.name}"


def _facts(found: Mapping[str, Any]) -> list[str]:
    """What GitHub says about a repository that its readers should know."""
    described = found.get("description")
    parent = found.get("parent")
    of = parent.get("full_name") if isinstance(parent, Mapping) else None
    return [
        one_line(described, _LINE) if isinstance(described, str) else "",
        "It is archived, so it is no longer developed." if found.get("archived") is True else "",
        f"It is a fork of {one_line(of, _LINE)}." if isinstance(of, str) else "",
    ]


async def _told(context: ToolContext, clones: Clones, wanted: Repository, *, shallow: bool) -> str:
    """A description of an existing clone; empty if it has to be made."""
    place = await in_thread(lambda: clones.find(wanted))
    if place is None:
        return ""
    is_shallow = (place / ".git" / "shallow").exists()
    if is_shallow and not shallow:
        return ""
    again = f"github_clone({json.dumps({'repo': f'{place.parent.name}/{place.name}', 'refresh': True})})"
    how = "has only the commit that was newest; shallow=false fetches all" if is_shallow else "has its history"
    return (
        f"{place.parent.name}/{place.name} is in {_shown(place)} already: it was cloned {_age(context, place)}, and "
        f"{how}. To update it: {again}\n{await _look(context, place)}"
    )


def _age(context: ToolContext, place: Path) -> str:
    """How long ago a clone was last fetched."""
    for name in ("FETCH_HEAD", "packed-refs", "config"):
        try:
            seconds = context.clock.now() - (place / ".git" / name).stat().st_mtime
        except OSError:
            continue
        for size, unit in ((_DAY, "day"), (3600, "hour"), (60, "minute")):
            if seconds >= size:
                count = int(seconds // size)
                return f"{count:,} {unit}{'' if count == 1 else 's'} ago"
        return "just now"
    return "at an unknown time"


async def _look(context: ToolContext, place: Path) -> str:
    """The contents of a clone's top folder."""
    reading = context.reading(place)
    asked = "--format=%h%x00%cs%x00%s%x00%D"
    newest = await try_read(reading, ["log", "-1", asked, "--no-show-signature", "HEAD", "--"])
    if newest.exit_code != 0:
        return "It is empty: it has no commits."
    commit, day, subject, names = (*newest.output.decode("utf-8", "replace").strip("\n").split("\0"), "", "", "")[:4]
    heads = [name.removeprefix("HEAD -> ") for name in names.split(", ") if name.startswith("HEAD -> ")]
    listed = await in_thread(lambda: reading.paths.list(".", _TOP + 2))
    entries = [entry for entry in listed if entry.path != ".git"]
    top = [f"{one_line(entry.path, _LINE)}{'/' if entry.kind == 'folder' else ''}" for entry in entries[:_TOP]]
    lines = [
        f"{one_line(heads[0], _LINE) if heads else 'No branch,'} at {commit} of {day}: {one_line(subject, _LINE)}",
        f"At its top: {'  '.join(top)}{'  ...' if len(entries) > _TOP else ''}",
        *await in_thread(lambda: _left_out(reading)),
        "Read files and folders with github_read_file, search with github_grep.",
    ]
    return "\n".join(lines)


def _left_out(reading: ToolContext) -> list[str]:
    """The parts of the repository that the clone does not have."""
    notes = []
    if reading.paths.exists(".gitmodules"):
        notes.append("Its submodules were not fetched: .gitmodules lists them; clone each one separately.")
    if reading.paths.exists(".gitattributes"):
        with reading.paths.open(".gitattributes") as file:
            if b"filter=lfs" in file.read(_ATTRIBUTES):
                notes.append("Its large files (Git LFS) were not fetched, only their pointers.")
    return notes


async def _check_untouched(context: ToolContext, place: Path) -> None:
    """Refuse to replace a clone that has anything which did not come from GitHub."""
    reading = context.reading(place)
    looks = (
        ["status", "--porcelain=v1", "--untracked-files=normal", "--ignored=traditional", "--ignore-submodules=none"],
        ["rev-list", "--max-count=1", "--exclude=refs/tags/*", "--all", "--not", "--remotes"],
    )
    for arguments in looks:
        result = await try_read(reading, arguments)
        if result.exit_code != 0 or result.output.strip():
            what = one_line(result.output.decode("utf-8", "replace"), _LINE) or "it cannot be inspected"
            raise ToolError(
                f"{_shown(place)} was not changed, because it contains files or commits that did not come from "
                f"GitHub ({what}). Ask the user to move it away; without refresh you can read it as it is."
            )
