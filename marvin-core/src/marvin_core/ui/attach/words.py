"""What stands behind `@` in a message: the places in it, and paths as they are written there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ...api.record import Record

_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
_CLOSING = ".,;:!?)]}>'\""
"""What may end a sentence behind a path, and is no part of it unless the path exists with it."""


class Mention(Record):
    """Something that is named behind `@`; `quoted` where it stands between quotes, so that nothing is cut off of it."""

    text: str
    quoted: bool

    @property
    def readings(self) -> Iterator[str]:
        """What it may mean: as it stands, then without what may end a sentence."""
        yield self.text
        shorter = self.text.rstrip(_CLOSING)
        if not self.quoted and shorter and shorter != self.text:
            yield shorter

    @property
    def looks_like_a_path(self) -> bool:
        """Whether somebody who writes this most likely means a file."""
        return self.quoted or "/" in self.text or re.search(r"\w\.\w{1,5}$", self.text.rstrip(_CLOSING)) is not None


def mentions(line: str) -> list[Mention]:
    """What a message names behind `@`, each once."""
    found = (Mention(text=match[1] or match[2], quoted=match[1] is not None) for match in _MENTION.finditer(line))
    return list({mention.text: mention for mention in found}.values())


def written(path: str) -> str:
    """A path as it is written behind `@`."""
    return f'@"{path}"' if re.search(r"\s", path) and '"' not in path else f"@{path}"


def place_of(path: str, root: Path, home: Path) -> Path:
    """Where a path leads that a person wrote: from the working directory on, or from home."""
    if path == "~" or path.startswith("~/"):
        return home / path[2:]
    return root / path


def is_outside(place: Path, root: Path) -> bool:
    """Whether a place is not in the working directory, links followed."""
    real, inside = os.path.realpath(place), os.path.realpath(root)
    return real != inside and not real.startswith(inside.rstrip(os.sep) + os.sep)
