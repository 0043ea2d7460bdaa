"""Which of many tools a request carries: few of them, in an order that only grows, and none out of reach."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.events import Notice
from marvin_core.api.tools import ToolSpec
from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools import session_tools
from marvin_core.tools.deferral import Wish, advertised, hot
from marvin_core.tools.schema import describe
from marvin_core.tools.toolbox import HOT, SEARCH
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
    assert output.text == "Error: No tool fits 'zzz qqq'. Say it in other words, what is to be done."
    assert carried(made)[0] == carried(made)[1]


@pytest.mark.parametrize("query", ["select:g_7,g_8", "g_7 g_8", "g_7,g_8"])
def test_names_are_found_as_they_are(tmp_path: Path, query: str) -> None:
    made = make(tmp_path, searched(query), says("Fine."), specs=(FIND, *many(300)))
    prompted(made, "go")
    (output,) = [output for message in made.parts.conversation.messages for output in message.outputs]
    assert output.reveals[:2] == ("g_7", "g_8")


@pytest.mark.parametrize("kept", [[1, None], "g_5", {"g_5": 1}, ["no_such_tool"]])
def test_a_damaged_session_costs_no_prompt(tmp_path: Path, kept: Any) -> None:
    made = make(tmp_path, says("Fine."), specs=(FIND, *many(300)))
    made.parts.state["marvin-core"] = {"found_tools": kept}
    prompted(made, "go")
    assert len(carried(made)[0]) == HOT


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


@examples(60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["find", "call", "choose", "mode"]), st.integers(0, 59)), min_size=1, max_size=12
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
        for what, number in steps:
            if what == "choose":
                made.parts.toolbox.hold(f"g_{number}", "is elsewhere")
            elif what == "mode":
                made.session.switch_mode("coding" if number % 2 else "chat")
            else:
                tools.reveal([f"g_{number}"])
            now = tools.of(provider)
            names = [spec.name for spec in now.tools]
            held = {name for name in before if made.parts.toolbox.is_held(name)}
            stayed = [name for name in before if name not in held]
            if limit is None:
                assert names[: len(stayed)] == stayed
            else:
                assert len(names) <= limit
            if what in ("find", "call") and not made.parts.toolbox.is_held(f"g_{number}"):
                assert f"g_{number}" in names
            assert len({*names}) == len(names)
            reachable = {*names, *(spec.name for spec in now.waiting)}
            assert reachable == {spec.name for spec in made.parts.toolbox.offered}
            before = names
        run(made.session.close())
