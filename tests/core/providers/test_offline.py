"""The provider without a model, in real sessions with the tools of all packs."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marvin_core.api.errors import NotActed, ProviderError
from marvin_core.api.messages import Message, Text, ToolOutput, tool, user
from marvin_core.api.providers import CallDelta, Delta, Endpoint, Request, Secret, Stop, TextDelta
from marvin_core.api.session import TurnResult
from marvin_core.api.tools import ToolSpec
from marvin_core.providers.offline import NO_MODEL, NO_OUTPUT, STILL_NO_MODEL, create
from marvin_core.tools.arguments import parse_key_values
from marvin_core.tools.routing.router import Router
from marvin_core.tools.schema import describe
from tests.support import engine_tools
from tests.support.engine import Made, make, run
from tests.support.examples import examples
from tests.support.installed import PACKS, specs

ENDPOINT = Endpoint(provider="offline", base_url="", model="offline", key=Secret(""), key_hint="")


@cache
def router() -> Router:
    return Router(specs())


def deltas_of(*messages: Message) -> list[Delta]:
    """What the provider answers to a conversation."""

    async def read() -> list[Delta]:
        request = Request(system="", messages=messages, tools=specs())
        provider = create(ENDPOINT, lambda: pytest.fail("there is nothing to connect to"))
        try:
            return [delta async for delta in provider.stream(request)]
        finally:
            await provider.aclose()

    return run(read())


def not_acted(text: str) -> NotActed:
    """How it refuses to act."""
    with pytest.raises(NotActed) as refused:
        deltas_of(user(text))
    return refused.value


def ask(tmp_path: Path, *prompts: str) -> tuple[Made, list[TurnResult]]:
    """The results of prompts in one session without a model."""
    offline = create(ENDPOINT, lambda: pytest.fail("there is nothing to connect to"))
    made = make(tmp_path, specs=specs(), provider=cast("Any", offline))

    async def go() -> list[TurnResult]:
        try:
            return [await made.session.submit(prompt) for prompt in prompts]
        finally:
            await made.session.close()

    return made, run(go())


# Requests that mean one call, which changes nothing: the tool, and the arguments that matter.
ACTS: dict[str, tuple[str, dict[str, Any]]] = {
    "git status": ("git_status", {}),
    "show me the git status please": ("git_status", {}),
    "What has changed?": ("git_status", {}),
    "which branch am I on?": ("git_branch", {}),
    "git diff": ("git_diff", {}),
    "show the staged changes": ("git_diff", {"staged": True}),
    "git diff staged": ("git_diff", {"staged": True}),
    "what changed in src/main.py": ("git_diff", {"path": "src/main.py"}),
    "diff against main": ("git_diff", {"ref": "main"}),
    "git log": ("git_log", {}),
    "recent commits": ("git_log", {}),
    "show the last three commits": ("git_log", {"max_count": 3}),
    "history of README.md": ("git_log", {"path": "README.md"}),
    "read README.md": ("read_file", {"path": "README.md"}),
    "Could you please read the README.md?": ("read_file", {"path": "README.md"}),
    "hey, show me src/app.py": ("read_file", {"path": "src/app.py"}),
    "what's in pyproject.toml?": ("read_file", {"path": "pyproject.toml"}),
    "open the file `my notes.md`": ("read_file", {"path": "my notes.md"}),
    "I want to read the Makefile": ("read_file", {"path": "Makefile"}),
    "lines 10 to 20 of src/app.py": ("read_file", {"start_line": 10, "end_line": 20, "path": "src/app.py"}),
    "list all *.py files": ("glob", {"pattern": "*.py"}),
    "find *.toml in src/": ("glob", {"pattern": "*.toml", "path": "src/"}),
    "find all Python files": ("glob", {"pattern": "**/*.py"}),
    "search the code for parse_arguments": ("code_grep", {"pattern": "parse_arguments"}),
    'grep for "a b" in src/app.py': ("code_grep", {"pattern": "a b", "path": "src/app.py"}),
    "where is Router used?": ("code_grep", {"pattern": "Router"}),
    "list the files": ("tree", {}),
    "tree of src": ("tree", {"path": "src"}),
    "project structure": ("tree", {}),
    "pwd": ("get_working_dir", {}),
    "what is the working directory": ("get_working_dir", {}),
    "convert 5 miles to km": ("convert_units", {"value": 5, "from_unit": "miles", "to_unit": "km"}),
    "20°C in °F": ("convert_units", {"value": 20, "from_unit": "°C", "to_unit": "°F"}),
    "how many cups are 2 liters?": ("convert_units", {"value": 2, "from_unit": "liters", "to_unit": "cups"}),
    "convert 100km/h to miles per hour": ("convert_units", {"value": 100, "to_unit": "miles per hour"}),
    "how much disk space is left": ("system_info", {}),
    "battery level": ("system_info", {}),
    "system info": ("system_info", {}),
    "show all timers": ("timer_check", {}),
    "check the tea timer": ("timer_check", {"name": "tea"}),
    "how much time is left on the tea timer?": ("timer_check", {"name": "tea"}),
    "read the feed https://example.com/feed.xml": ("read_rss", {"url": "https://example.com/feed.xml"}),
    "last 3 entries of https://example.com/rss": ("read_rss", {"max_items": 3}),
    "show me the tree of this folder": ("tree", {}),
    "search for TODO in the code": ("code_grep", {"pattern": "TODO"}),
    "how much memory do I have": ("system_info", {}),
    "latest news from https://example.com/feed.xml": ("read_rss", {"url": "https://example.com/feed.xml"}),
    "how many tokens have I used?": ("get_usage", {}),
    "usage of all sessions": ("get_usage", {"include_lifetime": True}),
}

# Requests that mean one call that changes something.
CONFIRMED: dict[str, str] = {
    "set a timer for 10 minutes": "/timer_start duration_seconds=600 name=timer",
    "please start a tea timer for 4 minutes": "/timer_start name=tea duration_seconds=240",
    "stop the tea timer": "/timer_stop name=tea",
    "commit everything with the message Fix the total": "/git_commit message='Fix the total'",
    'append "one, two" to notes.md': "/append_file content='one, two' path=notes.md",
    'replace "a" with "b" in x.py': "/apply_patch old_str=a new_str=b path=x.py",
    "run make test": "/run_command command='make test'",
    "stop job job-1": "/jobs job_id=job-1 action=stop",
    "download https://example.com/a.zip": "/download_file url=https://example.com/a.zip",
    "switch to my work profile": "/switch_profile profile_name=work",
    "I am vegetarian": "/update_preferences key=dietary action=add value=vegetarian",
    "change to the folder ../other": "/set_working_dir path=../other",
    "goodbye": "/exit_app",
}

# Requests that lack something: the line as far as it is known, and what is asked for.
INCOMPLETE: dict[str, tuple[str, str]] = {
    "convert 5 miles": ("/convert_units value=5 from_unit=miles", "to_unit"),
    "read a file": ("/read_file", "path"),
    "set a timer": ("/timer_start", "name"),
    "commit my changes": ("/git_commit", "message"),
    "create a file notes.md": ("/create_file path=notes.md", "content"),
}

# Requests that must not do anything by themselves, and a tool that is offered for them, if any.
OFFERED: dict[str, str] = {
    "read README.md and delete it": "",
    "remind me to call mum tomorrow": "set_alarm",
    "take a note: buy milk": "",
    "book a flight to Rome": "",
    "read README.md, then run the tests": "run_command",
    "read a.txt and b.txt": "read_note",
    "git status and git log": "git_log",
    "git status\nrm -rf /": "git_status",
    "git status; git log": "git_log",
    "do not read README.md": "",
    "don't run the tests": "",
    "never commit everything with the message x": "",
    "read README.md without the header": "read_file",
    "stop the timer instead": "timer_stop",
    "set a tea timer for 4 minutes and remind me of the milk": "timer_start",
    "commit everything but notes.md": "git_commit",
    "why is git status so slow": "",
    "explain git log": "git_log",
    "list files newer than yesterday": "glob",
    "undo the last commit": "git_log",
    "check the timer every 5 minutes": "timer_check",
    "convert 5 apples to pears": "",
    "what is git": "",
    "search the code": "code_grep",
    "show the last line of README.md": "read_file",
    "make README.md shorter": "",
    "git push": "",
    "git merge": "git_status",
    "delete README.md": "",
    "what time is it": "",
    "README.md": "read_file",
}

# Requests with a misspelled word, and the tool that is offered first for them.
MISSPELLED: dict[str, str] = {
    "git stauts": "git_status",
    "convrt 5 km to miles": "convert_units",
    "donload https://example.com/a.zip": "download_file",
    'comit everything with the message "wip"': "git_commit",
    "serch the code for Router": "code_grep",
}

UNKNOWN = [
    "tell me a joke",
    "what is the capital of France?",
    "",
    "???",
    "please",
    "天気は?",
    "hello",
]
UNKNOWN += [
    "zeige mir die Dateien",
    "muéstrame los archivos",
    "interesting",  # no misspelling of "internet"
    "the tests passed, finally!",
    "my alarm did not ring this morning, great start",
]


@pytest.mark.slow
def test_the_table_is_large_enough_and_about_all_packs() -> None:
    assert len(ACTS) >= 40
    assert len(CONFIRMED) + len(OFFERED) >= 30
    sources = {spec.source for spec in specs() if spec.name in {name for name, _ in ACTS.values()}}
    assert sources == set(PACKS)


@pytest.mark.slow
@pytest.mark.parametrize("text", ACTS)
def test_a_clear_request_that_only_reads_is_one_call(text: str) -> None:
    name, arguments = ACTS[text]
    route = router().route(text)
    assert route.action == "act"
    (meant,) = route.proposals
    assert meant.spec.name == name
    assert arguments.items() <= meant.arguments.items()
    assert not arguments or set(meant.arguments) <= {*arguments, "max_depth", "from_unit", "value", "url"}
    assert bool(arguments) == bool(meant.arguments)


@pytest.mark.parametrize("text", CONFIRMED)
def test_what_changes_something_is_shown_and_waits(text: str) -> None:
    refused = not_acted(text)
    assert refused.line == CONFIRMED[text]
    assert refused.line in str(refused)
    assert refused.shell == refused.line.replace("/", "marvin tools call ", 1)
    assert "changes or runs something, so it was not called. This is the call" in str(refused)


@pytest.mark.parametrize("text", INCOMPLETE)
def test_what_is_missing_is_asked_for_by_name(text: str) -> None:
    line, missing = INCOMPLETE[text]
    refused = not_acted(text)
    assert refused.line == line
    assert f"\n  {missing}: " in str(refused)


@pytest.mark.slow
@pytest.mark.parametrize("text", OFFERED)
def test_whatever_is_left_over_keeps_it_from_acting(text: str) -> None:
    route = router().route(text)
    assert route.action in ("offer", "nothing")
    assert OFFERED[text] in ("", *(offer.spec.name for offer in route.proposals))
    assert len(route.proposals) <= 3
    assert not not_acted(text).line


@pytest.mark.parametrize("text", MISSPELLED)
def test_a_misspelled_request_is_offered_what_it_would_mean_and_never_acted_upon(text: str) -> None:
    route = router().route(text)
    assert route.action == "offer"
    assert route.proposals[0].spec.name == MISSPELLED[text]


@pytest.mark.parametrize("text", UNKNOWN)
def test_where_nothing_is_near_it_says_so(text: str) -> None:
    refused = not_acted(text)
    assert not refused.line
    assert "No tool matches this request. To list the tools, type /help in a chat, or run" in str(refused)
    assert "/help" in str(refused)
    assert "marvin tools list" in str(refused)


@pytest.mark.parametrize("text", ["run make test", "convert 5 miles", "git push", "tell me a joke"])
def test_every_refusal_says_that_there_is_no_model_and_how_to_set_one(text: str) -> None:
    told = str(not_acted(text))
    assert told.endswith(NO_MODEL.format(marvin="marvin"))
    assert "No model is configured" in told
    assert "marvin providers" in told
    assert not {"AI", "I", "assistant"} & set(told.replace("'", " ").split())


@pytest.mark.slow
@pytest.mark.parametrize("text", [*OFFERED, *CONFIRMED, *INCOMPLETE])
def test_every_line_that_is_shown_can_be_typed(text: str) -> None:
    known = {spec.name: spec for spec in specs()}
    lines = [line.strip() for line in str(not_acted(text)).splitlines() if line.startswith("  /")]
    for line in lines:
        name, _, words = line.partition(" ")
        spec = known[name[1:]]
        arguments = parse_key_values(shlex.split(words), spec)
        if text not in CONFIRMED:
            assert set(spec.parameters.get("required", ())) <= arguments.keys()


@pytest.mark.parametrize(
    "text",
    [
        "how do I set an API key?",
        "where do I enter my api-key",
        "which model is this?",
        "I want to use Claude",
        "log in to codex with ChatGPT",
        "configure a provider",
    ],
)
def test_a_question_about_having_a_model_is_answered_with_how_to_have_one(text: str) -> None:
    refused = not_acted(text)
    assert refused.line == "/model"
    assert refused.shell == "marvin providers"
    assert "/model" in str(refused)
    assert "timer" not in str(refused)


@pytest.mark.parametrize(
    ("text", "said", "page"),
    [
        ("what can you do?", "an assistant for your terminal", "index.md"),
        ("who are you?", "an assistant for your terminal", "index.md"),
        ("what did I change?", "what this session changed", "how-to/sessions.md"),
        ("what does /diff do", "what this session changed", "how-to/chat.md"),
        ("what is play mode?", "/play 0.5", "how-to/work-on-its-own.md"),
        ("does Marvin run on Windows?", "WSL", "explanation/platforms.md"),
        ("how do I commit", "git_commit", "how-to/git.md"),
        ("how do I delete all data Marvin has about me", "~/.local/share/marvin", "how-to/questions.md"),
        ("which version of Marvin is this?", "marvin --version", "how-to/questions.md"),
        ("do you collect telemetry", "reports nothing to its makers", "how-to/questions.md"),
        ("can you talk, I mean is there voice input?", "no voice input", "how-to/questions.md"),
    ],
)
def test_a_question_about_marvin_is_answered_with_a_passage_and_the_name_of_its_page(
    text: str, said: str, page: str
) -> None:
    answer, *_, stop = deltas_of(user(text))
    assert isinstance(answer, TextDelta)
    assert said in answer.text
    assert f"({page})" in answer.text
    assert stop == Stop(reason="stop")


def test_a_question_about_a_key_is_answered_with_the_page_on_keys_too() -> None:
    told = str(not_acted("how do I set an API key?"))
    assert "marvin login" in told
    assert "(how-to/keys.md)" in told


def test_where_a_tool_may_be_meant_too_it_is_offered_below_the_passage() -> None:
    answer = deltas_of(user("what did I change?"))[0]
    assert isinstance(answer, TextDelta)
    assert answer.text.index("(how-to/sessions.md)") < answer.text.index("/git_diff")


def test_whoever_asks_is_offered_what_reads_before_what_changes() -> None:
    offered = [offer.spec for offer in router().route("what did I change?").proposals]
    assert offered[0].name == "git_diff"
    assert [spec.reads_only for spec in offered] == sorted((spec.reads_only for spec in offered), reverse=True)


@pytest.mark.parametrize(
    ("text", "line"), [("convert 5 miles", "to_unit=..."), ("set the working directory", "path=...")]
)
def test_no_value_is_made_up_for_what_was_not_said(text: str, line: str) -> None:
    assert line in str(not_acted(text)).split()


def test_the_output_of_the_call_is_the_answer(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "README.md").write_text("# Tea\n", "utf-8")
    made, (read, units) = ask(tmp_path, "read README.md", "5 km in m")
    assert read.error is None
    assert "# Tea" in read.text
    assert "5,000 m" in units.text or "5000 m" in units.text
    assert made.meter.summary()["session_cost"] == 0


def test_what_a_tool_says_about_its_failure_is_the_answer(tmp_path: Path) -> None:
    _, (result,) = ask(tmp_path, "read missing.md")
    assert result.error is None
    assert "missing.md" in result.text
    assert result.text.startswith("Error: ")


def test_that_there_is_no_model_is_said_in_full_only_once(tmp_path: Path) -> None:
    _, (first, again) = ask(tmp_path, "tell me a joke", "run make test")
    assert str(first.error).endswith(NO_MODEL.format(marvin="marvin"))
    assert str(again.error).endswith(STILL_NO_MODEL)
    assert len(STILL_NO_MODEL) < len(NO_MODEL) / 2


def test_a_call_that_a_tool_hints_at_is_shown_as_people_type_it(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "long.txt").write_text("line\n" * 3_000, "utf-8")
    _, (result,) = ask(tmp_path, "read long.txt")
    assert "/read_file path=long.txt start_line=1135 end_line=1334" in result.text
    assert "({" not in result.text


def test_a_session_goes_on_after_a_refusal_and_nothing_was_run(tmp_path: Path) -> None:
    _, (refused, again) = ask(tmp_path, 'create a file x.md with "a"', "which folder are we in")
    assert isinstance(refused.error, NotActed)
    assert isinstance(refused.error, ProviderError)
    assert refused.error.line == "/create_file path=x.md content=a"
    assert not (tmp_path / "project" / "x.md").exists()
    assert str(tmp_path / "project") in again.text


def test_a_tool_that_asks_before_each_call_is_never_called_by_itself() -> None:
    careful = describe(engine_tools.send_mail).replace(access=frozenset({"read"}))
    phrases: tuple[Any, ...] = ({"say": "mail me", "arguments": {"to": "me"}, "slots": {}},)
    for confirm, action in ((True, "confirm"), (False, "act")):
        assert Router([careful.replace(phrases=phrases, confirm=confirm)]).route("mail me").action == action


def test_two_tools_that_mean_the_same_are_both_offered() -> None:
    (first, second) = (describe(one) for one in (engine_tools.look, engine_tools.fetch))
    phrases: tuple[Any, ...] = ({"say": "look at {name}", "arguments": {"name": "{name}"}, "slots": {"name": "path"}},)
    both = Router([*specs(), first.replace(phrases=phrases), second.replace(phrases=phrases)])
    route = both.route("look at README.md")
    assert (route.action, [offer.spec.name for offer in route.proposals][:2]) == ("offer", ["look", "fetch"])


def test_a_no_is_heard_unless_a_phrase_says_it() -> None:
    phrases: tuple[Any, ...] = ({"say": "what is not committed", "arguments": {}, "slots": {}},)
    status = ToolSpec(name="git_status", description="", parameters={}, access=frozenset({"read"}), phrases=phrases)
    only = Router([status])
    assert only.route("what is not committed?").action == "act"
    assert only.route("git status").action == "act"
    assert only.route("not git status").action != "act"


def test_one_call_and_its_end_are_all_that_is_sent() -> None:
    call, *_, stop = deltas_of(user("git status"))
    assert isinstance(call, CallDelta)
    assert (call.name, call.arguments) == ("git_status", "{}")
    assert stop == Stop(reason="tool_calls")


def test_a_tool_that_says_nothing_is_answered_with_a_sentence() -> None:
    output = ToolOutput(call_id="c", name="x", content=(Text(text=""),))
    text, *_, stop = deltas_of(user("x"), tool([output]))
    assert text == TextDelta(text=NO_OUTPUT)
    assert stop == Stop(reason="stop")


@examples(200)
@given(
    st.lists(st.sampled_from([*" ".join(ACTS).split(), "not", "and", "delete", "5", ",", "x.md", '"', "{"]), max_size=9)
)
def test_no_mixture_of_words_makes_a_call_that_changes_something(said: list[str]) -> None:
    route = router().route(" ".join(said))
    if route.action == "act":
        (meant,) = route.proposals
        assert meant.spec.reads_only
        assert not meant.missing
        assert not {"not", "delete"} & set(said)


@settings(deadline=None)
@given(st.text(max_size=600))
def test_any_text_is_answered(text: str) -> None:
    assert router().route(text).action in ("act", "confirm", "ask", "offer", "nothing")
