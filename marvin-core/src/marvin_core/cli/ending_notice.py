"""The last notice of a non-interactive run: how it ended, how long it took, and what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from ..api.config import Config
from ..util.failures import told
from ..util.streams import StandardStreams
from .notices import Notices

_ENDS = {0: "is done", 1: "failed", 2: "was refused", 3: "reached its cost ceiling", 130: "was interrupted"}


def send_ending(
    config: Config, code: int, seconds: float, used: Mapping[str, object], streams: StandardStreams
) -> None:
    """Send the notice, within `timeouts.notice_end` seconds. Failures are printed, not raised."""
    try:
        asyncio.run(_send(config, ending_text(config, code, seconds, used), code, streams))
    except Exception as error:  # the result of the run must not depend on the notice
        streams.err(f"marvin: The final notification could not be sent: {told(error)}")


def ending_text(config: Config, code: int, seconds: float, used: Mapping[str, object]) -> str:
    """The text of the notification."""
    cost = used.get("session_cost")
    spent = f"{cost:.4f} USD" if isinstance(cost, float) else "cost unknown"
    how = _ENDS.get(code, "ended")
    return f"The run in {config.working_dir.name} {how}: exit code {code}, {seconds:.0f} s, {spent}."


async def _send(config: Config, text: str, code: int, streams: StandardStreams) -> None:
    notices = Notices(config, lambda line: streams.err(f"marvin: {line}"))
    notices.send(text, priority="default" if code == 0 else "high")
    await notices.aclose()
