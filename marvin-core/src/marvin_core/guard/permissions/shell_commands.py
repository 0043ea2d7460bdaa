"""Shell commands taken apart, as far as judging them needs; a shell can always hide more than this sees."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .shell_syntax import SimpleCommand, read_script

_KEYWORDS = frozenset("then do else elif if while until ! { time coproc".split())
_PREFIXES: Mapping[str, str] = {
    "sudo": "ugpCrtTUDRh",
    "doas": "uC",
    "env": "uC",
    "nice": "n",
    "ionice": "cnp",
    "time": "fo",
    "timeout": "sk",
    "exec": "a",
    "xargs": "IndLPsEa",
    "stdbuf": "ioe",
    **dict.fromkeys(("nohup", "command", "builtin", "setsid", "busybox"), ""),
}
"""Commands that run the command behind them, with the letters of their options that take a value."""
_SHELLS = frozenset(["sh", "bash", "zsh", "dash", "ksh", "fish", "su"])
_INTERPRETERS = _SHELLS | frozenset(["python", "python3", "perl", "ruby", "node"])
_DOWNLOADERS = frozenset(["curl", "wget", "fetch"])
_NO_DEVICES = ("null", "stdin", "stdout", "stderr", "tty", "zero", "full", "fd/", "shm/", "pts/", "tcp/", "udp/")
_WRITE_OPERANDS = frozenset(["tee", "shred", "wipefs", "blkdiscard", "mkswap", "truncate"])
_GIT_VALUES = frozenset(["-C", "-c", "--git-dir", "--work-tree", "--namespace"])
_FIND_EVERYTHING = frozenset(
    ["-delete", "-depth", "-mindepth", "-maxdepth", "-exec", "-execdir", "-print", "-rf", "-r"]
)

_DOWNLOADED = "runs what it downloads"
_REMOVAL = "removes the working directory, or a folder outside of it"


def parts(command: str) -> list[str]:
    """The simple commands of a compound one, each as one line: what stands between ; && || | & and newlines.

    What `$(...)`, backticks, `<(...)`, `sh -c '...'`, `eval` and a shell's input hold are parts of their own.
    """
    found: list[str] = []
    for simple in read_script(command):
        words = _without_prefixes(simple.words)
        line = " ".join([*words, *(f"{operator} {target}" for operator, target in simple.redirects)])
        if line:
            found.append(line)
        for script in _scripts(words, simple):
            found.extend(parts(script))
    return list(dict.fromkeys(found))


def danger(command: str, root: Path) -> str | None:
    """What a command would do that must not happen without a person's yes, as the end of a sentence."""
    return _danger(command, root, [root])


def _danger(command: str, root: Path, places: list[Path]) -> str | None:
    """`places` are the folders that the command may begin in."""
    start, downloads, folder = places, False, ""
    for simple in read_script(command):
        places = _moved(places, folder, simple.separator, start)
        words = _without_prefixes(simple.words)
        name = os.path.basename(words[0]) if words else ""
        folder = words[1] if name == "cd" and len(words) > 1 else ""
        piped = simple.separator in ("|", "|&")
        if (piped and downloads and _runs_its_input(name, words)) or _runs_download(name, words, simple):
            return _DOWNLOADED
        downloads = name in _DOWNLOADERS or (piped and downloads)
        found = _danger_of(name, words, simple.redirects, root, places)
        if found:
            return found
        for script in _scripts(words, simple):
            if found := _danger(script, root, places):
                return found
    return None


def _moved(places: list[Path], folder: str, separator: str, start: list[Path]) -> list[Path]:
    """Where a command may run that follows `cd FOLDER`; unless && stands between them the cd may have failed."""
    if folder:
        places = [_resolved(folder, place) for place in places]
    return places if separator == "&&" else list(dict.fromkeys([*start, *places]))


def _danger_of(
    name: str, words: Sequence[str], redirects: Sequence[tuple[str, str]], root: Path, places: Sequence[Path]
) -> str | None:
    targets = list(_removed(name, words))
    if any(_takes_root_along(target, place, root) for target in targets for place in places):
        return _REMOVAL
    if name == "git" and _force_pushes(words):
        return "force-pushes"
    written = [target for operator, target in redirects if ">" in operator]
    for target in (*written, *_written(name, words)):
        if _is_device(target):
            return f"writes to the device {target}"
    return None


def _removed(name: str, words: Sequence[str]) -> Iterator[str]:
    """What a command removes with all that is below it."""
    if name == "rm" and (_has_letter(words, "rR") or any("--recursive".startswith(w) and len(w) > 2 for w in words)):
        yield from _operands(words)
    elif name == "find" and ("-delete" in words or ({"-exec", "-execdir"} & set(words) and "rm" in words)):
        options = [word for word in words if word.startswith("-")]
        index = words.index(options[0])
        narrowed = not _FIND_EVERYTHING.issuperset(options)
        # What is looked for below a folder spares the folder itself.
        yield from (f"{start}/found" if narrowed else start for start in words[1:index] or ["."])


def _force_pushes(words: Sequence[str]) -> bool:
    """`--force-with-lease` is none: it overwrites only what the user has seen."""
    index = 1
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in _GIT_VALUES else 1
    if words[index : index + 1] != ["push"]:
        return False
    rest = [word for word, before in zip(words[index + 1 :], words[index:], strict=False) if before != "-o"]
    return _has_letter(["push", *rest], "f") or any(w in ("--force", "--mirror") or w.startswith("+") for w in rest)


def _written(name: str, words: Sequence[str]) -> Sequence[str]:
    """The operands that a command writes to."""
    if name == "dd":
        return [word.removeprefix("of=") for word in words if word.startswith("of=")]
    if name in _WRITE_OPERANDS or name.startswith("mkfs"):
        return _operands(words)
    return _operands(words)[-1:] if name in ("cp", "mv", "install") else []


def _is_device(target: str) -> bool:
    path = os.path.normpath(target)
    return path.startswith("/dev/") and not path.removeprefix("/dev/").startswith(_NO_DEVICES)


def _takes_root_along(operand: str, here: Path, root: Path) -> bool:
    """Whether removing the operand takes the root with it, or something outside of the root."""
    path = _resolved(operand, here)
    if path.name and set(path.name) <= set("*.?"):
        path = path.parent  # all that is in a folder
    return path == root or root not in path.parents


def _resolved(text: str, here: Path) -> Path:
    for name, value in (("HOME", "~"), ("PWD", str(here))):
        text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
    text = text.replace("$(pwd)", str(here)).replace("`pwd`", str(here))
    path = os.path.normpath(here / os.path.expanduser(text))
    return Path("/" + path.lstrip("/"))


def _scripts(words: Sequence[str], simple: SimpleCommand) -> list[str]:
    """The scripts that a simple command runs besides itself."""
    name = os.path.basename(words[0]) if words else ""
    found = list(simple.substitutions)
    if name in _SHELLS:
        found += simple.inputs
        for index, word in enumerate(words[1:-1], 1):
            if _is_cluster(word) and word.endswith("c"):
                found.append(words[index + 1])
                break
    elif name == "eval":
        found.append(" ".join(words[1:]))
    return found


def _runs_download(name: str, words: Sequence[str], simple: SimpleCommand) -> bool:
    """`sh -c "$(curl ...)"`, `bash <(curl ...)`, `eval "$(curl ...)"`."""
    if name in _INTERPRETERS:
        takes_text = words[1:2] and (words[1].startswith("<(") or _has_letter(words, "ce"))
    else:
        takes_text = name in ("eval", "source", ".")
    return bool(takes_text) and any(_downloads(script) for script in simple.substitutions)


def _downloads(script: str) -> bool:
    commands = [_without_prefixes(simple.words) for simple in read_script(script)]
    return any(os.path.basename(words[0]) in _DOWNLOADERS for words in commands if words)


def _runs_its_input(name: str, words: Sequence[str]) -> bool:
    """Whether an interpreter takes its program, and not only its data, from its input."""
    if name not in _INTERPRETERS:
        return False
    if name in _SHELLS and _has_letter(words, "s"):
        return True
    if _has_letter(words, "c" if name in _SHELLS else "cmenpE"):
        return False
    return all(word in ("-", "/dev/stdin") for word in _operands(words))


def _without_prefixes(words: Sequence[str]) -> Sequence[str]:
    index = 0
    while index < len(words):
        name = os.path.basename(words[index])
        letters = _PREFIXES.get(name)
        if letters is None and name not in _KEYWORDS and not _is_assignment(words[index]):
            break
        index += 1
        while letters is not None and index < len(words) and words[index].startswith("-"):
            option = words[index]
            index += 2 if len(option) == 2 and option[1] in letters else 1
        index += name == "timeout"
    return words[index:]


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.removesuffix("+").isidentifier()


def _is_cluster(word: str) -> bool:
    """Whether it holds one-letter options: `-rf`."""
    return word.startswith("-") and not word.startswith("--") and len(word) > 1


def _has_letter(words: Sequence[str], letters: str) -> bool:
    return any(_is_cluster(word) and any(letter in word for letter in letters) for word in words[1:])


def _operands(words: Sequence[str]) -> list[str]:
    """What is no option: what does not begin with - or stands behind --."""
    ends = list(words).index("--") if "--" in words else len(words)
    return [word for word in words[1:ends] if not word.startswith("-") or word == "-"] + list(words[ends + 1 :])
