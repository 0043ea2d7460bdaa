"""Typed lines: what `!COMMAND` shows, and what is asked before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from marvin_core import Hook, HookContext, ToolResult, ToolSpec, tool
from marvin_core.tools.schema import describe
from marvin_core.ui.typed_lines import Display, LineInterpreter
from tests.support.engine import Made, make, run

ASIDE = "\n[exit code 0]"


@tool(access=["exec"], confirm=True, typed="!")
async def shout(command: Annotated[str, "What to shout"]) -> ToolResult:
    """Shout something."""
    return ToolResult(content=f"{command.upper()}{ASIDE}", details={"aside": ASIDE})


class Censor(Hook):
    """Takes a word out of each result."""

    async def after_tool(
        self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult
    ) -> ToolResult:
        assert isinstance(result.content, str)
        return result.replace(content=result.content.replace("SECRET", "***"))


async def refuse(question: str, choices: Sequence[str]) -> str:
    """Somebody who says no to everything."""
    return choices[-1]


def shown(made: Made, line: str) -> list[str]:
    """What a chat shows for a line."""
    seen: list[str] = []
    display = Display(text=seen.append, output=seen.append, error=seen.append, suggestion=seen.append)

    async def go() -> None:
        made.session.toolbox.add(describe(shout, source="tests"), shout)
        await LineInterpreter(made.session, display).run(line)
        await made.session.close()

    run(go())
    return seen


def test_what_says_nothing_to_people_is_left_out(tmp_path: Path) -> None:
    assert shown(make(tmp_path, argv=(), specs=[]), "!hello") == ["HELLO"]


def test_what_a_hook_takes_out_is_not_shown(tmp_path: Path) -> None:
    assert shown(make(tmp_path, argv=(), specs=[], hooks=[Censor()]), "!my secret") == ["MY ***"]


def test_a_typed_command_is_not_asked_about(tmp_path: Path) -> None:
    assert shown(make(tmp_path, argv=(), specs=[], asker=refuse), "!hello") == ["HELLO"]


def test_a_call_by_hand_is_asked_about(tmp_path: Path) -> None:
    (told,) = shown(make(tmp_path, argv=(), specs=[], asker=refuse), "/shout command=hello")
    assert "the answer was no" in told
