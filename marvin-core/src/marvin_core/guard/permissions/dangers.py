"""The built-in list of dangerous commands, which always need approval."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...util.patterns.texts import GAP, GAPS, HERE, HOME, TILDE, is_known, shown
from .outputs import has_letter, operands, outputs

REMOVAL = "removes the working directory, or a folder outside of it"
DOWNLOADED = "runs what it downloads"
FORCE = "force-pushes"
INTERPRETER = re.compile(r"(python|pypy)[\d.]*|perl|ruby|node|nodejs|php|lua|deno|bun|tclsh|osascript")
DOWNLOADERS = frozenset(["curl", "wget", "fetch", "aria2c", "http", "https", "xh", "curlie"])

_NO_DEVICES = ("null", "stdin", "stdout", "stderr", "tty", "zero", "full", "fd/", "shm/", "pts/", "tcp/", "udp/")
_GIT_VALUES = frozenset(
    ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--attr-source"]
)
_PUSH_VALUES = frozenset(["-o", "--push-option", "--repo", "--receive-pack", "--exec"])
_NARROWING = re.compile(
    r"-(i?(name|path|wholename|regex|lname)|size|empty|[acm](time|min)|[ac]?newer.*|perm|user|group|uid|gid"
    r"|nouser|nogroup|samefile|inum|links|executable|writable|readable)"
)
_EVERYTHING = frozenset(["*", "./*", "**", "*/*", "?*", "*?"])
_VOLUMES = {"lvremove": "", "vgremove": "", "zfs": "destroy", "zpool": "destroy"}
"""Programs that destroy the volume that is named, by sub-command if one is given here."""
_WILD = frozenset("*.?")
_FOLDER = frozenset(["", ".", ".."])


class Danger(NamedTuple):
    """An entry of the list. `certain` is False if it depends on values known only when the shell runs."""

    what: str
    certain: bool


class Surroundings(NamedTuple):
    """The folders that dangers depend on: the session's working directory, the home folder, and the current folders."""

    root: Path
    home: Path
    places: frozenset[str | None]
    """None stands for an unknown folder."""
    fill: tuple[str, ...] = ()
    """The placeholder for a word that is not known as a whole, as `{}` of find."""


def dangers(name: str, words: Sequence[str], around: Surroundings) -> Iterator[Danger]:
    """The dangers of one command. `words` are marked as in `util.patterns` and begin with the command's name."""
    found = [danger for target in _removed(name, words) for danger in removals(target, around)]
    if name in ("rm", "srm") and not _is_recursive(words):
        # Unknown options may make it recursive.
        found = [danger._replace(certain=False) for danger in found if danger.certain and GAPS in words]
    yield from found
    if name == "git" and _force_pushes(words):
        yield Danger(FORCE, certain=True)
    if name in _VOLUMES and (not _VOLUMES[name] or _VOLUMES[name] in words):
        for volume in [word for word in operands(words) if word != _VOLUMES[name]][:1]:
            yield Danger(f"writes to the device {shown(volume)}", certain=is_known(volume))
    yield from devices(outputs(name, words), around)


def removals(target: str, around: Surroundings) -> Iterator[Danger]:
    """Whether recursive removal of a target includes the root, or a path outside of it."""
    targets = around.fill if target in (GAP, GAPS) and around.fill else (target,)
    for one in targets:
        for place in around.places:
            certain = _takes_root_along(one, place, around)
            if certain is not False:
                yield Danger(REMOVAL, certain=certain is True)


def devices(targets: Iterable[str], around: Surroundings) -> Iterator[Danger]:
    """The devices among the files that are written to, including links to devices."""
    for target in targets:
        for place in around.places:
            path, rest = resolved(target, place, around)
            if path is not None and _is_device(path, rest):
                yield Danger(f"writes to the device {shown(target)}", certain=not rest)
                break


def _is_device(path: str, rest: bool) -> bool:
    if path != "/dev" and not path.startswith("/dev/"):
        path = path if rest else _physical(f"{path}/", has_rest=False)
    below = path.removeprefix("/dev/") if path.startswith("/dev/") else "" if path == "/dev" and rest else None
    return below is not None and not below.startswith(_NO_DEVICES) and bool(below or rest)


def resolved(text: str, place: str | None, around: Surroundings) -> tuple[str | None, bool]:
    """The absolute path that a word means, without links resolved, and whether something unknown follows.

    The path ends at the last known folder. None if no folder is known.
    """
    path, has_rest = _absolute(text, place, around)
    return None if path is None else "/" + os.path.normpath(path).lstrip("/"), has_rest


def _absolute(text: str, place: str | None, around: Surroundings) -> tuple[str | None, bool]:
    """The same, with every `..` of the word kept."""
    if text.startswith(TILDE):
        text = f"{around.home}{text[1:]}" if text[1:2] in ("", "/") else f"/home/{text[1:]}"
    text = text.replace(HOME, str(around.home))
    if HERE in text:
        text = text.replace(HERE, GAP if place is None else place)
    gap = min((at for at in (text.find(GAP), text.find(GAPS)) if at >= 0), default=-1)
    if gap >= 0:
        text = text[:gap].rpartition("/")[0] + ("/" if "/" in text[:gap] else "")
    text = shown(text)
    if text.startswith("/"):
        return text, gap >= 0
    return (None if place is None else f"{place}/{text}"), gap >= 0


def _takes_root_along(operand: str, place: str | None, around: Surroundings) -> bool | None:
    """True, False, or None if unknown. Links of the file system are followed as `rm` would."""
    path, has_rest = _absolute(operand, place, around)
    if path is None or operand.startswith((GAP, GAPS)):
        return None
    lexical = _takes_along("/" + os.path.normpath(path).lstrip("/"), str(around.root), has_rest)
    if lexical is not False:
        return lexical
    return _takes_along(_physical(path, has_rest), os.path.realpath(around.root), has_rest)


def _takes_along(path: str, root: str, has_rest: bool) -> bool | None:
    if has_rest:
        inside = _is_below(path, root)
        above = path == root or _is_below(root, path)
        return False if inside else None if above else True
    folder, _, name = path.rpartition("/")
    if name and set(_without_wide_sets(name)) <= _WILD:
        path = folder or "/"  # the whole content of a folder
    return not _is_below(path, root)


def _without_wide_sets(name: str) -> str:
    """A pattern with `?` for each set that contains most characters: a negated set, or one with a range."""
    parts: list[str] = []
    at = 0
    while (begin := name.find("[", at)) >= 0:
        end = name.find("]", begin + (3 if name[begin + 1 : begin + 2] in ("!", "^") else 2))
        if end > 0 and name[end - 1] == ":":  # the end of a character class in the set
            end = name.find("]", end + 1)
        if end < 0:
            break
        inside = name[begin + 1 : end]
        is_wide = inside[0] in "!^" or "-" in inside[1:-1] or "[:" in inside
        parts += [name[at:begin], "?" if is_wide else name[begin : end + 1]]
        at = end + 1
    return "".join([*parts, name[at:]])


def _physical(path: str, has_rest: bool) -> str:
    """The target of a path; a link in the last position is removed itself, so it is not followed."""
    folder, _, name = path.rpartition("/")
    try:
        return os.path.realpath(path) if has_rest or name in _FOLDER else f"{os.path.realpath(folder or '/')}/{name}"
    except (OSError, ValueError):
        return os.path.normpath(path)


def _is_below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def _removed(name: str, words: Sequence[str]) -> Iterator[str]:
    """The targets that a command removes recursively."""
    if name in ("rm", "srm"):
        yield from operands(words)
    elif name == "find" and "-delete" in words:
        yield from find_targets(words, "-delete")


def _is_recursive(words: Sequence[str]) -> bool:
    ends = list(words).index("--") if "--" in words else len(words)
    return has_letter(words[:ends], "rR") or any(
        len(word) > 2 and "--recursive".startswith(word) for word in words[1:ends]
    )


def find_targets(words: Sequence[str], action: str) -> list[str]:
    """The paths that find would remove: its starting folders, or paths below them if a test selects.

    Args:
        action: the word that removes files, such as `-delete`. Tests after this word do not limit what is removed.
    """
    index, starts = find_starts(words)
    narrowed = all(map(_is_narrowed, _ways_to(action, words[index:])))
    follows = bool({"-L", "-H", "-follow"} & set(words))
    end = "/found" if narrowed else "/" if follows else ""
    return [f"{start}{end}" for start in starts or ["."]]


def _ways_to(action: str, words: Sequence[str]) -> Iterator[Sequence[str]]:
    """The words of an expression before each of its actions, back to the last `-o` outside of brackets."""
    depth = begin = 0
    for at, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if not depth and word in ("-o", "-or", ","):
            begin = at + 1
        if word == action:
            yield words[begin:at]


def _is_narrowed(words: Sequence[str]) -> bool:
    """Whether a test narrows the selection; a negated one selects nearly everything."""
    for at, word in enumerate(words):
        is_negated = at > 0 and words[at - 1] in ("!", "-not")
        if _NARROWING.fullmatch(word) and not is_negated:
            chosen = _without_wide_sets((words[at + 1 : at + 2] or [""])[0])
            if chosen not in _EVERYTHING:
                return True
    return False


def find_starts(words: Sequence[str]) -> tuple[int, list[str]]:
    """The index at which the expression of find begins, and the folders before it."""
    index = 1
    while index < len(words) and re.fullmatch(r"-[HLPXdEsx]+|-O\d*|-D", words[index]):
        index += 2 if words[index] == "-D" else 1
    starts = []
    while index < len(words) and not words[index].startswith(("-", "(", "!")):
        starts.append(words[index])
        index += 1
    return index, starts


def _force_pushes(words: Sequence[str]) -> bool:
    """`--force-with-lease` is not listed: it overwrites only commits that the user has seen."""
    index = git_command(words)
    if words[index : index + 1] != ["push"]:
        return False
    rest, skip = ["push"], False
    for word in words[index + 1 :]:
        if not skip:
            rest.append(word)
        skip = not skip and word in _PUSH_VALUES
    return has_letter(rest, "f") or any(
        word == "--force" or (len(word) > 3 and "--mirror".startswith(word)) or word.startswith("+")
        for word in rest[1:]
    )


def git_command(words: Sequence[str]) -> int:
    """The index of git's sub-command, after git's own options."""
    index = 1
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in _GIT_VALUES else 1
    return index


def runs_its_input(words: Sequence[str]) -> bool:
    """Whether an interpreter reads its program from standard input, and not only its data."""
    if has_letter(words, "cmenpE"):
        return False
    return all(word in ("-", "/dev/stdin") for word in operands(words))


def of_unnamed(words: Sequence[str], around: Surroundings) -> Iterator[Danger]:
    """The dangers of a command with an unknown name, according to its other words."""
    for name in ("rm", "git", "dd"):
        if name != "rm" or _is_recursive(words):
            for danger in dangers(name, [name, *words[1:]], around):
                yield danger._replace(certain=False)
