"""The pydantic models of the sections of config.yaml, derived from their records."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, Strict, create_model

from ...api.record import Record
from ...util.schemas.normal_form import normal_form
from . import checks
from .sections import FileSettings

_STRICT = (int, float)


@cache
def file_model(*, described: bool = False) -> type[BaseModel]:
    """The model that checks all of config.yaml.

    Args:
        described: whether its schema has descriptions of the keys, which are read from the source code.
    """
    return model_of(FileSettings, described=described)


def model_of(kind: type[Record], *, described: bool = False) -> type[BaseModel]:
    """The model that checks a section: its only keys are the fields of the record.

    If the record has `rest`, all other keys are entries of the field with that name. `described` as in `file_model`.
    """
    rest = getattr(kind, "rest", "")
    hints, said = _hints(kind), meanings(kind) if described else {}
    fields: dict[str, Any] = {}
    for name, default in kind._defaults.items():
        if name != rest:
            annotation = _checked(_special(checks.FIELDS, kind).get(name, hints[name]), kind, described)
            fields[name] = (annotation, Field(default=_shown(default), description=said.get(name)))
    base: type[BaseModel] = _Closed
    if rest:
        entry = _checked(get_args(hints[rest])[1], kind, described)
        base = _open_to(Annotated[entry, Field(description=said.get(rest))])
    return create_model(kind.__name__, __base__=base, **fields)


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _open_to(entry: Any) -> type[BaseModel]:
    """A base class for models that accept any further key with a value of this type."""
    extra = {"__pydantic_extra__": dict[str, entry]}
    body = {"__annotations__": extra, "__module__": __name__, "model_config": ConfigDict(extra="allow")}
    return type("Open", (BaseModel,), body)


def _shown(default: Any) -> Any:
    """The default as the reference page shows it; None for a section, because its keys have their own defaults."""
    if isinstance(default, bool):
        return "on" if default else "off"
    return default if isinstance(default, (str, int, float, tuple)) else None


def _hints(kind: type[Record]) -> dict[str, Any]:
    """The types of the fields. Annotations may use the names in `checks` without importing them."""
    names = dict(vars(checks))
    for base in reversed(kind.__mro__):
        names |= vars(sys.modules[base.__module__])
    return get_type_hints(kind, names, names, include_extras=True)


def _special(table: Mapping[type[Record], Mapping[Any, Any]], kind: type[Record]) -> Mapping[Any, Any]:
    """The entry of a table for a record or one of its base classes."""
    return next((table[base] for base in kind.__mro__ if base in table), {})


def _checked(annotation: Any, kind: type[Record], described: bool) -> Any:
    """The type with which pydantic checks a field of this record."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        base, *rest = inside
        if any(isinstance(one, PlainValidator) for one in rest):
            return Annotated[(Any, *rest)]  # it converts the value itself
        return annotation if _is_scalar(base) else Annotated[(_checked(base, kind, described), *rest)]
    if origin in (Union, UnionType):
        (only,) = (each for each in inside if each is not NoneType)  # a value that is not set is left out of the file
        return _checked(only, kind, described)
    if origin is tuple:
        entry = _checked(inside[0], kind, described)
        return tuple[entry, ...]  # type: ignore[valid-type]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, value = (_checked(one, kind, described) for one in inside)
        return dict[key, value]  # type: ignore[valid-type]
    if annotation is bool:
        return checks.Switch
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return model_of(annotation, described=described)
    plain = Annotated[annotation, Strict()] if annotation in _STRICT else annotation
    return _special(checks.SCALARS, kind).get(annotation, plain) if isinstance(annotation, type) else annotation


def _is_scalar(kind: Any) -> bool:
    return kind in (bool, *_STRICT)


def meanings(kind: type[Record]) -> Mapping[str, str]:
    """The meanings of a record's fields: the string below each field in the source."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, Record) and base is not Record:
            (made,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
            found |= _below(made.body) if isinstance(made, ast.ClassDef) else {}
    return found


def _below(body: list[ast.stmt]) -> dict[str, str]:
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


@cache
def file_schema(*, described: bool = False) -> Mapping[str, Any]:
    """The JSON schema of config.yaml in Marvin's normal form; `described` as in `file_model`."""
    return normal_form(file_model(described=described).model_json_schema())
