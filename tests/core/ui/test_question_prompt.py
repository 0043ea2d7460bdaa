"""A question about calls in plain lines: what is shown of them, and what typed lines mean."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.permissions import NO, AskedCall, Question, Reply
from marvin_core.ui.question_prompt import QuestionPrompt
from marvin_core.ui.rendering import Paint
from marvin_core.util.shown import columns_of

CALL = AskedCall(
    call_id="c1",
    name="run_command",
    text="touch made",
    reason="run_command runs programs, and the permission mode is ask",
    command="touch made",
    remember="run_command(touch made)",
    answers=("once", "session", "always", "edit", "no"),
)
BARE = CALL.replace(remember="", command="", answers=("once", "no"))


def prompt_for(*given: AskedCall, width: int = 60, color: bool = False) -> QuestionPrompt:
    question = Question(kind="calls", text=f"Run {given[0].name}?" if len(given) == 1 else "Run these?", calls=given)
    return QuestionPrompt(question, Paint(color), width, columns_of)


def answered(prompt: QuestionPrompt, *lines: str) -> Sequence[Reply] | None:
    prompt.begin()
    for line in lines:
        assert prompt.replies is None, "a line too many"
        prompt.take(line)
    return prompt.replies


ONE = [
    (["y"], Reply(says="once")),
    ([" YES "], Reply(says="once")),
    (["s"], Reply(says="session")),
    (["n"], NO),
    (["no"], NO),
    (["no, use npm"], Reply(says="no", text="use npm")),
    (["n: use npm"], Reply(says="no", text="use npm")),
    (["always", "run_command(touch *)"], Reply(says="always", rule="run_command(touch *)")),
    (["a run_command(t*)"], Reply(says="always", rule="run_command(t*)")),
    (["a", "", "n"], NO),
    (["e", "touch other"], Reply(says="edit", command="touch other")),
    (["edit ls -l"], Reply(says="edit", command="ls -l")),
    (["e", "", "y"], Reply(says="once")),
    (["v", "y"], Reply(says="once")),
    (["", "what", "yes please", "yy", "/steer yes", "y y", "session x", "no"], NO),
]


@pytest.mark.parametrize(("lines", "reply"), ONE, ids=[" | ".join(lines) for lines, _ in ONE])
def test_what_lines_mean_for_one_call(lines: list[str], reply: Reply) -> None:
    assert answered(prompt_for(CALL), *lines) == [reply]


@pytest.mark.parametrize("line", ["s", "always", "a x", "e", "edit x"])
def test_an_answer_that_is_not_offered_is_none(line: str) -> None:
    prompt = prompt_for(BARE)
    assert prompt.take(line).startswith(
        "That is not an answer; nothing was run. Answer with a word, or its first letter:"
    )
    assert prompt.replies is None
    assert prompt.sign == "[yes/no/view] "


def test_the_rule_and_the_command_can_be_changed() -> None:
    prompt = prompt_for(CALL)
    assert "always stores the rule: run_command(touch made)" in prompt.begin()
    assert "run_command(touch made)" in prompt.take("a")
    assert (prompt.draft, prompt.sign) == ("run_command(touch made)", "rule to store (empty: back) > ")
    prompt.take("")
    prompt.take("e")
    assert (prompt.draft, prompt.sign) == ("touch made", "command (empty: back) > ")


def test_a_command_that_could_steer_the_terminal_is_no_draft() -> None:
    prompt = prompt_for(CALL.replace(command="ls \x1b]0;x\x07"))
    prompt.take("e")
    assert prompt.draft == ""


def test_a_dangerous_call_looks_different_and_wants_the_whole_word() -> None:
    prompt = prompt_for(CALL.replace(alarm="removes the working directory"), color=True)
    shown = prompt.begin()
    assert "DANGER: this removes the working directory." in shown
    assert "\x1b[31m" in shown
    assert "\x1b[31m" not in prompt_for(CALL, color=True).begin()
    assert "type yes in full" in prompt.take("y")
    assert prompt.replies is None
    prompt.take("yes")
    assert prompt.replies == [Reply(says="once")]


# --- a list --------------------------------------------------------------------------------------------------------

THREE = tuple(CALL.replace(call_id=f"c{n}", text=f"touch {n}") for n in range(1, 4))
YES = Reply(says="once")
LISTS = [
    (["all"], [YES, YES, YES]),
    (["y"], [YES, YES, YES]),
    (["none"], [NO, NO, NO]),
    (["none, not today"], [Reply(says="no", text="not today")] * 3),
    (["1 3"], [YES, NO, YES]),
    (["2-3"], [NO, YES, YES]),
    (["1,3"], [YES, NO, YES]),
    (["4", "0", "1 x", "3-1", "all of them", "", "n"], [NO, NO, NO]),
    (["v", "v 2", "2"], [NO, YES, NO]),
    (["each", "y", "e", "ls", "n no"], [YES, Reply(says="edit", command="ls"), Reply(says="no", text="no")]),
]


@pytest.mark.parametrize(("lines", "replies"), LISTS, ids=[" | ".join(lines) for lines, _ in LISTS])
def test_what_lines_mean_for_several_calls(lines: list[str], replies: list[Reply]) -> None:
    assert answered(prompt_for(*THREE), *lines) == replies


def test_a_list_is_numbered_and_view_shows_one_alone() -> None:
    prompt = prompt_for(*THREE)
    shown = prompt.begin()
    assert re.findall(r"^(\d)\. run_command$", shown, re.MULTILINE) == ["1", "2", "3"]
    assert [f"  | touch {n}" in shown for n in (1, 2, 3)] == [True] * 3
    only = prompt.take("view 2")
    assert "touch 2" in only
    assert "touch 1" not in only
    assert prompt.sign == "[all/none/1,2/each/view] "


def test_a_list_with_a_danger_in_it_wants_the_whole_word() -> None:
    calls = (*THREE[:2], THREE[2].replace(alarm="removes the working directory"))
    prompt = prompt_for(*calls)
    assert "3. run_command DANGER: this removes the working directory." in prompt.begin()
    for line in ("y", "a"):
        assert "type all in full" in prompt.take(line)
    assert answered(prompt_for(*calls), "all") == [YES] * 3


def test_ctrl_d_refuses_what_has_no_reply_yet() -> None:
    prompt = prompt_for(*THREE)
    prompt.take("each")
    prompt.take("y")
    prompt.refuse()
    assert prompt.replies == [YES, NO, NO]


def test_a_question_about_trust_takes_yes_or_no() -> None:
    question = Question(
        kind="trust", text="Trust the code and settings of /repo?", details=(".mcp.json", ".marvin/hooks/x.py")
    )
    prompt = QuestionPrompt(question, Paint(color=False), 60, columns_of)
    assert prompt.begin().split("\n") == [
        "Trust the code and settings of /repo?",
        "  | .mcp.json",
        "  | .marvin/hooks/x.py",
    ]
    assert prompt.sign == "[yes/no] "
    assert "not an answer" in prompt.take("s")
    prompt.take("y")
    assert prompt.replies == [YES]


# --- what is shown -----------------------------------------------------------------------------------------------


def quoted(shown: str) -> str:
    """The text of others in what is shown, its folded rows joined."""
    text = ""
    for row in shown.split("\n"):
        if row.startswith("  | "):
            text += f"\n{row[4:]}"
        elif row.startswith("  : "):
            text += row[4:]
    return text.removeprefix("\n")


@given(st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" \n"), min_size=1), st.integers(1, 90))
def test_every_character_is_shown_and_nothing_leaves_its_rows(text: str, width: int) -> None:
    prompt = prompt_for(CALL.replace(text=text), width=width)
    shown = prompt.take("view")
    assert quoted(shown) == text
    own = [row for row in shown.split("\n") if not row.startswith(("  | ", "  : "))]
    assert len(own) == 3, "the title, the reason and the rule"


def test_what_is_cut_is_marked_with_its_end_shown_and_view_opens_it() -> None:
    lines = [f"line {n}" for n in range(1_000)]
    prompt = prompt_for(CALL.replace(text="\n".join(lines)))
    shown = prompt.begin()
    assert "line 0" in shown
    assert "line 999" in shown
    assert "980 rows left out here; view shows them" in shown
    assert "line 500" not in shown
    assert quoted(prompt.take("v")).split("\n") == lines


def test_a_hundred_harmless_characters_hide_nothing() -> None:
    command = "true " + "#" * 100 + "; rm -rf important"
    assert "rm -rf important" in quoted(prompt_for(CALL.replace(text=command)).begin())


def test_padding_that_looks_like_marvins_own_words_stays_within_its_rows() -> None:
    command = "touch x" + " " * 53 + "[yes/no] y" + "\n(always stores the rule: nothing)"
    shown = prompt_for(CALL.replace(text=command), width=60).begin().split("\n")
    assert [row for row in shown if row.startswith(("[yes", "(always"))] == [
        "(always stores the rule: run_command(touch made))"
    ]


def test_the_difference_is_shown_in_its_colours_and_cut_with_a_mark() -> None:
    diff = "--- a/x\n+++ b/x\n" + "".join(f"+line {n}\n" for n in range(100))
    prompt = prompt_for(CALL.replace(diff=diff, paths=("x",)), color=True)
    shown = prompt.begin()
    assert "It would change x:" in shown
    assert "\x1b[32m+line 0\x1b[0m" in shown
    assert "62 rows left out here" in shown
    assert "62 rows" not in prompt.take("view")


# --- whatever is typed -------------------------------------------------------------------------------------------

LINES = st.one_of(
    st.sampled_from(
        ["", "y", "n", "s", "a", "e", "v", "1", "1,2", "each", "all", "none", "view 1", "0", "x", "touch y"]
    ),
    st.text(max_size=12),
)


@given(st.lists(LINES, max_size=30), st.integers(1, 3), st.booleans())
def test_a_call_runs_only_after_a_word_that_says_so(typed: list[str], count: int, danger: bool) -> None:
    """Whatever is typed, there are as many replies as calls at the end, and a yes only where a yes was typed."""
    calls = tuple(one.replace(alarm="is dangerous" if danger else "") for one in THREE[:count])
    prompt = prompt_for(*calls)
    prompt.begin()
    yes: list[str] = []
    for line in typed:
        if prompt.replies is not None:
            break
        free = "(empty: back)" in prompt.sign
        prompt.take(line)
        word = re.split(r"[ ,:.]", line.strip().lower())[0]
        if free or word[:1] in ("y", "a", "s", "e") or word[:1].isdigit():
            yes.append(line)
    prompt.refuse()
    assert prompt.replies is not None
    assert len(prompt.replies) == count
    if any(reply.says != "no" for reply in prompt.replies):
        assert yes


def test_a_reason_that_a_model_wrote_does_not_push_the_command_away() -> None:
    call = CALL.replace(reason=f"it asks to run outside, because: {'please ' * 2_000}the end")
    prompt = prompt_for(call)
    shown = prompt.begin()
    assert len(shown) < 1_500
    assert "characters left out here; view shows them" in shown
    assert "the end" in prompt.take("view")


KEYS = {"y": "yes", "s": "session", "a": "always", "e": "edit", "n": "no", "v": "view", "t": "no ", "x": None, "": None}


@pytest.mark.parametrize(("key", "line"), KEYS.items())
def test_a_key_alone_answers(key: str, line: str | None) -> None:
    assert prompt_for(CALL).key(key) == line


def test_what_is_not_offered_has_no_key() -> None:
    assert [prompt_for(BARE).key(key) for key in "ysaen"] == ["yes", None, None, None, "no"]


def test_no_key_runs_what_is_dangerous() -> None:
    alarming = CALL.replace(alarm="removes the working directory")
    assert prompt_for(alarming).key("y") is None
    assert prompt_for(alarming).key("n") == "no"
    assert prompt_for(CALL, alarming).key("a") is None


def test_the_keys_of_a_list() -> None:
    prompt = prompt_for(CALL, CALL)
    assert [prompt.key(key) for key in "anevt1"] == ["all", "none", "each", "view", "none ", None]
    prompt.take("each")
    assert prompt.key("y") == "yes"


def test_a_line_that_is_asked_for_has_no_keys() -> None:
    prompt = prompt_for(CALL)
    prompt.take("a")
    assert prompt.is_line
    assert prompt.key("y") is None
