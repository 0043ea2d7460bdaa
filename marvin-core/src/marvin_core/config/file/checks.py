"""Pydantic types for the values of config.yaml. Only a new or changed file is checked.

A check here gives its own error message (`refused`); errors of plain types are described by the schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    Strict,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_before_validator_function

from ...api.config import (
    Attention,
    ChatPreferences,
    EndpointSettings,
    McpSettings,
    Permissions,
    ShellHook,
    StatusPart,
)
from ...api.limits import Limits, Price, Telemetry
from ...api.record import Record
from ...api.timeouts import Timeouts
from ...util.numbers import amount
from ...util.patterns.hosts import HostList
from ...util.text import hint_at, to_json
from ..mcp_servers import problem_of
from ..tiers import ALIASES, TIERS
from .rules import rule_text
from .shell_hooks import HookProblem, checked_hooks

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler

_NETWORK_WORDS = ("none", "loopback", "all")


def refused(said: str, *below: str | int) -> PydanticCustomError:
    """The error of a rejected value, with this message. `below` is the path from the value to the wrong part."""
    return PydanticCustomError("said", "{said}", {"said": said, "below": below})


def _text(value: Any) -> Any:
    """Convert a number to a string: items of lists may be written as numbers, for example a port or a version."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _switch(value: Any) -> Any:
    return {"on": True, "off": False}.get(value, value) if isinstance(value, str) else value


def _tier(name: str) -> str:
    if name not in TIERS and name not in ALIASES:
        raise refused(f"there is no tier {name!r}. {hint_at(name, [*TIERS, *ALIASES])}")
    return name


def _amount(dollars: float) -> float:
    if amount(dollars) is None:
        raise refused(f"must be USD, from 0 on; found {dollars!r}")
    return dollars


def _variable(name: str) -> str:
    if not name.replace("_", "").isalnum():
        raise refused("this must be the name of the variable that holds the key, not the key itself")
    words = name.replace("_", "")
    if name and not (name.isupper() or (words.isalpha() and words.islower())):
        raise refused(f"{name[:4]}... does not look like a variable name, as in MY_KEY")
    return name


def _addresses(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Reject entries that cannot be hosts: they would silently allow nothing."""
    from ipaddress import ip_network

    for at, entry in enumerate(entries):
        host = entry.strip().strip("[]")
        if not host or any(mark in host for mark in " /:"):
            try:
                ip_network(host, strict=False)
            except ValueError:
                raise refused(
                    f"{entry!r} is not a host, an IP address or a network. Write it without scheme, port and path: "
                    "intranet.example, 127.0.0.1 or 10.1.0.0/16",
                    at,
                ) from None
    return entries


def _hosts(entries: tuple[str, ...]) -> tuple[str, ...]:
    for at, entry in enumerate(entries):
        try:
            HostList([entry])
        except ValueError as error:
            raise refused(str(error), at) from None
    return HostList(entries).entries()


def network_word(text: str) -> str:
    """The text, if it is a valid short form of `network:`; otherwise an error."""
    if text not in _NETWORK_WORDS:
        raise refused(
            f"must be none, loopback or all; found {to_json(text)}. To allow single hosts, write "
            "`hosts: [example.org]` below it"
        )
    return text


def _rule(entry: Any) -> str:
    try:
        return rule_text(entry)
    except ValueError as error:
        raise refused(str(error)) from None


def _hooks(value: Any) -> Any:
    try:
        return checked_hooks(value)
    except HookProblem as problem:
        raise refused(problem.said, *problem.below) from None


def _servers(entries: Mapping[str, Any]) -> Mapping[str, Any]:
    for name, entry in entries.items():
        if said := problem_of(name, entry):
            raise refused(said, name)
    return entries


def _collector(address: str) -> str:
    if address and not re.match(r"https?://[^/]", address):
        raise refused(f"{address!r:.80} is not an address such as http://localhost:4318")
    return address


def _once(entries: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entries))


class ShortForm:
    """A section with a short form: a string alone is the value of one of its keys.

    Args:
        key: this key.
        check: validates the string.
        otherwise: the value of the key if the section is a mapping; the key cannot be written there then.
        switch: whether the short form is `on` or `off`.
    """

    def __init__(
        self, key: str, check: Callable[[str], str] | None = None, otherwise: str = "", *, switch: bool = False
    ) -> None:
        self._key = key
        self._check = check
        self._otherwise = otherwise
        self._is_switch = switch

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_before_validator_function(self._mapping, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        whole = handler.resolve_ref_schema(handler(schema))
        keys = {name: one for name, one in whole["properties"].items() if not self._otherwise or name != self._key}
        alone = {"enum": ["on", "off"]} if self._is_switch else {"type": "string"}
        return {"anyOf": [alone, {**whole, "properties": keys}]}

    def _mapping(self, value: Any) -> Any:
        if self._is_switch and isinstance(value, str) and not isinstance(_switch(value), bool):
            return value  # refused as the section, which is the key that was written
        if isinstance(value, str):
            return {self._key: value if self._check is None else self._check(value)}
        if isinstance(value, bool) and self._is_switch:
            return {self._key: value}
        if self._otherwise and isinstance(value, dict):
            if self._key in value:
                raise PydanticCustomError("extra_forbidden", "no such key", {"below": (self._key,)})
            return {**value, self._key: self._otherwise}
        return value


Text: TypeAlias = Annotated[str, BeforeValidator(_text)]
Switch: TypeAlias = Annotated[bool, Strict(), BeforeValidator(_switch), WithJsonSchema({"enum": ["on", "off"]})]
TierName: TypeAlias = Annotated[str, AfterValidator(_tier)]
Seconds: TypeAlias = Annotated[float, Strict(), Field(ge=0)]
Count: TypeAlias = Annotated[int, Strict(), Field(ge=1)]
Dollars: TypeAlias = Annotated[float, Strict(), Field(ge=0), AfterValidator(_amount)]
VariableName: TypeAlias = Annotated[str, AfterValidator(_variable)]
Addresses: TypeAlias = Annotated[tuple[Text, ...], AfterValidator(_addresses)]
Hosts: TypeAlias = Annotated[tuple[Text, ...], AfterValidator(_hosts)]
Rule: TypeAlias = Annotated[str, PlainValidator(_rule), WithJsonSchema({})]
Servers: TypeAlias = Annotated[Mapping[str, McpSettings], AfterValidator(_servers)]
Hooks: TypeAlias = Annotated[
    Mapping[str, tuple[ShellHook, ...]],
    PlainValidator(_hooks),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "array"}}),
]

SCALARS: Mapping[type[Record], Mapping[type, Any]] = {
    Timeouts: {float: Seconds},
    Limits: {int: Count},
    Price: {float: Dollars},
    EndpointSettings: {int: Count},
    Telemetry: {int: Count},
}
"""The types of all numbers of a section. True and false are `on` and `off` everywhere."""
FIELDS: Mapping[type[Record], Mapping[str, Any]] = {
    ChatPreferences: {
        "status": Annotated[tuple[StatusPart, ...], AfterValidator(_once)],
        "attention": Annotated[tuple[Attention, ...], AfterValidator(_once)],
    },
    EndpointSettings: {"key": VariableName, "models": tuple[Text, ...], "headers": dict[str, Text]},
    McpSettings: {
        **dict.fromkeys(("args", "read_only"), tuple[Text, ...]),
        **dict.fromkeys(("env", "headers"), dict[str, Text]),
    },
    Permissions: dict.fromkeys(("allow", "ask", "deny"), tuple[Rule, ...]),
    Telemetry: {"endpoint": Annotated[str, AfterValidator(_collector)]},
}
"""The types of single fields of records in `api`, if they are stricter than the annotations there."""
