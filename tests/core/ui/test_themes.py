"""Themes: those that come along, the user's own, and what is said of ones that cannot be used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from marvin_core.api.errors import ConfigError
from marvin_core.ui.rendering import DARK, Paint, Role
from marvin_core.ui.themes import BUILT_IN, FOLDER, WORDS, Palette, load, names
from tests.support.chat import Chat, chatting
from tests.support.engine import make

SIXTEEN = {"1", "2", "3", "4", "7", "9", "39", *(str(code) for base in (30, 90) for code in range(base, base + 8))}


def own(folder: Path, name: str, text: str) -> Path:
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    path = folder / FOLDER / f"{name}.yaml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_theme_draws_every_role_with_the_terminals_own_colours(name: str, tmp_path: Path) -> None:
    codes = load(name, tmp_path)
    assert codes.keys() == {*get_args(Role)}
    assert {code for value in codes.values() for code in value.split(";")} <= SIXTEEN


def test_themes_differ_where_it_matters(tmp_path: Path) -> None:
    colorblind, contrast = load("colorblind", tmp_path), load("contrast", tmp_path)
    red_or_green = {"31", "32", "91", "92"}
    assert not {code for role in ("added", "removed", "error") for code in colorblind[role].split(";")} & red_or_green
    for theme in (colorblind, contrast, load("light", tmp_path), DARK):
        assert theme["added"] != theme["removed"]
    assert not any(int(code) in range(30, 38) for value in contrast.values() for code in value.split(";"))


def test_a_theme_of_ones_own_changes_what_it_names(tmp_path: Path) -> None:
    own(tmp_path, "mine", "base: light\nuser: bold bright-magenta\nheading: underline\n")
    codes = load("mine", tmp_path)
    assert (codes["user"], codes["heading"]) == ("1;95", "4")
    assert codes["code"] == load("light", tmp_path)["code"]
    assert names(tmp_path)["mine"] == "your own"


def test_the_example_of_the_page_is_a_theme(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "themes.md").read_text("utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    own(tmp_path, "mine", example)
    assert load("mine", tmp_path)["removed"] == "90"
    documented = set(re.findall(r"`([a-z-]+)`", page))
    assert {*get_args(Role), *BUILT_IN} <= documented
    assert {word for word in WORDS if not word.startswith("bright-")} <= documented


def test_a_file_counts_before_a_theme_that_comes_along(tmp_path: Path) -> None:
    own(tmp_path, "light", "user: red")
    assert load("light", tmp_path)["user"] == "31"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("usr: red", "Did you mean 'user'"),
        ("user: rde", "Did you mean 'red'"),
        ("user: 38;5;200", "user is '38;5;200'"),
        ('user: "red\\e]0;PWNED\\a"', "user is"),
        ("user: ''", "user is ''"),
        ("user: [red]", "user is"),
        ("base: neon", "base is 'neon'"),
        ("base: [light]", "base is"),
        ("1: red", "unknown key 1"),
        ("- red", "is not a theme"),
        ("user: {", "is not a theme"),
        ("x" * 200_000, "bytes"),
    ],
)
def test_what_is_wrong_with_a_theme_is_named(tmp_path: Path, text: str, said: str) -> None:
    own(tmp_path, "mine", text)
    with pytest.raises(ConfigError, match=re.escape(said)) as raised:
        load("mine", tmp_path)
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "nothing", "a/b", "mine\n", "drak"])
def test_a_name_leads_out_of_no_folder(tmp_path: Path, name: str) -> None:
    own(tmp_path, "mine", "user: red")
    with pytest.raises(ConfigError, match="There is no theme"):
        load(name, tmp_path)


def test_a_theme_without_bytes_of_text_is_refused(tmp_path: Path) -> None:
    path = own(tmp_path, "mine", "")
    path.write_bytes(b"user: \xff\xfe")
    with pytest.raises(ConfigError, match="is not a theme"):
        load("mine", tmp_path)


def test_the_palette_follows_the_name_and_tells_once_of_what_is_wrong(tmp_path: Path) -> None:
    told: list[str] = []
    name = "dark"
    palette = Palette(lambda: name, tmp_path, told.append)
    paint = Paint(True, palette)
    before = paint("user", "x")
    name = "light"
    assert paint("user", "x") != before
    name = "nothing"
    assert paint("user", "x") == before
    assert paint("user", "y").startswith(before.partition("x")[0])
    assert len(told) == 1
    assert Paint(False, palette)("user", "x") == "x", "NO_COLOR"


def test_the_command_lists_takes_and_keeps_a_theme(tmp_path: Path) -> None:
    made = make(tmp_path, yaml="# mine\nthinking: high\n")
    own(made.config.config_folder, "mine", "user: red")

    async def work(chat: Chat) -> None:
        listed = await chat.do("/theme")
        assert "* dark" in listed
        assert "  mine" in listed
        assert "Did you mean 'light'" in await chat.do("/theme ligth")
        assert chat.session.person.theme == "dark"
        assert "light" in await chat.do("/theme light")
        assert "* light" in await chat.do("/theme")

    chatting(made, work)
    kept = (made.config.config_folder / "config.yaml").read_text()
    assert kept == "# mine\nthinking: high\ntheme: light\n"


def test_a_config_file_that_is_damaged_stays_as_it_is(tmp_path: Path) -> None:
    made = make(tmp_path)
    file = made.config.config_folder / "config.yaml"
    file.write_text("provider: [")

    async def work(chat: Chat) -> None:
        assert "left unchanged" in await chat.do("/theme light")
        assert chat.session.person.theme == "light", "it counts here all the same"

    chatting(made, work)
    assert file.read_text() == "provider: ["
