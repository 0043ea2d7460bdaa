"""The shapes of ids, branches and options."""

from __future__ import annotations

import pytest

from marvin_core.tools.routing.shapes import has_option, shapes, shapes_of


@pytest.mark.parametrize(
    ("word", "shape", "parameter"),
    [
        ("mar-8", "<ticket>", "ticket_id"),
        ("UI-42", "<ticket>", "depends_on"),
        ("ab-k3f2", "<ticket>", "ticket_id"),
        ("9fe02b1", "<commit>", "ref"),
        ("HEAD~2", "<commit>", "ref"),
        ("tt0133093", "<imdb>", "imdb_id"),
        ("5b11f4ce-a62d-471e-81fc-a69a8278c7da", "<mbid>", "mbid"),
        ("feature/dark-mode", "<branch>", "target"),
        ("76561197960435530", "<id>", "steam_id"),
    ],
)
def test_an_id_has_the_shape_that_its_parameter_takes(word: str, shape: str, parameter: str) -> None:
    assert shape in shapes(word)
    assert shape in shapes_of(parameter)


@pytest.mark.parametrize("word", ["covid-19", "GPT-4", "top-10", "well-known", "README.md", "src/app", "seven", "2024"])
def test_what_is_no_id_of_a_ticket_a_commit_or_a_branch(word: str) -> None:
    assert not {"<ticket>", "<commit>", "<branch>", "<imdb>", "<mbid>"} & {*shapes(word)}


@pytest.mark.parametrize("text", ["pytest -x", "ls -la", "tk list --status=open"])
def test_an_option_tells_a_command(text: str) -> None:
    assert has_option(text)


@pytest.mark.parametrize("text", ["well-known", "minus -2 degrees", "a - b", "2024-01-05", "so -"])
def test_a_dash_alone_is_no_option(text: str) -> None:
    assert not has_option(text)
