"""Every tool of an installed pack is the one that the contract (tools.json) describes.

A tool of the contract that no pack has yet is left out; a tool that the contract does not know fails.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from marvin_core import Tool, ToolGroup, ToolSpec
from marvin_core.tools.schema import describe

CONTRACT: dict[str, dict[str, Any]] = {
    tool["name"]: tool for tool in json.loads(Path(__file__).with_name("tools.json").read_text())["tools"]
}
OWN_DISTRIBUTIONS = {tool["distribution"] for tool in CONTRACT.values()}
# Tools that Marvin's own packs have beyond the contract ("at least these"), each with its reason.
BEYOND_THE_CONTRACT: frozenset[str] = frozenset()

SCHEMA_TYPES: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list[str]": {"type": "array", "items": {"type": "string"}},
    "list[float]": {"type": "array", "items": {"type": "number"}},
}
# The contract's note says that 0 is open, so a line number may also be declared from 0 on.
LINE_NUMBERS = {"start_line", "end_line"}
LIMITS = ("minimum", "maximum", "minLength", "minItems", "maxItems", "enum")


def installed() -> Iterator[ToolSpec]:
    """The tools of Marvin's own installed packs, found as Marvin finds them."""
    for entry in entry_points(group="marvin"):
        if entry.dist is None or entry.dist.name not in OWN_DISTRIBUTIONS:
            continue
        registered: Iterable[Tool | ToolGroup] = getattr(entry.load(), "marvin_register_tools", list)()
        for item in registered:
            if isinstance(item, Tool):
                yield describe(item, source=entry.dist.name)
                continue
            module = importlib.import_module(item.module, entry.module.rpartition(".")[0])
            tools = {value.name: value for value in vars(module).values() if isinstance(value, Tool)}
            for name in item.tools:
                yield describe(tools[name], source=entry.dist.name, group=item.name)


class Limits(NamedTuple):
    """What `allowed` of the contract means for the parameter, and for the items of a list."""

    own: dict[str, Any]
    items: dict[str, Any]


def limits(kind: str, allowed: str) -> Limits:
    """The limits that `allowed` states; what it says in prose states none."""
    low, high = ("minItems", "maxItems") if kind.startswith("list") else ("minimum", "maximum")
    if allowed == "non-empty":
        return Limits({"minLength": 1}, {})
    if found := re.fullmatch(r"(-?[\d.]+?)\.\.(-?[\d.]+)", allowed):
        return Limits({low: json.loads(found[1]), high: json.loads(found[2])}, {})
    if found := re.fullmatch(r"(>=|<=)(-?[\d.]+)", allowed):
        return Limits({low if found[1] == ">=" else high: json.loads(found[2])}, {})
    if found := re.fullmatch(r"(\d)(?: or (\d))? numbers(?:, (\d)\.\.(\d))?", allowed):
        items = {"minimum": int(found[3]), "maximum": int(found[4])} if found[3] else {}
        return Limits({"minItems": int(found[1]), "maxItems": int(found[2] or found[1])}, items)
    if "|" in allowed and re.fullmatch(r"[\w|]*", allowed):
        return Limits({"enum": allowed.split("|")}, {})
    return Limits({}, {})


def differences(spec: ToolSpec, contract: dict[str, Any]) -> list[str]:
    """What differs between a tool and its contract, one line each."""
    promised = {parameter["name"]: parameter for parameter in contract["params"]}
    properties = spec.parameters["properties"]
    required = set(spec.parameters.get("required", ()))
    found = [
        f"{what}: is {is_}, should be {should}"
        for what, is_, should in [
            ("distribution", spec.source, contract["distribution"]),
            ("group", spec.group, contract["group"]),
            ("access", sorted(spec.access), sorted(contract["access"])),
            ("parameters", list(properties), list(promised)),
            ("required", required, {name for name, parameter in promised.items() if parameter["required"]}),
        ]
        if is_ != should
    ]
    for name in properties.keys() & promised.keys():
        found += [f"{name}: {line}" for line in parameter_differences(properties[name], promised[name])]
    return found


def parameter_differences(schema: dict[str, Any], promised: dict[str, Any]) -> list[str]:
    kind = promised["type"]
    own, items = limits(kind, promised.get("allowed", ""))
    # In the normal form a default of null is no default.
    default = {} if promised.get("default") is None else {"default": promised["default"]}
    should = {**SCHEMA_TYPES[kind], **default, **own}
    if "items" in should:
        should["items"] = {**should["items"], **items}
    if promised["name"] in LINE_NUMBERS and schema.get("minimum") == 0:
        should["minimum"] = 0
    relevant = ("type", "items", "default", *LIMITS)
    is_ = {key: schema[key] for key in relevant if key in schema}
    if "enum" in is_ and "enum" in should:
        is_["enum"], should["enum"] = set(is_["enum"]), set(should["enum"])
    return [] if is_ == should else [f"is {is_}, should be {should}"]


def test_installed_tools_are_those_of_the_contract() -> None:
    specs = list(installed())
    found = {spec.name: spec for spec in specs}
    assert len(found) == len(specs), "two tools share a name"
    unknown = found.keys() - CONTRACT.keys() - BEYOND_THE_CONTRACT
    assert not unknown, f"not in tools.json: {sorted(unknown)}"
    wrong = {
        name: lines for name, spec in found.items() if name in CONTRACT and (lines := differences(spec, CONTRACT[name]))
    }
    assert not wrong, "\n".join(f"{name}: {line}" for name, lines in wrong.items() for line in lines)


@pytest.mark.parametrize("name", CONTRACT)
def test_the_contract_can_be_checked(name: str) -> None:
    """Every parameter of the contract has a known type, and states limits that this file understands."""
    for parameter in CONTRACT[name]["params"]:
        assert parameter["type"] in SCHEMA_TYPES
        assert parameter["required"] != ("default" in parameter)
        stated = limits(parameter["type"], parameter.get("allowed", ""))
        if re.search(r"\d\.\.|[<>]=|numbers", parameter.get("allowed", "")):
            assert stated.own, parameter


@pytest.mark.parametrize(
    ("kind", "allowed", "own", "items"),
    [
        ("int", "1..200", {"minimum": 1, "maximum": 200}, {}),
        ("int", ">=1", {"minimum": 1}, {}),
        ("float", "<=50000", {"maximum": 50000}, {}),
        ("list[str]", "1..50", {"minItems": 1, "maxItems": 50}, {}),
        ("list[float]", "3 numbers", {"minItems": 3, "maxItems": 3}, {}),
        ("list[float]", "3 or 4 numbers, 0..1", {"minItems": 3, "maxItems": 4}, {"minimum": 0, "maximum": 1}),
        ("str", "|d|w", {"enum": ["", "d", "w"]}, {}),
        ("str", "set|add", {"enum": ["set", "add"]}, {}),
        ("str", "non-empty", {"minLength": 1}, {}),
        ("str", "commit, branch or A..B", {}, {}),
        ("str", "all|backend or a glob", {}, {}),
    ],
)
def test_limits_are_read(kind: str, allowed: str, own: dict[str, Any], items: dict[str, Any]) -> None:
    assert limits(kind, allowed) == (own, items)


def test_every_parameter_is_described() -> None:
    undescribed = [
        f"{spec.name}: {name}"
        for spec in installed()
        for name, schema in spec.parameters.get("properties", {}).items()
        if not schema.get("description")
    ]
    assert undescribed == []


def test_a_wrong_tool_would_be_noticed() -> None:
    contract = CONTRACT["code_grep"]
    properties = {
        parameter["name"]: {
            **SCHEMA_TYPES[parameter["type"]],
            **({} if parameter["required"] else {"default": parameter["default"]}),
            **limits(parameter["type"], parameter.get("allowed", "")).own,
        }
        for parameter in contract["params"]
    }
    right = ToolSpec(
        name="code_grep",
        description="Search.",
        parameters={"type": "object", "properties": properties, "required": ["pattern"]},
        access=frozenset({"read"}),
        group="files",
        source="marvin-tools-coding",
    )
    assert differences(right, contract) == []
    for wrong in (
        right.replace(group="git"),
        right.replace(access=frozenset({"write"})),
        right.replace(source="elsewhere"),
        right.replace(parameters={**right.parameters, "required": []}),
        right.replace(parameters={**right.parameters, "properties": {"pattern": {"type": "string"}}}),
        *(
            right.replace(parameters={**right.parameters, "properties": {**properties, "max_results": schema}})
            for schema in (
                {"type": "number", "default": 20, "minimum": 1, "maximum": 500},
                {"type": "integer", "default": 21, "minimum": 1, "maximum": 500},
                {"type": "integer", "default": 20, "minimum": 1},
                {"type": "integer", "minimum": 1, "maximum": 500},
            )
        ),
    ):
        assert len(differences(wrong, contract)) == 1
