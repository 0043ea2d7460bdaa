"""`ui:` of config.yaml: the name of an interface, or how the chat behaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.api.config import ChatPreferences, Config
from marvin_core.api.errors import ConfigError
from marvin_core.config.load import load


def config(home: Path, setting: str) -> Config:
    folder = home / ".config" / "marvin"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(f"ui: {setting}\n" if setting else "")
    return load([], {"HOME": str(home)}, cwd=home)[0]


def test_a_name_alone_and_a_name_among_keys_are_the_same(tmp_path: Path) -> None:
    for setting, name in (("", ""), ("other", "other"), ("{name: other}", "other"), ("{markdown: on}", "")):
        found = config(tmp_path, setting)
        assert (found.ui, found.chat) == (name, ChatPreferences())


def test_what_is_drawn_and_shown(tmp_path: Path) -> None:
    found = config(tmp_path, "{markdown: off, thinking: on}")
    assert (found.chat.markdown, found.chat.thinking) == (False, True)


@pytest.mark.parametrize("setting", ["{markdown: maybe}", "{thinking: 3}", "{mardown: off}", "[plain]"])
def test_what_it_does_not_take_is_told(tmp_path: Path, setting: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        config(tmp_path, setting)
