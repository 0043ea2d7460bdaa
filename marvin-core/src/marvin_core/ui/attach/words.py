"""The mentions after `@` in a message: their positions, and the notation of paths."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ...api.record import Record

_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
_CLOSING = ".,;:!?)]}>'\""
"""Punctuation after a path, which belongs to the path only if such a path exists."""


class Mention(Record):
    """A mention after `@`; `quoted` if it is in quotes, so that nothing is cut off."""

    text: str
    quoted: bool

    @property
    def readings(self) -> Iterator[str]:
        """Its possible meanings: as written, then without trailing punctuation."""
        yield self.text
        shorter = self.text.rstrip(_CLOSING)
        if not self.quoted and shorter and shorter != self.text:
            yield shorter

    @property
    def looks_like_a_path(self) -> bool:
        """Whether the text most likely refers to a file."""
        return self.quoted or "/" in self.text or re.search(r"\w\.\w{1,5}$", self.text.rstrip(_CLOSING)) is not None


def mentions(line: str) -> list[Mention]:
    """The mentions after `@` in a message, without duplicates."""
    found = (Mention(text=match[1] or match[2], quoted=match[1] is not None) for match in _MENTION.finditer(line))
    return list({mention.text: mention for mention in found}.values())


def written(path: str) -> str:
    """A path in the notation after `@`."""
    return f'@"{path}"' if re.search(r"\s", path) and '"' not in path else f"@{path}"


def place_of(path: str, root: Path, home: Path) -> Path:
    """The absolute path of a typed one: relative to the working directory, or to the home folder."""
    if path == "~" or path.startswith("~/"):
        return home / path[2:]
    return root / path


def is_outside(place: Path, root: Path) -> bool:
    """Whether a path is outside of the working directory, following links."""
    real, inside = os.path.realpath(place), os.path.realpath(root)
    return real != inside and not real.startswith(inside.rstrip(os.sep) + os.sep)
