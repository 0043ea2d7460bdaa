"""What the line editor is made of beside itself: its settings, what its keys do, its completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import Any, TypeAlias

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.styles import Style

from ...api.record import Record
from ...api.session import ChatSettings
from ...api.timeouts import Timeouts
from ...util.terminal_text import disarm
from ..completion import Candidate
from .terminal_quirks import FORGETS

# Nothing but the terminal's own colours: others may not be seen on its background.
STYLE = Style.from_dict(
    {
        "suggestion": "fg:ansibrightblack",
        "completion-menu": "bg:default fg:default",
        "completion-menu.completion": "bg:default fg:default",
        "completion-menu.completion.current": "reverse",
        "completion-menu.meta.completion": "bg:default fg:ansibrightblack",
        "completion-menu.meta.completion.current": "bg:default bold",
        "scrollbar.background": "bg:default",
        "scrollbar.button": "bg:default reverse",
    }
)
AnswerKey: TypeAlias = Callable[[str], "str | None"]
"""What a key alone answers to a question: a line, the beginning of one where it ends with a space, or nothing."""


class Handlers(Record):
    """What the keys do; all return at once."""

    line: Callable[[str, str], None]
    """Enter: the text, and the text as it was shown."""
    answer: Callable[[str], None]
    """Enter below a question, on a line that was begun after it."""
    cycle: Callable[[], None]
    """Shift+Tab."""
    interrupt: Callable[[bool], bool]
    """Ctrl+C, told whether something is typed; returns whether that is to be cleared."""
    escape: Callable[[], None]
    """Escape, with no menu open."""
    recall: Callable[[], str]
    """Up with nothing typed: lines that wait to be sent, which are then taken back."""
    end: Callable[[], None]
    """Ctrl+D with nothing typed."""
    page: Callable[[], Coroutine[Any, Any, None]]
    """Ctrl+O."""
    complete: Callable[[str], Iterable[Candidate]]
    tell: Callable[[str], None]
    """Something went wrong with what a key does."""


class EditorSettings(Record):
    """How the editor behaves."""

    color: bool
    terminal: str
    """What kind of terminal it is (TERM)."""
    forgets: bool
    """Whether what the pager covers is gone afterwards."""
    timeouts: Timeouts
    vi: bool
    while_typing: bool
    """Whether completions are shown while a name or a file is typed."""
    program: str
    """The user's own editor."""


def editor_settings(chat: ChatSettings) -> EditorSettings:
    """How the editor behaves in a chat."""
    return EditorSettings(
        color=chat.color,
        terminal=chat.terminal,
        forgets=chat.terminal in FORGETS,
        timeouts=chat.timeouts,
        vi=chat.preferences.keys == "vi",
        while_typing=chat.preferences.completion == "typing",
        program=chat.editor,
    )


class Completions(Completer):
    """What fits in before the cursor, for the library's menu."""

    def __init__(self, complete: Callable[[str], Iterable[Candidate]]) -> None:
        self._complete = complete

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Of the text before the cursor."""
        for one in self._complete(document.text_before_cursor):
            shown = disarm(one.text.rstrip() or one.text)
            yield Completion(one.text, -one.replaces, display=shown, display_meta=disarm(one.help))

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """The same; the library asks in this way while somebody types."""
        for one in self.get_completions(document, complete_event):
            yield one
