"""Calls that take others back."""

from __future__ import annotations

import pytest

from marvin_core import Call, ToolContext, ToolError, call_of, tool


@tool(access=["write"])
async def stop_bell(name: str, loud: bool = False, *, context: ToolContext) -> str:
    """Stop a bell."""
    return name


def test_a_call_names_the_tool_and_its_arguments() -> None:
    assert call_of(stop_bell, name="x") == Call(name="stop_bell", arguments={"name": "x"})


@pytest.mark.parametrize("arguments", [{}, {"nmae": "x"}, {"name": "x", "more": 1}, {"name": "x", "context": 1}])
def test_a_call_that_the_tool_does_not_take_is_none(arguments: dict[str, object]) -> None:
    with pytest.raises(ToolError, match="stop_bell cannot be called like this"):
        call_of(stop_bell, **arguments)
