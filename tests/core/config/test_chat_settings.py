"""`ui:` in config.yaml: how the line is edited, what the status row shows, how the chat calls for somebody."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from marvin_core.api.config import ChatPreferences, StatusPart
from marvin_core.api.errors import ConfigError
from tests.support.engine import settled


def preferences(tmp_path: Path, setting: str) -> ChatPreferences:
    return settled(tmp_path, yaml=f"ui: {setting}\n")[0].chat


def test_what_is_set_counts_and_the_rest_is_as_usual(tmp_path: Path) -> None:
    usual = ChatPreferences()
    assert preferences(tmp_path, "plain") == usual
    assert preferences(tmp_path, "{pictures: off}") == usual.replace(pictures=False)
    assert preferences(tmp_path, "{keys: vi}") == usual.replace(keys="vi")
    assert preferences(tmp_path, "{status: [cost, mode, cost]}") == usual.replace(status=("cost", "mode"))
    assert preferences(tmp_path, "{attention: [], completion: tab}") == usual.replace(attention=(), completion="tab")
    config = settled(tmp_path, yaml="ui: {name: plain, status: []}\n")[0]
    assert (config.ui, config.chat.status) == ("plain", ())


def test_the_status_row_of_the_page(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "chat.md").read_text("utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    names = {*settled(tmp_path, yaml=example)[0].chat.status}
    assert {*get_args(StatusPart)} == names | {"thinking", "folder", "branch", "running"}


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("{keys: vim}", 'ui.keys: must be one of "emacs", "vi"; found "vim". Did you mean \'vi\'?'),
        ("{completion: always}", 'ui.completion: must be one of "typing", "tab"; found "always".'),
        ("{status: [model, kost]}", "line 1: ui.status[1]: must be one of"),
        ("{attention: [beep]}", 'ui.attention[0]: must be one of "bell", "notify", "title"; found "beep".'),
        ("{status: model}", "ui.status: must be a list"),
        ("{colour: red}", "unknown key 'ui.colour'"),
    ],
)
def test_slips_are_told(tmp_path: Path, setting: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        preferences(tmp_path, setting)
    assert told in str(error.value)
