"""Finds weakened tests: compares tests one by one, by name, also if they were moved."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from .files import is_still_found
from .model import STRENGTH, Assertion, Mark, TestFile, Unit, Weakening

_ANYTHING = frozenset({"Exception", "BaseException", "Error", ""})
"""Exception classes that nearly every mistake raises."""
_HOOKS = ("pytest_",)
_RUNNER = re.compile(r"(?:test|it|describe|expect|pytest|unittest|assert\w*)")
"""Names of test frameworks: redefining one of them can weaken any test."""
_WORD = re.compile(r"\w+")
_RELATIVE = re.compile(r"(?<=[\"' ])\.{1,2}/(?:\.\./)*")
_CANDIDATES = 50
"""New tests of one name, or of the same words, that are compared with an old one."""


def weakenings(before: Mapping[str, TestFile], now: Mapping[str, TestFile]) -> list[Weakening]:
    """The places where tests are weaker than before.

    Args:
        before: the old content of changed test files, by path.
        now: the new content of these and of new files.
    """
    places = _Places(before, now)
    found: list[Weakening] = []
    for path, file in before.items():
        for unit in file.units:
            found += _of_unit(places, path, unit)
    for path, file in now.items():
        origin = places.origin(path)
        found += _of_file(path, origin, file)
        if origin is not None:
            found += _of_values(path, origin, file, is_moved=path not in before)
    return found


def _of_unit(places: _Places, path: str, unit: Unit) -> Iterator[Weakening]:
    where, same = places.find(path, unit)
    if same is not None:
        for what, line, old, new in compared(unit, same):
            yield Weakening(file=where, line=line, test=unit.name, what=what, before=old, after=new)
    elif unit.is_test:
        what = "the test was removed, or no runner finds it any more"
        yield Weakening(file=path, line=unit.line, test=unit.name, what=what, before=unit.body)


class _Places:
    """Finds the current places of tests.

    Args:
        before: the old files.
        now: the new files.
    """

    def __init__(self, before: Mapping[str, TestFile], now: Mapping[str, TestFile]) -> None:
        self._now = {(path, unit.name): unit for path, file in now.items() for unit in file.units}
        old = {(path, unit.name) for path, file in before.items() for unit in file.units}
        self._new: dict[str, list[tuple[str, Unit]]] = {}
        self._bodies: dict[str, list[tuple[str, Unit]]] = {}
        for (path, name), unit in self._now.items():
            if (path, name) not in old:
                self._new.setdefault(_bare(name), []).append((path, unit))
                self._bodies.setdefault(unit.body, []).append((path, unit))
        self._taken: set[tuple[str, str]] = set()
        self._before = before
        self._moved: dict[str, str] = {}

    def find(self, path: str, unit: Unit) -> tuple[str, Unit | None]:
        """The new place of a test; None if it is gone. A new test matches only one old test."""
        same = self._now.get((path, unit.name))
        if same is not None and same.is_test >= unit.is_test:
            return path, same
        for place, other in (*self._free(self._new, _bare(unit.name)), *self._free(self._bodies, unit.body)):
            if other.is_test >= unit.is_test and is_still_found(path, place):
                self._taken.add((place, other.name))
                self._moved[place] = path
                return place, other
        return path, None

    def _free(self, among: dict[str, list[tuple[str, Unit]]], key: str) -> list[tuple[str, Unit]]:
        """The new tests that match no old one yet."""
        free = [each for each in among.get(key, ()) if (each[0], each[1].name) not in self._taken]
        if free:
            among[key] = free
        return free[:_CANDIDATES]

    def origin(self, path: str) -> TestFile | None:
        """The old version of the file, or the file that its tests came from; None for a new one."""
        return self._before.get(path) or self._before.get(self._moved.get(path, ""))


def _bare(name: str) -> str:
    return name.rpartition("::")[2].rpartition(" > ")[2]


def _of_file(path: str, before: TestFile | None, now: TestFile) -> Iterator[Weakening]:
    """Changes outside of tests: skips of the whole file, hooks, names of the runner."""
    old = before or TestFile(values={})
    for mark in _added(old.skips, now.skips):
        if before is not None or mark.text.startswith(("collect_ignore", "only")) or path.endswith("conftest.py"):
            what = "tests are left out: a skip of the file, or an `only`"
            yield Weakening(file=path, line=mark.line, test="", what=what, after=_shown(mark))
    known = {unit.name for unit in old.units}
    for unit in now.units:
        if unit.name in known or unit.is_test:
            continue
        if path.endswith("conftest.py") and unit.name.startswith(_HOOKS):
            what = "a hook of the test runner was added, which can change what tests do"
            yield Weakening(file=path, line=unit.line, test="", what=what, after=f"def {unit.name}")
        if before is not None and _RUNNER.fullmatch(_bare(unit.name)):
            what = "a name that tests use gets another meaning"
            yield Weakening(file=path, line=unit.line, test="", what=what, after=unit.name)
        for mark in unit.skips:
            what = "a new helper leaves tests out"
            yield Weakening(file=path, line=mark.line, test=unit.name, what=what, after=_shown(mark))


def _of_values(path: str, before: TestFile, now: TestFile, *, is_moved: bool) -> Iterator[Weakening]:
    """Named values that changed; in a file that was moved, relative imports differ."""
    used = {word for unit in now.units for word in _WORD.findall(unit.body)}
    for name, value in before.values.items():
        after = now.values.get(name)
        if after is None and _bare(name) in used:  # defined elsewhere: a function next to the tests, or another import
            after = Mark(text="", line=1)
        if after is None or after.text == value.text or _keeps_all(value.text, after.text):
            continue
        if is_moved and _RELATIVE.sub("", value.text) == _RELATIVE.sub("", after.text):
            continue
        what = f"the value {name}, which tests use, was changed"
        yield Weakening(file=path, line=after.line, test="", what=what, before=value.text, after=after.text)


def compared(before: Unit, now: Unit) -> Iterator[tuple[str, int, str, str]]:
    """The weakenings of a test or a helper: the kind, the line, and the old and the new text."""
    for mark in _added(before.skips, now.skips):
        yield "it is skipped, or allowed to fail", mark.line, "", _shown(mark)
    for mark in _added(before.marks, now.marks):
        yield "a mark was added, which lets runners leave it out", mark.line, "", mark.text
    for mark in _added(before.exits, now.exits):
        yield "it returns early", mark.line, "", _shown(mark)
    for mark in _added(now.cases, before.cases):
        yield "a case was removed or changed", now.line, mark.text, ""
    yield from _of_assertions(before.assertions, now)
    yield from _of_statements(before.statements, now)


def _of_assertions(before: Sequence[Assertion], now: Unit) -> Iterator[tuple[str, int, str, str]]:
    known: dict[tuple[object, ...], list[Assertion]] = {}
    for each in now.assertions:
        known.setdefault(_key(each), []).append(each)
    open_ones: list[Assertion] = []
    for old in before:
        same = known.get(_key(old))
        if not same:
            open_ones.append(old)
            continue
        at = min(range(len(same)), key=lambda number: len(_more(old.guards, same[number].guards)))
        new = same.pop(at)
        if more := _more(old.guards, new.guards):
            yield f"the assertion was put behind a condition: {more[0]}", new.line, old.text, new.text
    left = [each for each in now.assertions if any(each is one for one in known[_key(each)])]
    for old in open_ones:
        nearest = _nearest(old, left)
        if nearest is None:
            yield "an assertion was removed", now.line, old.text, ""
            continue
        left.remove(nearest)
        more = _more(old.guards, nearest.guards)
        if why := weaker(old, nearest) or (f"it was put behind a condition: {more[0]}" if more else ""):
            yield f"an assertion was changed: {why}", nearest.line, old.text, nearest.text


def _nearest(old: Assertion, left: Sequence[Assertion]) -> Assertion | None:
    """The assertion that replaces an old one: the strongest one of the same subject, else a similar one."""
    same = [new for new in left if new.subject == old.subject]
    if same:
        return max(same, key=lambda new: (not weaker(old, new), STRENGTH[new.kind]))
    alike = [new for new in left if new.kind == old.kind and (new.expected == old.expected or old.kind == "raises")]
    return next(iter([*alike, *left]), None)


def weaker(old: Assertion, new: Assertion) -> str:
    """Why an assertion is weaker than the one that it replaces, or about something else; empty if it is not."""
    if new.kind == "nothing":
        return "it is always true, whatever the program does"
    if new.subject != old.subject and not (old.kind == new.kind == "raises"):
        return "it checks something else"
    if STRENGTH[new.kind] < STRENGTH[old.kind]:
        return f"it is weaker, `{new.kind}` in place of `{old.kind}`"
    if new.kind != old.kind:
        return "" if STRENGTH[new.kind] > STRENGTH[old.kind] else f"`{new.kind}` in place of `{old.kind}`"
    if new.kind == "raises":
        return _wider_exception(old, new)
    if new.expected != old.expected:
        return "the expected value was changed"
    if new.detail != old.detail:
        return "the tolerance is specified differently"
    if old.tolerance is not None and new.tolerance is not None and new.tolerance > old.tolerance:
        return "the tolerance is wider"
    return "" if new.tolerance == old.tolerance or new.tolerance is not None else "the tolerance was changed"


def _wider_exception(old: Assertion, new: Assertion) -> str:
    if new.expected != old.expected and old.expected not in _ANYTHING:
        return "it accepts nearly any exception" if new.expected in _ANYTHING else "the expected exception was changed"
    if old.detail and new.detail != old.detail:
        return "the message of the exception is checked less strictly"
    return ""


def _of_statements(before: Sequence[Mark], now: Unit) -> Iterator[tuple[str, int, str, str]]:
    gone, new = _added(now.statements, before), _added(before, now.statements)
    for number, mark in enumerate(gone):
        after = new[number] if number < len(new) else None
        line, text = (after.line, after.text) if after else (now.line, "")
        if after is None or not _keeps_all(mark.text, after.text):
            yield "what it does was changed", line, mark.text, text
    old: dict[str, list[Mark]] = {}
    for mark in before:
        old.setdefault(mark.text, []).append(mark)
    for mark in now.statements:
        ways = [_more(same.guards, mark.guards) for same in old.get(mark.text, ())[:_CANDIDATES]]
        if more := min(ways, key=len, default=[]):
            yield f"what it does was put behind a condition: {more[0]}", mark.line, mark.text, mark.text


def _key(one: Assertion) -> tuple[object, ...]:
    return one.kind, one.subject, one.expected, one.detail, one.tolerance


def _more(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """The new conditions."""
    old = Counter(before)
    return [guard for guard, count in Counter(now).items() if count > old[guard]]


def _added(before: Sequence[Mark], now: Sequence[Mark]) -> list[Mark]:
    """The elements that occur more often in the second list than in the first."""
    old = Counter(mark.text for mark in before)
    found = []
    for mark in now:
        if old[mark.text]:
            old[mark.text] -= 1
        else:
            found.append(mark)
    return found


def _shown(mark: Mark) -> str:
    return ": ".join((*mark.guards, mark.text))


def _keeps_all(before: str, now: str) -> bool:
    """Whether a list, or a loop over one, still has all of its elements, and possibly more."""
    old, new = _elements(before), _elements(now)
    return bool(old) and bool(new) and not Counter(old) - Counter(new)


def _elements(text: str) -> list[str]:
    """The elements of a literal list; none for anything else. For a loop over one, also its head."""
    head, _, rest = text.partition(" in ") if text.startswith("for ") else ("", "", text)
    try:
        value = ast.parse(rest.strip(), mode="eval").body
        if isinstance(value, ast.Dict):
            pairs = zip(value.keys, value.values, strict=True)
            return [head, *(f"{ast.unparse(key) if key else '**'}: {ast.unparse(each)}" for key, each in pairs)]
        if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
            return [head, type(value).__name__, *(ast.unparse(each) for each in value.elts)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return []
