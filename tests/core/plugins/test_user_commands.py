"""Commands that Markdown files of the user define, and their heads."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.api.errors import ConfigError
from marvin_core.plugins.user_files import user_commands


def put(folder: Path, text: str) -> None:
    (folder / "commands").mkdir(exist_ok=True)
    (folder / "commands" / "tidy.md").write_bytes(text.encode())


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("Tidy up.", "your command tidy.md"),
        ("---\ndescription: Tidies up.\n---\nTidy up.", "Tidies up."),
        ("---\r\ndescription: Tidies up.\r\n---\r\nTidy up.", "Tidies up."),
        ("---\ndescription:\n---\nTidy up.", "your command tidy.md"),
        ("---\n\nTidy up.", "your command tidy.md"),
        ("---\n---\nTidy up.", "your command tidy.md"),
    ],
)
def test_the_head_says_what_a_command_is_for(tmp_path: Path, text: str, help: str) -> None:
    put(tmp_path, text)
    (command,) = user_commands(tmp_path)
    assert (command.name, command.help) == ("tidy", help)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (
            "description: a: b",
            "line 2: a colon is not allowed here. Check the indentation, and put text that contains a colon in quotes.",
        ),
        ("- a", "expected keys such as `name: value`."),
        ("a: " + "[" * 5_000, "it is nested more than 100 deep."),
    ],
)
def test_a_head_that_cannot_be_used_is_told_with_its_line(tmp_path: Path, head: str, reason: str) -> None:
    put(tmp_path, f"---\n{head}\n---\nTidy up.")
    with pytest.raises(ConfigError) as told:
        list(user_commands(tmp_path))
    assert str(told.value) == f"The front matter of {tmp_path}/commands/tidy.md cannot be used: {reason} Correct it."
