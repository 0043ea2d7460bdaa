"""Cargo's messages about tests that do not compile. Stable Cargo has no report of the tests that run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..records import TestResult
from .reading import ReadReport, result_of


def build_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """The command that compiles the tests of another one, and reports errors as JSON lines."""
    kept = list(argv[: list(argv).index("--")] if "--" in argv else argv)
    return (*kept, "--no-run", "--message-format=json")


def read_cargo(output: bytes, root: Path, folder: str) -> ReadReport:
    """The targets that do not compile (https://doc.rust-lang.org/cargo/reference/external-tools.html#json-messages).

    Args:
        root: the project's folder.
        folder: the one in which Cargo was run, relative to it.
    """
    found: dict[str, TestResult] = {}
    ended = False
    for line in output.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue  # Cargo prints progress for people between the lines
        if not isinstance(value, dict):
            continue
        ended = ended or value.get("reason") == "build-finished"
        told = _error(value, str(root / folder))
        if told and told["file"] not in found and (result := result_of(told, folder)):
            found[told["file"]] = result
    return ReadReport(results=tuple(found.values()), fault="" if ended else "Cargo did not finish its build.")


def _error(value: Mapping[str, Any], folder: str) -> Mapping[str, str] | None:
    """The file of a target and the error, if a message is an error with a location."""
    message, target = value.get("message"), value.get("target")
    if value.get("reason") != "compiler-message" or not isinstance(message, dict) or not isinstance(target, dict):
        return None
    spans = message.get("spans")
    span = next((one for one in spans if isinstance(one, dict)), None) if isinstance(spans, list) else None
    if message.get("level") != "error" or span is None:
        return None
    code = message.get("code")
    file = os.path.relpath(str(target.get("src_path", "")), folder)
    return {
        "name": file,
        "file": file,
        "outcome": "error",
        "cause": str(code.get("code", "")) if isinstance(code, dict) else "SyntaxError",
        "missing": _first_segment(span),
        "message": str(message.get("message", "")),
        "origin": str(span.get("file_name", "")),
    }


def _first_segment(span: Mapping[str, Any]) -> str:
    """The first part of the path that an error marks, such as `adder` of `adder::core::add`."""
    lines = span.get("text")
    line = lines[0] if isinstance(lines, list) and lines and isinstance(lines[0], dict) else {}
    text, begin, end = line.get("text"), line.get("highlight_start"), line.get("highlight_end")
    if not isinstance(text, str) or not isinstance(begin, int) or not isinstance(end, int):
        return ""
    start = max(begin - 1, 0)
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_:"):
        start -= 1
    return text[start : max(end - 1, 0)].partition("::")[0].strip()
