"""Compares the tests of two commits."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from marvin_core import Record, ToolError, in_thread, one_line, output_text

from ..checks.repair import time_for_command
from .syntax.files import counts, is_among_tests, is_data, is_settings, language_of
from .syntax.mocks import ALTERNATIVES

if TYPE_CHECKING:
    from ..run.context import Run
    from ..run.git.commits import Change

_PROGRAM = f"{__package__}.syntax.program"
_OUTPUT = 4_000_000
"""Bytes of the comparing program's output."""
_FILES = 2_000
"""Files that are compared at most."""
_TEXT, _LINE = 600, 300
_OWN = (".marvin/", ".tickets/")
_DATA = "a file beside the tests, which they may use for comparison, was changed or removed, and it cannot be read"
_OVERLOOKED = "git is configured to ignore changes of this file, so its content is in no commit"


class Place(Record):
    """A place where tests are weakened, or where a mock replaces real behaviour."""

    file: str
    line: int
    what: str
    test: str = ""
    """Empty if it is about several tests, or none."""
    before: str = ""
    after: str = ""

    @property
    def key(self) -> str:
        """A key that does not depend on the line number."""
        parts = (self.file, self.test, self.what, self.before, self.after)
        return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def told(self) -> str:
        """The place on one line: `FILE:LINE: what`."""
        changed = " -> ".join(filter(None, (one_line(self.before, _LINE), one_line(self.after, _LINE))))
        words = ": ".join(filter(None, (self.test, self.what, changed)))
        return one_line(f"{self.file}:{self.line}: {words}", 3 * _LINE)


class Looked(Record):
    """The result of a comparison. `unread` are the files that could not be compared, with the reason, one a line."""

    weakened: tuple[Place, ...] = ()
    replaced: tuple[Place, ...] = ()
    unread: tuple[str, ...] = ()


async def look(run: Run, base: str, commit: str) -> Looked:
    """The tests of a commit that are weaker than those of an earlier one, and the mocks in them.

    What cannot be compared counts as weakened.

    Raises:
        GitFault: git fails.
        BudgetExceeded: the time is used up.
    """
    commits = run.git.commits
    changes = [each for each in await commits.changes(base, commit) if _matters(each.path)]
    hidden = [name for name in await commits.overlooked() if _hides(name)]
    overlooked = tuple(Place(file=name, line=1, what=_OVERLOOKED) for name in hidden)
    data = tuple(
        Place(file=each.path, line=1, what=_DATA)
        for each in changes
        if each.before and is_data(each.path) and not is_settings(each.path)
    )
    read = [each for each in changes if language_of(each.path) or is_settings(each.path)]
    if len(read) > _FILES:
        what = f"{len(read):,} files of tests and settings were changed, too many to compare"
        return Looked(weakened=(Place(file=".", line=1, what=what), *overlooked, *data))
    found = await _compared(run, base, read) if read else Looked()
    return found.replace(weakened=(*found.weakened, *overlooked, *data))


def _matters(path: str) -> bool:
    return counts(path) and not path.startswith(_OWN)


def _hides(path: str) -> bool:
    """Whether a file that git ignores would be part of the tests: code or settings."""
    return _matters(path) and (is_settings(path) or (is_among_tests(path) and language_of(path) not in ("", "rust")))


async def _compared(run: Run, base: str, changes: Sequence[Change]) -> Looked:
    contents = await run.git.commits.contents(name for each in changes for name in (each.before, each.after))
    tests = [name for name in await run.git.commits.names(base) if is_among_tests(name) and language_of(name)]
    order = await in_thread(lambda: _order(changes, contents, tests))
    missing = tuple(
        Place(file=each.path, line=1, what="git did not return the earlier or the current content of this file")
        for each in changes
        if any(name and name not in contents for name in (each.before, each.after))
    )
    found = await _run(run, order)
    return found.replace(weakened=(*found.weakened, *missing))


def _order(changes: Sequence[Change], contents: Mapping[str, bytes], tests: Sequence[str]) -> bytes:
    def texts(of: str) -> dict[str, str]:
        return {
            each.path: contents[name].decode("utf-8", "replace")
            for each in changes
            if (name := getattr(each, of)) in contents
        }

    return json.dumps({"before": texts("before"), "now": texts("after"), "tests": list(tests)}).encode()


async def _run(run: Run, order: bytes) -> Looked:
    why = ""
    try:
        done = await run.control.session.processes.run(
            [sys.executable, "-P", "-m", _PROGRAM],
            cwd=run.folder,
            stdin=order,
            timeout=time_for_command(run),
            output_limit=_OUTPUT,
            title="compare the tests",
        )
        if done.exit_code == 0 and not done.omitted:
            return await in_thread(lambda: _looked(json.loads(done.output)))
        why = "took too long" if done.timed_out else output_text(done.stderr)[-_TEXT:] or "failed"
    except (ToolError, ValueError, KeyError, TypeError, RecursionError) as error:
        why = str(error) or type(error).__name__
    what = f"the tests could not be compared with their earlier versions: {one_line(why, _LINE)}"
    return Looked(weakened=(Place(file=".", line=1, what=what),))


def _looked(said: Any) -> Looked:
    weakened = [
        Place(
            file=str(each["file"]),
            line=int(each["line"]),
            test=str(each["test"]),
            what=str(each["what"]),
            before=str(each["before"]),
            after=str(each["after"]),
        )
        for each in said["weakened"]
    ]
    if said["more"]:
        weakened.append(Place(file=".", line=1, what=f"there are {int(said['more']):,} further places"))
    replaced = (
        Place(
            file=str(each["file"]),
            line=int(each["line"]),
            what=f"it replaces real behaviour; instead, {ALTERNATIVES[each['kind']]}",
            after=str(each["text"]),
        )
        for each in said["replaced"]
    )
    unread = tuple(one_line(f"{each['file']}: {each['why']}", _LINE) for each in said["unread"])
    return Looked(weakened=tuple(weakened), replaced=tuple(replaced), unread=unread)
