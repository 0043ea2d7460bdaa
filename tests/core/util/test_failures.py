"""How errors are told to people: ours and the system's in their own words, others with their type."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.api.messages import ToolCall
from marvin_core.api.session import Command, SessionControl
from marvin_core.sessions.export import arguments
from marvin_core.ui.typed_lines import Display, LineInterpreter
from marvin_core.util.failures import shown
from tests.support.engine import make, run, says


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (MarvinError("It is so. Do this."), "It is so. Do this."),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        (ValueError("five"), "ValueError: five"),
        (AssertionError(), "AssertionError"),
    ],
)
def test_an_error_is_told_in_one_way(error: Exception, text: str, tmp_path: Path) -> None:
    assert shown(error) == text
    seen: list[str] = []
    display = Display(text=seen.append, output=seen.append, error=seen.append, suggestion=seen.append)

    async def fail(session: SessionControl, words: str) -> str | None:
        raise error

    async def go() -> None:
        made = make(tmp_path, says("Fine."), argv=())
        made.session.commands = {"fail": Command(name="fail", help="fail", run=fail)}
        await LineInterpreter(made.session, display).run("/fail")
        await made.session.close()

    run(go())
    assert seen == [f"Error: {text}"]


@pytest.mark.parametrize("given", ["[" * 100_000, '{"a": ' * 200 + "1" + "}" * 200, "[" + "[]," * 600_000 + "1]", "{"])
def test_arguments_that_are_no_reasonable_json_are_shown_as_they_are(given: str) -> None:
    assert arguments(ToolCall(id="a", name="look", arguments=given)) == given
