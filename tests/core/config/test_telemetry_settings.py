"""`telemetry:` in config.yaml."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from marvin_core.api.config import Config
from marvin_core.api.errors import ConfigError
from marvin_core.api.limits import Telemetry
from marvin_core.config.load import load
from marvin_core.config.project import with_settings


def loaded(home: Path, text: str) -> Config:
    folder = home / ".config" / "marvin"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(text)
    return load([], {"HOME": str(home)}, cwd=home)[0]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", Telemetry()),
        ("telemetry: off", Telemetry()),
        ("telemetry: on", Telemetry(enabled=True)),
        ("telemetry: true", Telemetry(enabled=True)),
        ("telemetry: {endpoint: 'http://x:4318'}", Telemetry(endpoint="http://x:4318")),
        ("telemetry: {enabled: on, content: true, longest: 9}", Telemetry(enabled=True, content=True, longest=9)),
    ],
)
def test_it_is_a_switch_or_a_section(tmp_path: Path, text: str, found: Telemetry) -> None:
    assert loaded(tmp_path, text).telemetry == found


@pytest.mark.parametrize(
    "text",
    [
        "telemetry: {endpoint: collector:4318}",
        "telemetry: {endpoint: 'http:///x'}",
        "telemetry: maybe",
        "telemetry: 1",
        "telemetry: {longest: 0}",
        "telemetry: {enable: on}",
    ],
)
def test_what_it_cannot_be_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"line 1: .*telemetry"):
        loaded(tmp_path, text)


def test_a_project_switches_nothing_on(tmp_path: Path) -> None:
    """It would learn what is said, and where."""
    config, left_out = with_settings(loaded(tmp_path, ""), b"telemetry: {enabled: on, endpoint: 'http://x.example'}\n")
    assert (config.telemetry, left_out) == (Telemetry(), ["telemetry"])


def test_the_examples_of_the_page_are_settings(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "tracing.md").read_text("utf-8")
    found = [loaded(tmp_path, text).telemetry for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    assert found == [
        Telemetry(enabled=True, endpoint="http://localhost:4318"),
        Telemetry(enabled=True, content=True, longest=2_000),
    ]
