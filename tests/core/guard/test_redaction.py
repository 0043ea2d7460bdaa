"""Taking secrets out of texts: every way in which they are written, in one piece and in many."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import pickle
import random
import re
import time
from collections.abc import Callable
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from marvin_core.api.messages import (
    Image,
    Message,
    Picture,
    ProviderData,
    Table,
    Text,
    Thinking,
    ToolCall,
    ToolOutput,
    tool,
    user,
)
from marvin_core.guard.redaction import REDACTED, Redactor
from marvin_core.guard.spellings import PIECE
from tests.support.counting import calls_in_this_thread
from tests.support.examples import examples

KEY = "sk-live-4f9Q/zK+7w=aB3"
OTHER = "gh0_correcthorsebatterystaple"


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "hex": lambda key: key.encode().hex(),
    "upper hex": lambda key: key.encode().hex().upper(),
    "address": lambda key: quote(key, safe=""),
    "path": quote,
    "form": quote_plus,
    "small digits": lambda key: re.sub("%..", lambda found: found[0].lower(), quote(key, safe="")),
    "every byte": lambda key: "".join(f"%{byte:02x}" for byte in key.encode()),
    "json": lambda key: json.dumps({"key": key}),
    "json in ascii": lambda key: json.dumps(key, ensure_ascii=True).replace("/", "\\/"),
    "html": html.escape,
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 behind one": lambda key: base64.b64encode(f"u{key}:p".encode()).decode(),
    "base64 behind two": lambda key: base64.b64encode(f"us{key}".encode()).decode(),
    "base64 for addresses": lambda key: base64.urlsafe_b64encode(f"user:{key}".encode()).decode(),
    "lines": lambda key: f"{key[:9]}\n{key[9:]}",
    "lines of base64": lambda key: base64.encodebytes(b"x" * 50 + key.encode()).decode(),
    "lines in json": lambda key: json.dumps(base64.encodebytes(b"x" * 50 + key.encode()).decode()),
    "indented": lambda key: f"{key[:3]}\n    {key[3:6]}\r\n\t{key[6:]}",
    "continued": lambda key: f"{key[:5]}\\\n{key[5:]}",
    "coloured": lambda key: f"{key[:2]}\x1b[01;31m\x1b[K{key[2:6]}\x1b[m\x1b[K{key[6:]}",
    "json of other programs": lambda key: "".join(
        one if one.isalnum() or not one.isascii() else f"\\u{ord(one):04X}" for one in key
    ),
    "all in escapes": lambda key: "".join(f"\\u{ord(one):04x}" if one < "\uffff" else one for one in key),
    "json in json": lambda key: to_json(to_json({"key": key.replace("/", "\\/")})),
    "numbers in html": lambda key: "".join(one if one.isalnum() else f"&#{ord(one)};" for one in key),
    "hex numbers in html": lambda key: "".join(one if one.isalnum() else f"&#x{ord(one):x};" for one in key),
    "an address in an address": lambda key: quote(quote(key, safe=""), safe=""),
    "one sign of an address": lambda key: "".join(quote(one, safe="") if one in '+=&"' else one for one in key),
    "for a shell": lambda key: re.sub(r"([ -,./:-@\[-^`{-~])", r"\\\1", key),
}
PRIVATE = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(f"MIIEvQIBADANBgkqhkiG9w0BAQEF/{n:04}+7w" for n in range(4))


def redactor(*values: str) -> Redactor:
    return Redactor(lambda: values)


@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize("key", [KEY, "ab cd\"ef'gh&ij<kl>", "schlüssel-漢字-0123"])
def test_a_secret_is_found_in_every_spelling(how: str, key: str) -> None:
    written = WRITTEN[how](key)
    clean = redactor(key, OTHER).text(f"before {written} after")
    assert REDACTED in clean
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    for piece in (key, key.encode().hex(), quote(key, safe="")):
        assert piece not in clean
    assert len(clean) < len(f"before {written} after") or len(written) <= len(REDACTED)


@examples(150)
@given(
    key=st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=8, max_size=60).map(str.strip),
    before=st.text(max_size=30),
    after=st.text(max_size=30),
    how=st.sampled_from([way for way in WRITTEN if not way.startswith(("lines", "html"))]),
)
def test_any_secret_is_found_anywhere(key: str, before: str, after: str, how: str) -> None:
    if len(key) < 8:
        return
    clean = redactor(key).text(before + WRITTEN[how](key) + after)
    assert REDACTED in clean
    if key not in before + after + REDACTED:
        assert key not in clean or key in before + REDACTED + after


@example(key="per%2Fcent-and-more", how="for a shell", cuts=[12])
@examples(300)
@given(
    st.sampled_from([KEY, PRIVATE, "ab cd\"ef'gh&ij<kl>", "per%2Fcent-and-more"]),
    st.sampled_from(sorted(WRITTEN)),
    st.lists(st.integers(0, 2_000), max_size=40),
)
def test_a_secret_that_comes_in_pieces_is_found_in_every_spelling(key: str, how: str, cuts: list[int]) -> None:
    """Also one of several lines, and where a piece ends in the middle of an escape."""
    text = f"before {WRITTEN[how](key)} after"
    whole = redactor(key).text(text)
    places = sorted({min(cut, len(text)) for cut in cuts})
    stream = redactor(key).stream()
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    assert "".join([*map(stream.feed, pieces), stream.end()]) == whole
    assert stream.changed
    assert REDACTED in whole


@examples(200)
@given(st.text("sk-live4f9Q/z \n\r\t\\u0%2&#;\x1b[m", max_size=80), st.lists(st.integers(0, 80), max_size=12))
def test_what_is_no_secret_comes_through_as_it_is(text: str, cuts: list[int]) -> None:
    """Whatever stands in it that looks like an escape or the beginning of a secret."""
    places = sorted({min(cut, len(text)) for cut in cuts})
    stream = redactor(KEY, PRIVATE).stream()
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    assert "".join([*map(stream.feed, pieces), stream.end()]) == text == redactor(KEY, PRIVATE).text(text)


def test_only_the_secret_is_taken_out_of_what_is_written_with_escapes() -> None:
    written = KEY.replace("+", "\\u002B").replace("=", "%3D")
    assert redactor(KEY).text(f"100%25 \\u00e4 &amp; {written}\n &lt;") == f"100%25 \\u00e4 &amp; {REDACTED}\n &lt;"


def test_a_line_of_a_private_key_is_as_secret_as_all_of_it() -> None:
    shown = "\n".join(f"{number:>3}\t+{line}" for number, line in enumerate(PRIVATE.splitlines(), 1))
    clean = redactor(PRIVATE).text(shown)
    assert "MIIE" not in clean
    assert clean.count(REDACTED) == 4
    assert "-----BEGIN PRIVATE KEY-----" in clean
    assert "MIIE" not in redactor(PRIVATE.replace("\n", "\\n")).text(shown), "as a variable holds it at times"


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["\n", "%41", "\\", "&", "\\u0041", "%", "\x1b[0m", "\n ", "&#65;"])
@pytest.mark.parametrize("begin", ["", OTHER[:20], PRIVATE[:100]])
def test_much_that_breaks_texts_apart_takes_no_time_that_grows_with_its_square(begin: str, unit: str) -> None:
    """200 KB in pieces of four take about 0.3 s; reading all that is held back with each piece took minutes."""
    begun = time.monotonic()
    text = begin + (unit * 200_000)[:200_000]
    several = redactor(OTHER, PRIVATE)
    stream = several.stream()
    shown = "".join(stream.feed(text[at : at + 4]) for at in range(0, len(text), 4)) + stream.end()
    assert len(shown) == len(text) or REDACTED in shown
    assert time.monotonic() - begun < 30


@pytest.mark.slow
@examples(60)
@given(st.sampled_from(sorted(WRITTEN)), st.integers(-300, 300), st.sampled_from(["a", "\\n", "%41 ", "é\n"]))
def test_a_secret_is_found_wherever_a_long_text_is_cut(how: str, off: int, filler: str) -> None:
    """Long texts are read in pieces that overlap."""
    before = (filler * PIECE)[: PIECE + off]
    text = f"{before} {WRITTEN[how](KEY)} {before}"
    spelled = redactor(KEY).text(WRITTEN[how](KEY))
    assert redactor(KEY).text(text) == f"{before} {spelled} {before}"


@pytest.mark.slow
def test_other_work_goes_on_while_a_large_text_is_read() -> None:
    """Reading two million characters with 400,000 escapes held the event loop for half a second."""
    text = ('\\"abc"' * 400_000)[:2_000_000]
    whole = redactor(KEY)

    async def ticks_meanwhile() -> int:
        ticks, reading = 0, asyncio.ensure_future(whole.prepare({"content": [text + KEY]}))
        while not reading.done():
            await asyncio.sleep(0.001)
            ticks += 1
        return ticks

    assert asyncio.run(ticks_meanwhile()) >= 5  # about 30
    begun = time.process_time()
    assert whole.text(text + KEY) == text + REDACTED
    assert time.process_time() - begun < 0.1, "what was read is remembered"


@examples(150)
@given(st.data())
def test_pieces_of_a_text_show_what_the_whole_shows(data: st.DataObject) -> None:
    """However a text is cut, no piece shows more than the whole text would, and nothing else is lost."""
    keys = [KEY, OTHER, "aaaaaaaab", KEY[:12]]
    part = st.one_of(st.sampled_from([*keys, KEY[:5], OTHER[:20], "aaaa", KEY[3:]]), st.text("ask-4g h\n", max_size=12))
    text = "".join(data.draw(st.lists(part, max_size=8)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    stream = redactor(*keys).stream()
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    shown = "".join([*map(stream.feed, pieces), stream.end()])
    assert not any(key in shown for key in keys)
    if not any(key in text for key in keys):
        assert shown == text
        assert not stream.changed


def test_a_piece_that_cannot_begin_a_secret_is_passed_on_as_it_is() -> None:
    stream = redactor("ZQXJ-012345").stream()
    words = ["The ", "quick ", "brown ", "fox\n"]
    assert [stream.feed(word) is word for word in words] == [True] * 4


def test_what_is_held_back_is_shorter_than_a_secret() -> None:
    stream = redactor(KEY).stream()
    shown = 0
    for given_, character in enumerate(KEY[:-1] * 40, 1):
        shown += len(stream.feed(character))
        assert given_ - shown <= 12 * len(KEY), "two lengths of the longest spelling"


def test_a_secret_that_is_split_over_blocks_is_found() -> None:
    first, second = redactor(KEY).texts([f"a {KEY[:7]}", f"{KEY[7:]} b"])
    assert (first, second) == (f"a {REDACTED}", f"{REDACTED} b")
    message = Message(role="assistant", content=(Text(text=KEY[:7]), Text(text=KEY[7:] + "!")))
    assert redactor(KEY).message(message).text == f"{REDACTED}{REDACTED}!"


def test_every_text_of_a_message_is_looked_at() -> None:
    signed = Thinking(text=f"the key is {KEY}", provider_data=ProviderData(provider="p", data={"signature": "x"}))
    call = ToolCall(id="1", name="t", arguments=json.dumps({"key": KEY}))
    output = ToolOutput(call_id="1", name="t", content=(Text(text=KEY), Image(media_type="image/png", data="QUJD")))
    message = redactor(KEY).message(Message(role="assistant", content=(signed, call, output)))
    assert KEY not in repr(message)
    thought, called, put = message.content
    assert thought == Thinking(text=f"the key is {REDACTED}"), "a signature of another text is refused"
    assert isinstance(called, ToolCall)
    assert json.loads(called.arguments) == {"key": REDACTED}
    assert isinstance(put, ToolOutput)
    assert put.content[1] == output.content[1]
    other = user("nothing")
    assert redactor(KEY).message(other) is other


@pytest.mark.parametrize("keys", [(), (KEY,)])
def test_a_value_is_a_copy_of_plain_parts_whether_or_not_a_secret_is_known(keys: tuple[str, ...]) -> None:
    """Who gets it may change it or pass it to another process."""
    given: dict[str, Any] = {"items": ["a"], "deep": [{"x": ["y"]}], "odd": MappingProxyType({"a": (1, {"b": True})})}
    before = {"items": ["a"], "deep": [{"x": ["y"]}], "odd": {"a": (1, {"b": True})}}
    value = redactor(*keys).value(given)
    given["items"].append("later")
    given["deep"][0]["x"].append("later")
    assert pickle.loads(pickle.dumps(value)) == value == before


def test_what_a_tool_shows_is_looked_at() -> None:
    shown = (Table(columns=("a",), rows=((KEY,),)), Picture(path=KEY, alt=KEY, media_type=KEY))
    assert KEY not in repr(redactor(KEY).value(shown))
    assert redactor(KEY).value({KEY: [KEY, 1]}) == {REDACTED: [REDACTED, 1]}
    hidden = Image(media_type=f"image/{KEY}", data=base64.b64encode(KEY.encode()).decode())
    assert REDACTED in redactor(KEY).image(hidden).data
    assert KEY not in redactor(KEY).image(hidden).media_type


@pytest.mark.slow
@pytest.mark.parametrize(
    "begin", ["The quick brown fox, sk-live and gh0_ as QUJDREVGRw==\n", "gh0_", "a", "gh0_corr\n"]
)
def test_many_secrets_and_a_long_text_take_no_time_that_grows_with_both(begin: str) -> None:
    """40 secrets in 1 MB take about 30 ms; a look at each place for each secret would take minutes."""
    many = redactor(*(f"{OTHER}-{number:04}-{number * 7919:06}" for number in range(40)))
    text = (begin * 1_000_000)[:1_000_000]
    begun = time.process_time()
    assert many.text(text) == text
    stream = many.stream()
    assert len("".join(stream.feed(text[at : at + 1000]) for at in range(0, len(text), 1000)) + stream.end()) == len(
        text
    )
    assert time.process_time() - begun < 30


def test_new_secrets_count_at_once() -> None:
    known: tuple[str, ...] = ()
    later = Redactor(lambda: known)
    assert later.text(KEY) == KEY
    assert not later.knows_any
    known = (KEY,)
    assert later.text(KEY) == REDACTED
    assert later.knows_any


def test_a_long_text_is_looked_at_once() -> None:
    """An output is taken over when its call ends, kept by the conversation, and shown: it is one text."""
    whole = redactor(KEY)
    text = "Line after line.\n" * 60_000
    begun = time.process_time()
    assert whole.text(text) == text
    first = time.process_time() - begun
    message = user(str(text.encode(), "ascii"))
    begun = time.process_time()
    assert whole.message(message) is message
    assert time.process_time() - begun < first / 2  # about a hundredth


def test_long_outputs_of_one_round_are_looked_at_once() -> None:
    whole = redactor(KEY)
    texts = [f"Line after line of {number}.\n" * 10_000 for number in range(6)]
    begun = time.process_time()
    assert [*map(whole.text, texts)] == texts
    first = time.process_time() - begun
    outputs = [ToolOutput(call_id=text[:9], name="t", content=(Text(text=text),)) for text in texts]
    message = Message(role="tool", content=tuple(outputs))
    begun = time.process_time()
    assert whole.message(message) is message
    assert time.process_time() - begun < first / 2  # about a fortieth


@given(
    st.lists(st.integers(0, 12_000), min_size=2, max_size=4),
    st.sampled_from(sorted(WRITTEN)),
    st.integers(0, 400),
    st.integers(0, 3),
    st.integers(0, 1_000),
)
def test_a_secret_that_is_split_over_outputs_is_found_though_each_was_looked_at(
    sizes: list[int], how: str, cut: int, after: int, seed: int
) -> None:
    filler = random.Random(seed)
    texts = ["".join(filler.choices("ab \n{}", k=size)) for size in sizes]
    written = WRITTEN[how](KEY)
    texts[after % len(texts) - 1] += written[: cut % len(written)]
    texts[after % len(texts)] = written[cut % len(written) :] + texts[after % len(texts)]
    seen = redactor(KEY)
    for text in texts:
        seen.text(text)
    assert seen.texts(texts) == redactor(KEY).texts(texts)


def test_a_secret_that_is_learned_is_found_in_what_had_none_before() -> None:
    known: tuple[str, ...] = (OTHER,)
    later = Redactor(lambda: known)
    text = f"{'x ' * 5_000}{KEY}"
    assert later.text(text) == later.text(text) == text
    known = (OTHER, KEY)
    assert later.texts([text]) == [text.replace(KEY, REDACTED)]


def test_short_values_are_left_alone() -> None:
    assert redactor("seven77").text("seven77") == "seven77"


def test_where_no_secret_is_known_no_message_is_taken_apart() -> None:
    """A session of ten thousand messages is opened without a look into each."""
    message = tool([ToolOutput(call_id="1", name="read_file", content=(Text(text="x" * 5_000),))])
    redactor = Redactor(tuple)
    assert redactor.message(message) is message
    assert calls_in_this_thread(lambda: redactor.message(message), "message_texts") == 0
    assert calls_in_this_thread(lambda: asyncio.run(redactor.prepare(message)), "redaction.py") < 5


def test_a_secret_that_becomes_known_while_a_long_text_is_searched_is_taken_out() -> None:
    known: list[tuple[str, ...]] = [(KEY,)]
    redactor = Redactor(lambda: known[0])
    text = "x y z\n" * PIECE + OTHER

    async def prepared() -> str:
        looking = asyncio.ensure_future(redactor.prepare(text))
        await asyncio.sleep(0)
        known[0] = (KEY, OTHER)
        (clean,) = redactor.texts([text], await looking)
        return clean

    assert OTHER not in asyncio.run(prepared())


def test_what_earlier_secrets_left_in_a_text_is_not_kept_for_later_ones() -> None:
    known: list[tuple[str, ...]] = [(KEY,)]
    redactor = Redactor(lambda: known[0])
    text = "x y z\n" * 1_000 + OTHER
    earlier = asyncio.run(redactor.prepare("short"))
    known[0] = (KEY, OTHER)
    redactor.text("x")  # knows the new one from now on
    redactor.value({"text": text}, earlier)
    assert OTHER not in redactor.text(text)


def test_what_was_learnt_since_the_last_look_counts_without_another_one() -> None:
    learnt: tuple[str, ...] = ()
    redactor = Redactor(lambda: learnt, lambda: learnt)
    assert redactor.text("a-long-secret") == "a-long-secret"
    learnt = ("a-long-secret",)
    assert redactor.has_learnt_any
