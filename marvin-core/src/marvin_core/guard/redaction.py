"""Taking secrets out of what is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def redacted(value: Any, secrets: Sequence[str]) -> Any:
    """The text, or the texts in lists and mappings, their keys too, without the secrets."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "[redacted]")
    elif isinstance(value, Mapping):
        return {redacted(name, secrets): redacted(inner, secrets) for name, inner in value.items()}
    elif isinstance(value, (list, tuple)):
        return type(value)(redacted(inner, secrets) for inner in value)
    return value
