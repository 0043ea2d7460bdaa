"""Plugins that are files: `tools/*.py`, `hooks/*.py` and `commands/*.md` in the configuration folder.

In a trusted working directory there may be tools and commands; its hooks run in a separate process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

from ..api.errors import ConfigError
from ..api.hooks import Hook
from ..api.session import Command, SessionControl
from ..api.tools import Tool
from .model import PROJECT, USER, Pack

_ARGUMENTS = "$ARGUMENTS"


def user_packs(folder: Path) -> list[Pack]:
    """The Python files of the configuration folder as packs, sorted by name."""
    return [
        Pack(name=f"{kind}/{path.name}", distribution=USER, version="", module=str(path))
        for kind in ("tools", "hooks")
        for path in _files(folder / kind)
    ]


def project_packs(folder: Path) -> list[Pack]:
    """The Python files with tools in the working directory as packs, sorted by name."""
    return [
        Pack(name=f"tools/{path.name}", distribution=PROJECT, version="", module=str(path)) for path in _files(folder)
    ]


def _files(folder: Path) -> list[Path]:
    """Files with the ending of Python files in any case: those that are not loaded are reported."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix.lower() == ".py")
    except OSError:
        return []


def is_for_hooks(pack: Pack) -> bool:
    """Whether a user's file must register hooks: one in `hooks/` whose name has no leading underscore."""
    folder, _, name = pack.name.partition("/")
    return folder == "hooks" and not name.startswith("_")


def tools_of(module: ModuleType) -> list[Tool]:
    """The tools that a file defines."""
    found = vars(module).values()
    return [value for value in found if isinstance(value, Tool) and value.function.__module__ == module.__name__]


def hooks_of(module: ModuleType) -> list[Hook]:
    """The `Hook` objects of a file, and one of each class in it that has none."""
    values = list({id(value): value for value in vars(module).values()}.values())
    made = [value for value in values if isinstance(value, Hook)]
    kinds = [
        value
        for value in values
        if isinstance(value, type) and issubclass(value, Hook) and value.__module__ == module.__name__
    ]
    return [*made, *(kind() for kind in kinds if not any(type(hook) is kind for hook in made))]


def user_commands(folder: Path) -> Iterator[Command]:
    """The commands in Markdown files: each is a prompt, named after its file.

    `$ARGUMENTS` in it stands for the text typed after the name; `description:` in the front matter, between two
    lines of `---`, is its help.

    Raises:
        ConfigError: a file cannot be read.
    """
    for path in sorted((folder / "commands").glob("*.md")):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The command {path} cannot be read: {error}. Correct or remove it.") from error
        description, prompt = _parts(text, path)
        yield _command(path.stem, description or f"your command {path.name}", prompt)


def project_commands(texts: Mapping[str, str]) -> Iterator[Command]:
    """The commands of the working directory. `texts` has the text of each file by its name. Raises `ConfigError`."""
    for name, text in sorted(texts.items()):
        path = Path(".marvin/commands") / name
        description, prompt = _parts(text, path)
        yield _command(path.stem, description or f"this project's command {name}", prompt)


def _parts(text: str, path: Path) -> tuple[str, str]:
    if not text.startswith("---"):
        return "", text
    from ..util.yaml.head import load_head, split_head

    head, prompt = split_head(text)
    try:
        fields = load_head(head or "")
    except ValueError as error:
        raise ConfigError(f"The front matter of {path} cannot be used: {error}. Correct it.") from error
    return str(fields.get("description") or ""), prompt


def _command(name: str, description: str, prompt: str) -> Command:
    async def run(session: SessionControl, text: str) -> str | None:
        filled = prompt.replace(_ARGUMENTS, text) if _ARGUMENTS in prompt else f"{prompt.rstrip()}\n\n{text}".rstrip()
        (await session.submit(filled)).check()
        return None

    return Command(name=name, help=description, run=run, takes="[TEXT]")
