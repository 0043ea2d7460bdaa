"""What models send as arguments: repaired without guessing, or refused with an error to act on."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import ToolError, ToolSpec
from marvin_core.tools.argument_errors import ArgumentError, CutOff, example_call, refusal
from marvin_core.tools.arguments import coerce, parse_arguments, parse_key_values
from marvin_core.util.schemas.texts import type_text
from tests.support.examples import examples

STRINGS = {"type": "array", "items": {"type": "string"}}
NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3}


def spec_of(name: str, properties: dict[str, Any], required: list[str], **more: Any) -> ToolSpec:
    parameters = {"type": "object", "properties": properties, "required": required, **more}
    return ToolSpec(name=name, description="A tool.", parameters=parameters, access=frozenset({"read"}))


EDIT = spec_of(
    "edit",
    {
        "path": {"type": "string"},
        "line": {"type": "integer", "minimum": 1},
        "ratio": {"type": "number"},
        "force": {"type": "boolean", "default": False},
        "tags": STRINGS,
        "at": NUMBERS,
        "options": {"type": "object", "properties": {"depth": {"type": "integer"}}},
    },
    ["path"],
)
PATCH = spec_of("apply_patch", {"path": {"type": "string"}, "patch": {"type": "string"}}, [])
FREE = spec_of("free", {}, [], additionalProperties=True)

P = {"path": "a.py"}
ENVELOPE = "*** Begin Patch\n*** Update File: a.py\n@@\n-1\n+2\n*** End Patch"

REPAIRED: dict[str, tuple[str, dict[str, Any]]] = {
    "object": ('{"path": "a.py"}', P),
    "object, spread over lines": ('{\n  "path": "a.py",\n  "line": 3\n}\n', {**P, "line": 3}),
    "empty text": ("", {}),
    "blanks": (" \n\t", {}),
    "null": ("null", {}),
    "Python None": ("None", {}),
    "empty object": ("{}", {}),
    "empty list, as PHP writes an empty object": ("[]", {}),
    "empty JSON string": ('""', {}),
    "blanks in a JSON string": ('" "', {}),
    "JSON string": (r'"{\"path\": \"a.py\"}"', P),
    "JSON string in a JSON string": (json.dumps(json.dumps('{"path": "a.py"}')), P),
    "JSON string with line ends": (r'"{\n  \"path\": \"a.py\"\n}"', P),
    "fence with language": ('```json\n{"path": "a.py"}\n```', P),
    "fence without language": ('```\n{"path": "a.py"}\n```', P),
    "fence on one line": ('```json {"path": "a.py"} ```', P),
    "fence that is not closed around a whole object": ('```json\n{"path": "a.py"}', P),
    "fence of four backticks": ('````\n{"path": "a.py"}\n````', P),
    "fence inside a JSON string": (json.dumps('```json\n{"path": "a.py"}\n```'), P),
    "fence around backticks": ('```json\n{"path": "```x```"}\n```', {"path": "```x```"}),
    "trailing comma": ('{"path": "a.py",}', P),
    "trailing comma before a line end": ('{"path": "a.py",\n}', P),
    "trailing comma in a list": ('{"path": "a.py", "tags": ["x", "y",],}', {**P, "tags": ["x", "y"]}),
    "comma and brace inside a string": ('{"path": "a,}",}', {"path": "a,}"}),
    "single quotes": ("{'path': 'a.py'}", P),
    "Python literals": (
        "{'path': 'a.py', 'force': True, 'line': None}",
        {**P, "force": True, "line": None},
    ),
    "Python False": ("{'path': 'a.py', 'force': False}", {**P, "force": False}),
    "Python repr with both quotes": ("""{'path': "it's"}""", {"path": "it's"}),
    "Python repr with a double quote": ("""{'path': 'say "hi"'}""", {"path": 'say "hi"'}),
    "Python repr with escapes": (r"""{'path': 'it\'s\n\\n \x41'}""", {"path": "it's\n\\n A"}),
    "double quotes, Python True": ('{"path": "a.py", "force": True}', {**P, "force": True}),
    "raw line end in a string": ('{"path": "a\nb"}', {"path": "a\nb"}),
    "raw tab in a string": ('{"path": "a\tb"}', {"path": "a\tb"}),
    "raw NUL in a string": ('{"path": "a\0b"}', {"path": "a\0b"}),
    "byte order mark": ('\ufeff{"path": "a.py"}', P),
    "no-break spaces around and inside": ('\xa0{\xa0"path":\xa0"a.py"}\xa0', P),
    "zero-width space": ('\u200b{"path": "a.py"}\u200b', P),
    "list of one object": ('[{"path": "a.py"}]', P),
    "the same object twice": ('{"path": "a.py"}{"path": "a.py"}', P),
    "the same object twice, on two lines": ('{"path": "a.py"}\n{"path":"a.py"}', P),
    "the same object three times": ("{}{}{}", {}),
    "semicolon": ('{"path": "a.py"};', P),
    "wrapped: arguments": ('{"arguments": {"path": "a.py"}}', P),
    "wrapped: parameters": ('{"parameters": {"path": "a.py"}}', P),
    "wrapped: input": ('{"input": {"path": "a.py"}}', P),
    "wrapped: the tool's name": ('{"edit": {"path": "a.py"}}', P),
    "wrapped: JSON string": (r'{"arguments": "{\"path\": \"a.py\"}"}', P),
    "wrapped: null": ('{"arguments": null}', {}),
    "wrapped: the whole call": ('{"name": "edit", "arguments": {"path": "a.py"}}', P),
    "unwrapped: another key": ('{"args": {"path": "a.py"}}', {"args": {"path": "a.py"}}),
    "unwrapped: another tool's call": (
        '{"name": "other", "arguments": {}}',
        {"name": "other", "arguments": {}},
    ),
    "unwrapped: plain text": ('{"input": "a.py"}', {"input": "a.py"}),
    "equal duplicate keys": ('{"path": "a.py", "path": "a.py"}', P),
    "integer as text": ('{"line": "3"}', {"line": 3}),
    "integer as decimal": ('{"line": 3.0}', {"line": 3}),
    "integer as decimal text": ('{"line": " 3.0 "}', {"line": 3}),
    "not an integer": ('{"line": "three"}', {"line": "three"}),
    "fraction for an integer": ('{"line": 3.5}', {"line": 3.5}),
    "number as text": ('{"ratio": "-0.5"}', {"ratio": -0.5}),
    "infinite number as text": ('{"ratio": "1e999"}', {"ratio": "1e999"}),
    "null as text, where text is not wanted": ('{"line": "null"}', {"line": None}),
    "null as text, where text is wanted": ('{"path": "null"}', {"path": "null"}),
    "true as text": ('{"force": "true"}', {"force": True}),
    "True as text": ('{"force": "True"}', {"force": True}),
    "yes is not a boolean": ('{"force": "yes"}', {"force": "yes"}),
    "1 is not a boolean": ('{"force": 1}', {"force": 1}),
    "whole number where text is wanted": ('{"path": 42}', {"path": "42"}),
    "fraction where text is wanted": ('{"path": 1.10}', {"path": 1.1}),
    "true where text is wanted": ('{"path": true}', {"path": True}),
    "list as JSON text": ('{"tags": "[\\"a\\", \\"b\\"]"}', {"tags": ["a", "b"]}),
    "list as Python text": ("""{"tags": "['a', 'b']"}""", {"tags": ["a", "b"]}),
    "list as comma-separated text": ('{"tags": "a, b,c"}', {"tags": ["a", "b", "c"]}),
    "list as one word": ('{"tags": "a"}', {"tags": ["a"]}),
    "list as empty text": ('{"tags": ""}', {"tags": []}),
    "list of names with brackets": ('{"tags": "[id].tsx,b"}', {"tags": ["[id].tsx", "b"]}),
    "list of numbers as text": ('{"at": "1, 2.5, 3"}', {"at": [1, 2.5, 3]}),
    "numbers as texts in a list": ('{"at": ["1", 2]}', {"at": [1, 2]}),
    "object as JSON text": ('{"options": "{\\"depth\\": \\"2\\"}"}', {"options": {"depth": 2}}),
    "text where an object is wanted": ('{"options": "deep"}', {"options": "deep"}),
    "emoji by escapes": (r'{"path": "\ud83d\ude00"}', {"path": "😀"}),
    "unknown names stay for validation": ('{"file": "3"}', {"file": "3"}),
}


@pytest.mark.parametrize(("raw", "expected"), REPAIRED.values(), ids=REPAIRED.keys())
def test_what_can_be_read_in_one_way_only_is_read(raw: str, expected: dict[str, Any]) -> None:
    arguments = parse_arguments(raw, EDIT)
    assert arguments == expected
    assert json.dumps(arguments) == json.dumps(expected)  # tells 3 from 3.0, and 1 from True


NO_VALUE = "at character {}, expected a value, found {}"
NO_COMMA = "at character {}, expected ',' or the closing bracket, found {}"
NO_KEY = "at character {}, expected a key in double quotes or '}}', found {}"
BEHIND = "there is text after its end, at character {}"
ESCAPE = "{} is not a JSON escape; write every backslash inside a string as two backslashes"
QUOTE = r" (inside a string a quote is written \")"
BARE = "it is a bare string; write the name of its parameter too"

REFUSED: dict[str, tuple[str, str]] = {
    "prose": ("I will read a.py now.", NO_VALUE.format(1, "'I'")),
    "a bare path": ("a.py", NO_VALUE.format(1, "'a.py'")),
    "a bare JSON string": ('"a.py"', BARE),
    "a bare string in a string": (json.dumps('"a.py"'), BARE),
    "a number": ("42", "it is a single value"),
    "true": ("true", "it is a single value"),
    "a list of two objects": ("[{}, {}]", "it is a list; make one call for each object"),
    "a list of words": ('["a.py"]', "it is a list; make one call for each object"),
    "three strings around": (
        json.dumps(json.dumps(json.dumps("{}"))),
        "it is a string in a string in a string",
    ),
    "two different objects": (
        '{"path": "a"}{"path": "b"}',
        "there are 2 different objects, one after the other; make one call for each",
    ),
    "text before": ('Sure! {"path": "a.py"}', NO_VALUE.format(1, "'Sure!'")),
    "text behind": ('{"path": "a.py"} done', BEHIND.format(18)),
    "text behind in a fence": ('```\n{"path": "a.py"} done\n```', BEHIND.format(18)),
    "a closing brace too many": ('{"path": "a.py"}}', BEHIND.format(17)),
    "a comma behind": ('{"path": "a.py"},', BEHIND.format(17)),
    "the wrong bracket": ('{"line": 1]}', NO_COMMA.format(11, "']'")),
    "the wrong brace": ('{"tags": ["a"}', NO_COMMA.format(14, "'}'")),
    "a missing comma": ('{"path": "a" "line": 1}', NO_COMMA.format(14, "'\"line\"'")),
    "a missing colon": ('{"path" "a"}', "at character 9, expected ':', found '\"a\"'"),
    "an equals sign": ('{"path"="a"}', "at character 8, expected ':', found '='" + QUOTE),
    "a missing value": ('{"path":}', NO_VALUE.format(9, "'}'")),
    "a missing key": ('{: "a"}', NO_KEY.format(2, "':'")),
    "two commas": ('{"path": "a",, "line": 1}', NO_KEY.format(14, "','")),
    "only a comma": ("{,}", NO_KEY.format(2, "','")),
    "names without quotes": ('{path: "a"}', NO_KEY.format(2, "'path'")),
    "a set": ('{"a.py"}', "at character 8, expected ':', found '}'"),
    "quotes inside a string": ('{"path": "say "hi" now"}', NO_COMMA.format(16, "'hi'") + QUOTE),
    "a comment": ('{"path": "a" // the file\n}', NO_COMMA.format(14, "'//'") + QUOTE),
    "an ellipsis": ('{"path": "a", ...}', NO_KEY.format(15, "'...'")),
    "a Python call": ('edit(path="a")', NO_VALUE.format(1, "'edit(path='")),
    "XML": ("<path>a</path>", NO_VALUE.format(1, "'<path>a</path>'")),
    "key=value": ("path=a", NO_VALUE.format(1, "'path=a'")),
    "undefined": ('{"line": undefined}', "undefined is not a JSON value"),
    "NaN": ('{"ratio": NaN}', "NaN is not a JSON value"),
    "-Infinity": ('{"ratio": -Infinity}', "-Infinity is not a JSON value"),
    "an infinite number": ('{"ratio": 1e999}', "the number '1e999' is too large"),
    "an endless number": ('{"line": %s}' % ("9" * 5000), "a number in it has too many digits"),
    "a leading zero": ('{"line": 007}', NO_VALUE.format(10, "'007'")),
    "an unknown word": ('{"force": yes}', NO_VALUE.format(11, "'yes'")),
    "a regular expression that is not escaped": (r'{"path": "\d+"}', ESCAPE.format(r"\d")),
    "a Windows path": (r'{"path": "C:\Users"}', ESCAPE.format(r"\U")),
    "an escaped single quote": (r'{"path": "it\'s"}', ESCAPE.format(r"\'")),
    "half a character": (r'{"path": "\ud83d"}', r"\ud83d is a lone surrogate, one half of a character"),
    "half a character, raw": (
        '{"path": "\udfff"}',
        r"\udfff is a lone surrogate, one half of a character",
    ),
    "different duplicate keys": (
        '{"path": "a", "path": "b"}',
        "the key 'path' occurs twice with different values",
    ),
    "different duplicate keys inside": (
        '{"options": {"depth": 1, "depth": 2}}',
        "the key 'depth' occurs twice with different values",
    ),
    "wrapped and broken": (r'{"arguments": "{path}"}', NO_KEY.format(2, "'path'")),
    "too deep": ('{"x": %s}' % ("[" * 200 + "]" * 200), "it is nested more than 100 levels deep"),
    "far too deep": ('{"x": %s}' % ("[" * 5000 + "]" * 5000), "it is nested more than 100 levels deep"),
}


@pytest.mark.parametrize(("raw", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_would_be_a_guess_is_refused_with_an_error_to_act_on(raw: str, reason: str) -> None:
    """I10: the error says what was received, what is expected, and shows a correct call."""
    with pytest.raises(ArgumentError) as caught:
        parse_arguments(raw, EDIT)
    assert type(caught.value) is ArgumentError
    head, *rest = str(caught.value).split("\nReceived: ")
    assert head == f"The arguments of edit are not a JSON object: {reason}."
    assert len(rest) == 1
    received, _, expected = rest[0].partition("\nExpected parameters:\n")
    assert len(received) <= len(raw.encode("unicode_escape"))
    assert len(received) <= 220
    assert expected.startswith("- path: text (required)\n- line: an integer of at least 1 (optional)\n")
    assert expected.endswith('\nCorrect call: edit({"path": "src/main.py"})')


CUT: dict[str, str] = {
    "the opening brace": "{",
    "inside a key": '{"pa',
    "behind a key": '{"path"',
    "after the colon": '{"path":',
    "inside a string": '{"path": "a.',
    "behind a backslash": '{"path": "a\\',
    "inside an escape": r'{"path": "\u00',
    "behind a value": '{"path": "a.py"',
    "behind a comma": '{"path": "a.py",',
    "inside a number": '{"ratio": -',
    "inside a word": '{"force": tru',
    "inside a Python word": "{'force': Fal",
    "inside single quotes": "{'path': 'a",
    "inside a list": '{"tags": ["a", ',
    "inside an inner object": '{"options": {"depth": 1}',
    "inside a fence": '```json\n{"path": "a',
    "behind the fence": "```json\n",
    "inside a JSON string": r'"{\"path\": \"a',
    "inside the object in a whole JSON string": r'"{\"path\": \"a\""',
    "inside a wrapped string": r'{"arguments": "{\"path\": "}',
    "inside the second of two objects": '{"path": "a"}{"path": "a"',
    "a thousand open lists": '{"tags": ' + "[" * 1000,
}


@pytest.mark.parametrize("raw", CUT.values(), ids=CUT.keys())
def test_cut_off_arguments_are_told_from_broken_ones_and_never_completed(raw: str) -> None:
    """I26: arguments that end inside a value are refused, and the model is told to write in sections."""
    with pytest.raises(CutOff) as caught:
        parse_arguments(raw, EDIT)
    text = str(caught.value)
    assert text.startswith(f"The arguments of edit were cut off after {len(raw):,} characters, ")
    assert "Nothing was run." in text
    assert "Make the call again from its beginning" in text
    assert text.endswith("Give large content in sections, one in each call, if the tool allows that.")


def test_a_tool_says_what_to_do_instead_of_a_call_that_is_too_long() -> None:
    """I10, I26: what it declares stands in the place of the general advice."""
    hint = "Write it in two halves."
    with pytest.raises(CutOff) as caught:
        parse_arguments('{"path": "a', EDIT.replace(too_long=hint))
    assert str(caught.value).endswith(f"with shorter arguments. {hint}")
    assert "in sections" not in str(caught.value)


@pytest.mark.parametrize("raw", ["", '{"path": "a.py"}', "{", "nonsense", ENVELOPE])
def test_a_call_known_to_be_cut_off_is_refused_even_if_its_text_is_whole(raw: str) -> None:
    """I26: where the answer ended inside the call, a whole object may be a part of a longer one."""
    with pytest.raises(CutOff, match="were cut off after"):
        parse_arguments(raw, EDIT, complete=False)


def test_a_whole_codex_patch_is_the_patch_parameter() -> None:
    for raw in (
        ENVELOPE,
        f"\n{ENVELOPE}\n",
        f"```diff\n{ENVELOPE}\n```",
        json.dumps(ENVELOPE),
        json.dumps({"input": ENVELOPE}),
        json.dumps({"patch": ENVELOPE}),
    ):
        assert parse_arguments(raw, PATCH) == {"patch": ENVELOPE}


@pytest.mark.parametrize("raw", [ENVELOPE, json.dumps(ENVELOPE)])
def test_a_patch_for_a_tool_that_takes_none_is_refused_with_the_tool_on_offer_that_takes_one(raw: str) -> None:
    """I10: the error names no tool that is not there."""
    with pytest.raises(ArgumentError) as caught:
        parse_arguments(raw, EDIT, others=[EDIT, PATCH])
    assert str(caught.value).startswith(
        f'edit does not accept a patch; call {PATCH.name}({{"patch": "*** Begin Patch…"}}) instead.\nReceived: '
    )
    with pytest.raises(ArgumentError) as caught:
        parse_arguments(raw, EDIT, others=[EDIT])
    assert str(caught.value).startswith("edit does not accept a patch.\nReceived: ")


def test_a_codex_patch_that_was_cut_off_is_never_applied() -> None:
    """I26: the envelope has an end of its own."""
    for end in range(len("*** Begin Patch"), len(ENVELOPE)):
        with pytest.raises(CutOff):
            parse_arguments(ENVELOPE[:end], PATCH)
    with pytest.raises(ArgumentError, match="after '\\*\\*\\* End Patch'"):
        parse_arguments(ENVELOPE + "\nDone.", PATCH)


def test_a_wrapper_name_that_is_a_parameter_is_left_alone() -> None:
    search = spec_of("search", {"input": {"type": "object"}}, ["input"])
    assert parse_arguments('{"input": {"a": 1}}', search) == {"input": {"a": 1}}
    assert parse_arguments('{"input": {"a": 1}}', FREE) == {"input": {"a": 1}}


def test_what_is_shown_of_long_arguments_is_cut_and_can_be_encoded() -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_arguments("x\udc80" + "y" * 10_000, EDIT)
    assert "Received: x\\udc80yyy" in str(caught.value)
    assert len(str(caught.value).encode()) < 1_500


@pytest.mark.parametrize(
    "raw",
    [
        "[" * 1_000_000,
        '{"a":' * 100_000,
        "{}" * 200_000,
        '{"path": "' + '\\"' * 500_000,
        '{"path": "' + "x" * 1_000_000 + '",}',
        "{'path': '" + "\\'" * 300_000 + "'}",
        '"' * 1_000_000,
        "`" * 1_000_000,
        "\ufeff " * 300_000,
        "-" * 1_000_000,
        '{"tags": "' + "a," * 300_000 + '"}',
    ],
    ids=lambda raw: raw[:12],
)
def test_a_megabyte_takes_linear_time(raw: str) -> None:
    """I14: neither the time nor the stack gives out; quadratic time would be minutes of the processor."""
    started = time.thread_time()
    error = error_of(raw, EDIT)
    assert error is None or len(str(error)) < 2_000
    assert time.thread_time() - started < 20


def error_of(raw: str, spec: ToolSpec) -> ArgumentError | None:
    try:
        parse_arguments(raw, spec)
    except ArgumentError as error:
        return error
    return None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet=st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(alphabet=st.characters(codec="utf-8")), JSON, max_size=4)


@given(OBJECTS, st.sampled_from([None, 2]), st.booleans())
def test_every_object_comes_back_as_it_was_written(value: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert parse_arguments(text, FREE) == value
    assert parse_arguments(json.dumps(text), FREE) == value
    assert parse_arguments(f"```json\n{text}\n```", FREE) == value


@given(OBJECTS)
def test_every_python_literal_is_refused_or_read_as_it_was_written(value: dict[str, Any]) -> None:
    raw = repr(value)
    error = error_of(raw, FREE)
    if error is None:
        assert parse_arguments(raw, FREE) == value
    else:  # such as \U0001f600
        assert "is not a JSON escape; write every backslash inside a string as two backslashes" in str(error)


@given(OBJECTS, st.data(), st.booleans())
def test_no_beginning_of_an_object_is_ever_run(value: dict[str, Any], data: st.DataObject, nested: bool) -> None:
    """I26: every proper prefix is recognised as cut off."""
    indent = data.draw(st.sampled_from([None, 1]))
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()), indent=indent)
    text = json.dumps(text) if nested else text
    end = data.draw(st.integers(min_value=1, max_value=len(text) - 1))
    with pytest.raises(CutOff):
        parse_arguments(text[:end], FREE)


@given(st.text() | st.text(alphabet="{}[]:,\"'\\ntruefalsNo0123.eE-`*; \n\ufeff\ud800"))
@examples(300)
def test_no_text_raises_anything_but_an_argument_error(raw: str) -> None:
    """I14: whatever a model sends, there is a value that can be stored, or an error that can be shown."""
    for spec in (EDIT, PATCH, FREE):
        try:
            json.dumps(parse_arguments(raw, spec), ensure_ascii=False, allow_nan=False).encode()
        except ArgumentError as error:
            str(error).encode()


@given(JSON, st.sampled_from(sorted(EDIT.parameters["properties"])))
def test_coercion_leaves_what_already_has_its_type(value: Any, name: str) -> None:
    once = coerce({name: value}, EDIT)
    assert coerce(once, EDIT) == once


def test_words_typed_by_hand_get_the_types_of_the_schema() -> None:
    words = ["path=a=b", "line=3", "ratio=.5", "force=true", "tags=x,y", "at=1,2,3", 'options={"depth": 1}']
    assert parse_key_values(words, EDIT) == {
        "path": "a=b",
        "line": 3,
        "ratio": 0.5,
        "force": True,
        "tags": ["x", "y"],
        "at": [1, 2, 3],
        "options": {"depth": 1},
    }
    assert parse_key_values([], EDIT) == {}
    assert parse_key_values(["path="], EDIT) == {"path": ""}
    assert parse_key_values(["path=42"], EDIT) == {"path": "42"}
    assert parse_key_values(["anything=1"], FREE) == {"anything": "1"}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["path=a", "b.py"],
            "edit: 'b.py' is not of the form key=value; put quotes around a value with spaces.",
        ),
        (["=a"], "edit: '=a' is not of the form key=value; put quotes around a value with spaces."),
        (["file_path=a"], "edit: Unknown parameter 'file_path'. Did you mean 'path'?"),
        (
            ["zzz=a"],
            "edit: Unknown parameter 'zzz'. Available: path, line, ratio, force, tags, at, options.",
        ),
        (["path=\udcff"], "edit: 'path=\\\\udcff' is not valid UTF-8."),
        (["path=a", "path=b"], "edit: path is given twice."),
    ],
)
def test_mistyped_words_are_explained(words: list[str], problem: str) -> None:
    """I10: the error names the word, and the names that come nearest."""
    with pytest.raises(ArgumentError) as caught:
        parse_key_values(words, EDIT)
    assert str(caught.value).startswith(problem + "\nExpected parameters:\n")


def test_the_refusal_lists_parameters_with_types_and_defaults() -> None:
    """I10: what is expected is part of the error."""
    assert str(refusal(EDIT, "It is wrong.", also=["at"])) == (
        "It is wrong.\n"
        "Expected parameters:\n"
        "- path: text (required)\n"
        "- line: an integer of at least 1 (optional)\n"
        "- ratio: a number (optional)\n"
        "- force: true or false (default false)\n"
        "- tags: a list, each item text (optional)\n"
        "- at: a list of 3 items, each item a number (optional)\n"
        "- options: an object (optional)\n"
        'Correct call: edit({"path": "src/main.py", "at": [1, 1, 1]})'
    )
    nothing = spec_of("git_status", {}, [])
    assert str(refusal(nothing, "It is wrong.", "")) == (
        "It is wrong.\nReceived: nothing\ngit_status has no parameters.\nCorrect call: git_status({})"
    )
    assert issubclass(ArgumentError, ToolError)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 20}, "an integer from 1 to 20"),
        ({"type": "number", "maximum": 5.5}, "a number of at most 5.5"),
        ({"type": "number", "exclusiveMinimum": 0}, "a number above 0"),
        ({"type": "number", "exclusiveMaximum": 1}, "a number below 1"),
        ({"type": "string", "minLength": 1}, "text of at least 1 character"),
        ({"type": "string", "maxLength": 9, "minLength": 2}, "text from 2 to 9 characters"),
        ({"type": "string", "pattern": "^a$"}, "text that matches ^a$"),
        ({"type": "string", "format": "date"}, "text in the form date"),
        ({**STRINGS, "minItems": 1}, "a list of at least 1 item, each item text"),
        ({"type": "string", "enum": ["", "open"]}, 'one of "", "open"'),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "text or an integer"),
        ({}, "any value"),
    ],
)
def test_schemas_are_told_in_plain_words(schema: dict[str, Any], text: str) -> None:
    assert type_text(schema) == text


def test_the_example_suits_the_tool() -> None:
    assert example_call(PATCH).startswith('apply_patch({"patch": "*** Begin Patch')
    replacing = spec_of(
        "apply_patch", {name: {"type": "string"} for name in ("path", "old_str", "new_str", "patch")}, []
    )
    assert example_call(replacing) == (
        'apply_patch({"path": "src/main.py", "old_str": "return 1", "new_str": "return 2"})'
    )
    weather = spec_of("weather", {"days": {"type": "integer"}, "location": {"type": "string"}}, [])
    assert example_call(weather) == 'weather({"location": "Berlin"})'
    ranged = spec_of("ranged", {"n": {"type": "integer", "minimum": 64, "maximum": 128}}, ["n"])
    assert example_call(ranged) == 'ranged({"n": 64})'
    odd = spec_of("odd", {"path": {"type": "integer"}, "url": {"enum": ["x"]}}, ["path", "url"])
    assert example_call(odd) == 'odd({"path": 1, "url": "x"})'
