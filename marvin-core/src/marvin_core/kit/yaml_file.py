"""Data in a YAML file that people write as well."""

from __future__ import annotations

from typing import Any

from ..util.yaml.edit import load_mapping, with_mapping
from .stored_file import StoredFile


class YamlFile(StoredFile[dict[str, Any]]):
    """A mapping in a YAML file that people write as well: their comments, their order and their quotes stay.

    Change the mapping in place, and do not put a new one in its place: comments hang on what is there. A change is
    made under the lock of the file and replaces it in one step, as `JsonFile` does. A file that cannot be read as YAML
    is left alone by `read`, and moved aside under another name by `change`; the error says so.

    Args:
        path: the file; its folders are made, for this user alone, when something is first kept.
        check: raises a ValueError that says why, where the data are not what they should be. It counts as damage.
        timeouts: how long to wait for another process that changes it: `PackContext.timeouts`. Without them, as long
            as usual.
    """

    _moves_when_read = False

    def _parsed(self, content: bytes | None) -> dict[str, Any]:
        data: dict[str, Any] | None = load_mapping((content or b"").decode("utf-8"))
        return {} if data is None else data

    def _written(self, data: dict[str, Any], content: bytes | None) -> bytes:
        return with_mapping((content or b"").decode("utf-8"), data).encode()
