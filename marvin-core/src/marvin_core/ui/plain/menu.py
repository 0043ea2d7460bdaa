"""The menu of completions, and the colours of the line that is typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.styles import Style

from ..completion import Candidate

STYLE = Style.from_dict(
    {
        "suggestion": "fg:ansibrightblack",
        "completion-menu": "bg:default",
        "completion-menu.completion": "bg:default fg:default",
        "completion-menu.completion.current": "reverse",
        "completion-menu.meta.completion": "bg:default fg:ansibrightblack",
        "completion-menu.meta.completion.current": "bg:default bold",
    }
)


class Completions(Completer):
    """What fits in before the cursor, for the library's menu."""

    def __init__(self, complete: Callable[[str], Iterable[Candidate]]) -> None:
        self._complete = complete

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Of the text before the cursor."""
        for one in self._complete(document.text_before_cursor):
            yield Completion(one.text, -one.replaces, display=one.text.rstrip() or one.text, display_meta=one.help)
