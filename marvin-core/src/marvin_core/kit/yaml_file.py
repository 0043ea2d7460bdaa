"""Data in a YAML file that people edit as well."""

from __future__ import annotations

from typing import Any

from ..util.yaml.edit import load_mapping, with_mapping
from .stored_file import StoredFile


class YamlFile(StoredFile[dict[str, Any]]):
    """A mapping in a YAML file that people edit as well: comments, order and quotes are preserved.

    Change the mapping in place, since comments are attached to it; do not replace it. Changes are atomic and made under
    a file lock, as for `JsonFile`. If the file is not valid YAML, `read` leaves it unchanged and `change` renames it;
    the error says so.

    Args:
        path: the file; its folders are created, for this user alone, with the first change.
        check: raises a ValueError with the reason if the data is invalid, which counts as damage.
        timeouts: how long to wait for the lock: `PackContext.timeouts`. Otherwise the
            defaults.
    """

    _moves_when_read = False

    def _parsed(self, content: bytes | None) -> dict[str, Any]:
        data: dict[str, Any] | None = load_mapping((content or b"").decode("utf-8"))
        return {} if data is None else data

    def _written(self, data: dict[str, Any], content: bytes | None) -> bytes:
        return with_mapping((content or b"").decode("utf-8"), data).encode()
