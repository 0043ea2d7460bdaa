"""Values that are encoded once: whatever a conversation becomes, its forms are those of what it is now."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.messages import Message, user
from marvin_core.providers.http.encoding import Encoded
from tests.support.examples import examples

SAID = [user(text) for text in ("", "one", "two", "three")]
TURNS = st.lists(st.lists(st.sampled_from(SAID), max_size=6), min_size=1, max_size=6)


@examples(200)
@given(turns=TURNS)
def test_the_forms_are_those_of_the_values_in_their_order_without_the_empty_ones(turns: list[list[Message]]) -> None:
    encoded: Encoded[Message] = Encoded(lambda message: message.text.encode())
    for values in turns:
        assert encoded.forms(tuple(values)) == [value.text.encode() for value in values if value.text]


def test_what_stays_is_encoded_once() -> None:
    asked: list[Message] = []

    def encode(message: Message) -> bytes:
        asked.append(message)
        return message.text.encode()

    encoded: Encoded[Message] = Encoded(encode)
    encoded.forms(SAID[:3])
    encoded.forms(SAID)
    encoded.forms([SAID[0], *SAID[2:]])  # one was taken out of the middle
    assert asked == SAID
    encoded.forget()
    encoded.forms(SAID[:1])
    assert asked == [*SAID, SAID[0]]
