"""Finds the command or script in the arguments of a command that runs another one."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...util.patterns.texts import GAP, GAPS, is_known
from .dangers import INTERPRETER, find_starts
from .git_programs import run_by_git
from .options import Options, Words, read_options
from .outputs import Naming, values
from .program_texts import AWK, SED, effects
from .readings import Dialect, Inner
from .shell_words import Word, without_odd_names
from .wrapper_names import LOOSE, RUNNERS, WRAPPERS

SHELLS = frozenset("sh bash zsh dash ksh mksh ash rbash fish".split())
_DIALECTS: Mapping[str, Dialect] = {
    "bash": "bash",
    "rbash": "bash",
    "sh": "posix",
    "dash": "posix",
    "ash": "posix",
}
_SHELL_LONG_VALUED = frozenset(["--rcfile", "--init-file", "--init-command"])
_STANDARD_INPUT = frozenset(["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
FIND_RUNS = frozenset(["-exec", "-execdir", "-ok", "-okdir"])
"""The actions of find that run a command."""
_MOST_LOOSE = 20
_LOADERS = re.compile(r"ld(-[\w.-]+)?\.so(\.\d+)?|ld-[\w.-]+\.so[\d.]*|qemu-[\w-]+")
"""Programs that load or emulate the program named after their options."""


def inner(name: str, words: Words) -> Iterator[Inner]:
    """The programs that a command runs in addition to itself; none for most. `words` begins with its name."""
    handler = _HANDLERS.get(name)
    if handler is not None:
        yield from handler(words)
    elif name in SED or name in AWK:
        yield from _language(words)
    elif name in WRAPPERS:
        yield from _wrapped(name, words)
    elif name in SHELLS:
        yield from _shell(words)
    elif name in LOOSE or _LOADERS.fullmatch(name) or " ".join(word.text for word in words[:2]) in RUNNERS:
        yield from _suffixes(words[1:])


def _suffixes(words: Words, *, hidden: bool = False) -> Iterator[Inner]:
    """Any of the words may begin a command."""
    if hidden:
        yield Inner("hidden")
    for at in range(min(len(words), _MOST_LOOSE)):
        yield Inner("loose", tuple(words[at:]), certain=False)


def _unclear(words: Words) -> Iterator[Inner]:
    return _suffixes(words[1:], hidden=True)


def _wrapped(name: str, words: Words) -> Iterator[Inner]:
    """The command after the options of a wrapper."""
    if name == "command" and len(words) > 1 and re.fullmatch(r"-p?[vV]p?", words[1].text):
        return  # it only looks up a name
    if name == "jobs" and (len(words) < 2 or words[1].text != "-x"):
        return
    options = WRAPPERS[name]
    read = read_options(words[1:], options)
    if read is None or any(not is_known(word.text) and GAPS in word.text for word in read[1][: options.operands]):
        yield from _unclear(words)
        return
    found, rest = read
    values = {letter: value for letter, value in found if value is not None}
    script = values.get("S") or values.get("split-string") if name == "env" else None
    place = values.get("chdir") or values.get("C" if name == "env" else "D" if name == "sudo" else "w")
    rest = rest[options.operands :]
    if rest and rest[0].text == "-" and name == "env":
        rest = rest[1:]
    if name == "env":
        rest = without_odd_names(rest)
    if script is not None:
        if "\\" in script.text or "$" in script.text:
            yield Inner("hidden")  # env parses them in its own way
        # The words that follow are appended unchanged, one by one.
        words_behind = [Word(shlex.quote(word.text)) if is_known(word.text) else word for word in rest]
        yield Inner("script", (Word(script.text.replace("\\_", " ")), *words_behind), place)
    elif rest and not rest[0].text.startswith("-"):
        yield Inner("command", tuple(rest), place)
    elif name == "sudo" and ({"s", "i"} & {letter for letter, _ in found}):
        yield Inner("input")


def _shell(words: Words) -> Iterator[Inner]:
    """A shell: its script after -c, its standard input, or a file."""
    rest, takes_script, takes_input = list(words[1:]), False, False
    name = os.path.basename(words[0].text)
    dialect: Dialect = _DIALECTS.get(name, "other")
    while rest:
        word = rest[0].text
        if word.startswith(GAPS) or (word.startswith(("-", "+")) and not is_known(word)):
            yield from _unclear(words)
            return
        if word in ("--", "-"):
            rest.pop(0)
            break
        if not word.startswith(("-", "+")):
            break
        rest.pop(0)
        if word.startswith("--"):
            count = int(word in _SHELL_LONG_VALUED)
            if count and rest:
                yield Inner("file", (rest[0],), dialect=dialect)
        else:
            takes_script |= "c" in word and word[0] == "-"
            takes_input |= "s" in word and word[0] == "-"
            count = word.count("o") + word.count("O")
        del rest[:count]
    if takes_script:
        if rest:
            yield Inner("script", (rest[0],), dialect=dialect)
    elif takes_input or not rest or rest[0].text in _STANDARD_INPUT:
        yield Inner("input", dialect=dialect)
    else:
        yield Inner("file", (rest[0],), dialect=dialect)


def _eval(words: Words) -> Iterator[Inner]:
    if len(words) > 1:
        rest = words[2:] if words[1].text == "--" else words[1:]
        yield Inner("script", tuple(rest))


def _source(words: Words) -> Iterator[Inner]:
    rest = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    if rest:
        yield Inner("input") if rest[0].text in _STANDARD_INPUT else Inner("file", (rest[0],))


def _trap(words: Words) -> Iterator[Inner]:
    rest = [word for word in words[1:] if word.text != "--"]
    if len(rest) > 1 and rest[0].text not in ("-p", "-l", "-P", "-", ""):
        yield Inner("script", (rest[0],))


def _alias(words: Words) -> Iterator[Inner]:
    for word in words[1:]:
        _, equals, value = word.text.partition("=")
        if equals:
            yield Inner("hidden")
            yield Inner("script", (Word(value),), certain=False)


_XARGS = Options(
    "aEdILnPsRSJ",
    "0oprtx",
    "null arg-file= delimiter= eof replace max-lines max-args= max-procs= max-chars= interactive no-run-if-empty "
    "open-tty verbose exit show-limits process-slot-var=",
    attached="eil",
)


def _xargs(words: Words) -> Iterator[Inner]:
    read = read_options(words[1:], _XARGS)
    if read is None:
        yield from _unclear(words)
        return
    found, rest = read
    places = [value.text if value else "{}" for name, value in found if name in ("I", "J", "i", "replace")]
    if rest and places:
        yield Inner("command", tuple(_filled(word, places[-1]) for word in rest))
    elif rest:
        yield Inner("command", (*rest, Word(GAPS)))


def _filled(word: Word, place: str) -> Word:
    return Word(word.text.replace(place, GAP), downloads=word.downloads) if place in word.text else word


def _find(words: Words) -> Iterator[Inner]:
    texts = [word.text for word in words]
    at, _ = find_starts(texts)
    while at < len(words):
        if texts[at] in FIND_RUNS:
            end = next((i for i in range(at + 1, len(words)) if _ends_command(texts, i)), len(words))
            command = tuple(_filled(word, "{}") for word in words[at + 1 : end])
            if command:
                place = Word(GAP) if texts[at].endswith("dir") else None  # in the folder of each file that it finds
                yield Inner("command", command, place, by_find=True)
            at = end
        elif GAPS in texts[at]:
            yield from _suffixes(words[at:], hidden=True)
            return
        at += 1


def _ends_command(texts: Sequence[str], at: int) -> bool:
    return texts[at] == ";" or (texts[at] == "+" and texts[at - 1] == "{}")


def _behind_script_option(
    options: Options, *names: str, dialect: Dialect = "same"
) -> Callable[[Words], Iterator[Inner]]:
    """A handler for commands with an option whose value is a script."""

    def handler(words: Words) -> Iterator[Inner]:
        read = read_options(words[1:], options, mixed=True)
        if read is None:
            yield from _unclear(words)
            return
        for name, value in read[0]:
            if name in names and value is not None:
                yield Inner("script", (value,), dialect=dialect)

    return handler


def _su(words: Words) -> Iterator[Inner]:
    options = Options(
        "cCgGsTwu", "flmpPh", "command= session-command= group= supp-group= login preserve-environment shell= pty user="
    )
    read = read_options([word for word in words[1:] if word.text != "-"], options, mixed=True)
    if read is None:
        yield from _unclear(words)
        return
    scripts = [value for name, value in read[0] if name in ("c", "C", "command", "session-command") and value]
    for script in scripts:
        yield Inner("script", (script,), dialect="posix")
    if any(name in ("u", "user") for name, _ in read[0]) and read[1]:
        yield Inner("command", tuple(read[1]))
    elif not scripts:
        yield Inner("input")


def _script(words: Words) -> Iterator[Inner]:
    options = Options(
        "cEoIOBTm",
        "aefq",
        "command= append echo= flush quiet return log-in= log-out= log-io= log-timing= output-limit=",
    )
    yield from _behind_script_option(options, "c", "command", dialect="posix")(words)
    yield from _suffixes(words[2:])


def _flock(words: Words) -> Iterator[Inner]:
    options = Options(
        "wEc", "sxuneoF", "shared exclusive unlock nonblock timeout= conflict-exit-code= command= close", operands=1
    )
    read = read_options(words[1:], options)
    if read is None:
        yield from _unclear(words)
        return
    rest = read[1][1:]
    if len(rest) > 1 and rest[0].text in ("-c", "--command"):
        yield Inner("script", (rest[1],), dialect="posix")
    elif rest:
        yield Inner("command", tuple(rest))


def _joined(options: Options, *, end: str = "") -> Callable[[Words], Iterator[Inner]]:
    """A handler for commands that join the words after their options and pass them to a shell."""

    def handler(words: Words) -> Iterator[Inner]:
        read = read_options(words[1:], options)
        if read is None:
            yield from _unclear(words)
            return
        rest = read[1][options.operands :]
        texts = [word.text for word in rest]
        if end:
            stop = next((at for at, text in enumerate(texts) if text.startswith(end)), len(rest))
            rest = [_filled(word, "{}") for word in rest[:stop]]
            rest += [] if any(GAP in word.text for word in rest) else [Word(GAPS)]
        if rest:
            yield Inner("script", tuple(rest), dialect="posix")

    return handler


def _hidden_with(*options: str) -> Callable[[Words], Iterator[Inner]]:
    def handler(words: Words) -> Iterator[Inner]:
        if any(word.text.startswith(options) for word in words[1:]):
            yield Inner("hidden")

    return handler


def _input(words: Words) -> Iterator[Inner]:
    yield Inner("input")


def _language(words: Words) -> Iterator[Inner]:
    """The scripts that a program of sed or awk passes to a shell."""
    name = os.path.basename(words[0].text)
    for script in effects(name, [name, *(word.text for word in words[1:])]).scripts:
        first = os.path.basename(script.split(" ")[0])
        if script.startswith(GAP) or first in SHELLS or INTERPRETER.fullmatch(first):
            yield Inner("hidden")  # also text that is printed into a shell
        if not script.startswith(GAP):
            yield Inner("script", (Word(script),), dialect="posix")


def _programs_of(letters: str, long: str) -> Callable[[Words], Iterator[Inner]]:
    """A handler for commands with options that name a program to run in addition to their own work."""

    named = [Naming(letters, ""), *(Naming("", name) for name in long.split())]

    def handler(words: Words) -> Iterator[Inner]:
        texts = [word.text for word in words]
        for value in [value for one in named for value in values(texts, one)]:
            yield Inner("script", (Word(value.removeprefix("exec=")),), dialect="posix")

    return handler


_SSH_PROGRAM = re.compile(r"(?is)\s*(proxycommand|localcommand|knownhostscommand|match)\s*[=\s]\s*(.*)")
_ON_THE_HOST = _joined(Options("BbcDEeFIiJLlmOoPpQRSWw", "46AaCfGgKkMNnqsTtVvXxYy", operands=1))


def _ssh(words: Words) -> Iterator[Inner]:
    yield from _ssh_settings(words)
    yield from _ON_THE_HOST(words)


def _transfers(words: Words) -> Iterator[Inner]:
    """Copying over ssh, including a program named by -S."""
    yield from _ssh_settings(words)
    for program in values([word.text for word in words], Naming("S", "")):
        yield Inner("script", (Word(program),), dialect="posix")


def _ssh_settings(words: Words) -> Iterator[Inner]:
    """Settings of ssh with a command that runs locally: https://man.openbsd.org/ssh_config"""
    for setting in values([word.text for word in words], Naming("o", "")):
        found = _SSH_PROGRAM.match(setting)
        if found is not None:
            yield Inner("script", (Word(found[2]),), dialect="posix")
        elif not is_known(setting.partition("=")[0]):
            yield Inner("hidden")


_COMPLETE = Options("oAGWFCXPS", "abcdefgjksuvprDEI")
_HANDLERS: Mapping[str, Callable[[Words], Iterator[Inner]]] = {
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "alias": _alias,
    "xargs": _xargs,
    "find": _find,
    "su": _su,
    "runuser": _su,
    "sg": _su,
    "script": _script,
    "flock": _flock,
    "git": run_by_git,
    "watch": _joined(
        Options("nq", "bcCdegptwx", "interval= beep color differences errexit chgexit exec no-title precise")
    ),
    "ssh": _ssh,
    "scp": _transfers,
    "sftp": _transfers,
    "parallel": _joined(
        Options(
            "jPnNLIaSdsC", "kuXmqtv0r", "jobs= keep-group keep-order max-args= colsep= delay= joblog= bar halt= tag"
        ),
        end=":::",
    ),
    "mapfile": _behind_script_option(Options("dnOsuCc", "t"), "C"),
    "readarray": _behind_script_option(Options("dnOsuCc", "t"), "C"),
    "complete": _behind_script_option(_COMPLETE, "C", "F"),
    "compgen": _behind_script_option(_COMPLETE, "C", "F"),
    "hash": _hidden_with("-p"),
    "enable": _hidden_with("-f"),
    "bind": _hidden_with("-x"),
    "fc": _hidden_with("-"),
    "tar": _programs_of(
        "IF", "--use-compress-program --to-command --info-script --new-volume-script --rsh-command --checkpoint-action"
    ),
    "rsync": _programs_of("e", "--rsh"),
    "sort": _programs_of("", "--compress-program"),
    "split": _programs_of("", "--filter"),
    "rg": _programs_of("", "--pre --hostname-bin"),
    "wget": _programs_of("", "--use-askpass"),
    "zip": _programs_of("", "--unzip-command"),
    "man": _programs_of("P", "--pager"),
    "bat": _programs_of("", "--pager"),
    "batcat": _programs_of("", "--pager"),
    "ag": _programs_of("", "--pager"),
    "ack": _programs_of("", "--pager"),
    "at": _input,
    "batch": _input,
}
