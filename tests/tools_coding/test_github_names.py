"""What names a repository, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import ToolError
from marvin_tools_coding.github.repositories import Clones, Repository, named

MEANT = [
    "pallets/flask",
    "Pallets/Flask",
    " pallets/flask ",
    "'pallets/flask'",
    "<https://github.com/pallets/flask>",
    "pallets/flask.git",
    "pallets/flask/",
    "https://github.com/pallets/flask",
    "http://www.github.com/pallets/flask.git",
    "HTTPS://GITHUB.COM/pallets/flask",
    "https://github.com/pallets/flask/tree/main/src/flask",
    "https://github.com/pallets/flask/blob/main/README.md#L10-L20",
    "https://github.com/pallets/flask?tab=readme",
    "https://user:token@github.com/pallets/flask",
    "https://api.github.com/repos/pallets/flask",
    "https://raw.githubusercontent.com/pallets/flask/main/README.md",
    "github.com/pallets/flask",
    "git@github.com:pallets/flask.git",
    "ssh://git@github.com:22/pallets/flask.git",
    "git+ssh://git@github.com/pallets/flask",
    "git://github.com/pallets/flask.git",
    "gh:pallets/flask",
    "github:pallets/flask",
]


@pytest.mark.parametrize("text", MEANT)
def test_a_repository_is_understood_in_every_spelling(text: str) -> None:
    found = named(text)
    assert (found.owner.lower(), found.name.lower()) == ("pallets", "flask")


@pytest.mark.parametrize("name", ["a/b.c", "a/_b", "a/-b", "A1-b/c.git.git", "name_corp/x", "a/.github"])
def test_odd_names_are_names(name: str) -> None:
    assert str(named(name)) == name.removesuffix(".git")


NONE = [
    *("", " ", "flask", "/flask", "pallets/", "pallets//", "a/b/c", "a/..", "a/.", "../a", "a/.git", "~/a/b", "./a/b"),
    *(
        "/etc/passwd",
        "-R/x",
        "--upload-pack=x",
        "-R=evil/x",
        "a b/c",
        "a/b c",
        "a\0/b",
        "a/b\0c",
        "ä/b",
        "a/ü",
    ),
    *("a/b@main", "a/b:c", "file:///etc/passwd", "ext::sh -c x", "https://github.com", "https://github.com/pallets"),
    *(
        "https://github.com/../..",
        "https://github.com/%2e%2e/x",
        "a" * 101 + "/b",
        "a/" + "b" * 101,
        "a/b" + "c" * 9_000,
    ),
]


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_repository_is_refused_with_an_example(text: str) -> None:
    """I10, I27."""
    with pytest.raises(ToolError, match=r"is not a repository. Give OWNER/REPO, as in 'pallets/flask'"):
        named(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://gitlab.com/a/b",
        "git@git.example.org:a/b",
        "https://gist.github.com/a/b",
        "https://github.com.evil.org/a/b",
    ],
)
def test_another_host_is_named(text: str) -> None:
    with pytest.raises(ToolError, match=r"work only with github\.com"):
        named(text)


def test_the_host_that_the_user_set_counts_in_its_place() -> None:
    assert str(named("https://git.example.org/a/b", "git.example.org")) == "a/b"
    with pytest.raises(ToolError, match=r"is on github\.com"):
        named("https://github.com/a/b", "git.example.org")


PARTS = ["a", "b-c", "..", ".", "/", "//", ":", "@", "-", "--", "~", "%2e", "\0", "\n", "?", "#", ".git", "é", "'", " "]
HOSTS = ["https://", "ssh://", "git@", "github.com", "github.com:", "api.github.com/repos/", "gh:"]
SPELLED = st.lists(st.sampled_from(PARTS) | st.sampled_from(HOSTS))


@given(SPELLED.map("".join) | st.text())
def test_no_text_leads_anywhere_else(text: str) -> None:
    """I4, I27: whatever is understood is two plain names."""
    try:
        found = named(text)
    except ToolError:
        return
    for part in (found.owner, found.name):
        assert part not in ("", ".", "..")
        assert not set(part) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert not found.owner.startswith(("-", "."))
    root = Path("/nowhere/github-clones")
    assert Clones(Path("/nowhere")).place(found).parent.parent == root


def test_a_clone_is_found_in_any_case_and_never_through_a_link(tmp_path: Path) -> None:
    clones = Clones(tmp_path)
    (clones.root / "Pallets/Flask/.git").mkdir(parents=True)
    (clones.root / "Pallets/plain").mkdir()
    (clones.root / "linked").symlink_to("Pallets")
    (clones.root / "Pallets/link").symlink_to("Flask")
    (clones.root / "Pallets/half").mkdir()
    (clones.root / "Pallets/half/.git").symlink_to("../Flask/.git")
    (clones.root / ".incoming/x/.git").mkdir(parents=True)
    assert clones.find(Repository(owner="pallets", name="FLASK")) == clones.root / "Pallets/Flask"
    for owner, name in (("linked", "Flask"), ("Pallets", "link"), ("Pallets", "plain"), ("Pallets", "half")):
        assert clones.find(Repository(owner=owner, name=name)) is None
