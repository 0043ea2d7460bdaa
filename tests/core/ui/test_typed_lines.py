"""Typed lines: what `!COMMAND` shows, and what is asked before it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest

from marvin_core import Command, Hook, HookContext, SessionControl, ToolError, ToolResult, ToolSpec, tool
from marvin_core.api.session import CommandFunction
from marvin_core.tools.schema import describe
from marvin_core.ui.commands.core import core_commands
from marvin_core.ui.manual_calls import help_about
from marvin_core.ui.typed_lines import Display, LineInterpreter
from tests.support.engine import Made, make, run, says

TOLD = "(The model does not see this output. Write @! in a message to attach it.)"
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


def shown(made: Made, line: str, command: CommandFunction | None = None) -> list[str]:
    """What a chat shows for a line; `/fail` is the command, if there is one."""
    seen: list[str] = []
    display = Display(text=seen.append, output=seen.append, error=seen.append, suggestion=seen.append)

    async def go() -> None:
        made.session.toolbox.add(describe(shout, source="tests"), shout)
        if command is not None:
            made.session.commands = {"fail": Command(name="fail", help="fail", run=command)}
        await LineInterpreter(made.session, display).run(line)
        await made.session.close()

    run(go())
    return seen


def test_what_says_nothing_to_people_is_left_out(tmp_path: Path) -> None:
    assert shown(make(tmp_path, argv=(), specs=[]), "!hello") == ["HELLO", TOLD]


def test_what_a_hook_takes_out_is_not_shown(tmp_path: Path) -> None:
    assert shown(make(tmp_path, argv=(), specs=[], hooks=[Censor()]), "!my secret") == ["MY ***", TOLD]


def test_a_typed_command_is_not_asked_about(tmp_path: Path) -> None:
    assert shown(make(tmp_path, argv=(), specs=[], asker=refuse), "!hello") == ["HELLO", TOLD]


def test_a_call_by_hand_is_asked_about(tmp_path: Path) -> None:
    (told,) = shown(make(tmp_path, argv=(), specs=[], asker=refuse), "/shout command=hello")
    assert "the user said no" in told


class Leaving(ToolError):
    """Fails to say what is wrong."""

    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (RuntimeError("boom"), "Error: RuntimeError: boom"),
        (ToolError("It is too late."), "Error: It is too late."),
        (SystemExit(3), "Error: SystemExit: 3"),
        (KeyboardInterrupt(), "Error: KeyboardInterrupt"),
        (GeneratorExit(), "Error: GeneratorExit"),
        (asyncio.CancelledError(), "Error: CancelledError"),
        (Leaving("x"), "Error: Leaving (its text cannot be shown)"),
    ],
)
def test_whatever_a_command_raises_a_chat_goes_on(tmp_path: Path, raised: BaseException, told: str) -> None:
    async def fail(session: SessionControl, words: str) -> None:
        raise raised

    assert shown(make(tmp_path, argv=(), specs=[]), "/fail", fail) == [told]


def test_a_command_that_returns_no_text_is_shown_all_the_same(tmp_path: Path) -> None:
    async def count(session: SessionControl, words: str) -> Any:
        return 7

    assert shown(make(tmp_path, argv=(), specs=[]), "/fail", count) == ["7"]


# --- what is meant for a shell, and names that a command and a tool share --------------------------------------------


@pytest.mark.parametrize("line", ["marvin providers", "`marvin doctor`", "./marvin config show", "marvin login x"])
def test_a_command_for_a_shell_is_not_sent_to_a_model(tmp_path: Path, line: str) -> None:
    made = make(tmp_path, argv=(), specs=[])
    (told,) = shown(made, line)
    assert f"!{line} runs it here" in told
    assert made.provider is not None
    assert made.provider.requests == []


@pytest.mark.parametrize("line", ["marvin", "marvin tools are great, which of them do you like?", "doctor who"])
def test_a_request_that_begins_like_one_is_sent(tmp_path: Path, line: str) -> None:
    made = make(tmp_path, says("Hm."), argv=(), specs=[])
    shown(made, line)
    assert made.provider is not None
    assert made.provider.requests[0].messages[-1].text == line


@tool(access=["read"])
async def tree(max_depth: Annotated[int, "How deep"] = 2) -> str:
    """Show folders."""
    return f"{max_depth} deep"


def sharing(tmp_path: Path) -> Made:
    """A session with a command and a tool of one name."""
    made = make(tmp_path, argv=(), specs=[])
    made.session.commands = {command.name: command for command in core_commands()}
    made.session.toolbox.add(describe(tree, source="tests"), tree)
    return made


def test_a_name_that_a_command_and_a_tool_share_means_what_its_words_fit(tmp_path: Path) -> None:
    assert shown(sharing(tmp_path), "/tree max_depth=1") == ["1 deep"]
    again = sharing(tmp_path)
    (told,) = shown(again, "/tree 1")
    assert "This session is not on disk yet" in told
    assert shown(sharing(tmp_path), "/tool tree") == ["2 deep"]
    assert shown(sharing(tmp_path), "/tool tree max_depth=3") == ["3 deep"]
    assert "Unknown command or tool 'nothing'" in shown(sharing(tmp_path), "/tool nothing")[0]
    told = help_about(again.session, "tree")
    assert "/tree [NUMBER]" in told
    assert "Example: /tree" in told


def test_no_suggestion_is_said_twice(tmp_path: Path) -> None:
    (told,) = shown(sharing(tmp_path), "/tre")
    assert told.count("'tree'") == 1
