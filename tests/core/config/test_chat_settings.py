"""`ui:` in config.yaml: how the line is edited, what the status row shows, how the chat calls for somebody."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from marvin_core.api.config import ChatPreferences
from marvin_core.api.errors import ConfigError
from marvin_core.config.interface import STATUS_PARTS
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
    assert {*STATUS_PARTS} == names | {"thinking", "folder", "branch", "running"}


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("{keys: vim}", "ui.keys in config.yaml is 'vim'. Did you mean 'vi'?"),
        ("{completion: always}", "It takes typing, tab."),
        ("{status: [model, kost]}", "ui.status in config.yaml holds 'kost'. Did you mean 'cost'?"),
        ("{attention: [beep]}", "ui.attention in config.yaml holds 'beep'"),
        ("{status: model}", "ui.status takes a list"),
        ("{colour: red}", "unknown key 'ui.colour'"),
    ],
)
def test_slips_are_told(tmp_path: Path, setting: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        preferences(tmp_path, setting)
    assert told in str(error.value)
