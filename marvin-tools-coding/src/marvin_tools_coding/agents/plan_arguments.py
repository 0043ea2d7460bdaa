"""Maps calls of plan, as models trained with other programs write them, to our arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

PLAN_NAMES = {
    "steps": ("plan", "todos", "items", "tasks", "todo", "todo_list", "todoList", "list", "newTodos", "entries"),
    "done": ("completed", "finished", "done_count", "completed_steps"),
}
_STEP = re.compile(r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+)?(?:\[([ xX✓~>-]?)\]\s*)?")
"""The marker of a list item in Markdown."""
_MOST = 1_000
"""Steps that are parsed at most."""
_TEXTS = ("step", "content", "text", "title", "task", "description", "name", "subject")
_STATES = ("status", "state", "done", "completed", "checked")
_FINISHED = frozenset({"completed", "complete", "done", "finished", "closed", "true", "yes", "x", "✓"})


def plan_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of plan. Other programs give each step a status; finished steps are put first here."""
    steps = given.get("steps")
    if isinstance(steps, str):
        steps = [line for line in steps.splitlines() if line.strip()]
    if not isinstance(steps, list) or len(steps) > _MOST:
        return given
    read = [_read(step) for step in steps]
    if any(said is not None for _, said in read):
        read.sort(key=lambda pair: not pair[1])
        if given.get("done") is None:
            given["done"] = sum(bool(said) for _, said in read)
    given["steps"] = [text for text, _ in read]
    done = given.get("done")
    if isinstance(done, list):
        given["done"] = len(done)
    return given


def _read(step: Any) -> tuple[Any, bool | None]:
    """A step and whether it is finished, or None if that is not said. An invalid step is left to the validation."""
    if isinstance(step, dict):
        text = next((step[name] for name in _TEXTS if isinstance(step.get(name), str)), step)
        said = next((step[name] for name in _STATES if step.get(name) is not None), None)
        return text, None if said is None else str(said).lower() in _FINISHED
    found = _STEP.match(step) if isinstance(step, str) else None
    if found is None or not found.end():
        return step, None
    return step[found.end() :] or step, None if found[1] is None else found[1] in ("x", "X", "✓")
