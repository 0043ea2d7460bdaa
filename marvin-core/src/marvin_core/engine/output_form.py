"""Validation of a run's last answer: one JSON value that fits a schema (`--output-schema`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from ..api.errors import OutputMismatch
from ..util.text import cut

ASKED = """\
# The form of your last answer
When the work is done, answer with one JSON value that matches this JSON schema, and with nothing before or after it:
{schema}"""
AGAIN = "Your answer does not match the schema: {problem} Answer again, with the JSON value alone."
_PROBLEMS = 5
_SHOWN = 200
"""The maximum length of a quotation in an error, in characters."""


class OutputForm:
    """Parses and validates answers."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    def read(self, text: str) -> str:
        """The JSON value of an answer, on one line.

        Raises:
            OutputMismatch: the answer is not JSON, or does not fit; the text says what is wrong.
        """
        from ..tools.json_repair import unfence

        try:
            value = json.loads(unfence(text), parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise OutputMismatch(f"it is not JSON ({error}): {cut(text.strip(), _SHOWN)!r}.") from None
        problems = list(islice(self._problems(value), _PROBLEMS))
        if problems:
            raise OutputMismatch(f"{'; '.join(problems)}.")
        return json.dumps(value, ensure_ascii=False)

    def _problems(self, value: Any) -> Any:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import validator_for

        kind = validator_for(self._schema, default=Draft202012Validator)
        for error in kind(self._schema).iter_errors(value):
            yield f"{error.json_path}: {cut(error.message, _SHOWN)}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")
