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
    """An object or an array in a JSON file, shared by all running Marvins.

    Changes are atomic and made under a file lock: no change of another process is lost, and a process that is killed
    leaves the old content or the new. A damaged file is renamed, never overwritten, and the error of that call says so;
    the next call begins with an empty file.

    Args:
        path: the file; its folders are created, for this user alone, with the first change.
        kind: `dict` for an object, `list` for an array.
        check: raises a ValueError with the reason if the data is invalid, which counts as damage.
        timeouts: how long to wait for the lock: `PackContext.timeouts`. Otherwise the
            defaults.
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
        except UnicodeEncodeError:  # an unpaired surrogate cannot be encoded, only escaped
            return json.dumps(data, indent=1, allow_nan=False).encode()
