"""Of hundreds of tools one is searched, loaded and called in one prompt, over real HTTP in each wire format."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from marvin_core.api.messages import Message, Text, ToolCall, ToolOutput, user
from marvin_core.api.messages import tool as tool_message
from marvin_core.api.providers import ClientFactory, Endpoint, Provider, Request, Secret, adds_revealed
from marvin_core.api.record import Record
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.providers.anthropic import provider as anthropic
from marvin_core.providers.anthropic.request import AnthropicWire
from marvin_core.providers.chat_completions import provider as chat_completions
from marvin_core.providers.ollama import provider as ollama
from marvin_core.providers.responses import provider as responses
from marvin_core.testing import Answer, ModelServer, calls, error, text
from marvin_core.tools.schema import describe
from tests.core.tools.test_carried_tools import FIND, many
from tests.support import answers_anthropic, answers_ollama, answers_responses, revealing_tools, strict_wires
from tests.support.chatting import TIMEOUTS
from tests.support.engine import Made, make, run

SPECS = (FIND, *many(300))
QUERY = {"query": "flute number 95"}
Calls = Callable[..., Answer]


def native_search(name: str, arguments: Mapping[str, Any]) -> Answer:
    """A call as a service makes it that knows the search as such."""
    if name != "tool_search":
        return answers_responses.calls((name, arguments))
    item = {"type": "tool_search_call", "id": "tsc_1", "call_id": "call_s", "execution": "client"}
    return answers_responses.answer({**item, "status": "completed", "arguments": arguments})


class Wire(Record):
    """A wire format: its adapter, a model of it, how it calls and speaks, and what it accepts."""

    create: Callable[[Endpoint, ClientFactory], Provider]
    model: str
    called: Calls
    said: Callable[[str], Answer]
    check: strict_wires.Check
    is_native: bool = False

    def endpoint(self, url: str, most: int | None) -> Endpoint:
        return Endpoint(
            provider="p",
            base_url=url,
            model=self.model,
            key=Secret("key"),
            key_hint="",
            context_window=200_000,
            max_tools=most,
            timeouts=TIMEOUTS,
        )

    def provider(self, url: str, most: int | None) -> Any:
        given = self.endpoint(url, most)
        return self.create(given, lambda: make_client(HttpSettings(timeouts=TIMEOUTS), timeout_read=50.0, tls=None))


def _pair(module: Any) -> Calls:
    return lambda name, arguments: cast("Answer", module.calls((name, arguments)))


WIRES = {
    "chat completions": Wire(
        create=chat_completions.create,
        model="some-model",
        called=lambda name, arguments: calls((name, arguments)),
        said=text,
        check=strict_wires.vllm,
    ),
    "ollama": Wire(
        create=ollama.create,
        model="some-model",
        called=_pair(answers_ollama),
        said=answers_ollama.text,
        check=strict_wires.ollama,
    ),
    "claude 4": Wire(
        create=anthropic.create,
        model="claude-sonnet-4-0",
        called=_pair(answers_anthropic),
        said=answers_anthropic.text,
        check=strict_wires.anthropic,
    ),
    "claude 5": Wire(
        create=anthropic.create,
        model="claude-sonnet-5",
        called=_pair(answers_anthropic),
        said=answers_anthropic.text,
        check=strict_wires.anthropic,
        is_native=True,
    ),
    "gpt 5.1": Wire(
        create=responses.create,
        model="gpt-5.1",
        called=_pair(answers_responses),
        said=answers_responses.text,
        check=strict_wires.responses,
    ),
    "gpt 5.6": Wire(
        create=responses.create,
        model="gpt-5.6",
        called=native_search,
        said=answers_responses.text,
        check=strict_wires.responses,
        is_native=True,
    ),
}


def prompted(made: Made, *prompts: str) -> list[str]:
    async def go() -> list[str]:
        try:
            return [(await made.session.submit(prompt)).text for prompt in prompts]
        finally:
            await made.session.close()

    return run(go())


def script(wire: Wire) -> Sequence[Answer]:
    return wire.called("tool_search", QUERY), wire.called("g_95", {"name": "x"}), wire.said("Done.")


def names(body: Mapping[str, Any]) -> list[str]:
    """The tools that a model is told of at once."""
    tools = [tool.get("function", tool) for tool in body["tools"] if not tool.get("defer_loading")]
    return [tool.get("name", tool.get("type")) for tool in tools]


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("most", [None, 128, 16])
def test_a_tool_is_searched_loaded_and_called_in_one_prompt(tmp_path: Path, name: str, most: int | None) -> None:
    """The sizes of the requests are printed, with and without tools that wait."""
    wire = WIRES[name]
    with ModelServer(*script(wire)) as server, ModelServer(wire.said("Fine.")) as all_at_once:
        made = make(tmp_path, provider=wire.provider(server.url, most), specs=SPECS)
        assert prompted(made, "Do it.") == ["Done."]
        bodies = [request.body for request in server.requests if "tools" in request.body]
        raw = [len(json.dumps(body["tools"])) for body in bodies]
        if most is None:
            argv = ("--non-interactive", "--tool-search", "off")
            other = make(tmp_path, provider=wire.provider(all_at_once.url, most), specs=SPECS, argv=argv)
            prompted(other, "Do it.")
            whole = all_at_once.requests[-1].body["tools"]
            print(f"{name}: {len(whole)} tools, {len(json.dumps(whole)):,} bytes; with a search {raw} bytes", end="; ")
            told = [len(json.dumps([t for t in body["tools"] if not t.get("defer_loading")])) for body in bodies]
            print(f"told at once {told} bytes, about {[size // 4 for size in told]} tokens")
            assert all(size * 4 < len(json.dumps(whole)) for size in told)
    for body in bodies:
        wire.check(body)
        assert most is None or len(names(body)) <= most
    assert names(bodies[0])[0] == "tool_search"
    assert "g_95" not in names(bodies[0])
    outputs = [output for message in made.parts.conversation.messages for output in message.outputs]
    assert [output.is_error for output in outputs] == [False, False]
    if wire.is_native:
        assert names(bodies[0]) == names(bodies[1]) == names(bodies[2]), "nothing that was read before changes"
    else:
        assert "g_95" in names(bodies[1])
        assert names(bodies[1])[: len(names(bodies[0]))] == names(bodies[0]), "the list only grows"
        assert names(bodies[2]) == names(bodies[1])


@pytest.mark.parametrize("name", WIRES)
def test_what_was_sent_before_stands_at_the_beginning_of_what_is_sent_next(tmp_path: Path, name: str) -> None:
    """That is what caches go by: the tools of a round that finds none, and the messages of any."""
    wire = WIRES[name]
    with ModelServer(*script(wire), wire.said("Yes.")) as server:
        prompted(make(tmp_path, provider=wire.provider(server.url, None), specs=SPECS), "Do it.", "And?")
        bodies = [request.body for request in server.requests if "tools" in request.body]
    kept = "input" if "input" in bodies[0] else "messages"
    for before, after in itertools.pairwise(bodies):
        said = [_unmarked(item) for item in before[kept]]
        assert [_unmarked(item) for item in after[kept]][: len(said)] == said
        if wire.is_native:
            assert after["tools"] == before["tools"]
        else:
            assert after["tools"][: len(before["tools"])] == before["tools"] or "cache_control" in str(before["tools"])
    assert bodies[3]["tools"] == bodies[2]["tools"] == bodies[1]["tools"]


def _unmarked(item: Any) -> Any:
    """The item without what marks the end of what is cached."""
    return json.loads(json.dumps(item).replace(', "cache_control": {"type": "ephemeral"}', ""))


def test_claude_is_told_of_what_was_found_by_references(tmp_path: Path) -> None:
    """platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool, "Custom tool search implementation"."""
    wire = WIRES["claude 5"]
    with ModelServer(*script(wire)) as server:
        prompted(make(tmp_path, provider=wire.provider(server.url, None), specs=SPECS), "Do it.")
        body = server.requests[1].body
    (result,) = body["messages"][-1]["content"]
    assert result["content"][0] == {"type": "tool_reference", "tool_name": "g_95"}
    waiting = [tool for tool in body["tools"] if tool.get("defer_loading")]
    assert len(waiting) + len(names(body)) == len(SPECS)
    assert {reference["tool_name"] for reference in result["content"]} <= {tool["name"] for tool in waiting}
    assert not any("cache_control" in tool for tool in waiting), "that is refused"
    assert "cache_control" in body["tools"][len(names(body)) - 1]


def test_gpt_is_told_of_what_was_found_by_definitions_in_the_output(tmp_path: Path) -> None:
    """developers.openai.com/api/docs/guides/tools-tool-search, "Client-executed tool search"."""
    wire = WIRES["gpt 5.6"]
    with ModelServer(*script(wire)) as server:
        prompted(make(tmp_path, provider=wire.provider(server.url, None), specs=SPECS), "Do it.")
        body = server.requests[1].body
    call, output = body["input"][-2:]
    assert call == {
        "type": "tool_search_call",
        "call_id": "call_s",
        "execution": "client",
        "status": "completed",
        "arguments": QUERY,
    }
    assert (output["type"], output["call_id"], output["execution"]) == ("tool_search_output", "call_s", "client")
    assert output["tools"][0]["name"] == "g_95"
    assert output["tools"][0]["defer_loading"] is True
    assert body["tools"][0]["type"] == "tool_search"
    assert not any(tool.get("defer_loading") for tool in body["tools"])


REFUSALS = [
    ("claude 5", answers_anthropic.error(400, "invalid_request_error", "tools.15.defer_loading: Extra inputs.")),
    (
        "claude 5",
        answers_anthropic.error(400, "invalid_request_error", "tools.15.custom: Extra inputs are not permitted"),
    ),
    ("claude 5", answers_anthropic.error(400, "invalid_request_error", "Input tag 'tool_reference' does not match")),
    ("claude 5", error(400, "Malformed input request: #/tools/15: extraneous key [deferLoading] is not permitted")),
    ("claude 5", error(422, "[{'loc': ['body', 'messages', 2, 'content'], 'msg': 'Unexpected type'}]")),
    ("claude 5", answers_anthropic.error(400, "api_error", "Unknown field in content block")),
    ("gpt 5.6", error(400, "Unknown tool type: tool_search")),
    ("gpt 5.6", error(400, "Invalid value: 'tool_search_call'. Supported values are: 'message'")),
    ("gpt 5.6", error(422, "Input should be 'function': input_value={'type': 'tool_search', 'execution': 'client'}")),
    ("gpt 5.6", error(400, "Unsupported tool type")),
    ("gpt 5.6", error(400, "Unrecognized request argument supplied")),
]


@pytest.mark.parametrize(("name", "refusal"), REFUSALS)
@pytest.mark.parametrize("late", [False, True])
def test_a_service_that_knows_no_search_gets_the_found_ones_as_any_other(
    tmp_path: Path, name: str, refusal: Answer, late: bool
) -> None:
    """Such as a gateway; at the first request, or in the middle of a conversation, as behind another host."""
    wire = WIRES[name]
    plain = wire.replace(called=_pair(answers_responses)) if name == "gpt 5.6" else wire
    begin = [] if late else [refusal]
    middle = [refusal] if late else []
    found, called, done = script(plain if not late else wire)
    with ModelServer(*begin, found, *middle, called, done) as server:
        made = make(tmp_path, provider=wire.provider(server.url, None), specs=SPECS)
        assert prompted(made, "Do it.") == ["Done."]
        last = server.requests[-1].body
    wire.check(last)
    assert "g_95" in names(last)
    assert "tool_search_call" not in str(last)
    assert "tool_reference" not in str(last)
    assert "defer_loading" not in str(last)


@pytest.mark.parametrize("name", ["claude 5", "gpt 5.6"])
@pytest.mark.parametrize(
    "said", ["Your credit balance is too low.", "prompt is too long: 300000 tokens > 200000 maximum"]
)
def test_a_refusal_of_something_else_is_told_and_the_tools_wait_on(tmp_path: Path, name: str, said: str) -> None:
    wire = WIRES[name]
    refused = error(400, said)
    with ModelServer(refused, refused, refused, wire.said("Yes.")) as server:
        made = make(tmp_path, provider=wire.provider(server.url, None), specs=SPECS)

        async def go() -> None:
            assert (await made.session.submit("Do it.")).error is not None
            await made.session.close()

        run(go())
        bodies = [request.body for request in server.requests if "tools" in (request.body or {})]
    assert len({json.dumps(body["tools"]) for body in bodies}) == 1
    assert adds_revealed(made.parts.model.provider)


CONNECT = describe(revealing_tools.connect, source="tests", module=revealing_tools.__name__).replace(in_chat=1)


@pytest.mark.parametrize("name", WIRES)
def test_what_another_tool_reveals_is_offered_and_what_it_said_is_told(tmp_path: Path, name: str) -> None:
    """A server that was connected, for instance. Only a search has an output of its own form."""
    wire = WIRES[name]
    script = [wire.called("connect", {"names": ["g_95", "no_such_tool"]}), wire.called("g_95", {"name": "x"})]
    with ModelServer(*script, wire.said("Done.")) as server:
        made = make(tmp_path, provider=wire.provider(server.url, None), specs=(*SPECS, CONNECT))
        assert prompted(made, "Do it.") == ["Done."]
        bodies = [request.body for request in server.requests if "tools" in request.body]
    for body in bodies:
        wire.check(body)
    assert "g_95" in names(bodies[1])
    assert "connected, and 2 tools with it" in json.dumps(bodies[1])


@pytest.mark.parametrize("name", WIRES)
def test_no_name_is_sent_that_nobody_has(tmp_path: Path, name: str) -> None:
    """A session of another machine names tools that are not installed here."""
    wire = WIRES[name]
    with ModelServer(*script(wire)) as server:
        made = make(tmp_path, provider=wire.provider(server.url, None), specs=SPECS)
        prompted(made, "Do it.")
    (path,) = (made.config.data_folder / "sessions").glob("*.jsonl")
    with ModelServer(wire.said("Yes.")) as server:
        again = make(tmp_path, provider=wire.provider(server.url, None), specs=(FIND, *many(300, "other")))
        again.session.resume(path)
        prompted(again, "Go on.")
        body = next(request.body for request in server.requests if "tools" in request.body)
    wire.check(body)
    assert "g_95" not in [tool.get("name") for tool in body["tools"]]


@pytest.mark.parametrize("found", [["zzz qqq"], ["tool_search"], ["zzz", "flute number 95"]])
def test_gpt_is_told_what_a_search_said_that_found_nothing_new(tmp_path: Path, found: list[str]) -> None:
    """The output of a search has room for tools alone: without this, the model would search for the same again."""
    wire = WIRES["gpt 5.6"]
    items = [
        {
            "type": "tool_search_call",
            "id": f"t{n}",
            "call_id": f"c{n}",
            "execution": "client",
            "arguments": {"query": query},
        }
        for n, query in enumerate(found)
    ]
    with ModelServer(answers_responses.answer(*items), wire.said("Done.")) as server:
        made = make(tmp_path, provider=wire.provider(server.url, None), specs=SPECS)
        prompted(made, "Do it.")
        body = server.requests[1].body
    wire.check(body)
    outputs = [item for item in body["input"] if item["type"] == "tool_search_output"]
    assert [item["call_id"] for item in outputs] == [f"c{n}" for n in range(len(found))]
    assert outputs[0]["tools"] == []
    notes = [item for item in body["input"] if item.get("role") == "developer" and "tool_search" in str(item)]
    assert len(notes) == 1
    assert notes[0] is body["input"][-1]
    assert "No tool fits" in notes[0]["content"][0]["text"]


def test_a_search_that_the_service_itself_ran_is_none_of_ours(tmp_path: Path) -> None:
    """A gateway may add one. What it found, nobody here has."""
    served: list[dict[str, Any]] = [
        {
            "type": "tool_search_call",
            "id": "tsc_1",
            "call_id": None,
            "execution": "server",
            "arguments": {"paths": ["x"]},
        },
        {
            "type": "tool_search_output",
            "id": "tso_1",
            "call_id": None,
            "execution": "server",
            "tools": [{"name": "zzz"}],
        },
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ]
    with ModelServer(answers_responses.answer(*served)) as server:
        made = make(tmp_path, provider=WIRES["gpt 5.6"].provider(server.url, None), specs=SPECS)
        assert prompted(made, "Do it.") == ["Done."]
    assert not any(message.calls for message in made.parts.conversation.messages)


def test_a_search_that_claude_s_service_ran_is_none_of_ours(tmp_path: Path) -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "x"}},
        {
            "type": "tool_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {
                "type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "zzz"}],
            },
        },
        {"type": "tool_reference", "tool_name": "zzz"},
    ]
    with ModelServer(
        answers_anthropic.message(*((block, []) for block in blocks), answers_anthropic.said("Done."))
    ) as server:
        made = make(tmp_path, provider=WIRES["claude 5"].provider(server.url, None), specs=SPECS)
        assert prompted(made, "Do it.") == ["Done."]


HOSTILE = (
    *(spec.replace(description="word " * 20_000) for spec in many(20, "long")),
    *(spec.replace(description="\x00\x1b]0;title\x07\u202e\ud800 text\u0000") for spec in many(20, "control")),
    *(spec.replace(name=f"Tool_Search_{number}") for number, spec in enumerate(many(20))),
    *(spec.replace(description=" \n") for spec in many(20, "blank")),
    *(spec.replace(name=f"G_{number}") for number, spec in enumerate(many(20))),
    *many(220),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("how", ["auto", "off"])
def test_whatever_strangers_declare_the_service_takes_the_request(tmp_path: Path, name: str, how: str) -> None:
    """300 tools of strangers: a description of 100 KB would have the service refuse everything."""
    wire = WIRES[name]
    found = wire.called("tool_search", {"query": "long_7 control_7 blank_7 G_7 g_7 Tool_Search_7", "max_results": 20})
    with ModelServer(found, wire.said("Done.")) as server:
        argv = ("--non-interactive", "--tool-search", how)
        made = make(tmp_path, provider=wire.provider(server.url, None), specs=(FIND, *HOSTILE), argv=argv)
        assert prompted(made, "Do it.") == ["Done."]
        bodies = [request.body for request in server.requests if "tools" in request.body]
    for body in bodies:
        wire.check(body)
        assert len(json.dumps(body)) < 1_000_000
    if how == "auto" and not wire.is_native:
        assert {"long_7", "control_7", "blank_7", "G_7", "g_7", "Tool_Search_7"} <= {*names(bodies[1])}


def tools_of(request: Any) -> bytes:
    """What a request says of its tools, byte by byte."""
    begin = request.content.index(b'"tools":[')
    end = min(place for place in (request.content.find(mark, begin) for mark in ENDS) if place > 0)
    return bytes(request.content[begin:end]).replace(b',"cache_control":{"type":"ephemeral"}', b"")


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with together."""
    return next(
        (place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )


ENDS = (
    b'],"model"',
    b'],"parallel_tool_calls"',
    b'],"system"',
    b'],"messages"',
    b'],"tool_choice"',
    b'],"stream_options"',
)


@pytest.mark.parametrize("name", WIRES)
def test_the_tools_are_the_same_bytes_from_round_to_round(tmp_path: Path, name: str) -> None:
    """Caches go by bytes: over rounds and prompts, and in the session that goes on with this one."""
    wire = WIRES[name]
    found, called, done = script(wire)
    others = [wire.called("g_96", {"name": "x"}), wire.said("Yes.")]
    with ModelServer(found, called, done, *others, wire.said("Also.")) as server:
        made = make(tmp_path, provider=wire.provider(server.url, None), specs=SPECS)
        prompted(made, "Do it.", "And?")
        (path,) = (made.config.data_folder / "sessions").glob("*.jsonl")
        again = make(tmp_path, provider=wire.provider(server.url, None), specs=SPECS)
        again.session.resume(path)
        prompted(again, "Still?")
        seen = [tools_of(request) for request in server.requests if request.body and "tools" in request.body]
    for before, after in itertools.pairwise(seen):
        common = _common(before, after)
        told = before if not wire.is_native or name == "gpt 5.6" else before[: before.index(b'"defer_loading"')]
        assert common >= len(told) or (wire.is_native and common > 0.8 * len(told))
    assert seen[-1] == seen[-2], "a session that is gone on with is offered the same"


def test_a_conversation_goes_on_with_models_of_other_services(tmp_path: Path) -> None:
    """`/model` in the middle: what was found for one is offered to, or added by the service of, each other one."""
    chain = ["claude 5", "gpt 5.6", "chat completions", "ollama", "claude 4", "gpt 5.1"]
    wires = [WIRES[name].replace(model=f"{WIRES[name].model}-{place}") for place, name in enumerate(chain)]
    with ExitStack() as stack:
        servers = [
            stack.enter_context(ModelServer(*_turns(wire, is_first=not place))) for place, wire in enumerate(wires)
        ]
        models = [wire.provider(server.url, None) for wire, server in zip(wires, servers, strict=True)]
        made = make(tmp_path, provider=models[0], others=models[1:], specs=SPECS)

        async def go() -> None:
            try:
                for place in (*range(len(models)), 0):
                    made.session.models.use(models[place].model)
                    assert (await made.session.submit("Do it.")).text == "Done."
            finally:
                await made.session.close()

        run(go())
        sent = [
            [request for request in server.requests if request.body and "tools" in request.body] for server in servers
        ]
    for wire, requests in zip(wires, sent, strict=True):
        for request in requests:
            wire.check(request.body)
        told = json.dumps(requests[-1].body)
        assert '"tool_name": "g_95"' in told or "g_95" in names(requests[-1].body) or "tool_search_output" in told
    begun, back = (tools_of(request) for request in (sent[0][0], sent[0][-1]))
    assert back == begun, "whoever goes back finds what the service has in its cache"


def _turns(wire: Wire, *, is_first: bool) -> list[Answer]:
    turn = [wire.called("g_95", {"name": "x"}), wire.said("Done.")]
    return [wire.called("tool_search", QUERY), *turn, wire.said("Done.")] if is_first else turn


def test_what_stands_in_for_a_model_is_sent_no_more_than_it_takes_and_the_newest_of_all() -> None:
    searched = ToolOutput(call_id="s", name="tool_search", content=(Text(text="Found."),), reveals=("g_90", "g_80"))
    asked = Request(
        system="",
        messages=(tool_message([searched]),),
        tools=(FIND, *many(39)),
        waiting=tuple(many(300)[39:]),
        deferred=True,
    )
    few = asked.with_revealed(16)
    assert few.tools[0].name == "tool_search"
    assert [spec.name for spec in few.tools][-2:] == ["g_80", "g_90"]
    assert len(few.tools) == 16
    assert {spec.name for spec in (*few.tools, *few.waiting)} == {spec.name for spec in (*asked.tools, *asked.waiting)}
    assert asked.within(40) is asked
    assert asked.within(None) is asked
    assert len(asked.within(1).tools) == 1
    made_for_it = asked.replace(deferred=False)
    assert made_for_it.with_revealed(None) is made_for_it, "what waits there waits on purpose"


def test_claude_reads_what_another_tool_said_where_what_it_revealed_waits_again() -> None:
    """A reference stands in the place of the text: that is for searches alone."""
    output = ToolOutput(call_id="c", name="connect", content=(Text(text="Connected."),), reveals=("g_95",))
    call = Message(role="assistant", content=(ToolCall(id="c", name="connect", arguments="{}"),))
    endpoint = WIRES["claude 5"].endpoint("http://localhost", None)
    asked = Request(
        system="", messages=(user("Go."), call, tool_message([output])), tools=(FIND,), waiting=tuple(many(96))
    )
    body = AnthropicWire(endpoint).body(asked).decode()
    assert "Connected." in body
    assert "tool_reference" not in body


def test_what_was_found_comes_along_once_its_search_was_summed_up(tmp_path: Path) -> None:
    wire = WIRES["claude 5"]
    long = [wire.said("word " * 1_000) for _ in range(8)]
    with ModelServer(*script(wire), *long, wire.said("A summary."), wire.said("Yes.")) as server:
        made = make(tmp_path, provider=wire.provider(server.url, None), specs=SPECS)

        async def go() -> None:
            for prompt in ("Do it.", *("Go on." for _ in long)):
                await made.session.submit(prompt)
            await made.session.compact(1_000)
            await made.session.submit("And now?")
            await made.session.close()

        run(go())
        last = server.requests[-1].body
    assert "tool_reference" not in str(last)
    assert "g_95" in names(last)
