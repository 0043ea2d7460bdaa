"""A question about calls in plain lines: its display, and the meaning of the lines typed below it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from ..api.permissions import NO, AskedCall, PermissionAnswer, Question, Reply
from ..util.terminal_text import exact, exact_line
from ..util.text import counted
from .quoted import Quoting
from .rendering import Measure, Paint

_ROWS = 20
"""The number of rows of a command or its arguments that are shown at first."""
_DIFF_ROWS = 40
_REASON = 400
"""The number of characters of a reason that are shown at first: a model writes some of them, and a long one could hide
the command.
"""
_ROWS_IN_LIST = 6
_DIFF_ROWS_IN_LIST = 10
_WORDS: dict[PermissionAnswer, str] = {
    "once": "yes",
    "session": "session",
    "always": "always",
    "edit": "edit",
    "no": "no",
}
_MEANINGS: dict[str, str] = {
    "yes": "run it",
    "session": "run it, and calls like it until Marvin ends",
    "always": "run it, and store a rule that allows it",
    "edit": "edit the command first",
    "no": "do not run it; `no TEXT` also tells the model TEXT",
    "view": "show it in full",
}
_LIST_HINT = """\
That is not an answer; nothing was run. Answer with one of these, or its first letter:
  all       run them
  none      run none; `none TEXT` also tells the model TEXT
  1,3-4 run only these
  each      ask about each one
  view      show all of them; `view 2` one"""
_Stage: TypeAlias = Literal["list", "call", "rule", "command"]


class QuestionPrompt:
    """One question until all calls have decisions.

    `sign` is shown before the line of the answer, which begins as `draft`. The results of `begin` and `take` are to be
    shown.
    """

    def __init__(
        self, question: Question, paint: Paint, width: int, measure: Measure, quoting: type[Quoting] = Quoting
    ) -> None:
        self._question = question
        self._paint = paint
        self._quoted = quoting(paint, width, measure).rows
        self._replies: list[Reply] = []
        self._stage: _Stage = "list" if len(question.calls) > 1 else "call"
        self.draft = ""

    @property
    def replies(self) -> Sequence[Reply] | None:
        """The decisions, once there is one for each call."""
        return self._replies if len(self._replies) >= self._question.answers else None

    @property
    def answered(self) -> int:
        """The number of calls with a decision."""
        return len(self._replies) + (self._stage == "list")

    @property
    def is_line(self) -> bool:
        """Whether the question needs a whole line: a rule, or a command."""
        return self._stage in ("rule", "command")

    def key(self, key: str) -> str | None:
        """The line that a single key stands for, or its beginning if it ends with a space; None if the key is no
        answer.

        No key allows a dangerous call.
        """
        if self.is_line:
            return None
        words = ["all", "none", "each", "view"] if self._stage == "list" else self._words()
        no = "none" if self._stage == "list" else "no"
        if key == "t":
            return f"{no} "
        word = next((word for word in words if key and word.startswith(key)), None)
        call = self._call
        alarm = self._question.alarm if self._stage == "list" else call is not None and call.alarm
        return None if alarm and word in ("yes", "all") else word

    def begin(self) -> str:
        """The text of the question."""
        return "\n".join(self._rows(whole=False))

    @property
    def sign(self) -> str:
        """The possible answers at this moment."""
        if self._stage == "rule":
            return "rule to store (empty: back) > "
        if self._stage == "command":
            return "command (empty: back) > "
        if self._stage == "list":
            return "[all/none/1,2/each/view] "
        return f"[{'/'.join(self._words())}] "

    def refuse(self) -> None:
        """Deny all calls without a decision."""
        self._replies += [NO] * (self._question.answers - len(self._replies))

    def take(self, line: str) -> str:
        """Process a typed line; returns what is to be shown next."""
        line, self.draft = line.strip(), ""
        if self._stage == "list":
            return self._take_list(line)
        if self._stage == "call":
            return self._take_call(line)
        stage, self._stage = self._stage, "call"
        if not line:
            return self.begin()
        says: PermissionAnswer = "always" if stage == "rule" else "edit"
        return self._reply(Reply(says=says, **{stage: line}))

    # --- answers -----------------------------------------------------------------------------------

    @property
    def _call(self) -> AskedCall | None:
        """The call in question."""
        calls = self._question.calls
        return calls[len(self._replies)] if calls else None

    def _words(self) -> list[str]:
        call = self._call
        words = [_WORDS[answer] for answer in (call.answers if call else ("once", "no"))]
        return [*words, "view"] if call else words

    def _reply(self, reply: Reply) -> str:
        self._replies.append(reply)
        return "" if self.replies is not None else self.begin()

    def _take_call(self, line: str) -> str:
        head, _, rest = line.partition(" ")
        asked, rest = head.lower().rstrip(",:."), rest.strip()
        words = self._words()
        word = next((one for one in words if asked and one.startswith(asked)), "")
        call = self._call
        if word == "view":
            return "\n".join(self._rows(whole=True))
        if word == "no":
            return self._reply(Reply(says="no", text=rest))
        if word in ("always", "edit") and call is not None:
            return self._longer(word, rest, call)
        if not word or rest:
            return self._paint("notice", self._hint(words))
        if call is not None and call.alarm and word == "yes" and asked != "yes":
            return self._paint("error", "This call is dangerous: type yes in full to run it.")
        return self._reply(Reply(says="once" if word == "yes" else "session"))

    def _longer(self, word: str, rest: str, call: AskedCall) -> str:
        """An answer that may need a further line."""
        if rest:
            return self._reply(
                Reply(says="always", rule=rest) if word == "always" else Reply(says="edit", command=rest)
            )
        self._stage, wanted = ("rule", call.remember) if word == "always" else ("command", call.command)
        self.draft = wanted if exact(wanted) == wanted else ""
        shown = [f"The rule would be: {exact_line(wanted)}"] if word == "always" else ["The command to run instead:"]
        return self._paint("notice", "\n".join(shown))

    def _hint(self, words: Sequence[str]) -> str:
        meanings = "\n".join(f"  {word:8} {_MEANINGS[word]}" for word in words)
        return f"That is not an answer; nothing was run. Answer with a word, or its first letter:\n{meanings}"

    def _take_list(self, line: str) -> str:
        head, _, rest = line.partition(" ")
        asked, calls = head.lower().rstrip(",:."), self._question.calls
        if asked in ("a", "all", "y", "yes") and not rest:
            if self._question.alarm and asked != "all":
                return self._paint("error", "One of them is dangerous: type all in full, or numbers.")
            self._replies = [Reply(says="once") for _ in calls]
        elif asked in ("n", "no", "none"):
            self._replies = [Reply(says="no", text=rest.strip()) for _ in calls]
        elif asked in ("v", "view"):
            return "\n".join(self._rows(whole=True, only=_numbers(rest, len(calls))))
        elif asked in ("e", "each") and not rest:
            self._stage = "call"
            return self.begin()
        elif chosen := _numbers(line, len(calls)):
            self._replies = [Reply(says="once") if number in chosen else NO for number in range(1, len(calls) + 1)]
        else:
            return self._paint("notice", _LIST_HINT)
        return ""

    # --- what is shown -----------------------------------------------------------------------------

    def _rows(self, *, whole: bool, only: frozenset[int] = frozenset()) -> Iterator[str]:
        question = self._question
        if not question.calls:
            yield self._paint("notice", question.text)
            yield from self._quoted("\n".join(question.details))
        elif self._stage == "list":
            yield self._paint("error" if question.alarm else "notice", question.text)
            for number, call in enumerate(question.calls, 1):
                if not only or number in only:
                    rows = (0, 0) if whole else (_ROWS_IN_LIST, _DIFF_ROWS_IN_LIST)
                    yield from self._call_rows(call, f"{number}. {call.name}", rows)
        elif (asked := self._call) is not None:
            count = len(question.calls)
            title = f"{len(self._replies) + 1} of {count}: {asked.name}" if count > 1 else question.text
            yield from self._call_rows(asked, title, (0, 0) if whole else (_ROWS, _DIFF_ROWS))

    def _call_rows(self, call: AskedCall, title: str, most: tuple[int, int]) -> Iterator[str]:
        """A call: its title, the danger, its text, the reason for the question, the diff. At most `most` rows of each;
        0 means all.
        """
        if call.alarm:
            yield self._paint("error", f"{title} DANGER: this {call.alarm}.")
        else:
            yield self._paint("notice", title)
        yield from self._quoted(call.text, most[0])
        for finding in call.findings:
            yield from self._quoted(finding, most[0])
        if call.diff:
            yield self._paint("notice", f"It would change {', '.join(call.paths)}:")
            yield from self._quoted(call.diff.rstrip("\n"), most[1], diff=True)
        reason = call.reason
        if most[0] and len(reason) > _REASON:
            left = len(reason) - _REASON
            reason = f"{reason[:_REASON]} … {counted(left, 'character')} left out here; view shows them"
        yield self._paint("faint", f"({reason})")
        if call.remember and self._stage != "list":
            yield self._paint("faint", f"(always stores the rule: {exact_line(call.remember)})")


def _numbers(text: str, most: int) -> frozenset[int]:
    """The numbers of calls in a text such as `1, 3-4`; none if it contains anything else."""
    found: set[int] = set()
    for part in re.split(r"[\s,]+", text.strip()):
        match = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part)
        if match is None:
            return frozenset()
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= most:
            return frozenset()
        found.update(range(first, last + 1))
    return frozenset(found)
