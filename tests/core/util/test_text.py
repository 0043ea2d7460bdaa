"""Short texts: one line, cut, and the names that may be meant."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from marvin_core.util.terminal_text import without_sequences
from marvin_core.util.text import FAINTLY_LIKE, cut, did_you_mean, hint_at, near_names, one_line, unknown_name

TOOLS = tuple(
    "web_search wiki_search stack_search weather_forecast read_file create_file write_file apply_patch run_command"
    " git_log git_diff git_status launch_agent write_note read_note tree tk".split()
)
SETTINGS = ("provider", "model", "models", "providers", "fallback", "tools", "ui", "permissions", "timeouts")
WEB_SEARCH = (
    *("search_web", "serch_web", "web-search", "web.search", "web search", "searchWeb", "WebSearch"),
    *("WEB_SEARCH", "websearch", "serch_wbe", "search_the_web", "web_search_tool", "web search\n"),
)
MODELS = ("openai/gpt-oss-120b", "anthropic/claude-opus-4-6", "qwen/qwen3-32b", "llama-70b")
HOOKS = ("marvin_register_tools", "marvin_register_hooks", "marvin_register_providers")

# Every character there is, lone surrogates and controls too.
ANY_TEXT = st.text(st.characters())
WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=8)


# --- near names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "known", "first"),
    [
        *((asked, TOOLS, "web_search") for asked in WEB_SEARCH),
        ("readfile", TOOLS, "read_file"),
        ("ReadFile", TOOLS, "read_file"),
        ("file_read", TOOLS, "read_file"),
        ("git_lgo", TOOLS, "git_log"),
        ("gti_log", TOOLS, "git_log"),
        ("log", TOOLS, "git_log"),
        ("run", TOOLS, "run_command"),
        ("run_comand", TOOLS, "run_command"),
        ("execute_command", TOOLS, "run_command"),
        ("get_weather", TOOLS, "weather_forecast"),
        ("weather_forecast_tomorrow", TOOLS, "weather_forecast"),
        ("google_search", TOOLS, "web_search"),
        ("modle", SETTINGS, "model"),
        ("modell", SETTINGS, "model"),
        ("Models", SETTINGS, "models"),
        ("timeout", SETTINGS, "timeouts"),
        ("file_path", ("path", "line", "force"), "path"),
        ("pathname", ("path", "line", "force"), "path"),
        ("target-directory-path", ("path", "line", "force"), "path"),
        ("marvin_register_tool", HOOKS, "marvin_register_tools"),
        ("opus", MODELS, "anthropic/claude-opus-4-6"),
        ("qwen3-32b-instruct", MODELS, "qwen/qwen3-32b"),
        ("mian.py", ("main.py", "test_main.py", "README.md"), "main.py"),
        ("readme.MD", ("main.py", "test_main.py", "README.md"), "README.md"),
        ("漢学", ("漢字", "main.py"), ""),
        ("frobnicate", TOOLS, ""),
        ("zzz", TOOLS, ""),
        ("foo_bar_baz", TOOLS, ""),
        ("get_foo", ("get_usage",), ""),
        ("", TOOLS, ""),
        ("___", TOOLS, ""),
        ("x", ("",), ""),
    ],
)
def test_the_name_that_is_meant_comes_first(asked: str, known: Sequence[str], first: str) -> None:
    """I10: one guess leads to the right name; where none is near, none is offered."""
    assert "".join(near_names(asked, known)[:1]) == first


def test_no_more_are_given_than_asked_for_and_the_likeliest_come_first() -> None:
    assert near_names("git", TOOLS) == ["git_log", "git_diff", "git_status"]
    assert near_names("git", TOOLS, 2) == ["git_log", "git_diff"]
    assert near_names("provider", ["providers", "provider", "Provider"], 1) == ["Provider"]
    assert near_names("READ_FILE", ["read_files", "read_file", "file_read"])[0] == "read_file"


def test_what_has_little_in_common_is_not_offered() -> None:
    flags = ["-h", "-B", "--prompt", "--prompt-file", "--provider", "--model", "--tools", "--resume", "--version"]
    assert near_names("--provder", flags) == ["--provider"]
    assert near_names("--modle", flags) == ["--model"]
    assert near_names("nope", ["openai", "openai-compat", "ollama", "groq"]) == []
    assert near_names("opnai", ["openai", "openai-compat", "ollama"])[0] == "openai"
    assert near_names("args", ["say", "tool", "arguments"]) == ["arguments"]
    assert near_names("olama", ["llama-server", "ollama", "openai"])[0] == "ollama"


def test_less_likeness_is_enough_where_names_are_listed_anyway() -> None:
    assert near_names("opus-46", MODELS) == []
    assert near_names("opus-46", MODELS, enough=FAINTLY_LIKE) == ["anthropic/claude-opus-4-6"]


@given(st.data(), st.lists(WORD, min_size=1, max_size=6, unique=True), st.sampled_from(["_", "-", ".", " ", ""]))
def test_words_in_any_order_find_the_name(data: st.DataObject, words: list[str], between: str) -> None:
    """I10: neither order nor style nor case of words keeps a name from being found."""
    assume(all(sorted(words) != sorted(tool.split("_")) for tool in TOOLS))
    name = "_".join(words)
    permuted = data.draw(st.permutations(words))
    asked = between.join(permuted) if between else "".join(map(str.capitalize, permuted))
    assert near_names(asked, [*TOOLS, name])[0] == name
    assert near_names(asked.upper() if between else asked, [name, *TOOLS])[0] == name


@given(ANY_TEXT, st.lists(ANY_TEXT), st.integers(0, 5))
def test_any_text_can_be_asked_for(asked: str, known: list[str], most: int) -> None:
    found = near_names(asked, known, most)
    assert len(found) <= most
    assert len(set(found)) == len(found)
    assert set(found) <= set(known)
    assert found == near_names(asked, [*reversed(known), *known], most)
    unknown_name("tool", asked, known).encode()


@given(ANY_TEXT.filter(bool), st.lists(ANY_TEXT))
def test_a_name_that_is_equal_but_for_case_comes_first(name: str, others: list[str]) -> None:
    known = [other for other in others if other.casefold() != name.casefold()]
    assert near_names(name.casefold(), [*known, name])[:1] == [name]


@pytest.mark.parametrize("piece", ["a", "a_", "aB", "é", "\udcff", "\n", "ΐ"])
def test_long_texts_are_compared_by_their_beginning(piece: str) -> None:
    known = [f"{piece * 100}{number}" for number in range(50)]
    assert len(near_names(piece * 100_000, known)) == 3
    assert near_names(piece * 100_000, TOOLS) == []


def test_difflib_is_loaded_by_errors_only() -> None:
    code = "import sys, marvin_core.util.text; sys.exit('difflib' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ((), ""),
        (("a",), "Did you mean 'a'?"),
        (("a", "b"), "Did you mean 'a' or 'b'?"),
        (("a", "b", "c"), "Did you mean 'a', 'b' or 'c'?"),
        (("a\x1b[1m",), "Did you mean 'a\\x1b[1m'?"),
    ],
)
def test_near_names_are_asked_about_in_a_sentence(names: Sequence[str], sentence: str) -> None:
    assert did_you_mean(names) == sentence


def test_a_hint_is_the_near_names_or_what_there_is() -> None:
    assert hint_at("gorq", ["groq", "openai"]) == "Did you mean 'groq'?"
    assert hint_at("nope", ["groq", "openai"]) == "Available: groq, openai."
    assert hint_at("nope", ["groq", "openai"], "Look it up.") == "Look it up."


def test_an_unknown_name_is_told_with_what_there_is() -> None:
    """I10."""
    assert unknown_name("key", "modle", SETTINGS) == "Unknown key 'modle'. Did you mean 'model' or 'models'?"
    assert unknown_name("key", "zzz", ("a", "b")) == "Unknown key 'zzz'. Available: a, b."
    assert unknown_name("key", "zzz", ()) == "Unknown key 'zzz'. Available: none."
    assert unknown_name("key", "zzz", map(str, range(100))) == "Unknown key 'zzz'."


# --- one line, and cut ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "limit", "line"),
    [
        ("", None, ""),
        (" \n\t ", None, ""),
        ("one\n\n  two\tthree \r\n", None, "one two three"),
        ("a\x1b[31mb\x00\x07c\x85d\u2028e\u200bf", None, "ab c d e f"),
        ("a \x1b]0;title\x07b \x9b1mc \x1b[3", None, "a b c [3"),
        ("over\u202ehere \udcff \ue000 x", None, "over here x"),
        ("漢字 é 🔧", None, "漢字 é 🔧"),
        ("12345", 5, "12345"),
        ("1234\n5", 5, "1234…"),
        ("12345\n", 5, "12345"),
        ("12", 1, "…"),
        ("\x00" * 1_000 + "12345", 5, "12345"),
    ],
)
def test_a_text_on_one_line(text: str, limit: int | None, line: str) -> None:
    assert one_line(text, limit) == line


@given(ANY_TEXT, st.none() | st.integers(1, 20))
def test_one_line_holds_nothing_that_a_terminal_obeys(text: str, limit: int | None) -> None:
    line = one_line(text, limit)
    assert not {unicodedata.category(c) for c in line} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert line.isprintable()
    assert one_line(line, limit) == line.strip()
    line.encode()
    if limit is None:
        assert line == " ".join("".join(c if c.isprintable() else " " for c in without_sequences(text)).split())
    else:
        assert len(line) <= limit
        assert line == one_line(text) or one_line(text).startswith(line.removesuffix("…"))


@given(ANY_TEXT, st.integers(0, 20))
def test_a_text_is_cut_at_the_limit_and_can_be_encoded(text: str, limit: int) -> None:
    shown = cut(text, limit)
    shown.encode()
    assert shown.endswith("…") or len(text) <= limit
    assert shown.startswith(text[:limit].encode("utf-8", "backslashreplace").decode())
