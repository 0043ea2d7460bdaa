"""Programs of sed and awk: whatever stands in them, reading them ends, and soon."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from marvin_core.guard.permissions.program_texts import effects

_PIECES = [
    "s/a/b/",
    "w ",
    "e",
    "/x/",
    "\\",
    "{",
    "}",
    ";",
    "\n",
    '"',
    "|",
    "getline",
    "system(",
    ")",
    ">",
    "/",
    "[",
    "]",
    "touch",
    " ",
]


@given(name=st.sampled_from(["sed", "awk"]), program=st.lists(st.sampled_from(_PIECES), max_size=40).map("".join))
def test_any_text_is_read_to_its_end(name: str, program: str) -> None:
    found = effects(name, [name, "-e", program, "file"])
    assert all(isinstance(text, str) for text in (*found.scripts, *found.files))


def test_no_text_takes_long() -> None:
    """Each would take years if a pattern was tried in every way."""
    for piece in ("[]a]", "/[", "/\\", '"', "a\\\n", "s", "\\", "/", "[^]", "(", '"a" |', "{"):
        for name in ("sed", "awk"):
            effects(name, [name, (piece * 8_000)[:8_000]])
            effects(name, [name, "/" + (piece * 8_000)[:7_999]])


def test_the_program_is_found_among_the_options() -> None:
    for words in (
        ["-n", "w F"],
        ["-ne", "w F"],
        ["-i", "-e", "w F", "w G"],
        ["--expression=w F"],
        ["-l", "5", "w F", "w G"],
    ):
        assert effects("sed", ["sed", *words, "a"]).files == ("F",)
    for words in (["-F", ":", 'END{print>"F"}'], ["-v", "x=1", "-e", 'END{print>"F"}'], ["--", 'END{print>"F"}', "a"]):
        assert effects("awk", ["awk", *words]).files == ("F",)
    assert effects("sed", ["sed", "-f", "program", "w F"]) == effects("cat", ["cat", "w F"]) == ((), ())
