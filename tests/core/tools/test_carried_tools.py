"""Which of many tools a request carries: few of them, in an order that only grows, and none out of reach."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.events import Notice
from marvin_core.api.tools import SEARCH, ToolSpec
from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools import session_tools
from marvin_core.tools.deferral import Wish, advertised, hot
from marvin_core.tools.schema import describe
from marvin_core.tools.toolbox import HOT
from tests.support import revealing_tools
from tests.support.engine import SPECS, Made, Script, calls, make, run, says
from tests.support.examples import examples

FIND = describe(session_tools.tool_search, source="marvin-core", module=session_tools.__name__, group="session")
(LOOK,) = (spec.replace(source="pack-test") for spec in SPECS if spec.name == "look")


def many(count: int, group: str = "g") -> list[ToolSpec]:
    """Tools of a stranger; each does something else, and their function is that of `look`."""
    words = "apple brick cloud drum eagle flute grape house ivory juice".split()
    return [
        LOOK.replace(
            name=f"{group}_{number}",
            function="look",
            description=f"Handle the {words[number % 10]} number {number} of {group}.",
            group=f"{group}{number % 7}",
        )
        for number in range(count)
    ]


def prompted(made: Made, *prompts: str) -> None:
    async def go() -> None:
        for prompt in prompts:
            result = await made.session.submit(prompt)
            assert result.error is None
        await made.session.close()

    run(go())


def carried(made: Made) -> list[list[str]]:
    """The names of the tools of each request."""
    assert made.provider is not None
    return [[spec.name for spec in request.tools] for request in made.provider.requests]


def warned(made: Made) -> list[str]:
    return [notice.text for notice in made.seen(Notice) if notice.level == "warning"]


def searched(words: str, identity: str = "s") -> Any:
    return calls((identity, SEARCH, json.dumps({"query": words})))


def test_few_tools_are_all_carried_and_nothing_is_searched(tmp_path: Path) -> None:
    made = make(tmp_path, says("Fine."), specs=(FIND, *many(20)))
    prompted(made, "go")
    (names,) = carried(made)
    assert names == [spec.name for spec in many(20)]


def test_of_many_tools_a_found_one_is_called_in_the_same_prompt(tmp_path: Path) -> None:
    script = [searched("flute number 95"), calls(("c", "g_95", '{"name": "x"}')), says("Fine.")]
    made = make(tmp_path, *script, specs=(FIND, *many(300)))
    prompted(made, "go")
    first, second, third = carried(made)
    assert len(first) == HOT
    assert first[0] == SEARCH
    assert second[: len(first)] == first, "the list only grows"
    assert "g_95" in second[len(first) :]
    assert third == second
    outputs = [output for message in made.parts.conversation.messages for output in message.outputs]
    assert outputs[0].reveals[0] == "g_95"
    assert "- g_95: Handle the flute number 95 of g." in outputs[0].text
    assert not outputs[1].is_error


def test_a_tool_that_is_called_without_being_offered_runs_and_is_carried_then(tmp_path: Path) -> None:
    made = make(tmp_path, calls(("c", "g_250", '{"name": "x"}')), says("Fine."), specs=(FIND, *many(300)))
    prompted(made, "go")
    first, second = carried(made)
    assert "g_250" not in first
    assert second == [*first, "g_250"]
    (output,) = [output for message in made.parts.conversation.messages for output in message.outputs]
    assert not output.is_error


@pytest.mark.parametrize(("limit", "count"), [(128, 430), (16, 430), (3, 40)])
def test_no_tool_is_out_of_reach_of_a_service_that_takes_few(tmp_path: Path, limit: int, count: int) -> None:
    wanted = [f"g_{number}" for number in range(count - 1, count - 21, -1)]
    script = [step for name in wanted for step in (searched(name, f"s{name}"), calls((name, name, '{"name": "x"}')))]
    model = Script(*script, says("Fine."), max_tools=limit)
    made = make(tmp_path, provider=model, specs=(FIND, *many(count)))
    prompted(made, "go")
    assert all(len(names) <= limit for names in carried(made))
    assert all(names[0] == SEARCH for names in carried(made))
    assert all(name in carried(made)[2 * place + 1] for place, name in enumerate(wanted)), "carried once it was found"
    outputs = [output for message in made.parts.conversation.messages for output in message.outputs]
    assert not any(output.is_error for output in outputs)
    assert not warned(made)


def test_where_nothing_searches_a_service_is_sent_what_it_takes_and_the_user_is_told(tmp_path: Path) -> None:
    model = Script(says("Fine."), max_tools=10)
    made = make(tmp_path, provider=model, specs=(FIND, *many(30)), argv=("--non-interactive", f"--tools=-{SEARCH}"))
    prompted(made, "go")
    assert len(carried(made)[0]) == 10
    assert "takes 10 tools. Left out: g_10, g_11" in warned(made)[0]


@pytest.mark.parametrize(("how", "count", "few"), [("on", 20, True), ("off", 300, False), ("auto", 300, True)])
def test_the_user_decides(tmp_path: Path, how: str, count: int, few: bool) -> None:
    made = make(tmp_path, says("Fine."), specs=(FIND, *many(count)), argv=("--non-interactive", "--tool-search", how))
    prompted(made, "go")
    assert (len(carried(made)[0]) == HOT) is few
    assert len(carried(made)[0]) in (HOT, count)


def test_off_cannot_have_a_service_take_more_than_it_does(tmp_path: Path) -> None:
    model = Script(searched("g_299"), says("Fine."), max_tools=128)
    made = make(tmp_path, provider=model, specs=(FIND, *many(300)), argv=("--non-interactive", "--tool-search", "off"))
    prompted(made, "go")
    assert carried(made)[1][-1] == "g_299"


def test_what_was_found_stays_after_a_summary_and_in_a_session_that_is_gone_on_with(tmp_path: Path) -> None:
    made = make(tmp_path, searched("g_123"), says("Fine."), says("A summary."), says("Yes."), specs=(FIND, *many(300)))

    async def go() -> None:
        await made.session.submit("go")
        await made.session.compact(1_000)
        await made.session.submit("and now?")
        await made.session.close()

    run(go())
    assert "g_123" in carried(made)[-1]
    (path,) = (made.config.data_folder / "sessions").glob("*.jsonl")
    again = make(tmp_path, says("Here."), specs=(FIND, *many(300)))
    again.session.resume(path)
    prompted(again, "go on")
    assert "g_123" in carried(again)[0]


class Deferring(Script):
    """A service that adds what a search found by itself."""

    defers = True


def test_what_was_found_comes_with_the_very_request_before_which_its_search_was_summed_up(tmp_path: Path) -> None:
    long = [says("word " * 2_000) for _ in range(8)]
    model = Deferring(searched("g_123"), says("Fine."), *long, says("A summary."), says("Yes."))
    made = make(tmp_path, provider=model, specs=(FIND, *many(300)))

    async def go() -> None:
        for prompt in ("go", *("on" for _ in long)):
            await made.session.submit(prompt)
        made.session.compactor.compact_later(1_000)
        await made.session.submit("and now?")
        await made.session.close()

    run(go())
    lists = carried(made)
    assert all("g_123" not in names for names in lists[:-2]), "the service adds it by itself"
    assert not any(output.reveals for message in model.requests[-1].messages for output in message.outputs)
    assert "g_123" in lists[-1]
    use = made.parts.carried.of(model)
    assert "g_123" not in {spec.name for spec in use.waiting}


def test_what_was_found_stays_in_a_session_that_was_ended_by_force(tmp_path: Path) -> None:
    """The output of the search is on disk at once, what else the session keeps is not."""
    made = make(tmp_path, searched("g_123"), says("Fine."), specs=(FIND, *many(300)))
    prompted(made, "go")
    (path,) = (made.config.data_folder / "sessions").glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if json.loads(line)["type"] != "state"))
    again = make(tmp_path, says("Here."), specs=(FIND, *many(300)))
    again.session.resume(path)
    prompted(again, "go on")
    assert carried(again)[0] == carried(made)[1]


def test_what_the_user_chooses_in_mid_session_counts_anew(tmp_path: Path) -> None:
    made = make(tmp_path, says("One."), says("Two."), specs=(FIND, *many(300), *many(20, "h")))

    async def go() -> None:
        await made.session.submit("go")
        made.session.toolbox.choose(",".join(f"h{number}" for number in range(7)))
        await made.session.submit("go")
        await made.session.close()

    run(go())
    assert sorted(carried(made)[1]) == sorted(spec.name for spec in many(20, "h"))


def test_nothing_is_found_where_no_tool_fits_and_the_model_is_told_so(tmp_path: Path) -> None:
    made = make(tmp_path, searched("zzz qqq"), says("Fine."), specs=(FIND, *many(300)))
    prompted(made, "go")
    (output,) = [output for message in made.parts.conversation.messages for output in message.outputs]
    assert output.text == "Error: No tool fits 'zzz qqq'. Describe in other words, in English, what should be done."
    assert carried(made)[0] == carried(made)[1]


@pytest.mark.parametrize("query", ["select:g_7,g_8", "g_7 g_8", "g_7,g_8"])
def test_names_are_found_as_they_are(tmp_path: Path, query: str) -> None:
    made = make(tmp_path, searched(query), says("Fine."), specs=(FIND, *many(300)))
    prompted(made, "go")
    (output,) = [output for message in made.parts.conversation.messages for output in message.outputs]
    assert output.reveals[:2] == ("g_7", "g_8")


@pytest.mark.parametrize(
    "kept",
    [
        "x",
        None,
        {"found_tools": [1, None]},
        {"found_tools": "g_5"},
        {"found_tools": {"g_5": 1}},
        {"found_tools": ["no_such_tool"]},
    ],
)
def test_a_damaged_session_costs_no_prompt(tmp_path: Path, kept: Any) -> None:
    made = make(tmp_path, searched("g_77"), says("Fine."), specs=(FIND, *many(300)))
    made.parts.state["marvin-core"] = kept
    prompted(made, "go")
    assert len(carried(made)[0]) == HOT
    assert carried(made)[1][-1] == "g_77"


def test_what_the_user_calls_often_is_offered_at_once(tmp_path: Path) -> None:
    often = [calls((f"c{number}", "g_200", '{"name": "x"}')) for number in range(3)]
    chat = make(tmp_path, *often, says("Fine."), specs=(FIND, *many(300)), argv=())
    prompted(chat, "go")
    folder = chat.parts.profile.folder
    assert json.loads((folder / "tool_calls.json").read_text()) == {"g_200": 3}
    again = make(tmp_path, says("Fine."), specs=(FIND, *many(300)), argv=())
    prompted(again, "go")
    assert "g_200" in carried(again)[0]


@pytest.mark.parametrize("kept", ["", "[]", "{", '{"g_1": "many", "g_2": -5, "g_3": true}', "x" * 300_000])
def test_a_damaged_count_of_calls_counts_nothing(tmp_path: Path, kept: str) -> None:
    made = make(tmp_path, says("Fine."), specs=(FIND, *many(300)), argv=())
    made.parts.profile.folder.mkdir(parents=True, exist_ok=True)
    (made.parts.profile.folder / "tool_calls.json").write_text(kept)
    prompted(made, "go")
    assert len(carried(made)[0]) == HOT


def bytes_of(specs: Sequence[ToolSpec]) -> int:
    return sum(
        len(json.dumps({"name": s.name, "description": s.description, "parameters": s.parameters})) for s in specs
    )


@pytest.mark.parametrize("is_code", [True, False])
def test_every_pack_of_ours_at_once_takes_few_tokens(is_code: bool) -> None:
    """A token is four bytes, as everywhere. Printed for whoever adds a tool."""
    specs = [spec for spec in installed_tools() if spec.source.startswith("marvin-")]
    wish = Wish(is_code=is_code, calls={}, first=SEARCH, most=HOT)
    chosen = hot(specs, wish, lambda spec: bytes_of([spec]) // 4)
    carried = [advertised(chosen[0], [spec for spec in specs if spec not in chosen]), *chosen[1:]]
    print(f"{len(carried)} of {len(specs)} tools: {bytes_of(carried) // 4:,} tokens, of {bytes_of(specs) // 4:,}")
    print(*(spec.name for spec in carried))
    assert bytes_of(carried) // 4 <= 3_000
    assert {"read_file", "run_command", "ask_user"} <= {spec.name for spec in carried}


class TwoModels:
    """A session with two models, and what each of them was offered last."""

    def __init__(self, tmp_path: Path, *limits: int | None) -> None:
        self.models = [Script(name=f"p{number}", max_tools=limit) for number, limit in enumerate(limits)]
        self.made = make(tmp_path, provider=self.models[0], others=self.models[1:], specs=(FIND, *many(300)))

    def offered(self, number: int) -> list[str]:
        return [spec.name for spec in self.made.parts.carried.of(self.models[number]).tools]


def test_whoever_goes_back_to_a_model_finds_its_list_as_it_was(tmp_path: Path) -> None:
    both = TwoModels(tmp_path, None, 16)
    tools = both.made.parts.carried
    both.offered(0)
    tools.reveal(["g_100", "g_101"])
    before = both.offered(0)
    assert both.offered(1)[-1] == "g_100"
    tools.reveal(["g_200"])
    assert both.offered(1)[-1] == "g_200"
    assert both.offered(0) == [*before, "g_200"]
    run(both.made.session.close())


def test_what_a_mode_holds_back_comes_back_to_its_place(tmp_path: Path) -> None:
    """Play mode keeps tools back for a while; then the service finds what it has in its cache."""
    made = make(
        tmp_path, provider=Script(), specs=(FIND, *many(60), *(spec.replace(in_chat=1) for spec in many(4, "w")))
    )
    tools, toolbox = made.parts.carried, made.parts.toolbox

    def offered() -> list[str]:
        return [spec.name for spec in tools.of(made.parts.model.provider).tools]

    offered()
    tools.reveal(["g_50"])
    before = offered()
    assert {"w_0", "w_3"} <= {*before}
    toolbox.confine(lambda spec: "plays" if spec.name.startswith("w_") else "")
    meanwhile = offered()
    assert meanwhile[: len(before) - 4] == [name for name in before if not name.startswith("w_")]
    assert len(meanwhile) == len(before), "others take the places that are free"
    toolbox.confine(None)
    assert offered()[: len(before)] == before
    run(made.session.close())


def test_what_was_held_back_when_the_session_began_is_offered_at_once_afterwards(tmp_path: Path) -> None:
    made = make(
        tmp_path, provider=Script(), specs=(FIND, *many(60), *(spec.replace(in_chat=1) for spec in many(4, "w")))
    )
    tools, toolbox = made.parts.carried, made.parts.toolbox
    toolbox.confine(lambda spec: "plays" if spec.name.startswith("w_") else "")
    before = [spec.name for spec in tools.of(made.parts.model.provider).tools]
    toolbox.confine(None)
    after = [spec.name for spec in tools.of(made.parts.model.provider).tools]
    assert after == [*before, "w_0", "w_1", "w_2", "w_3"]
    run(made.session.close())


def test_a_new_conversation_begins_with_few_again(tmp_path: Path) -> None:
    made = make(tmp_path, searched("g_123"), says("Fine."), says("Anew."), says("Back."), specs=(FIND, *many(300)))

    async def go() -> None:
        await made.session.submit("go")
        first = made.session.id
        made.session.sessions.clear()
        await made.session.submit("something else")
        await made.session.sessions.resume(first)
        await made.session.submit("go on")
        await made.session.close()

    run(go())
    first, second, third, fourth = carried(made)
    assert third == first
    assert "g_123" in second
    assert fourth == second, "and one that is gone on with has what it had"


def test_what_the_search_says_of_the_others_is_the_same_after_it_found_some(tmp_path: Path) -> None:
    """The search stands first, so that any other text of it would have the service read everything anew."""
    script = [searched("flute number 95"), says("Fine.")]
    made = make(tmp_path, *script, specs=(FIND, *many(300)))
    prompted(made, "go")
    (path,) = (made.config.data_folder / "sessions").glob("*.jsonl")
    again = make(tmp_path, says("Here."), specs=(FIND, *many(300)))
    again.session.resume(path)
    prompted(again, "go on")
    assert made.provider is not None
    assert again.provider is not None
    assert again.provider.requests[0].tools == made.provider.requests[-1].tools


def test_what_is_offered_follows_the_profile(tmp_path: Path) -> None:
    made = make(tmp_path, says("One."), says("Two."), specs=(FIND, *many(300)), argv=())
    other = made.config.config_folder / "profiles" / "other"
    other.mkdir(parents=True)
    (other / "tool_calls.json").write_text('{"g_250": 7}')

    async def go() -> None:
        await made.session.submit("go")
        made.session.profile.switch("other")
        await made.session.submit("go")
        await made.session.close()

    run(go())
    first, second = carried(made)
    assert "g_250" not in first
    assert second == [*first, "g_250"] or set(second) - set(first) == {"g_250"}
    assert second[: len(first)] == first


def test_what_was_found_first_waits_again_where_the_window_is_full(tmp_path: Path) -> None:
    """A small model of this machine is not to be filled with tools; what was found last is always there."""
    long = [spec.replace(description=f"{spec.description} {'word ' * 200}") for spec in many(100)]
    model = Script(context_window=8_192)
    made = make(tmp_path, provider=model, specs=(FIND, *long))
    tools, sizes = made.parts.carried, made.parts.tool_sizes
    tools.of(model)
    for number in range(100):
        tools.reveal([f"g_{number}"])
        carried = tools.of(model)
        assert carried.tools[0].name == SEARCH
        if f"g_{number}" not in {spec.name for spec in carried.tools[:4]}:
            assert carried.tools[-1].name == f"g_{number}"
        assert sizes.of_all(carried.tools) / 4 < 8_192 / 2
        assert len(carried.tools) + len(carried.waiting) == 101
    run(made.session.close())


def test_what_is_called_often_is_offered_beside_what_is_offered_anyway() -> None:
    """Tools that everybody calls most are offered anyway: they are not to be all that is called often."""
    usual = [spec.replace(in_chat=place) for place, spec in enumerate(many(20, "u"), 1)]
    calls = {**{f"u_{number}": 100 + number for number in range(12)}, "gone": 500, "g_7": 50, "g_8": 2}
    wish = Wish(is_code=False, calls=calls, first=SEARCH, most=HOT)
    chosen = [spec.name for spec in hot((FIND, *usual, *many(300)), wish, lambda spec: 10)]
    assert "g_7" in chosen
    assert "g_8" not in chosen
    assert {f"u_{number}" for number in range(12)} <= {*chosen}
    assert len(chosen) == HOT


def test_a_small_window_is_offered_less_at_once() -> None:
    def taken(tokens: int) -> int:
        wish = Wish(is_code=False, calls={}, first=SEARCH, most=HOT, tokens=tokens)
        return sum(100 for _ in hot((FIND, *many(300)), wish, lambda spec: 100))

    assert taken(500) == 500
    assert taken(50) == 100, "the search is there in any case"


def test_fifty_searches_in_one_prompt_end(tmp_path: Path) -> None:
    words = "apple brick cloud drum eagle flute grape house ivory juice".split()
    script = [searched(f"{words[number % 10]} {number}", f"s{number}") for number in range(45)]
    made = make(tmp_path, *script, says("Fine."), specs=(FIND, *many(300)))
    prompted(made, "go")
    lists = carried(made)
    assert all(after[: len(before)] == before for before, after in itertools.pairwise(lists))
    assert len({*lists[-1]}) == len(lists[-1])


@pytest.mark.parametrize("query", ["", " ", "x" * 10_000, "\x00", "Wie wird das Wetter?", "明日の天気は"])
def test_any_query_gets_an_answer(tmp_path: Path, query: str) -> None:
    made = make(tmp_path, searched(query), says("Fine."), specs=(FIND, *many(300)))
    prompted(made, "go")
    (output,) = [output for message in made.parts.conversation.messages for output in message.outputs]
    assert output.text.startswith("Error: No tool fits")
    assert len(output.text) < 300


@pytest.mark.slow
def test_what_is_said_of_found_tools_is_short_whatever_a_stranger_wrote(tmp_path: Path) -> None:
    hostile = [spec.replace(description=f"flute \x1b[2J{'word ' * 20_000}") for spec in many(50)]
    made = make(
        tmp_path, calls(("s", SEARCH, '{"query": "flute", "max_results": 20}')), says("Fine."), specs=(FIND, *hostile)
    )
    prompted(made, "go")
    (output,) = [output for message in made.parts.conversation.messages for output in message.outputs]
    assert output.text.count("\n") == 20
    assert len(output.text) < 20 * 400
    assert "\x1b" not in output.text


@pytest.mark.parametrize(
    ("what", "offered"), [("number", False), ("text", False), ("numbers", False), ("lists", False), ("long", True)]
)
def test_only_names_are_revealed_and_kept(tmp_path: Path, what: str, offered: bool) -> None:
    mistaken = describe(revealing_tools.misreveal, source="tests", module=revealing_tools.__name__)
    script = [calls(("c", "misreveal", json.dumps({"what": what}))), says("Fine.")]
    made = make(tmp_path, *script, specs=(FIND, *many(300), mistaken))
    prompted(made, "go")
    (output,) = [output for message in made.parts.conversation.messages for output in message.outputs]
    assert output.is_error is not offered
    assert ("g_95" in carried(made)[1]) is offered
    assert output.reveals == (("g_95",) if offered else ())
    (path,) = (made.config.data_folder / "sessions").glob("*.jsonl")
    assert path.stat().st_size < 100_000


def test_a_tool_that_nobody_has_is_answered_with_where_to_look(tmp_path: Path) -> None:
    made = make(tmp_path, calls(("c", "zzzzzz", "{}")), says("Fine."), specs=(FIND, *many(300)))
    prompted(made, "go")
    (output,) = [output for message in made.parts.conversation.messages for output in message.outputs]
    assert output.text == "Error: There is no tool 'zzzzzz'. Look for one with tool_search."


def test_without_a_model_the_tools_leave_room_for_what_they_say(tmp_path: Path) -> None:
    long = [spec.replace(description="word " * 5_000) for spec in many(300)]
    model = Script(calls(("c", "g_5", '{"name": "x"}')), says("Fine."), name="offline")
    made = make(tmp_path, provider=model, specs=(FIND, *long))
    prompted(made, "go")
    (output,) = [output for message in made.parts.conversation.messages for output in message.outputs]
    assert output.text == "x done"
    assert not warned(made)


def test_without_a_model_all_tools_are_there_in_one_order(tmp_path: Path) -> None:
    made = make(tmp_path, provider=Script(name="offline"), specs=(FIND, *many(300)))
    before = made.parts.carried.of(made.parts.model.provider)
    assert [spec.name for spec in before.tools] == [SEARCH, *(spec.name for spec in many(300))]
    assert not before.waiting
    assert not before.told, "nothing is sent, so that no window is full of them"
    made.parts.carried.reveal(["g_5"])
    assert made.parts.carried.of(made.parts.model.provider) is before
    run(made.session.close())


@pytest.mark.slow
@examples(60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["find", "call", "hold", "release", "mode"]), st.integers(0, 59)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([None, 8, 20]),
)
def test_the_list_only_grows_while_one_model_answers(steps: list[tuple[str, int]], limit: int | None) -> None:
    """Whatever is found, called and switched; a service that takes few sheds what was found first."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        made = make(Path(folder), provider=Script(max_tools=limit), specs=(FIND, *many(60)))
        tools, provider = made.parts.carried, made.parts.model.provider
        before = [spec.name for spec in tools.of(provider).tools]
        seen = list(before)
        for what, number in steps:
            if what == "hold":
                made.parts.toolbox.hold(f"g_{number}", "is elsewhere")
            elif what == "release":
                made.parts.toolbox.release(f"g_{number}")
            elif what == "mode":
                made.session.switch_mode("coding" if number % 2 else "chat")
            else:
                tools.reveal([f"g_{number}"])
            now = tools.of(provider)
            names = [spec.name for spec in now.tools]
            held = {name for name in before if made.parts.toolbox.is_held(name)}
            stayed = [name for name in before if name not in held]
            if limit is None:
                assert [name for name in names if name in stayed] == stayed
                seen += [name for name in names if name not in seen]
                assert names == [name for name in seen if name in names], "what came back is in its place"
            else:
                assert len(names) <= limit
            if what in ("find", "call") and not made.parts.toolbox.is_held(f"g_{number}"):
                assert f"g_{number}" in names
            assert len({*names}) == len(names)
            reachable = {*names, *(spec.name for spec in now.waiting)}
            assert reachable == {spec.name for spec in made.parts.toolbox.offered}
            before = names
        run(made.session.close())
