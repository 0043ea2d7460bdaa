"""The root command's own parser: its help, its mistakes, and which word is the first bare one."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import UsageError
from marvin_core.config.flags import DESCRIPTION, SUBCOMMANDS, first_word, parse, parser
from tests.support.installing import Place

INSTALLED = f"{Path(sys.executable).parent}:/usr/bin:/bin"
"""Where the command `marvin` is on PATH."""


@pytest.mark.parametrize(
    ("argv", "index"),
    [
        ([], None),
        (["tools", "list"], 0),
        (["--plain", "tools"], 1),
        (["--working-dir", "tools", "packs"], 2),
        (["--working-dir=x", "packs"], 1),
        (["--prompt", "tools"], None),
        (["--model", "high=x", "--provider", "groq", "-B", "tools"], 5),
        (["--", "tools"], None),
        (["--plain"], None),
        (["--prompt"], None),
    ],
)
def test_the_first_bare_word(argv: list[str], index: int | None) -> None:
    assert first_word(argv) == index


def test_every_flag_with_a_value_is_known_to_take_one() -> None:
    """Else its value would be taken for a sub-command."""
    for action in parser()._actions:
        for flag in action.option_strings:
            takes_value = action.nargs is None and bool(action.metavar or action.choices)
            assert first_word([flag, "tools"]) == (None if takes_value else 1), flag


@given(st.lists(st.text(alphabet="ab -=", max_size=4), max_size=6))
def test_words_behind_two_dashes_are_the_prompt_as_they_are(words: list[str]) -> None:
    assert parse(["--plain", "--", *words]).words == words


@pytest.mark.parametrize("argv", [["--nope"], ["-x"], ["--plain=1"], ["--prompt"], ["--output-format", "yaml"]])
def test_a_mistake_is_an_error_of_ours_and_never_an_exit(argv: list[str]) -> None:
    with pytest.raises(UsageError, match="Run `marvin --help` for the flags"):
        parse(argv)


def test_the_help_fits_80_columns_and_names_every_flag(tmp_path: Path) -> None:
    place = Place(tmp_path)
    shown = place.marvin("--help", COLUMNS="80", PATH=INSTALLED)
    assert shown.code == 0
    assert max(map(len, shown.out.splitlines())) <= 80
    for action in parser()._actions:
        for name in action.option_strings or [str(action.metavar)]:
            assert name in shown.out


def test_the_help_names_every_sub_command() -> None:
    assert {line.split()[0] for line in DESCRIPTION.partition("sub-commands:\n")[2].splitlines()} == SUBCOMMANDS


def test_each_flag_that_the_help_shows_exists(tmp_path: Path) -> None:
    shown = Place(tmp_path).marvin("--help", PATH=INSTALLED)
    known = {flag for action in parser()._actions for flag in action.option_strings}
    assert set(re.findall(r"(?<![\w-])(?:--[a-z][a-z-]*|-[A-Za-z]\b)", shown.out)) <= known


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--nope",), "There is no flag '--nope'"),
        (("--design-first", "--prompt", "x"), " --non-interactive --working-dir=. --design-first --prompt x"),
        (
            ("--non-interactive", "--design-first", "--prompt", "a b"),
            "--working-dir=. --non-interactive --design-first",
        ),
        (("tools", "--nope"), "--nope"),
        (("--non-interactive", "--prompt", "x", "--working-dir", "missing"), "there is no such folder"),
    ],
)
def test_wrong_flags_exit_with_2_and_print_nothing(tmp_path: Path, argv: tuple[str, ...], said: str) -> None:
    ended = Place(tmp_path).marvin(*argv)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


@pytest.mark.slow
def test_without_the_pipeline_its_flag_says_how_to_install_it(tmp_path: Path) -> None:
    ended = Place(tmp_path).marvin("--design-first", "--prompt", "x", MARVIN_PACKS="core")
    assert (ended.code, ended.out) == (2, "")
    assert 'pip install "marvin-core[pipeline]"' in ended.err


@pytest.mark.slow
def test_root_flags_count_for_sub_commands(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.home / "sub").mkdir()
    assert place.marvin("--working-dir", "sub", "tools", "call", "get_working_dir").out.endswith("/sub\n")


def test_version(tmp_path: Path) -> None:
    from marvin_core import __version__

    place = Place(tmp_path)
    assert place.marvin("--version").out == f"marvin {__version__}\n"
    assert place.marvin("--plain", "--version").out == f"marvin {__version__}\n"
    assert sys.version_info >= (3, 11)
