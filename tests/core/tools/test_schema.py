"""Tools declared with plain annotations: their schema in the normal form, and the check of arguments.

mypy checks this file in strict mode too, so it also shows that `@tool` with `Annotated` strings is typed.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from enum import Enum
from inspect import isawaitable
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, model_validator

from marvin_core import Field, Tool, ToolContext, ToolError, tool
from marvin_core.tools.argument_errors import ArgumentError, example_call
from marvin_core.tools.arguments import parse_arguments
from marvin_core.tools.schema import describe, validator
from marvin_core.util.schemas.normal_form import normal_form


class Shade(Enum):
    """The shades there are."""

    LIGHT = "light"
    DARK = "dark"


class Point(BaseModel):
    """A place on the page."""

    title: str
    x: Annotated[int, Field(ge=0)] = 0


class Order(BaseModel):
    """What to order."""

    item: str = Field(description="Name of the item", validation_alias=AliasChoices("item", "article"))
    places: list[Point] = []
    gift: Point | None = None


class Node(BaseModel):
    children: list[Node] = []


class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")

    known: int = 0


class Span(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def in_order(self) -> Span:
        if self.low > self.high:
            raise ValueError("low must not be above high")
        return self


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


def _zero_is_open(value: Any) -> Any:
    return None if value == 0 else value


@tool(access={"read"}, group="demo", timeout=5)
async def everything(
    path: Annotated[str, "Path of the file, ", "relative"],
    context: ToolContext,
    start_line: Annotated[
        int | None,
        Field(ge=1, validation_alias=AliasChoices("start")),
        BeforeValidator(_zero_is_open),
        "First line",
    ] = None,
    limit: Annotated[int, Field(ge=1, le=20)] = 5,
    ratio: float = 0.5,
    force: bool = False,
    mode: Literal["", "fast", "slow"] = "",
    only: Literal["one"] = "one",
    shade: Shade = Shade.LIGHT,
    tags: list[str] | None = None,
    at: Annotated[list[float], Field(min_length=3, max_length=3)] = [1, 1, 1],  # noqa: B006 - pydantic copies it
    where: Point | None = None,
    either: int | str = 1,
    extra: dict[str, int] = Field(default_factory=dict, description="More numbers"),  # noqa: B008
    free: Any = None,
) -> str:
    """Show every kind of parameter.

    The second paragraph counts too.
    """
    return f"{path} {start_line} {context}"


@tool
async def order(params: Annotated[Order, "The order"], ctx: ToolContext) -> str:
    """Order something."""
    return params.item


@tool
async def shadows(copy: str, schema: int = 1, model_config: str = "", _hidden: int = 2, values: str = "") -> str:
    """Take names that are attributes of pydantic's models."""
    return f"{copy}{schema}{model_config}{_hidden}{values}"


@tool
async def nothing() -> str:
    """Take nothing."""
    return ""


@tool
async def even(number: Annotated[int, AfterValidator(_even)], span: Span | None = None) -> str:
    """Take an even number."""
    return f"{number}{span}"


EVERYTHING_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Path of the file,  relative"},
        "start_line": {"type": "integer", "description": "First line", "minimum": 1},
        "limit": {"type": "integer", "default": 5, "minimum": 1, "maximum": 20},
        "ratio": {"type": "number", "default": 0.5},
        "force": {"type": "boolean", "default": False},
        "mode": {"type": "string", "enum": ["", "fast", "slow"], "default": ""},
        "only": {"type": "string", "enum": ["one"], "default": "one"},
        "shade": {
            "type": "string",
            "description": "The shades there are.",
            "enum": ["light", "dark"],
            "default": "light",
        },
        "tags": {"type": "array", "items": {"type": "string"}},
        "at": {
            "type": "array",
            "default": [1, 1, 1],
            "minItems": 3,
            "maxItems": 3,
            "items": {"type": "number"},
        },
        "where": {
            "type": "object",
            "description": "A place on the page.",
            "properties": {
                "title": {"type": "string"},
                "x": {"type": "integer", "default": 0, "minimum": 0},
            },
            "required": ["title"],
        },
        "either": {"default": 1, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "extra": {
            "type": "object",
            "description": "More numbers",
            "additionalProperties": {"type": "integer"},
        },
        "free": {},
    },
    "required": ["path"],
}


def test_a_signature_becomes_a_schema_in_the_normal_form() -> None:
    spec = describe(everything, source="demo-pack", group="other")
    assert spec.parameters == EVERYTHING_SCHEMA
    assert json.dumps(spec.parameters) == json.dumps(EVERYTHING_SCHEMA)  # the order of keys is stable
    assert spec.name == "everything"
    assert spec.description == "Show every kind of parameter.\n\nThe second paragraph counts too."
    assert spec.access == {"read"}
    assert (spec.group, spec.source, spec.module) == ("demo", "demo-pack", __name__)
    assert (spec.timeout, spec.own_timeout) == (5, False)
    jsonschema.Draft202012Validator.check_schema(spec.parameters)


def test_declarations_pass_into_the_specification() -> None:
    @tool(
        timeout=lambda arguments: float(arguments["seconds"]),
        confirm=True,
        requires=["env:KEY"],
        labels=["web"],
        settings=["KEY"],
    )
    async def wait(seconds: float) -> str:
        """Wait."""
        return str(seconds)

    spec = describe(wait, group="time", module="elsewhere")
    assert (spec.timeout, spec.own_timeout, spec.confirm) == (None, True, True)
    assert (spec.requires, spec.labels, spec.settings) == (("env:KEY",), ("web",), ("KEY",))
    assert (spec.group, spec.module) == ("time", "elsewhere")
    assert spec.access == {"write", "exec"}


def test_a_single_model_is_the_schema_itself() -> None:
    spec = describe(order)
    point = EVERYTHING_SCHEMA["properties"]["where"]  # type: ignore[index]
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "item": {"type": "string", "description": "Name of the item"},
            "places": {"type": "array", "default": [], "items": point},
            "gift": point,
        },
        "required": ["item"],
    }
    given = validator(order)({"article": "tea", "places": [{"title": "here"}]})
    assert given == {"params": Order(article="tea", places=[Point(title="here")])}  # type: ignore[call-arg]
    assert validator(order).context_parameter == "ctx"


def test_no_parameters_make_an_empty_object() -> None:
    assert describe(nothing).parameters == {"type": "object", "properties": {}}
    assert validator(nothing)({}) == {}
    assert validator(nothing).context_parameter == ""


def test_any_parameter_name_works() -> None:
    spec = describe(shadows)
    assert list(spec.parameters["properties"]) == [
        "copy",
        "schema",
        "model_config",
        "_hidden",
        "values",
    ]
    given = validator(shadows)({"copy": "a", "_hidden": 3})
    assert given == {
        "copy": "a",
        "schema": 1,
        "model_config": "",
        "_hidden": 3,
        "values": "",
    }
    assert asyncio.run(_text(shadows, given)) == "a13"


async def _text(called: Tool, given: Mapping[str, Any]) -> str:
    answer = called(**given)
    assert isawaitable(answer)
    return str(await answer)


def test_valid_arguments_become_keyword_arguments_with_defaults() -> None:
    given = validator(everything)({"path": "a", "where": {"title": "t"}, "shade": "dark", "at": [1, 2, 3]})
    assert given["where"] == Point(title="t")
    assert given["shade"] is Shade.DARK
    assert given["at"] == [1.0, 2.0, 3.0]
    assert given["start_line"] is None
    assert given["limit"] == 5
    assert "context" not in given
    assert validator(everything).context_parameter == "context"
    assert validator(everything) is validator(everything)


def test_other_names_of_a_parameter_are_accepted() -> None:
    assert validator(everything)({"path": "a", "start": 3})["start_line"] == 3
    assert validator(everything)({"path": "a", "start": 0})["start_line"] is None
    assert validator(everything)({"path": "a", "start_line": "3"})["start_line"] == 3


def halves(given: dict[str, Any]) -> dict[str, Any]:
    if "forbidden" in given:
        raise ToolError("Leave out forbidden.")
    half = given.pop("half", None)
    return given if half is None else {**given, "size": half * 2}


@tool(access=["read"], aliases={"path": ["file", "name"], "tags": ["labels"]}, ignores=["why"], adapt=halves)
async def adapted(path: str, size: int = 1, tags: list[str] | None = None) -> str:
    """Do something with a file."""
    return f"{path} {size} {tags}"


ADAPTED = describe(adapted)


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ({"file": "a"}, {"path": "a"}),
        ({"file": "a", "path": None}, {"path": "a"}),
        ({"file": None, "path": "a"}, {"path": "a"}),
        ({"file": "a", "path": "a", "name": "a"}, {"path": "a"}),
        ({"file": "a", "name": "b"}, {"path": "a", "name": "b"}),
        ({"path": "a", "half": 2}, {"path": "a", "size": 4}),
        ({"path": "a", "labels": "x, y"}, {"path": "a", "tags": ["x", "y"]}),
        ({"path": "a", "outside": "why not"}, {"path": "a", "outside": "why not"}),
    ],
)
def test_names_and_shapes_of_other_programs_become_those_of_the_tool(
    sent: dict[str, Any], named: dict[str, Any]
) -> None:
    before = dict(sent)
    assert validator(adapted).named(sent, ADAPTED) == named
    assert sent == before


def test_what_a_tool_cannot_do_is_refused_in_one_line() -> None:
    with pytest.raises(ToolError, match=r"^Leave out forbidden\.$"):
        validator(adapted)({"path": "a", "forbidden": 1})
    with pytest.raises(ArgumentError, match="- path and name are the same parameter; give only one of them"):
        validator(adapted)({"file": "a", "name": "b"})
    assert validator(adapted)({"name": "a", "half": 3, "why": "so"}) == {"path": "a", "size": 6, "tags": None}


def test_null_for_an_optional_parameter_means_that_it_was_not_given() -> None:
    given = validator(everything)({"path": "a", "limit": None, "mode": None, "tags": None, "free": None})
    assert (given["limit"], given["mode"], given["tags"], given["free"]) == (5, "", None, None)
    with pytest.raises(ArgumentError, match="- path: must be text; received null"):
        validator(everything)({"path": None})


def test_defaults_are_not_shared_between_calls() -> None:
    validator(everything)({"path": "a"})["at"].append(4)
    assert validator(everything)({"path": "a"})["at"] == [1, 1, 1]


PROBLEMS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "missing": ({}, ["path: missing; it must be text"]),
    "wrong type": ({"path": ["a"]}, ['path: must be text; received ["a"]']),
    "number for text": ({"path": 1.5}, ["path: must be text; received 1.5"]),
    "text for an integer": (
        {"path": "a", "limit": "ten"},
        ['limit: must be an integer from 1 to 20; received "ten"'],
    ),
    "fraction for an integer": (
        {"path": "a", "limit": 2.5},
        ["limit: must be an integer from 1 to 20; received 2.5"],
    ),
    "true for an integer": (
        {"path": "a", "limit": True},
        ["limit: must be an integer from 1 to 20; received true"],
    ),
    "true for a number": ({"path": "a", "ratio": True}, ["ratio: must be a number; received true"]),
    "yes for a boolean": ({"path": "a", "force": "yes"}, ['force: must be true or false; received "yes"']),
    "1 for a boolean": ({"path": "a", "force": 1}, ["force: must be true or false; received 1"]),
    "out of range": (
        {"path": "a", "limit": 21},
        ["limit: must be an integer from 1 to 20; received 21"],
    ),
    "below the range, by another name": (
        {"path": "a", "start": -1},
        ["start_line: must be an integer of at least 1; received -1"],
    ),
    "no such choice": (
        {"path": "a", "mode": "fastest"},
        ['mode: must be one of "", "fast", "slow"; received "fastest"'],
    ),
    "no such member": (
        {"path": "a", "shade": "grey"},
        ['shade: must be one of "light", "dark"; received "grey"'],
    ),
    "too short a list": (
        {"path": "a", "at": [1, 2]},
        ["at: must be a list of 3 items, each item a number; received [1, 2]"],
    ),
    "a wrong item": ({"path": "a", "at": [1, "x", 3]}, ['at[1]: must be a number; received "x"']),
    "a wrong inner value": (
        {"path": "a", "where": {"title": "t", "x": -1}},
        ["where.x: must be an integer of at least 0; received -1"],
    ),
    "a missing inner value": ({"path": "a", "where": {}}, ["where.title: missing; it must be text"]),
    "neither of two types": (
        {"path": "a", "either": []},
        ["either: must be an integer or text; received []"],
    ),
    "an unknown name": ({"file_path": "a"}, ["Unknown parameter 'file_path'. Did you mean 'path'?"]),
    "two names of one": (
        {"path": "a", "start": 1, "start_line": 2},
        ["start_line and start are the same parameter; give only one of them."],
    ),
    "several at once": (
        {"pathname": "a", "limit": 0, "mode": "x"},
        [
            "Unknown parameter 'pathname'. Did you mean 'path'?",
            "path: missing; it must be text",
            "limit: must be an integer from 1 to 20; received 0",
            'mode: must be one of "", "fast", "slow"; received "x"',
        ],
    ),
}


@pytest.mark.parametrize(("values", "problems"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_every_wrong_parameter_is_named_with_what_is_wrong(values: dict[str, Any], problems: list[str]) -> None:
    """I10: each field, what is wrong with it, what is expected, and a correct call."""
    with pytest.raises(ArgumentError) as caught:
        validator(everything)(values)
    head, _, rest = str(caught.value).partition("\nExpected parameters:\n")
    assert head.split("\n")[0] == "everything was not run, because its arguments are wrong:"
    named = [line.removeprefix("- ") for line in head.split("\n")[1:]]
    for problem in problems:
        assert problem in named, named
    assert "- limit: an integer from 1 to 20 (default 5)" in rest
    call = rest.rpartition("\nCorrect call: everything(")[2].removesuffix(")")
    assert validator(everything)(json.loads(call))
    str(caught.value).encode()


def test_the_correct_call_shows_the_parameter_that_was_wrong() -> None:
    """I10: a model that got one parameter wrong sees how that one is written."""
    with pytest.raises(ArgumentError, match=re.escape('everything({"path": "src/main.py", "limit": 5})')):
        validator(everything)({"path": "a", "limit": 99})


def test_reasons_of_own_validators_are_passed_on() -> None:
    with pytest.raises(ArgumentError, match="- number: must be even; received 3"):
        validator(even)({"number": 3})
    with pytest.raises(ArgumentError, match="- span: low must not be above high; received"):
        validator(even)({"number": 2, "span": {"low": 2, "high": 1}})


def test_a_flood_of_wrong_values_makes_a_short_error() -> None:
    wrong = {f"x{number}": "y" * 1_000 for number in range(2_000)}
    with pytest.raises(ArgumentError) as caught:
        validator(everything)({"path": "a", "tags": [{}] * 2_000, **wrong})
    assert len(str(caught.value)) < 3_000
    assert "\n- and more\n" in str(caught.value)


def test_a_model_that_is_open_takes_any_name() -> None:
    @tool
    async def open_tool(params: Anything) -> str:
        """Take anything."""
        return str(params)

    (params,) = validator(open_tool)({"other": 1}).values()
    assert params.other == 1
    assert describe(open_tool).parameters["additionalProperties"] is True


def test_signatures_that_cannot_be_tools_say_what_to_change() -> None:
    async def recursive(node: Node) -> str:
        """Take a tree."""
        return str(node)

    async def nested_recursive(node: Node, other: int = 0) -> str:
        """Take a tree and a number."""
        return f"{node}{other}"

    async def variadic(*paths: str) -> str:
        """Take many."""
        return str(paths)

    async def unannotated(path) -> str:  # type: ignore[no-untyped-def]
        """Take something."""
        return str(path)

    async def handle(stream: object, task: asyncio.Task[None]) -> str:
        """Take what JSON cannot hold."""
        return f"{stream}{task}"

    async def unresolved(path: NoSuchName) -> str:  # type: ignore[name-defined] # noqa: F821
        """Take what nobody knows."""
        return str(path)

    for function, message in [
        (recursive, "The tool recursive takes Node, which contains itself; limit its depth."),
        (nested_recursive, "The tool nested_recursive takes Node, which contains itself"),
        (variadic, "The tool variadic declares \\*paths: .*; declare each parameter by its own name"),
        (unannotated, "The tool unannotated needs an annotation for its parameter path"),
        (handle, "The tool handle has a parameter that JSON cannot describe"),
        (unresolved, "Define or import it at the top of the module, not under TYPE_CHECKING"),
    ]:
        with pytest.raises(ToolError, match=message):
            describe(Tool(function))  # type: ignore[arg-type]


def test_what_a_parameter_means_is_told_in_a_bounded_length() -> None:
    deep = {"type": "array", "items": {"type": "object", "properties": {"x": {"description": "y" * 100_000}}}}
    found = normal_form({"type": "object", "properties": {"a": {"description": "x" * 100_000}, "b": deep}})
    assert len(json.dumps(found)) < 5_000
    assert found["properties"]["a"]["description"].endswith("x…")


def test_foreign_schemas_get_the_normal_form_too() -> None:
    foreign = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Search",
        "type": "object",
        "additionalProperties": False,
        "definitions": {"Kind": {"title": "Kind", "enum": ["a", "b", None]}},
        "properties": {
            "title": {"type": ["string", "null"], "default": None, "title": "Title"},
            "kind": {"allOf": [{"$ref": "#/definitions/Kind"}], "description": "Which"},
            "one": {"oneOf": [{"const": 1}, {"type": "string"}], "discriminator": {"propertyName": "x"}},
        },
    }
    assert normal_form(foreign) == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "kind": {"type": "string", "description": "Which", "enum": ["a", "b"]},
            "one": {"anyOf": [{"enum": [1]}, {"type": "string"}]},
        },
    }
    with pytest.raises(ValueError, match="Other, which is not defined"):
        normal_form({"$ref": "#/$defs/Other"})


VALUES = st.fixed_dictionaries(
    {"path": st.text(max_size=3)},
    optional={
        "start_line": st.integers(-1, 3),
        "limit": st.integers(-1, 30) | st.sampled_from([2.5, True, "x", []]),
        "ratio": st.floats(-1, 1) | st.booleans(),
        "force": st.booleans() | st.sampled_from([0, 1, "on", 2.0]),
        "mode": st.sampled_from(["", "fast", "slow", "warp", 1]),
        "shade": st.sampled_from(["light", "dark", "grey"]),
        "tags": st.lists(st.text(max_size=2) | st.booleans(), max_size=2),
        "at": st.lists(st.integers(0, 3), min_size=2, max_size=4),
        "where": st.fixed_dictionaries({}, optional={"title": st.text(max_size=1), "x": st.integers(-1, 1)}),
        "extra": st.dictionaries(st.text(max_size=1), st.integers(0, 1) | st.text(max_size=1), max_size=1),
    },
)


@given(VALUES)
def test_what_the_schema_allows_is_accepted_and_what_it_forbids_is_refused(values: dict[str, Any]) -> None:
    """The model is judged by the schema it was shown; jsonschema is the independent judge."""
    allowed = jsonschema.Draft202012Validator(EVERYTHING_SCHEMA).is_valid(values)
    lenient = values.get("start_line") == 0 or any(
        isinstance(number, str) and number.isdecimal() for number in values.get("extra", {}).values()
    )
    try:
        validator(everything)(parse_arguments(json.dumps(values), describe(everything)))
    except ArgumentError:
        assert not allowed
    else:
        assert allowed or lenient


@pytest.mark.parametrize("described", [everything, order, shadows, nothing], ids=lambda tool: tool.name)
def test_the_example_call_is_valid(described: Tool) -> None:
    """I10: the correct call that errors show is accepted, with any of the parameters shown."""
    spec = describe(described)
    for name in ["", *spec.parameters["properties"]]:
        text = example_call(spec, [name] if name else [])
        values = json.loads(text.partition("(")[2][:-1])
        jsonschema.validate(values, dict(spec.parameters))
        validator(described)(values)


def test_reading_arguments_imports_no_pydantic() -> None:
    """A run that only streams text must not pay for pydantic."""
    code = "import sys, marvin_core.tools.arguments; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=150).returncode == 0
