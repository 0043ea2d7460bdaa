"""The permission policy: the rules of config.yaml, declarations of tools, and built-in lists of dangers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from ...api.config import Config
from ...api.hooks import Ask, Deny
from ...api.tools import ToolSpec
from ...util.patterns.texts import fold
from ...util.threads import in_thread
from ..files.key_files import is_key_file
from .path_spellings import binding, folds_case, meant, spellings
from .rules import Rule, Rules, asked, denied, nobody_there
from .verdicts import Allow, Explanation, Judgement, strongest

_PATH_NAME = re.compile(r"path|file(?!.*(filter|type))|folder|attachment|image|^(source|src)$", re.IGNORECASE)
"""The names of parameters that hold paths, unless the tool declares them."""
_HOME_PARTS = 3
"""The number of parts of a home folder's path; a working directory with more cannot contain one."""
FOLDER = "cwd"
"""The parameter of a shell tool that names the folder in which the command starts."""


class Policy:
    """Judges calls by the user's rules and the built-in lists; hooks can only tighten its verdicts."""

    def __init__(self, config: Config) -> None:
        self._rules = Rules(config.permissions)
        self._config = config

    async def judged(
        self, spec: ToolSpec, arguments: Mapping[str, Any], root: Path, *, confined: bool = False
    ) -> Judgement:
        """The verdict of `judge`. If a command must be parsed, that is done without blocking the event loop."""
        work = partial(self.judge, spec, arguments, root, confined=confined)
        command = arguments.get(spec.command)
        if isinstance(command, str):
            from .shell_reader import simple_words

            if simple_words(command) is None:
                return await in_thread(work)
        return work()

    def judge(self, spec: ToolSpec, arguments: Mapping[str, Any], root: Path, *, confined: bool = False) -> Judgement:
        """The verdict of the rules; it is None if nothing speaks for or against the call.

        Blocks while a parser runs, which only plain commands do not need.

        Args:
            root: the working directory.
            confined: whether the call runs in an effective sandbox.
        """
        command = arguments.get(spec.command)
        if not isinstance(command, str):
            return self._judge_values(spec, arguments, root)
        from .command_judge import CommandJudge

        folder = arguments.get(FOLDER)
        judgement = CommandJudge(self._config, self._rules.of(spec.name), spec.name).judge(
            command, root, confined=confined, folder=folder if isinstance(folder, str) else ""
        )
        others = list(texts_in({name: value for name, value in arguments.items() if name != spec.command}))
        if not others:
            return judgement
        return judgement.replace(verdict=strongest(judgement.verdict, self._forbidding(spec, others, root)))

    def _judge_values(self, spec: ToolSpec, arguments: Mapping[str, Any], root: Path) -> Judgement:
        values = list(texts_in(arguments)) if self._rules.are_any else []
        forbidding = self._forbidding(spec, values, root)
        if isinstance(forbidding, Deny):
            return Judgement(verdict=forbidding)
        if forbidding is not None:
            return self._asked(spec, arguments, root, forbidding)
        allowing = self._allowing(spec, arguments, values, root)
        if allowing is None or allowing.is_whole:
            kept = self._guarded(spec, arguments, root)
            if kept is not None:
                return kept
        if allowing is not None:
            return Judgement(verdict=Allow(rule=allowing.text))
        return self._unread(spec, arguments, root) or Judgement(
            verdict=None, explain=lambda: Explanation(remember=self._remember(spec, arguments))
        )

    def _asked(self, spec: ToolSpec, arguments: Mapping[str, Any], root: Path, asking: Ask) -> Judgement:
        """The verdict of an ask rule. A call that would be refused without the rule is denied if nobody can answer."""
        guarded = self._guarded(spec, arguments, root)
        if guarded is not None and isinstance(guarded.verdict, Ask):
            return guarded.replace(verdict=Ask(reason=f"{asking.reason}; {guarded.verdict.reason}"))
        refused = guarded or self._unread(spec, arguments, root)
        return refused if refused is not None and self._config.non_interactive else Judgement(verdict=asking)

    def _guarded(self, spec: ToolSpec, arguments: Mapping[str, Any], root: Path) -> Judgement | None:
        place = self._kept_place(spec, arguments, root)
        if not place:
            return None
        return self._dangerous(spec, f"changes {place}, a place for keys or for files that programs run automatically")

    def _unread(self, spec: ToolSpec, arguments: Mapping[str, Any], root: Path) -> Judgement | None:
        """The denial of files that no tool reads unless a rule names them."""
        if "read" not in spec.access:
            return None
        paths = {path: meant(path, root) for path in _paths_in(arguments)}
        if not paths:
            return None
        if found := _key_file(paths, root):
            return _not_read(spec, found, "a file for keys or passwords")
        if found := self._private_place(paths, root):
            return _not_read(spec, found, "a place for keys, a browser profile, or a command history")
        return None

    def _kept_place(self, spec: ToolSpec, arguments: Mapping[str, Any], root: Path) -> str:
        """The guarded place in a home folder that a call changes; empty for none."""
        if not spec.changes or not self._may_hold_a_home(root):
            return ""
        named = _paths_in(arguments)
        if not named:
            return ""
        from ..sandbox.home_places import kept_place

        return kept_place((place for path in named for place in meant(path, root)), root, self._config.home)

    def _private_place(self, paths: Mapping[str, Sequence[str]], root: Path) -> str:
        """The place in a home folder that a call reads and that is hidden from commands; empty for none."""
        if not self._may_hold_a_home(root):
            return ""
        from ..sandbox.home_places import private_place

        return private_place(chain.from_iterable(paths.values()), root, self._config.home)

    def _may_hold_a_home(self, root: Path) -> bool:
        return len(root.parts) <= max(_HOME_PARTS, self._parts_of_home)

    @cached_property
    def _parts_of_home(self) -> int:
        return len(self._config.home.resolve().parts)

    def _dangerous(self, spec: ToolSpec, what: str) -> Judgement:
        """A question that is always asked; a denial in a non-interactive run."""
        if not self._config.non_interactive or self._config.when_asked(spec.name) == "allow-all":
            return Judgement(verdict=Ask(reason=f"this call {what}"), alarm=what)
        return Judgement(verdict=nobody_there(f"this call {what}"))

    def _forbidding(self, spec: ToolSpec, values: Sequence[str], root: Path) -> Deny | Ask | None:
        denying = self._first(self._rules.deny, spec, values, root)
        if denying is not None:
            return Deny(reason=denied(denying))
        asking = self._first(self._rules.ask, spec, values, root)
        return None if asking is None else Ask(reason=asked(asking))

    def _first(self, rules: list[Rule], spec: ToolSpec, values: Sequence[str], root: Path) -> Rule | None:
        """The first rule that matches a call, by any of its texts in any spelling."""
        for rule in rules:
            if rule.names(spec.name) and (rule.is_whole or any(_fits(rule, value, root) for value in values)):
                return rule
        return None

    def _allowing(self, spec: ToolSpec, arguments: Mapping[str, Any], values: Sequence[str], root: Path) -> Rule | None:
        """The first rule that allows a call. It must match every subject of the call, each path by its real location.

        If one matching text were enough, the content of a file could satisfy a rule meant for its path.
        """
        rules = [rule for rule in self._rules.allow if rule.names(spec.name)]
        subjects = _subjects(spec, arguments, values) if rules else ()
        for rule in rules:
            if rule.is_whole or (subjects and all(_is_bound(rule, value, root) for value in subjects)):
                return rule
        return None

    def _remember(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
        path = arguments.get("path")
        if not spec.changes or not isinstance(path, str):
            return ""
        from .remembered import path_rule

        return path_rule(spec.name, path)


def _fits(rule: Rule, value: str, root: Path) -> bool:
    found = spellings(value, root)
    if any(map(rule.pattern.fits, found)):
        return True
    return folds_case(root) and any(rule.pattern.folded.fits(fold(one)) for one in found)


def _is_bound(rule: Rule, value: str, root: Path) -> bool:
    return any(map(rule.pattern.fits, binding(value, root)))


def _subjects(spec: ToolSpec, arguments: Mapping[str, Any], values: Sequence[str]) -> Sequence[str]:
    """The texts that a call is about: its required paths, else its first parameter, else all of them."""
    known = spec.parameters.get("properties", {})
    required = spec.parameters.get("required") or ()
    first = next(iter((*required, *known)), "")
    needed = [name for name in arguments if _holds_path(name) and (name in required or not required)]
    if needed or _holds_path(first):
        return _paths_in({name: value for name, value in arguments.items() if value is not None})
    return list(texts_in(arguments.get(first))) or values


def _paths_in(arguments: Mapping[str, Any]) -> list[str]:
    return [text for name, value in arguments.items() if _holds_path(name) for text in texts_in(value)]


@lru_cache(maxsize=1_024)
def _holds_path(parameter: str) -> bool:
    return _PATH_NAME.search(parameter) is not None


def _not_read(spec: ToolSpec, path: str, what: str) -> Judgement:
    return Judgement(
        verdict=Deny(
            reason=f"{path} is {what}, which tools may not read. To allow it, the user can add `{spec.name}({path})` "
            "to permissions.allow in config.yaml"
        )
    )


def _key_file(paths: Mapping[str, Sequence[str]], root: Path) -> str:
    """The first of these paths that is a key file, as an allow rule would have to name it.

    `paths` has the places that each of them may mean.
    """
    for path, places in paths.items():
        if any(map(is_key_file, (path, *places))):
            named = binding(path, root) or [path]
            return path if path in named else named[-1]
    return ""


def texts_in(value: Any) -> Iterator[str]:
    """Every text in the arguments, including lists and objects: nesting must not bypass a rule."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from texts_in(inner)
