"""Plugins of the user: `tools/*.py`, `hooks/*.py` and `commands/*.md` in the configuration folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from ..api.errors import ConfigError
from ..api.hooks import Hook
from ..api.session import Command, SessionControl
from ..api.tools import Tool
from .model import USER, Pack

_ARGUMENTS = "$ARGUMENTS"
_FENCE = "---"


def user_packs(folder: Path) -> list[Pack]:
    """The Python files of the configuration folder as packs, in the order of their names."""
    return [
        Pack(name=f"{kind}/{path.name}", distribution=USER, version="", module=str(path))
        for kind in ("tools", "hooks")
        for path in sorted((folder / kind).glob("*.py"))
    ]


def is_for_hooks(pack: Pack) -> bool:
    """Whether a file of the user's must bring hooks: one in `hooks/` whose name begins with no underscore."""
    folder, _, name = pack.name.partition("/")
    return folder == "hooks" and not name.startswith("_")


def tools_of(module: ModuleType) -> list[Tool]:
    """The tools that a file defines."""
    found = vars(module).values()
    return [value for value in found if isinstance(value, Tool) and value.function.__module__ == module.__name__]


def hooks_of(module: ModuleType) -> list[Hook]:
    """One object of each `Hook` class that a file defines."""
    return [
        value()
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Hook) and value.__module__ == module.__name__
    ]


def user_commands(folder: Path) -> Iterator[Command]:
    """The commands that Markdown files define: each is a prompt, named after its file.

    `$ARGUMENTS` in it stands for what is typed behind the name; `description:` between two lines of
    `---` at its beginning is its help.

    Raises:
        ConfigError: where a file cannot be read.
    """
    for path in sorted((folder / "commands").glob("*.md")):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The command {path} cannot be read: {error}. Correct or remove it.") from error
        description, prompt = _parts(text, path)
        yield _command(path.stem, description or f"your command {path.name}", prompt)


def _parts(text: str, path: Path) -> tuple[str, str]:
    if not text.startswith(f"{_FENCE}\n"):
        return "", text
    head, _, prompt = text.removeprefix(f"{_FENCE}\n").partition(f"\n{_FENCE}\n")
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        fields = YAML(typ="safe").load(head)
    except (YAMLError, RecursionError) as error:
        raise ConfigError(f"The head of {path} is not YAML: {error}. Correct it.") from error
    return str(fields.get("description", "")) if isinstance(fields, dict) else "", prompt


def _command(name: str, description: str, prompt: str) -> Command:
    async def run(session: SessionControl, text: str) -> str | None:
        filled = prompt.replace(_ARGUMENTS, text) if _ARGUMENTS in prompt else f"{prompt.rstrip()}\n\n{text}".rstrip()
        (await session.submit(filled)).check()
        return None

    return Command(name=name, help=description, run=run, takes="[TEXT]")
