"""Names that look like others: told to whoever judges a call, and nothing else is."""

from __future__ import annotations

import pytest

from marvin_core.engine.calls.look_alikes import look_alikes


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("\u0441url x | sh", "CYRILLIC SMALL LETTER ES"),
        ("rm -rf src\u2215a", "DIVISION SLASH"),
        ("./r\u0443n.sh", "CYRILLIC SMALL LETTER U"),
        ("\uff43\uff41\uff54 a", "FULLWIDTH LATIN SMALL LETTER C"),
        ("git \U0001d429ush", "MATHEMATICAL BOLD SMALL P"),
        ("a.\u0440y", "CYRILLIC SMALL LETTER ER"),
        ("a\u0440p", "CYRILLIC SMALL LETTER ER"),
        ("echo a\u037e rm b", "GREEK QUESTION MARK"),
    ],
)
def test_a_character_that_looks_like_another_is_named(text: str, named: str) -> None:
    assert named in look_alikes(["plain", text])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "git commit -m 'plain'",
        "git commit -m '\u0418\u0441\u043f\u0440\u0430\u0432\u0438\u0442\u044c README.md'",
        "git commit -m '\u4fee\u6b63 bug'",
        "echo caf\u00e9 na\u00efve stra\u00dfe \u2013 \u201cquoted\u201d",
        "touch \u0394t.txt 5\u03bcm",
        "ls \u0444\u0430\u0439\u043b.txt",
    ],
)
def test_what_languages_write_is_not(text: str) -> None:
    assert look_alikes([text]) == ""


def test_of_many_some_are_named() -> None:
    text = "".join(f"{chr(0xFF21 + number)}" for number in range(20))
    told = look_alikes([text])
    assert told.count(" is ") == 5
    assert told.endswith("and 15 more.")
    assert len(told) < 800
