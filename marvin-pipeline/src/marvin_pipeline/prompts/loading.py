"""Loads prompts from the pack, or from the project if that is allowed, and fills in values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from importlib.resources import files
from pathlib import Path

from marvin_core import MarvinError, near_names

from ..run.files import ProjectFiles

OVERRIDES = "prompts"
"""The folder below `.marvin` for the project's own prompts."""
_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_LONGEST = 200_000
"""Bytes of a project's prompt at most."""
_STANDING = {"request", "phase", "meaning", "upstream", "carried", "document", "earlier"}
"""Placeholders with a value that the pack's prompts may not use."""


class PromptError(MarvinError):
    """A prompt is missing, too long, or has an unknown placeholder."""


class Prompts:
    """The prompts of one run. Those of the project are read once: later changes by agents have no effect.

    Args:
        project: the project's files, if its own prompts may be used; else None.

    Raises:
        PromptError: one of the project is empty, too long or misnamed, or has an unknown placeholder.
        FileFault: one cannot be read.
    """

    def __init__(self, project: ProjectFiles | None = None) -> None:
        self._own = {} if project is None else _own_prompts(project)

    def fill(self, name: str, values: Mapping[str, str]) -> str:
        """A prompt with its `{{placeholders}}` filled. Placeholders in the values are not filled.

        Raises:
            PromptError: there is no such prompt, or a placeholder has no value.
        """
        text, place = self._text(name)

        def value(found: re.Match[str]) -> str:
            key = found[1]
            if key not in values:
                raise _unknown(place, key, values)
            return values[key]

        return re.sub(r"\n{3,}", "\n\n", _PLACE.sub(value, text)).strip() + "\n"

    def _text(self, name: str) -> tuple[str, str]:
        """The text of a prompt, and its path."""
        if not re.fullmatch(r"[a-z0-9_]+", name):
            raise PromptError(f"{name!r} is not a prompt name. Use lower-case letters, digits and _.")
        if name in self._own:
            return self._own[name], _place(name)
        try:
            return _brought(name), f"the prompt {name}"
        except OSError as error:
            raise PromptError(f"There is no prompt {name!r}. Available: {', '.join(names())}.") from error


def names() -> list[str]:
    """The prompts of the pack."""
    found = (Path(entry.name) for entry in files(__package__).iterdir())
    return sorted(path.stem for path in found if path.suffix == ".md")


def _own_prompts(project: ProjectFiles) -> Mapping[str, str]:
    """The valid prompts of a project by name. They are checked at the start, so that a run does not fail later."""
    known, found = names(), {}
    placeholders = {key for name in known for key in _PLACE.findall(_brought(name))} | _STANDING
    for entry in project.names(OVERRIDES):
        name = entry.removesuffix(".md")
        if entry == name:
            continue
        if name not in known:
            if near := near_names(name, known):
                raise PromptError(f"{_place(name)} does not replace any prompt. Did you mean {' or '.join(near)}?")
            continue
        found[name] = _own_prompt(project, name)
        for key in _PLACE.findall(found[name]):
            if key not in placeholders:
                raise _unknown(_place(name), key, placeholders)
    return found


def _own_prompt(project: ProjectFiles, name: str) -> str:
    data = project.read(f"{OVERRIDES}/{name}.md", _LONGEST + 1)
    if data is None:
        raise PromptError(
            f"{_place(name)} is a link or not a regular file. Replace it by a file with the text, or remove it."
        )
    if len(data) > _LONGEST:
        raise PromptError(f"{_place(name)} has more than {_LONGEST:,} bytes. Shorten it.")
    text = data.decode("utf-8", "replace")
    if not text.strip():
        raise PromptError(
            f"{_place(name)} is empty, so an agent would get no instructions. Write the prompt, or remove the file."
        )
    return text


def _place(name: str) -> str:
    return f".marvin/{OVERRIDES}/{name}.md"


def _brought(name: str) -> str:
    return files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8")


def _unknown(place: str, key: str, values: Collection[str]) -> PromptError:
    near = near_names(key, values)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return PromptError(
        f"{place} has the placeholder {{{{{key}}}}}, which has no value.{meant} Available: {', '.join(sorted(values))}."
    )
