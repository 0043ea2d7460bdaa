"""code_grep without ripgrep: the lines that ripgrep finds, or an error that says what to write instead."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from marvin_core import ToolError
from marvin_tools_coding.files.search import code_grep
from tests.tools_coding.support import Project

needs_rg = pytest.mark.skipif(shutil.which("rg") is None, reason="needs rg (ripgrep)")

TEXT = """Hello wörld ÄÖ 42
foo.bar baz
  indented\ttab
price 5€
line with trailing\x20
École\r
日本語
x{e} a|b o STRASSE straße

\r
abc
ABC
ab12cd
aaa
aabb
foo() {
[x] (y) {,3} {2} a-b a&&b c--d ~~ ^$ \\A\\z .*
the cat
cat the\r
_under_score
\t
istanbul İstanbul ırmak
eté
K\u212a ſs µμ
<tag> "q" 's' /p/ #c %d @x !
a]b [a] ^x -y
0x1F
\u00a0nbsp
Σσς
Q\\E
zz"""
SAME = r"""
\p{Lu} \pL+ [[:digit:]]+ [[:alpha:]]+$ [[:^alpha:]]$ [[:space:]]$ [a-z&&[^o]]oo [a-z&&[^o]] end$ \bö \w+ö o \x{e9}
\x{d6} \u00e9 \AHello \Ahello o\z e\z \\\z \\\\z the\z \Ae\z (?P<a>f)oo foo| \d{2 (?i)école (?i)ss ß \s$ ^ $ ^$
\Qfoo.bar\E \h \H$ \N+x x{e} [[a] [a||b]$ a{e} (?<n>o)\k<n> (o)\1 (?i)straße [:alpha:] \e []a] [^]a] (?=5)5 e\Z [[a]b]
[[a]b](?=.|) [a[b] [^a&&b] [a-c--b] [a-c~~b-d] [a-z--[aeiou]] [a-z&&[a-m]--[c]] [--a] [-a] [a-] [a-b-c] [\d-z] [\w.]
[^\w\s] [\s\S] [\x41-\x43] [\p{Greek}\d] [^\p{L}\p{N}]$ a** a*+a a++ a*?b a{2}{2} a{2,3}? (a|b)++ ^* (?i)[a-z]+$
(?i)[^a-z]+$ (?i)i (?i)istanbul (?i)[[:upper:]]{3} (?i)[A-Z&&[^B]] (?i)k+ (?i)µ (?i)σ (?i:abc) a(?i)B|C a(?i:B)C () |
a| (?i)a(?-i)B (|a) (?:) (a)(b)?\2 (?!a)^. (?<=a)b (?<!a)b$ (?>a+)b (?>a+)a a++b(?=) (?=a)a++a ^(?=.*a)(?=.*b) (?#x)a
(?P<n>a)(?P=n) (?'n'a)\k'n' \X{4} foo\Kbar \x41 [^\n]$ \t \v \f \a . ^.$ ^..$ (?s). (?s)^.$ (?m)^a \Bb b\B \w{4} ^\w+$
^\s+$ ^\S+$ \D$ \W$ ^\s*$ \{,3\} \\A x{ {} {a} }$ ] \] \/ \" \' \# \% \@ \! \- \_ \é \p{Greek} \p{Han} \p{Script=Han}
\PL \p{Alphabetic}+$ [[:word:]]+$ [[:punct:]] [[:punct:]](?=) [[:alpha:]](?=)é [[:alpha:]]{2}(?=$) [a-z]{3,}
[\p{L}&&\p{ASCII}] (?x)a#b (?x)[#a] (?x)a{2}#c (?-i)a a{0} a{3}b{0,} (?i)(a)\1 (?i)é (?i)ſ (?i)\p{L}+ [\b]
[\x{41}-\x{43}] [\u0041] \U00000041 \u{41} [a\-z] [a\]b] [\[\]] [\^a] [a^] [\\A] [^\\] [.] [$^] [{}] [|] [a|b]\| [&]
[a&b] [~] [a~b] ['"] a-b a&&b c--d ~~ [é-ü] [^é] [日本]+ é? e\x{301} (?:a|aa)+$ (a+)+$ \bthe\b (cat|the)\s(cat|the)
\b(?:cat)\b \w+(?=\() (?<=\bthe\s)cat \s(?=$) [^a](?=$) \W(?=$) ^(?!.*a).*$ \d+(?!\d) (?<!\w)x \z(?=|a) ^$(?=|a)
\A(?=a) \.\* \(\) \[x\] \^\$ -y a$b ^^a a$$ x* (x*)* (x*)+$ (?i)q\\e Q\\E \\E \Q[x]\E \Q[x] \Q.*\E+ \p{Any} \p{Nd}{2}
\pN \pZ \p{Zs}n
""".split()
REFUSED = {
    "a{,3}b": "Write {0,3}",
    "a{ 2}": "or \\{ 2} for the text",
    r"(?-u)\w": "For a \\w of ASCII write [0-9A-Za-z_]",
    "(?U)a+": "Use (?:...)",
    "(?|a|b)": "Use (?:...)",
    "(*FAIL)": "for a bracket \\(",
    r"\<foo\>": "Write \\b",
    r"\b{start}a": "Write \\b",
    r"(a)\g{1}": "Write a sign as",
    r"\Ga": "Write a sign as",
    r"(?i)\p{Lu}": "Write \\p{L}",
    r"\p{^L}": "\\P{L}",
    r"a\n": "Leave \\n out",
    r"a\x0d": "Leave \\x0d out",
    "[a&&]": "Write \\ before each",
    "[[:foo:]]": "Write the characters",
    r"[\Qa\E]": "Write a sign as",
    "(?i)İ": "where case is ignored",
    "a\\": "write \\\\ for the sign",
}
PARTS = r"""
a b c o e foo . \w \d \s \W \S \D \b ^ [abc] [^a] [a-z] [[:alpha:]] [^[:space:]] [a-m&&[^c]] [a-z--[b-y]] é ö ß
[a~~[ab]] [[a-c][x-z]] \p{L} \PL \x41 \x{e9} (a|b) (?:c|) ( (?i) (?-i) (?i: (?P<n>a) \. \{ { } ] - & | (?= (?! (?<=
(?<! \1 \h (?x) # \- []a] [^]a] [a-] [\w-] [\]x] (?> [[] ~ % x \Q.\E \A \Z \z (?s) (?m) [^\n] [\d.] ſ K _
""".split()
COUNTS = ("*", "+", "?", "{2}", "{1,2}", "{2,}", "*?", "+?", "??", "++", "*+", "**", "?+")


def found(project: Project, pattern: str, **arguments: Any) -> str:
    try:
        return project.call(code_grep, pattern=pattern, max_results=500, context_lines=0, **arguments)
    except ToolError as error:
        return f"Error: {error}"


@pytest.fixture
def pair(project: Project) -> tuple[Project, Project]:
    """The same files with ripgrep and without."""
    project.write("a.txt", TEXT.encode())
    project.write("b.txt", TEXT.replace("\r", "").replace("\n", "\r\n").encode())
    project.write("c.txt", TEXT[:200].encode("utf-16"))
    project.write("d.txt", b"\xef\xbb\xbfabc\n\xef\xbb\xbfaa\n")
    project.write("e.txt", b"abc\nfoo\0aaa\nabc\n")
    return project, Project(project.root, programs=("git",))


@needs_rg
@pytest.mark.slow
@pytest.mark.parametrize("ignore_case", [False, True])
@pytest.mark.parametrize("part", range(8))
def test_an_expression_finds_the_same_lines(pair: tuple[Project, Project], part: int, ignore_case: bool) -> None:
    for pattern in SAME[part::8]:
        if ignore_case and "\\p{Lu}" in pattern:
            continue
        with_it, without = (found(project, pattern, ignore_case=ignore_case) for project in pair)
        assert with_it == without, pattern
        assert not with_it.startswith("Error"), pattern


@pytest.mark.parametrize(("pattern", "advice"), REFUSED.items())
def test_what_cannot_be_the_same_is_refused_with_advice(
    pair: tuple[Project, Project], pattern: str, advice: str
) -> None:
    assert advice in found(pair[1], pattern)
    assert not found(pair[1], pattern, literal=True).startswith("Error")


@needs_rg
@pytest.mark.parametrize("pattern", [p for p in REFUSED if p not in (r"a\n", r"a\x0d", "a\\", "[[:foo:]]")])
def test_with_ripgrep_it_is_left_to_ripgrep(pair: tuple[Project, Project], pattern: str) -> None:
    assert not found(pair[0], pattern).startswith("Error")


@needs_rg
@pytest.mark.parametrize("pattern", [r"abc\n", r"abc\r", r"abc\r?\n", r"[\r\n]"])
def test_a_line_end_is_refused_with_advice(pair: tuple[Project, Project], pattern: str) -> None:
    """It found nothing, without a word."""
    for project in pair:
        assert "write $ for the end of a line" in found(project, pattern)


@needs_rg
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_expressions_find_the_same_lines(pair: tuple[Project, Project], seed: int) -> None:
    choose = random.Random(seed)
    compared = 0
    for _ in range(100):
        pattern = _random(choose)
        with_it, without = (found(project, pattern) for project in pair)
        if not with_it.startswith("Error") and not without.startswith("Error"):
            assert with_it == without, pattern
            compared += 1
        assert "is not a valid" in with_it or "is not a valid" not in without, pattern
    assert compared > 40


def _random(choose: random.Random) -> str:
    text, depth = "", 0
    for _ in range(choose.randint(1, 7)):
        part = choose.choice(PARTS)
        text += part
        if part.startswith("(") and not part.endswith(")"):
            depth += 1
        elif choose.random() < 0.3:
            text += choose.choice(COUNTS)
        if depth and choose.random() < 0.5:
            text, depth = text + ")", depth - 1
    return text + ")" * depth


@needs_rg
@pytest.mark.parametrize(
    "arguments",
    [
        {"output": "files"},
        {"output": "count"},
        {"glob_filter": "*.txt,!a*"},
        {"glob_filter": "[ab].txt"},
        {"glob_filter": "*.{py,txt}", "output": "count"},
        {"glob_filter": "*.py"},
        {"path": "b.txt"},
    ],
)
def test_other_arguments_mean_the_same(pair: tuple[Project, Project], arguments: dict[str, Any]) -> None:
    pair[0].write("x.py", "abc\n")
    for pattern, literal in (
        ("ab+c", False),
        ("abc", True),
        ("a.c", True),
        (r"\b(?:cat)\b", False),
        ("(y) {,3}", True),
    ):
        with_it, without = (found(project, pattern, literal=literal, **arguments) for project in pair)
        assert with_it == without, pattern
        assert not with_it.startswith("Error")


@needs_rg
def test_a_line_that_pcre2_gives_up_is_an_error_at_once(project: Project) -> None:
    """It was searched again without ripgrep for 20 s, or left out without a word beside other matches."""
    project.write("a.txt", "needle\n")
    project.write("b.txt", "a" * 10_000 + "!\n")
    begin = time.monotonic()
    assert "takes too long" in project.error(code_grep, pattern="needle|(a+)+$(?=x)")
    assert time.monotonic() - begin < project.timeouts.search / 2


@needs_rg
def test_what_cannot_be_read_is_no_reason_to_search_without_ripgrep(project: Project) -> None:
    """Each search that found nothing was repeated without it, which took too long in a large folder."""
    project.write("a.txt", "foo\n")
    folder = os.open(project.root, os.O_RDONLY)
    for _ in range(20):  # a path that is too long for it
        os.mkdir("x" * 250, dir_fd=folder)
        deeper = os.open("x" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    os.close(folder)
    assert found(project, "(?U)nothing+").startswith("No line matches")
    assert found(project, "(?U)nothing+", output="count").startswith("No line matches")
    assert "not a valid regular expression" in found(project, "foo(")


@needs_rg
def test_two_carriage_returns_are_no_end_of_the_search(project: Project) -> None:
    """ripgrep 13 fails there; in a folder its other threads then waited without end, and what it had found was all."""
    project.timeouts = project.timeouts.replace(search=2.0)
    project.write("a.txt", "foo\n")
    for name in ("b", "c", "d"):
        project.write(f"{name}.txt", "\r\r\nfoo\n")
    assert "d.txt:2: foo" in found(project, "$")


@pytest.mark.parametrize("pattern", ["(?:a|aa)+$", "(?:a|aa)+(?=b)$", "x" * 5_000])
def test_without_ripgrep_a_search_ends_in_time(tmp_path: Path, pattern: str) -> None:
    """The library looks for signals in some of its loops only."""
    own = Project(tmp_path / "project", programs=())
    own.write("a.txt", "a" * 10_000 + "!b\n")
    own.timeouts = own.timeouts.replace(search=1.0)
    begin = time.monotonic()
    assert "takes too long" in own.error(code_grep, pattern=pattern)
    assert time.monotonic() - begin < 10


def test_without_ripgrep_counts_in_counts_do_not_take_all_memory(tmp_path: Path) -> None:
    own = Project(tmp_path / "project", programs=())
    own.write("a.txt", "aaa\n")
    assert "takes too long" in own.error(code_grep, pattern="((a{1000}){1000}){1000}")
