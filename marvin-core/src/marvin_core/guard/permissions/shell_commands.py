"""One shell command: its dangers, the files it creates, and the programs that it runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...api.limits import Limits
from ...util.patterns.texts import FIRM, GAP, GAPS, HOME, ONE, SET, STAR, is_known, shown
from .dangers import (
    DOWNLOADED,
    DOWNLOADERS,
    INTERPRETER,
    Danger,
    Surroundings,
    dangers,
    find_targets,
    of_unnamed,
    removals,
    resolved,
    runs_its_input,
)
from .git_programs import may_be_run
from .outputs import aside, downloaded_to, has_letter, outputs
from .readings import Inner, Input, Level, Part, Reading
from .shell_parser import Node, NotUnderstood, TooDeep
from .shell_words import Word, as_script, is_assignment, without_folder
from .variables import Numbers, declared, has_program, is_command, is_file, may_run, set_by_name
from .wrapper_names import TRANSPARENT
from .wrappers import FIND_RUNS, SHELLS, inner

_MOST_DEPTH = 8
_MOST_PLACES = 16
_MOST_SHOWN = 200
_INDEXED = frozenset(
    "let declare typeset local export readonly test [ printf read unset mapfile readarray wait getopts compgen "
    "complete".split()
)
"""Builtins that evaluate the text between brackets in an operand."""
_CODE = re.compile(r"\$\(|`|\$\{|[<>]\(")
_SYSTEM = re.compile(r"/(usr/(local/)?)?s?bin/[^/]+")
_DESCRIPTOR = re.compile(r"/dev/stdin|/dev/fd/\d+|/proc/[^/]+/fd/\d+")
_BODY = "MARVIN_END_OF_TEXT"
_MAKES = frozenset("tee cp mv ln install curl wget dd sed sort sponge".split())
_HANDS_ON = frozenset("set echo printf read mapfile readarray cat".split())
"""Builtins and programs that pass on their arguments, or a text given to them, unchanged."""
_PASSING_ON = frozenset(["xargs", "parallel"])
_RELATIVE = re.compile(r"\.\.?(/|$)|/")


class CommandReader:
    """Analyses commands in sequence; subclasses define how scripts are read."""

    def __init__(self, root: Path, home: Path, limits: Limits) -> None:
        self.reading = Reading()
        self._root, self._home = root, home
        self._limits = limits
        self._places: frozenset[str | None] = frozenset([str(root)])
        self._input = Input()
        self._fill: tuple[str, ...] = ()
        self._certain = True
        self._posix = self._has_cdpath = self._has_path = self._is_fed = False
        self._stack: tuple[frozenset[str | None], ...] = ()
        self._depth = self._scripts = self._downloads = 0
        self._functions: dict[str, Node] = {}
        self._calling: set[str] = set()
        self._made: dict[str, str | None] = {}
        self._numbers = Numbers()

    def begin_in(self, folder: str) -> None:
        """Set the folder in which the commands begin, relative to the root or absolute."""
        self._places = frozenset([str(self._root / folder)])

    def script(self, text: str, level: Level = "unparsed") -> None:
        """Read a text as a shell does; `level` decides what the text means if that is not possible."""
        raise NotImplementedError

    def _statement(self, statement: Node) -> None:
        raise NotImplementedError

    @contextmanager
    def _within(self, **changes: Any) -> Iterator[None]:
        """For code in a subshell: the folders and the input are restored afterwards."""
        before = {name: getattr(self, name) for name in ("_places", "_input", "_certain", "_fill", "_posix", "_stack")}
        for name, value in changes.items():
            setattr(self, f"_{name}", value)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def _may_be_in(self, places: frozenset[str | None]) -> None:
        self._places = self._places | places
        if len(self._places) > _MOST_PLACES:
            self._places = frozenset([str(self._root), None])

    def _around(self) -> Surroundings:
        return Surroundings(self._root, self._home, self._places, self._fill)

    def _note(self, level: Level, why: str) -> None:
        self.reading.unknown.setdefault(level, why)

    def _danger(self, found: Iterator[Danger], text: str) -> None:
        for danger in found:
            certain = danger.certain and self._certain
            self.reading.dangers.append((danger._replace(certain=certain), text[:_MOST_SHOWN]))

    def _part(
        self, words: Sequence[Word], text: str, added: str, *, prefix: str = "", named: bool = True, needed: bool = True
    ) -> None:
        if len(self.reading.parts) >= self._limits.command_parts:
            raise NotUnderstood("it has too many parts")
        line = " ".join(word.text for word in words)
        lines = [line] if named else []
        bare = without_folder(words[0].text) if named else ""
        if named and bare != words[0].text:
            lines.append(" ".join([bare, *(word.text for word in words[1:])]))
            if _SYSTEM.fullmatch(words[0].text):
                line = lines[-1]
        full = f"{prefix}{line}{added}"
        if prefix or added:
            lines += [f"{prefix}{one}{added}" for one in lines or [line]]
        needs = needed and self._certain
        self.reading.parts.append(Part(text[:_MOST_SHOWN] or shown(line), tuple(lines), full, needs))

    def _command(self, words: Sequence[Word], text: str, prefix: str = "", added: str = "") -> None:
        """Analyse one command: its own part, and the programs that it runs."""
        while len(words) > 1 and is_assignment(words[0].text) and not words[0].text.startswith("-"):
            name, _, value = words[0].text.partition("=")
            prefix += f"{name}{FIRM['=']}{value} "
            self._variable(name, Word(value))
            words = words[1:]
        if len(words) > 1 and words[0].text == "--":  # the end of the options of the keyword `time`
            words = words[2 if words[1].text == "!" and len(words) > 2 else 1 :]
        name = words[0].text
        texts = [word.text for word in words]
        base = without_folder(name)
        added += "".join(f" {FIRM['>']} {file}" for file in aside(base, [base, *texts[1:]]))
        transparent = (
            base in TRANSPARENT
            and (base == name or _SYSTEM.fullmatch(name))
            and not (base == "env" and len(words) > 1 and texts[1].startswith("-"))
        )
        if not prefix and not added and transparent and len(words) > 1:
            self._part(words, text, added, needed=False)
        else:
            self._part(words, text, added, prefix=prefix)
        if not is_known(base):
            self._note("unnamed", f"the name of the command {shown(' '.join(texts))[:60]!r} is only known when it runs")
            self._danger(of_unnamed(texts, self._around()), text)
            if self._input.downloads and base.startswith((GAP, GAPS)):
                self._danger(iter([Danger(DOWNLOADED, certain=False)]), text)
            with self._within(certain=False):
                for word in words[1:]:
                    if " " in word.text:
                        self._nested(as_script(word.text))
            self._feeds(words, base)
            return
        self._follow(base, words, text)

    def _follow(self, base: str, words: Sequence[Word], text: str) -> None:
        texts = [word.text for word in words]
        self._downloads += base in DOWNLOADERS
        self._danger(dangers(base, [base, *texts[1:]], self._around()), text)
        if base in ("cd", "pushd", "popd", "chdir"):
            self._move(base, texts[1:])
        elif base in _MAKES:
            self._makes_files(base, texts)
        if base in _HANDS_ON or base in self._functions:
            self._computing(kept=[*texts[1:], self._input.text])
        for name in set_by_name(base, texts):
            if may_run(name) or (not is_known(name) and self._input.kind == "text"):
                self._note("unnamed", f"{base} sets a variable that programs run")
        for name, value in declared(base, texts):
            self._variable(name, Word(value))
        if base in _INDEXED:
            self._has_cdpath |= "CDPATH" in texts
            self._indexed(words[1:])
            if base not in ("[", "test", "printf") or "-v" in texts:
                self._computing(computed=[text for text in texts[1:] if not is_known(text)])
        if base in self._functions and base not in self._calling:
            self._calling.add(base)
            self._statement(self._functions[base])
            self._calling.discard(base)
        if (self._has_path or "/" in words[0].text) and os.path.basename(words[0].text) in self._made:
            self._file(words[0], program=True)
        self._feeds(words, base)
        for found in inner(base, words):
            if base in _PASSING_ON and self._input.downloads:
                found = found._replace(words=tuple(map(_loaded, found.words)))
            self._inner(found, words)

    def _feeds(self, words: Sequence[Word], base: str) -> None:
        """Whether an interpreter runs downloaded code."""
        texts = [word.text for word in words]
        if (base in SHELLS or INTERPRETER.fullmatch(base)) and _is_led_by_download(words):
            self._danger(iter([Danger(DOWNLOADED, certain=True)]), shown(" ".join(texts)))
        if base in SHELLS:
            if any(word.downloads and has_letter(["", before.text], "c") for before, word in pairwise(words)):
                self._danger(iter([Danger(DOWNLOADED, certain=True)]), shown(" ".join(texts)))
            return
        if base in ("make", "gmake"):
            self._reads_makefile(words)
        if not INTERPRETER.fullmatch(base):
            return
        if self._input.downloads and runs_its_input([base, *texts[1:]]):
            self._danger(iter([Danger(DOWNLOADED, certain=True)]), shown(" ".join(texts)))
        for before, word in pairwise(words):
            if word.downloads and (has_letter(["", before.text], "ceE") or (word.is_file and before is words[0])):
                self._danger(iter([Danger(DOWNLOADED, certain=True)]), shown(" ".join(texts)))

    def _reads_makefile(self, words: Sequence[Word]) -> None:
        for before, word in pairwise(words):
            from_input = word.text in ("-", "/dev/stdin") and self._input.downloads
            if has_letter(["", before.text], "f") and (word.downloads or from_input):
                self._danger(iter([Danger(DOWNLOADED, certain=True)]), shown(" ".join(one.text for one in words)))

    def _move(self, base: str, texts: Sequence[str]) -> None:
        targets = [text for text in texts if text == "-" or not text.startswith("-")]
        if base == "popd" and len(texts) == 0 and self._stack:
            self._places, self._stack = self._stack[-1], self._stack[:-1]
            return
        if base == "pushd":
            self._stack = (*self._stack, self._places)
        if base == "popd" or "-" in targets or (base == "pushd" and not targets):
            self._may_be_in(frozenset([None]))
            return
        target = targets[0] if targets else HOME
        found: set[str | None] = set()
        for place in self._places:
            path, has_rest = resolved(target, place, self._around())
            found.add(None if has_rest else path)
        if self._has_cdpath and not _RELATIVE.match(shown(target)):
            found.add(None)
        self._places = frozenset(found)

    def _inner(self, found: Inner, outer: Sequence[Word]) -> None:
        if found.kind == "hidden":
            self._note("unnamed", f"what {shown(outer[0].text)} runs cannot be determined")
            return
        self._depth += 1
        try:
            if self._depth > _MOST_DEPTH:
                raise TooDeep("it is nested too deep")
            changes: dict[str, Any] = {"certain": self._certain and found.certain}
            if found.place is not None:
                moved = (resolved(found.place.text, place, self._around()) for place in self._places)
                changes["places"] = frozenset(None if rest else path for path, rest in moved)
            if found.by_find:
                changes["fill"] = self._found_by(outer)
                if found.place is not None:
                    changes["places"] = frozenset([*changes["fill"], None])
            with self._within(**changes):
                self._run(found)
        finally:
            self._depth -= 1

    def _found_by(self, words: Sequence[Word]) -> tuple[str, ...]:
        """The replacement for `{}` of find, absolute if that is known."""
        fill: list[str] = []
        texts = [word.text for word in words]
        action = next(text for text in texts if text in FIND_RUNS)
        for target in find_targets(texts, action):
            for place in self._places:
                path, has_rest = resolved(target, place, self._around())
                end = "/" if target.endswith("/") else ""  # find follows a link that is a starting folder
                fill.append(target if path is None or has_rest else f"{path}{end}")
        return tuple(fill)

    def _run(self, found: Inner) -> None:
        if found.kind in ("command", "loose"):
            words = list(found.words)
            text = shown(" ".join(word.text for word in words))
            if found.kind == "loose" and not is_known(words[0].text):
                return
            if found.by_find and without_folder(words[0].text) in ("rm", "srm"):
                targets = [word.text for word in words[1:] if not word.text.startswith("-")]
                self._danger((one for target in targets for one in removals(target, self._around())), text)
                self._part(words, text, "")
            else:
                self._command(words, text)
            return
        with self._within(posix=found.dialect == "posix" or (found.dialect == "same" and self._posix)):
            if found.dialect == "other":
                self._note("unnamed", "a shell other than bash may parse it differently")
            if found.kind == "script":
                self._text_script(found.words)
            elif found.kind == "input":
                self._from_input()
            else:
                self._file(found.words[0])

    def _text_script(self, words: Sequence[Word]) -> None:
        """A script in words. If a piece of it is unknown, the rest is judged as far as possible."""
        text = " ".join(word.text for word in words)
        if any(word.downloads for word in words):
            self._danger(iter([Danger(DOWNLOADED, certain=True)]), shown(text))
        if any(mark in text for mark in (GAP, GAPS, STAR, ONE, SET)):
            self._note("hidden" if text.startswith((GAP, GAPS)) else "unnamed", "a script is only known when it runs")
            with self._within(certain=False):
                self._nested(as_script(text))
        else:
            self._nested(as_script(text))

    def _nested(self, text: str) -> None:
        self._depth += 1
        try:
            if self._depth > _MOST_DEPTH:
                raise TooDeep("it is nested too deep")
            self.script(text, "unparsed" if self._certain else "unnamed")
        finally:
            self._depth -= 1

    def _from_input(self) -> None:
        """A shell that reads its script from standard input."""
        found = self._input
        if found.downloads:
            self._danger(iter([Danger(DOWNLOADED, certain=True)]), DOWNLOADED)
        if found.kind == "unknown" or found.is_piped:
            self._note("hidden", "a shell runs what comes through its standard input")
        if found.kind == "text":
            with self._within(input=Input()):
                self._text_script([Word(found.text)])

    def _file(self, word: Word, *, program: bool = False) -> None:
        """A script in a file: readable only if the command itself writes the file."""
        if word.downloads:
            self._danger(iter([Danger(DOWNLOADED, certain=True)]), DOWNLOADED)
        name = os.path.basename(word.text)
        if word.is_file or _DESCRIPTOR.fullmatch(word.text) or self._may_be_made(word.text):
            self._note("hidden", "a shell runs a file that the command itself creates")
        elif name in self._made:
            text = self._made[name] or ""
            if not program or not text.startswith("#!") or any(shell in text.split("\n")[0] for shell in SHELLS):
                self._text_script([Word(text)])

    def _may_be_made(self, text: str) -> bool:
        """Whether the command itself may write this file, with unknown content."""
        name = os.path.basename(text)
        if not is_known(text):
            return bool(self._made) or (self._is_fed and not is_known(name))
        return (name in self._made and self._made[name] is None) or not all(map(is_known, self._made))

    def _makes_files(self, base: str, texts: Sequence[str]) -> None:
        made = [*outputs(base, [base, *texts[1:]]), *downloaded_to(base, texts)]
        if base in ("cp", "mv", "ln", "install"):
            made += [text for text in texts[1:] if not text.startswith("-")]
        text = self._input.text if base == "tee" and "-a" not in texts and self._input.kind == "text" else None
        for target in made:
            self._made[os.path.basename(target)] = text

    def _variable(self, name: str, word: Word) -> None:
        self._has_cdpath |= name == "CDPATH"
        self._has_path |= name == "PATH"
        self._computing(kept=[word.text])
        if is_command(name):
            self._text_script([word])
        elif name.startswith("BASH_FUNC_"):
            self._text_script([Word(f"f{word.text}", downloads=word.downloads)])
        elif has_program(name, word.text):
            self._note("unnamed", f"{name} may contain the name of a program")
        elif is_file(name):
            self._file(word)
            self._indexed([word])
        elif name == "GIT_CONFIG_PARAMETERS" or (name.startswith("GIT_CONFIG_KEY_") and may_be_run(word.text)):
            self._note("unnamed", "git settings in the environment may contain the names of programs")
        else:
            self._indexed([word])

    def _computing(self, *, kept: Sequence[str] = (), computed: Sequence[str] = ()) -> None:
        """Record texts that the script stores or passes on, and those that a shell uses in arithmetic."""
        if self._numbers.may_be_code(kept, computed):
            self._note("unnamed", "a number is only known when it runs, and may contain code")

    def _indexed(self, words: Sequence[Word]) -> None:
        """A text that is evaluated as a number or a name: code in its brackets may run."""
        for word in words:
            if _CODE.search(word.text) and _BODY not in word.text:
                with self._within(certain=False):
                    self._nested(f"cat <<{_BODY}\n{as_script(word.text)}\n{_BODY}")


def _is_led_by_download(words: Sequence[Word]) -> bool:
    """Whether downloaded words decide what an interpreter runs: they stand before all known words."""
    first = next((word for word in words[1:] if not word.text.startswith("-")), None)
    return first is not None and first.downloads and first.text in (GAP, GAPS)


def _loaded(word: Word) -> Word:
    """A word whose value is unknown, such as a downloaded one."""
    return Word(word.text, downloads=True) if word.text in (GAP, GAPS) else word
