"""The front matter of a Markdown file: YAML between two lines of `---` at its beginning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .checked import UNREADABLE, check_yaml
from .problems import yaml_problem

_FENCE = "---"
_LONGEST = 16_384
"""Characters of the front matter."""


def split_head(text: str) -> tuple[str | None, str]:
    """The front matter of a text and the rest; None if there is no front matter."""
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != _FENCE:
        return None, text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        return None, text
    return "".join(lines[1:end]), "".join(lines[end + 1 :])


def load_head(head: str) -> Mapping[str, Any]:
    """The keys of the front matter.

    Raises:
        ValueError: it is too long, no YAML, no mapping, or nothing that a person writes.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    if len(head) > _LONGEST:
        raise ValueError(f"it has more than {_LONGEST:,} characters")
    check_yaml(head)
    try:
        found = YAML(typ="safe", pure=True).load(head)
    except MarkedYAMLError as error:
        line, said = yaml_problem(error)
        raise ValueError(f"line {line + 1}: {said}") from error  # the fence is the first line
    except (YAMLError, *UNREADABLE) as error:
        raise ValueError("it is not YAML") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError("expected keys such as `name: value`")
    return found
