"""The files that a command writes to, according to its arguments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from .program_texts import AWK, SED, effects


class Naming(NamedTuple):
    """Options that name a file: letters, whose value may be the rest of their word, and a long name."""

    letters: str
    long: str


_NAMING: Mapping[str, Naming] = {
    "curl": Naming("o", "--output"),
    "wget": Naming("O", "--output-document"),
    "sort": Naming("o", "--output"),
    "shuf": Naming("o", "--output"),
    "pv": Naming("o", "--output"),
    "cp": Naming("t", "--target-directory"),
    "mv": Naming("t", "--target-directory"),
    "install": Naming("t", "--target-directory"),
    "ln": Naming("t", "--target-directory"),
    "tree": Naming("o", "--output"),
    "iconv": Naming("o", "--output"),
    "mkisofs": Naming("o", "--output"),
    "genisoimage": Naming("o", "--output"),
}
_ALL_OPERANDS = frozenset(
    "tee shred wipefs blkdiscard mkswap truncate sponge fdisk sfdisk sgdisk cfdisk parted badblocks mke2fs mkntfs "
    "mkdosfs mkexfatfs pvcreate pvremove vgcreate vgextend tune2fs resize2fs sg_format scrub wipe nwipe gdisk "
    "cgdisk".split()
)
_SUB_COMMANDS: Mapping[str, frozenset[str]] = {
    "cryptsetup": frozenset(
        "luksFormat luksErase erase reencrypt luksAddKey luksRemoveKey luksChangeKey luksKillSlot luksConvertKey "
        "luksHeaderRestore luksUUID convert config repair".split()
    ),
    "veritysetup": frozenset(["format"]),
    "integritysetup": frozenset(["format", "resize"]),
    "bcachefs": frozenset(["format", "device"]),
    "nvme": frozenset(
        "format sanitize write write-zeroes write-uncor dsm fw-commit fw-activate fw-download create-ns delete-ns "
        "attach-ns detach-ns security-send io-passthru admin-passthru set-feature".split()
    ),
    "btrfs": frozenset(["device", "replace"]),
    "zpool": frozenset("create add attach detach replace remove labelclear".split()),
}
"""Programs that write to the devices among their operands, by the sub-commands with which they do."""
_WRITING_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "hdparm": (
        "--security-",
        "--write-sector",
        "--repair-sector",
        "--make-bad-sector",
        "--trim-sector-ranges",
        "--fwdownload",
        "--sanitize-",
        "--dco-restore",
    ),
    "mdadm": ("--create", "-C", "--build", "-B", "--zero-superblock", "--add", "-a", "--remove", "-r", "--grow", "-G"),
    "debugfs": ("-w",),
}
"""Programs that write to their operands if one of these options is given."""
_ARCHIVING = ("--create", "--append", "--update", "--concatenate", "--catenate", "--delete")
_TAR_VALUED = "bCfFgHIKLNTVX"
_NO_FILES = frozenset(["/dev/null", "/dev/stdout", "/dev/stderr", "-"])
_GIT_LISTING = frozenset(
    "log diff show diff-tree diff-index diff-files whatchanged stash format-patch shortlog range-diff reflog".split()
)
_BY_FIND = frozenset(["-fprint", "-fprint0", "-fprintf", "-fls"])


def outputs(name: str, words: Sequence[str]) -> Iterator[str]:
    """The words of a command that name its output; `words` begins with its name. In doubt a word is included."""
    if name in ("dd", "dcfldd"):
        yield from (word.removeprefix("of=") for word in words if word.startswith("of="))
    elif name in _ALL_OPERANDS or name.startswith("mkfs") or (name in SED and _edits_in_place(words)):
        yield from operands(words)
    elif name in ("cp", "mv", "install", "rsync"):
        yield from operands(words)[-1:]
    elif name == "ddrescue":
        yield from operands(words)[1:]
    elif name == "find":
        yield from (after for word, after in pairwise(words) if word in _BY_FIND)
    elif name in ("tar", "gtar", "bsdtar"):
        yield from _archives(words)
    elif name == "cpio" and (has_letter(words, "op") or "--create" in words):
        yield from values(words, Naming("OF", "--file"))
    elif name == "zip":
        yield from operands(words)[:1]
    elif _writes_to_operands(name, words):
        yield from operands(words)
    if name in _NAMING:
        yield from values(words, _NAMING[name])
    if name in SED or name in AWK:
        yield from effects(name, words).files


def _writes_to_operands(name: str, words: Sequence[str]) -> bool:
    by_sub_command = name in _SUB_COMMANDS and bool(_SUB_COMMANDS[name].intersection(words))
    options = _WRITING_OPTIONS.get(name)
    return by_sub_command or (options is not None and any(word.startswith(options) for word in words[1:]))


def aside(name: str, words: Sequence[str]) -> Iterator[str]:
    """The files that a reading command writes because of an option, or of an operand after its input.

    The rules treat that as a redirection: a user who allows `sort *` does not have `-o` in mind.
    """
    if name == "git":
        found: Iterable[str] = values(words, Naming("", "--output")) if _GIT_LISTING.intersection(words) else ()
    elif name in ("sort", "shuf", "tree", "iconv", "find") or name in AWK:
        found = outputs(name, words)
    elif name in SED:
        found = effects(name, words).files
    else:
        found = operands(words)[1:] if name in ("uniq", "xxd") else ()
    return (file for file in found if file not in _NO_FILES)


def _archives(words: Sequence[str]) -> Iterator[str]:
    """The archive that tar writes: https://www.gnu.org/software/tar/manual/tar.html"""
    bundle = words[1] if len(words) > 1 and not words[1].startswith("-") else ""
    if not (
        set(bundle) & set("cruA")
        or has_letter(words, "cruA")
        or any(len(word) > 3 and one.startswith(word) for word in words for one in _ARCHIVING)
    ):
        return
    valued = [letter for letter in bundle if letter in _TAR_VALUED]
    if "f" in valued:
        yield from words[2 + valued.index("f") :][:1]
    yield from values(words, Naming("f", "--file"))


def downloaded_to(name: str, words: Sequence[str]) -> Iterator[str]:
    """The file names that a downloader derives from its addresses."""
    if name == "wget" or (name == "curl" and (has_letter(words, "OJ") or "--remote-name" in words)):
        for address in operands(words):
            last = os.path.basename(address.rstrip("/"))
            yield last
            yield last.partition("?")[0]


def _edits_in_place(words: Sequence[str]) -> bool:
    return has_letter(words, "i") or any(word.startswith("--i") for word in words)


def values(words: Sequence[str], options: Naming) -> Iterator[str]:
    """The file names that such options give."""
    for at, word in enumerate(words[1:], 2):
        following = words[at] if at < len(words) else ""
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if len(name) > 3 and options.long.startswith(name):
                yield value if equals else following
        elif word.startswith("-"):
            places = (place for place, letter in enumerate(word) if place and letter in options.letters)
            yield from (word[place + 1 :] or following for place in places)


def has_letter(words: Sequence[str], letters: str) -> bool:
    """Whether a cluster of one-letter options contains one of these."""
    clusters = (word for word in words[1:] if word.startswith("-") and not word.startswith("--"))
    return any(letter in word for word in clusters for letter in letters)


def operands(words: Sequence[str]) -> list[str]:
    """The words that are not options: those that do not begin with -, and all after `--`."""
    ends = list(words).index("--") if "--" in words else len(words)
    return [word for word in words[1:ends] if not word.startswith("-") or word == "-"] + list(words[ends + 1 :])
