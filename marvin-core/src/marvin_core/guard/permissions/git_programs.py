"""Programs that git runs: by sub-commands, settings on its command line, and options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

from ...util.patterns.texts import GAPS, is_known
from .dangers import git_command
from .options import Options, Words, read_options
from .readings import Inner
from .shell_words import Word

_GIT_COMMANDS = re.compile(
    r"core\.(pager|editor|sshcommand|fsmonitor|askpass|gitproxy|alternaterefscommand)|pager\..*|sequence\.editor"
    r"|diff\.external|(diff|merge|filter|difftool|mergetool|credential|gpg|trailer|browser|man|uploadpack|sendemail"
    r"|hook)\..*(command|cmd|clean|smudge|process|textconv|driver|helper|program|hook)"
)
"""Settings of git whose values it runs: https://git-scm.com/docs/git-config"""
_NO_PROGRAM = ("", "true", "false")
_CONFIG = Options(
    "ft",
    "zle",
    "global system local worktree add replace-all get get-all get-regexp get-urlmatch= get-color= get-colorbool= list "
    "unset unset-all rename-section remove-section edit null name-only show-origin show-scope bool int bool-or-int "
    "path expiry-date fixed-value includes no-includes all append file= blob= type= default= value= comment= no-type",
)
_ASKING = frozenset(
    "get get-all get-regexp get-urlmatch get-color get-colorbool list l unset unset-all rename-section remove-section "
    "edit e".split()
)


def may_be_run(setting: str) -> bool:
    """Whether git may run the value of a setting of this name; True also if the name is unknown."""
    name = setting.lower()
    return not is_known(setting) or name.startswith(("alias.", "include")) or _GIT_COMMANDS.fullmatch(name) is not None


def run_by_git(words: Words) -> Iterator[Inner]:
    """The programs that a git command line runs; `words` begins with `git`."""
    index = git_command([word.text for word in words])
    rest = words[index:]
    texts = [word.text for word in rest]
    for before, word in pairwise(words[:index]):
        if before.text == "-c":
            yield from _git_setting(words[0], word, rest)
        elif before.text == "--config-env" and may_be_run(word.text.partition("=")[0]):
            yield Inner("hidden")
    named = [word.text.partition("=")[2] for word in words[:index] if word.text.startswith("--config-env=")]
    if any(may_be_run(name.partition("=")[0]) for name in named):
        yield Inner("hidden")
    if texts[:1] == ["config"]:
        yield from _configured(words[0], rest)
    elif texts[:2] == ["submodule", "foreach"]:
        yield Inner("script", tuple(word for word in rest[2:] if word.text not in ("--recursive", "--quiet", "-q")))
    elif texts[:2] == ["bisect", "run"]:
        yield Inner("command", tuple(rest[2:]))
    elif texts[:1] in (["rebase"], ["difftool"], ["filter-branch"]):
        for at, text in enumerate(texts):
            if text in ("-x", "--exec", "--extcmd") or text.endswith("-filter"):
                yield Inner("script", tuple(rest[at + 1 : at + 2]))
            elif text.startswith(("--exec=", "--extcmd=")):
                yield Inner("script", (Word(text.partition("=")[2]),))
    else:
        yield from _git_programs(rest)


def _configured(git: Word, rest: Words) -> Iterator[Inner]:
    """The programs that git runs once a setting is stored: https://git-scm.com/docs/git-config"""
    read = read_options(rest[1:], _CONFIG, mixed=True)
    if read is None:
        yield Inner("hidden")
        return
    found, operands = read
    if {name for name, _ in found} & _ASKING or (operands and operands[0].text in _ASKING):
        return
    if operands and operands[0].text == "set":
        operands = operands[1:]
    if len(operands) < 2:
        return
    name, value = operands[0].text, operands[1].text
    if not is_known(name) or name.lower().startswith(("include.", "includeif.")):
        yield Inner("hidden")
    elif name.lower().startswith("alias.") and not value.startswith("!"):
        yield Inner("command", (git, *map(Word, _split(value)), Word(GAPS)), certain=False)
    elif (name.lower().startswith("alias.") or _GIT_COMMANDS.fullmatch(name.lower())) and value not in _NO_PROGRAM:
        script = value.removeprefix("!")
        yield Inner("script", (Word(script),), certain=False, dialect="posix")
        if words := _split(script):
            yield Inner("command", (*map(Word, words), Word(GAPS)), certain=False)


def _split(text: str) -> list[str]:
    """The words of a text as git splits it; none if it cannot be split."""
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _git_programs(rest: Words) -> Iterator[Inner]:
    """Programs that options of sub-commands name: the remote side of a transfer, and a pager."""
    for at, word in enumerate(rest[1:], 2):
        name, equals, value = word.text.partition("=")
        if name in ("--upload-pack", "--receive-pack", "--exec"):
            yield Inner("script", (Word(value),) if equals else tuple(rest[at : at + 1]), dialect="posix")
        elif rest[0].text == "grep" and (name == "--open-files-in-pager" or re.match("-O.", name)) and is_known(name):
            pager = value if equals else name[len("-O") :]
            if equals or not name.startswith("--"):
                yield Inner("script", (Word(pager),), dialect="posix")
        elif word.text.startswith("ext::"):  # a transport that is a command; `% ` is a blank in one of its words
            yield Inner("script", (Word(word.text.removeprefix("ext::").replace("% ", " ")),), dialect="posix")


def _git_setting(git: Word, setting: Word, rest: Words) -> Iterator[Inner]:
    """The programs that git runs because of one setting given on its command line."""
    name, _, value = setting.text.partition("=")
    if not is_known(name):
        yield Inner("hidden")
    elif name.lower().startswith("alias.") and rest and rest[0].text == name[len("alias.") :]:
        if value.startswith("!"):
            yield Inner("script", (Word(value[1:]), *rest[1:]), dialect="posix")
            return
        yield Inner("command", (git, *map(Word, _split(value)), *rest[1:]))
    elif _GIT_COMMANDS.fullmatch(name.lower()) and value not in _NO_PROGRAM:
        yield Inner("script", (Word(value.removeprefix("!")),), dialect="posix")
