"""Fits the documents of a project into the system prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..api.record import Record

DOCUMENT_LIMIT = 8_000
"""The maximum length of one document in the prompt, in characters."""
_LEAST = 1_000
"""A document that would have to be shorter than this is left out."""


class Document(Record):
    """A document and its heading in the prompt. `binding` ones, the instructions, are the last to be left out."""

    name: str
    heading: str
    text: str
    binding: bool
    limit: int = DOCUMENT_LIMIT
    is_own: bool = False
    """Whether the user wrote it, rather than a repository."""

    @property
    def size(self) -> int:
        """The number of characters in the prompt if there is room."""
        return min(len(self.text), self.limit)

    def shown(self, limit: int = DOCUMENT_LIMIT) -> str:
        """Its part of the prompt, with at most this many characters of its text."""
        if len(self.text) <= limit:
            return f"{self.heading}\n{self.text}"
        outside = self.name.startswith(("/", "../"))  # for contexts without a read tool
        rest = f"[... {len(self.text) - limit:,} more characters{'' if outside else f'; read {self.name} to see them'}]"
        return f"{self.heading}\n{self.text[:limit]}\n{rest}"


class FittedDocuments(Record):
    """The number of characters of each document in the prompt, and which documents were shortened."""

    limits: Mapping[str, int]
    shortened: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def fitted(documents: Sequence[Document], room: int) -> FittedDocuments:
    """Fit documents, in the order of the prompt, into this many characters.

    Documents that are not binding are shortened to a common length, then left out, starting with the last. Then
    instructions are left out, starting with the first: those of the nearest folder stay longest.
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
    """The common length to which all larger ones must be cut to fit."""
    from .plan import level

    return level(sizes, room) if sum(sizes) > room else max(sizes)
