"""The JSON schema of the final answer of a run, from the file of --output-schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..api.errors import UsageError


def read_schema(path: Path) -> Mapping[str, Any]:
    """Read the schema from a file.

    Raises:
        UsageError: the file cannot be read, is not JSON, or is not a valid JSON schema.
    """
    place = f"--output-schema {path}"
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{place} cannot be read: {error.strerror}. Name a file with a JSON schema.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place} is not JSON: {error}. Correct it.") from error
    if not isinstance(schema, dict):
        raise UsageError(f'{place} must hold a JSON schema, which is an object such as {{"type": "object"}}.')
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise UsageError(
            f"{place} is not a valid JSON schema: {error.json_path}: {error.message}. Correct it."
        ) from error
    return schema
