"""Prompts: loaded from the pack, or from the project where that may change them, and filled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from marvin_core import MarvinError, near_names

from ..run.files import ProjectFiles

OVERRIDES = "prompts"
"""The folder below `.marvin` with the project's own prompts."""
_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_LONGEST = 200_000
"""Bytes of a prompt of the project."""


class PromptError(MarvinError):
    """A prompt is missing, too long, or asks for a value that there is not."""


class Prompts:
    """The prompts of one run. Those of the project are read at once: agents of the run can write there later.

    Those of the project are read when this is made: what agents put there later is trusted by nobody.

    Args:
        project: the project's files, where its own prompts may be used; else None.

    Raises:
        PromptError: a prompt of the project is too long.
        FileFault: one cannot be read.
    """

    def __init__(self, project: ProjectFiles | None = None) -> None:
        self._own = {} if project is None else {name: text for name in names() if (text := _own(project, name))}

    def fill(self, name: str, values: Mapping[str, str]) -> str:
        """A prompt with its `{{placeholders}}` filled. What is put in is not looked at for further ones.

        Raises:
            PromptError: there is no such prompt, or it has a placeholder that has no value.
        """
        text, place = self._text(name)

        def value(found: re.Match[str]) -> str:
            key = found[1]
            if key not in values:
                near = near_names(key, values)
                meant = f" Is {' or '.join(near)} meant?" if near else ""
                raise PromptError(
                    f"{place} has the placeholder {{{{{key}}}}}, which has no value.{meant} "
                    f"There are: {', '.join(sorted(values))}."
                )
            return values[key]

        return re.sub(r"\n{3,}", "\n\n", _PLACE.sub(value, text)).strip() + "\n"

    def _text(self, name: str) -> tuple[str, str]:
        """The text of a prompt, and where it stands."""
        if not re.fullmatch(r"[a-z0-9_]+", name):
            raise PromptError(f"{name!r} is no name of a prompt. Use small letters, digits and _.")
        if name in self._own:
            return self._own[name], _place(name)
        try:
            return files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8"), f"the prompt {name}"
        except OSError as error:
            raise PromptError(f"There is no prompt {name!r}. There are: {', '.join(names())}.") from error


def _own(project: ProjectFiles, name: str) -> str | None:
    """The project's own prompt of a name; None where it has none."""
    data = project.read(f"{OVERRIDES}/{name}.md", _LONGEST + 1)
    if data is None:
        return None
    if len(data) > _LONGEST:
        raise PromptError(f"{_place(name)} has more than {_LONGEST:,} bytes. Shorten it.")
    return data.decode("utf-8", "replace")


def _place(name: str) -> str:
    return f".marvin/{OVERRIDES}/{name}.md"


def names() -> list[str]:
    """The prompts that the pack brings."""
    found = (Path(entry.name) for entry in files(__package__).iterdir())
    return sorted(path.stem for path in found if path.suffix == ".md")
