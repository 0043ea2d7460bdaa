"""Sessions that have hooks: a prompt, a call, and what was told of them."""

from __future__ import annotations

from marvin_core.api.events import Notice
from marvin_core.api.messages import ToolOutput
from tests.support.engine import Made, do, run


def prompt(made: Made, text: str = "go") -> str:
    """The answer to one prompt."""

    async def go() -> str:
        try:
            return (await made.session.submit(text)).text
        finally:
            await made.session.close()

    return run(go())


def marked(made: Made) -> ToolOutput:
    """The output of one call."""
    return do(made, ("mark", {"name": "x"}))[0]


def warnings(made: Made) -> str:
    """What was warned of, a line each."""
    return "\n".join(event.text for event in made.seen(Notice) if event.level == "warning")
