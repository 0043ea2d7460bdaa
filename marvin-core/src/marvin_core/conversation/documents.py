"""The documents of a project in the system prompt: how much of each there is room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..api.record import Record

DOCUMENT_LIMIT = 8_000
"""Characters of one document that go into the prompt at most."""
_LEAST = 1_000
"""A document that would have to be shorter than this is left out."""


class Document(Record):
    """A document and its heading in the prompt. Those that are `binding`, the instructions, are the last to go."""

    name: str
    heading: str
    text: str
    binding: bool
    limit: int = DOCUMENT_LIMIT
    is_own: bool = False
    """Whether the user wrote it, and no repository brought it."""

    @property
    def size(self) -> int:
        """How many characters of it go into the prompt where there is room."""
        return min(len(self.text), self.limit)

    def shown(self, limit: int = DOCUMENT_LIMIT) -> str:
        """Its part of the prompt, with at most so many characters of its text."""
        if len(self.text) <= limit:
            return f"{self.heading}\n{self.text}"
        outside = self.name.startswith(("/", "../"))  # where no tool reads
        rest = f"[... {len(self.text) - limit:,} more characters{'' if outside else f'; read {self.name} to see them'}]"
        return f"{self.heading}\n{self.text[:limit]}\n{rest}"


class FittedDocuments(Record):
    """How many characters of each document go into the prompt, and which are less than they would be with room."""

    limits: Mapping[str, int]
    shortened: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def fitted(documents: Sequence[Document], room: int) -> FittedDocuments:
    """Fit documents, in the order of the prompt, into so many characters.

    Those that bind nobody are shortened to one length, then left out, the last one first; then the instructions, of
    which the first one goes first: the nearest folder's are the last.
    """
    left_out: list[str] = []
    for binding in (False, True):
        group = [document for document in documents if document.binding is binding]
        others = sum(document.size for document in documents if document.binding and not binding)
        while group:
            limit = _limit([document.size for document in group], room - others)
            if limit >= _LEAST or limit >= max(document.size for document in group):
                kept = [document for document in documents if document.name not in left_out]
                limits = {one.name: min(one.size, limit) if one in group else one.size for one in kept}
                shortened = tuple(one.name for one in kept if limits[one.name] < one.size)
                return FittedDocuments(limits=limits, shortened=shortened, left_out=tuple(left_out))
            left_out.append(group.pop(0 if binding else -1).name)
    return FittedDocuments(limits={}, left_out=tuple(left_out))


def _limit(sizes: Sequence[int], room: int) -> int:
    """The length that all larger ones must be cut to, so that they fit into the room."""
    from .plan import level

    return level(sizes, room) if sum(sizes) > room else max(sizes)
