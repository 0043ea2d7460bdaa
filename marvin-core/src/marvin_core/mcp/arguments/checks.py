"""Validates arguments against a server's schema, in bounded time.

Parts that are too slow to check, or unbounded, are left to the server, which validates its arguments itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from ...util.text import cut, to_json
from .plain import accepting

Keyword = Callable[[Any, Any, Any, Any], "Iterable[ValidationError] | None"]

_PROBLEMS = 10
_PROBLEM_SHOWN = 300
_CHECKED = 1_000_000
"""The maximum length of arguments that are validated here, in characters."""
_PATIENCE = 0.3
"""The maximum CPU time of a validation, in seconds."""
_PATIENCE_FOR_SCHEMA = 1.0
"""The maximum CPU time for the validation of the schema itself, in seconds."""
_DEEPEST = 100
"""The maximum depth of nested keywords, below Python's own limit: beyond that, `referencing` panics."""
_COMPARED = 1_000
"""The maximum length of lists whose elements are compared with each other."""
_UNSURE = ("not", "oneOf", "if", "contains")
"""Keywords that may reject data because a nested schema accepts it: all of that schema must be checked."""


class _Stop(Exception):
    """Ends a validation, and leaves the rest to the server."""


class _Run:
    """The state of one validation: its deadline, its depth, and the number of surrounding `_UNSURE` keywords."""

    def __init__(self, patience: float) -> None:
        self.end = time.thread_time() + patience
        self.depth = 0
        self.unsure = 0


_RUN: ContextVar[_Run] = ContextVar("run")


class Check:
    """Validates arguments against a schema, without network access."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        found, whole = _problems(_BOUNDED(Draft202012Validator.META_SCHEMA), schema, 1, _PATIENCE_FOR_SCHEMA)
        # If the schema is unusable, the server alone decides.
        self._validator = _BOUNDED(schema, registry=Registry()) if whole and not found else None
        self._accepts = None if self._validator is None else accepting(schema)

    def problems(self, values: Any) -> Sequence[str]:
        """The errors that are found within the time limit; at most ten."""
        if self._validator is None or (self._accepts is not None and self._accepts(values)):
            return ()
        if len(to_json(values)) > _CHECKED:
            return ()
        return _problems(self._validator, values, _PROBLEMS, _PATIENCE)[0]


def _problems(validator: Any, values: Any, most: int, patience: float) -> tuple[Sequence[str], bool]:
    """The errors, and whether the validation was completed; errors before an abort are valid."""
    found: list[str] = []
    ours = _RUN.set(_Run(patience))
    try:
        for error in validator.iter_errors(values):
            found.append(_told(error))
            if len(found) == most:
                break
    except (_Stop, RecursionError, ArithmeticError, Unresolvable):
        return found, False
    finally:
        _RUN.reset(ours)
    return found, True


def _timed(keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        run = _RUN.get()
        if run.depth >= _DEEPEST or time.thread_time() > run.end:
            raise _Stop
        run.depth += 1
        try:
            yield from keyword(validator, value, instance, schema) or ()
        finally:
            run.depth -= 1

    return check


def _unsure(keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        run = _RUN.get()
        run.unsure += 1
        try:
            found = list(keyword(validator, value, instance, schema) or ())
        finally:
            run.unsure -= 1
        yield from found

    return check


def _left_to_server(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
    """Accept anything. If that could make the surrounding schema reject valid data, the check ends."""
    if _RUN.get().unsure:
        raise _Stop
    return ()


def _unless(slow: Callable[[Any, Any], bool], keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[ValidationError] | None:
        chosen = _left_to_server if slow(instance, schema) else keyword
        return chosen(validator, value, instance, schema)

    return check


def _bounded() -> Any:
    """The validator. It skips a server's regular expressions: one may take years, and `re` cannot be interrupted."""
    keywords: dict[str, Keyword] = dict(Draft202012Validator.VALIDATORS)
    own: dict[str, Keyword] = {
        "pattern": _unless(lambda instance, _: isinstance(instance, str), lambda *_: ()),
        "patternProperties": _left_to_server,
        "unevaluatedItems": _left_to_server,
        "unevaluatedProperties": _left_to_server,
        "additionalProperties": _unless(
            lambda _, schema: "patternProperties" in schema, keywords["additionalProperties"]
        ),
        "uniqueItems": _unless(
            lambda instance, _: isinstance(instance, list) and len(instance) > _COMPARED, keywords["uniqueItems"]
        ),
        **{name: _unsure(keywords[name]) for name in _UNSURE},
    }
    extended: Callable[..., Any] = extend  # it has no annotations
    made = extended(Draft202012Validator, {name: _timed(check) for name, check in {**keywords, **own}.items()})
    evolved = made.evolve

    def evolve(self: Any, **changes: Any) -> Any:
        # With `$schema`, a nested schema could select another validator, which has no limits.
        schema = changes.get("schema")
        if isinstance(schema, Mapping) and "$schema" in schema:
            changes["schema"] = {key: value for key, value in schema.items() if key != "$schema"}
        return evolved(self, **changes)

    made.evolve = evolve
    return made


_BOUNDED = _bounded()


def _told(error: ValidationError) -> str:
    where = error.json_path.removeprefix("$.").removeprefix("$")
    return cut(f"{where}: {error.message}" if where else error.message, _PROBLEM_SHOWN)
