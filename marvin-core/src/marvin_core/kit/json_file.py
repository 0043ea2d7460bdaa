"""Data in a JSON file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..api.timeouts import Timeouts
from ..util.untrusted_json import parse_json
from .stored_file import StoredFile

Kind = TypeVar("Kind", bound="dict[str, Any] | list[Any]")


class JsonFile(StoredFile[Kind]):
    """An object or an array in a JSON file, shared by all Marvins that run.

    A change is made under the lock of the file and replaces it in one step: no change of another process is lost, and
    a process that is killed leaves the old content or the new. A file that is damaged is moved aside under another
    name, never overwritten, and the error of that call says so; the next one begins with an empty file.

    Args:
        path: the file; its folders are made, for this user alone, when something is first kept.
        kind: `dict` for an object, `list` for an array.
        check: raises a ValueError that says why, where the data are not what was kept. It counts as damage.
        timeouts: how long to wait for another process that changes it: `PackContext.timeouts`. Without them, as long
            as usual.
    """

    def __init__(
        self,
        path: Path,
        kind: type[Kind],
        check: Callable[[Kind], None] = lambda data: None,
        *,
        timeouts: Timeouts | None = None,
    ) -> None:
        super().__init__(path, check, timeouts=timeouts)
        self._kind: type[Kind] = kind

    def _parsed(self, content: bytes | None) -> Kind:
        if content is None:
            return self._kind()
        data = parse_json(content)
        if not isinstance(data, self._kind):
            raise ValueError(f"it holds no {'object' if self._kind is dict else 'array'}")
        return data

    def _written(self, data: Kind, content: bytes | None) -> bytes:
        try:
            return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False).encode()
        except UnicodeEncodeError:  # half of a surrogate pair has no bytes of its own, only an escape
            return json.dumps(data, indent=1, allow_nan=False).encode()
