"""The parts of the line editor: its settings, the handlers of its keys, and its completions."""

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
"""Maps a single key to an answer: a whole line, the beginning of one if it ends with a space, or no answer."""


class Handlers(Record):
    """The handlers of keys. All return at once."""

    line: Callable[[str, str], None]
    """Enter: receives the text, and the text as displayed."""
    answer: Callable[[str], None]
    """Enter below a question, on a line that was begun after the question."""
    cycle: Callable[[], None]
    """Shift+Tab."""
    interrupt: Callable[[bool], bool]
    """Ctrl+C: receives whether text is typed; returns whether to clear it."""
    escape: Callable[[], None]
    """Escape, if no menu is open."""
    recall: Callable[[], str]
    """Up on an empty line: returns the queued lines, which are removed from the queue."""
    end: Callable[[], None]
    """Ctrl+D on an empty line."""
    page: Callable[[], Coroutine[Any, Any, None]]
    """Ctrl+O."""
    complete: Callable[[str], Iterable[Candidate]]
    tell: Callable[[str], None]
    """Receives the message if a key's handler fails."""


class EditorSettings(Record):
    """The settings of the editor."""

    color: bool
    terminal: str
    """The type of the terminal (TERM)."""
    forgets: bool
    """Whether the terminal loses the text that the pager covers."""
    timeouts: Timeouts
    vi: bool
    while_typing: bool
    """Whether completions are shown while a name or a path is typed."""
    program: str
    """The user's own editor."""


def editor_settings(chat: ChatSettings) -> EditorSettings:
    """The settings of the editor in a chat."""
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
    """The completions at the cursor, for the library's menu."""

    def __init__(self, complete: Callable[[str], Iterable[Candidate]]) -> None:
        self._complete = complete

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The completions for the text before the cursor."""
        for one in self._complete(document.text_before_cursor):
            shown = disarm(one.text.rstrip() or one.text)
            yield Completion(one.text, -one.replaces, display=shown, display_meta=disarm(one.help))

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """The same; the library calls this one during typing."""
        for one in self.get_completions(document, complete_event):
            yield one
