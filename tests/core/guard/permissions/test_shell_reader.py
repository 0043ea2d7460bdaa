"""Commands taken apart: by the fast path as by the parser, within limits, and never more than bash would run."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.limits import Limits
from marvin_core.guard.permissions.readings import Reading
from marvin_core.guard.permissions.shell_parser import NotUnderstood, parse, program
from marvin_core.guard.permissions.shell_reader import read_command, simple_words
from marvin_core.guard.permissions.shell_words import WordReader, ansi
from marvin_core.util.patterns.texts import shown
from tests.support.engine import QUICK
from tests.support.examples import examples

ROOT = Path("/srv/project")
SLOW_CHILD = examples(60)


def reading(command: str, limits: Limits | None = None) -> Reading:
    return read_command(command, ROOT, Path("/home/me"), limits or Limits(), QUICK)


def lines(command: str) -> list[str]:
    return [shown(part.line) for part in reading(command).parts]


PARTS: dict[str, list[str]] = {
    "a; b && c || d | e & f\ng": ["a", "b", "c", "d", "e", "f", "g"],
    "echo 'a; b' \"c && d\" e\\;f": ["echo a; b c && d e;f"],
    "echo hi > out.txt 2>/dev/null": ["echo hi > out.txt"],
    "A=1 make": ["A=1 make"],
    "sudo -u bob -E git push": ["sudo -u bob -E git push", "git push"],
    "env -u X A=1 nice -n 5 make": ["env -u X A=1 nice -n 5 make", "A=1 nice -n 5 make", "make"],
    "xargs -n 1 -I {} rm {}": ["xargs -n 1 -I {} rm {}", "rm …"],
    "for f in *; do rm $f; done": ["rm …"],
    "echo $(git log; ls)": ["git log", "ls", "echo …"],
    "bash -lc 'a && b'": ["bash -lc a && b", "a", "b"],
    "echo one \\\n two": ["echo one two"],
    "{touch,p,{a,b}c}": ["touch p ac bc"],
    "echo {a} {1..3}": ["echo {a} …"],
    "$'to\\x75ch' p": ["touch p"],
    "cd ~/x": ["cd ~/x"],
    "": [],
}


@pytest.mark.parametrize("command", PARTS)
def test_a_command_is_taken_apart(command: str) -> None:
    assert lines(command) == PARTS[command]


QUOTABLE = st.text(alphabet="ab.,;|&()<>#*~ -=/%", max_size=6)
PLAIN = st.text(alphabet="abz./@%+,:=-_09", min_size=1, max_size=6)
WORD = st.one_of(PLAIN, QUOTABLE.map(lambda text: f"'{text}'"), QUOTABLE.map(lambda text: f'"{text}"'))


@SLOW_CHILD
@given(st.lists(WORD, min_size=1, max_size=4).map(" ".join))
def test_the_fast_path_sees_what_the_parser_sees(command: str) -> None:
    words = simple_words(command)
    if words is None:
        return
    tree = parse(command, Limits(), QUICK)
    (statement,) = tree["Stmts"]
    assert statement["Cmd"]["Type"] == "CallExpr"
    assert not statement["Cmd"].get("Assigns")
    assert not statement.get("Redirs")
    found = WordReader(lambda _: False, lambda *_: None).words(statement["Cmd"]["Args"])
    assert [word.text for word in found] == words


@pytest.mark.parametrize(
    "command",
    [
        "if",
        "time a",
        "let a",
        "export a",
        "a=b",
        "a b*",
        "a ~",
        "{ a",
        "a $b",
        "a `b`",
        "a #b",
        "! a",
        "a\nb",
        'a "$b"',
    ],
)
def test_the_fast_path_leaves_the_rest_to_the_parser(command: str) -> None:
    assert simple_words(command) is None


ANY = st.text(alphabet="abt 'p\"\\$`(){}<>|&;#\n-~*/.=1![]", max_size=24)


@SLOW_CHILD
@given(ANY)
def test_any_text_can_be_judged(command: str) -> None:
    assert reading(command).parts is not None


@pytest.mark.parametrize(
    "text",
    [
        "eval " * 1_000 + "x",
        "a|" * 16_000 + "a",
        "$(" * 3_000 + ")" * 3_000,
        "(" * 3_000 + "a" + ")" * 3_000,
        '"$(' * 1_000 + ')"' * 1_000,
        "`" * 3_000,
        "a " * 32_000,
        "a;" * 16_000,
        "{a,b}" * 100,
        "{" * 3_000 + ",a}" * 3_000,
        "if a; then " * 500,
        "bash -c 'bash -c " * 50,
        "x=$(" + "\n".join(f"sh -c 'echo {n}'" for n in range(200)) + ")",
        "f() { f; f; }; f",
        "a() { b; b; }; b() { c; c; }; c() { d; d; }; d() { e; e; }; a; a; a",
        "\ud800",
        "a\0b",
        "x" * 100_000,
        "env " * 5_000 + "x",
        "while :; do cd ..; " * 12 + ":" + "; done" * 12,
    ],
    ids=lambda text: text[:12].strip(),
)
def test_hostile_texts_are_refused_within_bounds(text: str) -> None:
    started = time.monotonic()
    found = reading(text)
    assert len(found.parts) <= Limits().command_parts
    assert time.monotonic() - started < 30  # not a measure of speed: without bounds these take minutes


def test_what_is_too_long_counts_as_not_understood() -> None:
    assert "unparsed" in reading("echo " + "a" * 70_000).unknown
    assert "unparsed" in reading("echo a | cat", Limits(command=5)).unknown
    assert "unparsed" in reading("a | b | c", Limits(command_operators=1)).unknown
    assert "unparsed" in reading("a; b; c", Limits(command_parts=2)).unknown
    assert "unparsed" in reading("a $b", Limits(command_tree=10)).unknown


def test_here_documents_do_not_count_as_nesting() -> None:
    body = "\n".join("x = (a | b)" for _ in range(300))
    assert not reading(f"cat > f.py <<'EOF'\n{body}\nEOF").unknown


def test_shfmt_comes_with_the_core() -> None:
    assert Path(program()).is_file()


@pytest.mark.parametrize(
    "text",
    ["a\\nb", "\\x41\\101\\u0041\\U00000041", "\\e\\E\\a\\b\\f\\r\\t\\v", "\\\\\\'\\\"\\?", "plain", "\\1z\\12z\\123z"],
)
def test_escapes_mean_what_they_mean_in_bash(text: str) -> None:
    done = subprocess.run(["bash", "-c", f"printf %s $'{text}'"], capture_output=True, check=True, timeout=60)
    assert ansi(text).encode() == done.stdout


@pytest.mark.parametrize(
    "script",
    [
        "t a 'b c' \"d  e\" f\\ g h'i'\"j\"",
        "t a;t b&&t c",
        "t a # it's; t b\nt c",
        "t '#' a#b",
        't "a\\"b" \'c\\d\' "e\\f"',
        "(t a; t b)",
        "t {a,b}{c,d} {e} {f,} x{,y}z {{1,2},3}",
        "cat <<'EOF' >/dev/null\nt nothing\nEOF\nt after",
        "echo ${x:-$(t a)} >/dev/null",
        "bash -c 't() { :; }'; t b",
        "eval t a 'b c'",
    ],
)
def test_scripts_are_read_as_a_real_shell_reads_them(script: str, tmp_path: Path) -> None:
    """`t` writes its arguments down; bash and we must see the same calls of it."""
    seen = tmp_path / "seen"
    define = f't() {{ local IFS=" "; printf "%s\\n" "t $*" >> {seen}; }}\n'
    subprocess.run(["bash", "-c", define + script], check=True, timeout=150)
    ours = [line for line in lines(script) if line.startswith("t ")]
    assert ours == seen.read_text().splitlines()


def test_the_tree_is_what_shfmt_says() -> None:
    assert json.dumps(parse("a | b", Limits(), QUICK)["Stmts"][0]["Cmd"]["Op"]) == '"|"'


@pytest.mark.parametrize(
    "text",
    [
        "'" * 60_000,
        '"' * 60_000,
        "$" * 60_000,
        "git " + "$x" * 30_000,
        "cat <<E\n" * 8_000,
        "a;" * 1_900,
        "a\n" * 1_900,
    ],
)
def test_a_text_whose_tree_would_be_huge_is_not_parsed_at_all(text: str) -> None:
    with pytest.raises(NotUnderstood, match="too many parts"):
        parse(text, Limits(), QUICK)


def test_long_texts_in_quotes_and_here_documents_are_no_parts() -> None:
    words = "it is a | b & (c) $ " * 600
    for text in (f"cat <<'E' > f\n{words}\nE\nls", f"cat <<-E\n\t{words}\n\tE\nls", f"echo '{words}'; ls"):
        assert len(parse(text, Limits(), QUICK)["Stmts"]) == 2
