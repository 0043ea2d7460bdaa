"""Glob patterns: what they match, by examples and against Python's own glob on real files."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from marvin_core import ToolError
from marvin_core.kit.files.globs import (
    GlobFilter,
    at_any_depth,
    compile_glob,
    expand_braces,
    literal_tails,
    names_hidden,
    split_globs,
)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", "ü.py"], ["a/b.py", "a.pyc", "a_py"]),
        ("**/*.py", ["a.py", "a/b.py", "a/b/c.py"], ["a.txt"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "b/a/c"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "ab"]),
        ("a?c", ["abc"], ["ac", "a/c", "abbc"]),
        ("[ab]c", ["ac", "bc"], ["cc", "[ab]c"]),
        ("[!a]c", ["bc"], ["ac", "/c"]),
        ("[]]x", ["]x"], ["x"]),
        ("a[b", ["a[b"], ["ab"]),
        ("a.{b,c{d,e}}", ["a.b", "a.cd", "a.ce"], ["a.c", "a.{b,c{d,e}}"]),
        ("a{b", ["a{b"], ["ab"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("a+b(c)^$", ["a+b(c)^$"], ["aab"]),
        ("line\nbreak*", ["line\nbreaks"], ["line"]),
    ],
)
def test_patterns_match_whole_paths(pattern: str, yes: list[str], no: list[str]) -> None:
    expression = compile_glob(pattern)
    assert [path for path in [*yes, *no] if expression.fullmatch(path)] == yes


@pytest.mark.parametrize(
    ("text", "start", "yes", "no"),
    [
        ("*.py", ".", ["a.py", "x/y/a.py"], ["a.js"]),
        ("*.{ts,tsx}, *.js", ".", ["a.ts", "x/a.tsx", "a.js"], ["a.py"]),
        ("src/*.py", ".", ["src/a.py"], ["x/src/a.py", "src/x/a.py"]),
        ("src/", ".", ["src/a", "src/b/c"], ["a"]),
        ("*.py,!test_*", ".", ["a.py", "x/b.py"], ["test_a.py", "x/test_b.py"]),
        ("!*.md", ".", ["a.py"], ["a.md", "x/b.md"]),
        ("deep/*.py", "src", ["src/deep/a.py", "deep/b.py"], ["src/a.py"]),
        ("/a.py", ".", ["a.py"], ["x/a.py"]),
    ],
)
def test_filters_choose_as_gitignore_patterns_do(text: str, start: str, yes: list[str], no: list[str]) -> None:
    chosen = GlobFilter(text)
    assert [path for path in [*yes, *no] if chosen(path, start)] == yes
    assert not chosen.is_everything
    assert GlobFilter("*").is_everything


def test_many_stars_take_no_time() -> None:
    assert compile_glob("*a" * 30 + "*b").fullmatch("a" * 250) is None
    assert compile_glob("*a" * 30 + "*").fullmatch("a" * 250)


def test_lists_and_hidden_names() -> None:
    assert split_globs("a,{b,c}, d ,") == ["a", "{b,c}", "d"]
    assert names_hidden(".github/**")
    assert names_hidden("**/{.env,x}")
    assert not names_hidden("./a/../*.py")


NAMES = ["a", "b", "ab", "a.py", "b.py", "sub", "[x]"]
PIECES = st.sampled_from(["a", "b", "*", "?", "[ab]", "[!a]", ".py", "sub", "**", "/", "/**/", "*.py"])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of all these names, two folders deep."""
    root = tmp_path_factory.mktemp("globs")
    for folder in (root, root / "sub", root / "sub/sub"):
        folder.mkdir(exist_ok=True)
        for name in NAMES:
            if name != "sub":
                (folder / name).touch()
    return root


@settings(deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=5).map("".join))
def test_real_files_match_as_with_pythons_glob(files: Path, pattern: str) -> None:
    names = pattern.split("/")
    if "" in names or any("**" in name and name != "**" for name in names):
        return  # Python reads these otherwise
    expression = compile_glob(pattern)
    everything = {os.path.relpath(path, files) for path in files.rglob("*") if path.is_file()}
    expected = {path for path in glob.glob(pattern, root_dir=files, recursive=True) if path in everything}
    assert {path for path in everything if expression.fullmatch(path)} == expected


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("pattern", ["[+--]", "[a||,]", "[,&&]", "[~~,]"])
def test_signs_of_sets_stand_for_themselves(pattern: str) -> None:
    """Python warns of what may mean a union or a difference of sets in a later version."""
    assert compile_glob(pattern).fullmatch(",")


@given(st.text("ab{},*[]!/\\^-", max_size=14))
@example("[[--]")
def test_any_text_is_a_pattern_or_a_clear_error(text: str) -> None:
    try:
        compile_glob(text).fullmatch("a/b")
        GlobFilter(text)("a/b", ".")
        alternatives = expand_braces(text)
    except ToolError:
        return
    assert 1 <= len(alternatives) <= 200


SEGMENTS = st.sampled_from(["**", "*", "a", "a*", "?", "b"])


PARTS = st.lists(st.sampled_from(["a", "b", "aa", "c"]), min_size=1, max_size=7)


def plainly(names: list[str], parts: list[str]) -> bool:
    """What a pattern matches, by trying everything."""
    if not names or not parts:
        return not names and not parts
    if names[0] != "**":
        return re.fullmatch(names[0].replace("*", ".*").replace("?", "."), parts[0]) is not None and plainly(
            names[1:], parts[1:]
        )
    rest = names[1:]
    if not rest:
        return True
    return any(plainly(rest, parts[skipped:]) for skipped in range(len(parts)))


@given(st.lists(SEGMENTS, min_size=1, max_size=6), PARTS)
def test_folders_match_as_if_everything_were_tried(names: list[str], parts: list[str]) -> None:
    assert bool(compile_glob("/".join(names)).fullmatch("/".join(parts))) == plainly(names, parts)


@pytest.mark.parametrize("pattern", ["**/" * 40 + "y", "**/d/" * 30 + "y", "**/*/" * 30 + "y", "**/*d*/" * 30 + "y"])
def test_no_pattern_takes_for_ever_in_a_deep_tree(pattern: str) -> None:
    """Trying everything would take longer than anybody waits: the sum of all ways is above 10^15."""
    assert not compile_glob(pattern).fullmatch("d/" * 60 + "x")


@pytest.mark.parametrize("pattern", ["**/*.py", "**/*.{ts,tsx}", "**/*file", "**/*.tar.gz"])
def test_a_pattern_for_any_depth_fits_whatever_ends_as_it_says(pattern: str) -> None:
    assert at_any_depth(pattern)
    fits, tails = compile_glob(pattern).fullmatch, literal_tails(pattern)
    for path in ["a.py", "x/y/a.py", "a.ts", "x/a.tsx", "a.pyc", "file", "x/profile", "a.tar.gz", ".py", "x/.ts", "py"]:
        assert (fits(path) is not None) == path.endswith(tails)


@pytest.mark.parametrize(
    "pattern", ["*.py", "**/*", "**/a*.py", "src/**/*.py", "**/*/a.py", "**/*[a].py", "**/*.{py,*}"]
)
def test_a_pattern_that_says_more_is_none_for_any_depth(pattern: str) -> None:
    assert not at_any_depth(pattern)
