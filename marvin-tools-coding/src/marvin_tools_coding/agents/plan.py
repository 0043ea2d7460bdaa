"""The tool plan: the steps of a session and its progress through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from marvin_core import Table, ToolError, ToolResult, one_line, tool

from ..adapters import IGNORED
from .plan_arguments import PLAN_NAMES, plan_arguments

_MOST = 50
"""Steps of a plan at most."""
_LONGEST = 150
"""Characters of a step at most."""
_LOOKED_AT = 5_000
"""Characters of a step that are examined; longer steps are cut there."""


@tool(
    known_as=["todowrite", "todoread", "todo_write", "update_plan", "write_todos"],
    access=["state"],
    group="agents",
    aliases=PLAN_NAMES,
    ignores=IGNORED,
    adapt=plan_arguments,
)
async def plan(
    steps: Annotated[list[str], "All of them"],
    done: Annotated[int, "How many are done"] = 0,
) -> ToolResult:
    """Show a plan of longer work, again after each step."""
    if len(steps) > _MOST:
        raise ToolError(
            f"The plan was not changed: {len(steps):,} steps are too many. Give at most {_MOST}: combine small steps, "
            "and plan distant ones later."
        )
    whole = [one_line(step[:_LOOKED_AT]) for step in steps]
    shown = [one_line(step, _LONGEST) for step in whole]
    _check(shown, done)
    if not shown:
        return ToolResult(content="The plan is empty now.", details={"steps": [], "done": 0})
    marks = ["[x]" if number < done else "[ ]" for number in range(len(shown))]
    title = f"Plan: {done} of {len(shown)} done"
    lines = [f"{mark} {step}" for mark, step in zip(marks, shown, strict=True)]
    return ToolResult(
        content=_told(shown, done, cut=shown != whole),
        details={"steps": shown, "done": done},
        show=[Table(columns=("", ""), rows=[*zip(marks, shown, strict=True)], title=title)],
        lasting="" if done == len(shown) else "\n".join([title, *lines]),
    )


def _check(steps: Sequence[str], done: int) -> None:
    """Raise `ToolError` for an invalid plan."""
    empty = [number for number, step in enumerate(steps, 1) if not step]
    if empty:
        raise ToolError(f"The plan was not changed: step {empty[0]} is empty. Describe the step, or leave it out.")
    if not 0 <= done <= len(steps):
        raise ToolError(
            f"The plan was not changed: done is {done}, but there are {len(steps)} steps. Give all steps, finished "
            f"ones first, and set done to the number of finished steps: 0 to {len(steps)}."
        )


def _told(steps: Sequence[str], done: int, *, cut: bool) -> str:
    """What the model reads. It knows the steps, so only the next one is named."""
    next_one = f"Next: {steps[done]}" if done < len(steps) else "All steps are done."
    note = f"\n(Steps were cut to {_LONGEST} characters.)" if cut else ""
    return f"{done} of {len(steps)} done. {next_one}{note}"
