"""Ids of calls that another service made up: looked at once, and the same whichever requests came before."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.messages import Message, Text, ToolCall, ToolOutput, tool, user
from marvin_core.api.providers import Endpoint, Request, Secret
from marvin_core.providers.anthropic.request import AnthropicWire
from marvin_core.providers.chat_completions.request import ChatWire
from marvin_core.providers.http.call_ids import NINE, FittingIds
from marvin_core.providers.responses.request import ResponsesWire
from tests.support.counting import times_called
from tests.support.examples import examples

_PLAIN = r"[A-Za-z0-9_-]{1,40}"


def called(identity: str) -> list[Message]:
    """An answer with a call, and its output."""
    call = ToolCall(id=identity, name="look", arguments="{}")
    return [
        Message(role="assistant", content=(Text(text="I look."), call)),
        tool([ToolOutput(call_id=identity, name="look", content=(Text(text="a door"),))]),
    ]


def conversation(*ids: str) -> tuple[Message, ...]:
    """A request, and so many calls."""
    return (user("Look."), *(message for identity in ids for message in called(identity)))


IDS = st.lists(st.sampled_from(["call_1", "call_2", "functions.look:0", "x", "y" * 60, "123456789"]), max_size=8)


@examples(150)
@given(ids=IDS, cuts=st.lists(st.integers(0, 17), max_size=4), allowed=st.sampled_from([NINE, _PLAIN]))
def test_ids_are_the_same_whichever_requests_came_before(ids: list[str], cuts: list[int], allowed: str) -> None:
    """Requests grow, and begin anew where the user goes back or a summary takes the place of what was."""
    messages = conversation(*ids)
    fitting = FittingIds()
    for cut in cuts:
        fitting.of(messages[cut:] if cut % 3 == 0 else messages[:cut], allowed if cut % 5 else _PLAIN)
    found = list(fitting.of(messages, allowed))
    assert found == list(FittingIds().of(messages, allowed))
    used = [call.id for message in found for call in message.calls]
    assert len(set(used)) == len(used)
    assert all(re.fullmatch(allowed, each) for each in used)
    assert used == [output.call_id for message in found for output in message.outputs]


ENDPOINT = Endpoint(provider="x", base_url="http://x", model="m", key=Secret(""), key_hint="")
WIRES: Mapping[str, Callable[[], ChatWire | ResponsesWire | AnthropicWire]] = {
    "chat completions": lambda: ChatWire(ENDPOINT.replace(provider="mistral")),
    "responses": lambda: ResponsesWire(ENDPOINT),
    "anthropic": lambda: AnthropicWire(ENDPOINT),
}


@pytest.mark.parametrize("name", WIRES)
def test_a_request_encodes_what_is_new_in_it_and_no_more(name: str) -> None:
    """A session that began with another service, whose ids are refused here: each round would encode all of it."""
    wire = WIRES[name]()
    messages = conversation(*(f"functions.look:{number}" for number in range(200)))

    def body() -> None:
        request = Request(system="s", messages=messages)
        assert (wire.body(request, {}) if isinstance(wire, ChatWire) else wire.body(request)).startswith(b"{")

    assert times_called("_message", body) == 401
    messages = (*messages, *called("functions.look:200"))
    assert times_called("_message", body) == 2
