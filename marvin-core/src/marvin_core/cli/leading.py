"""The interface for a sub-command that leads a non-interactive run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..api.config import Config
from ..api.errors import MarvinError
from ..api.messages import Usage
from ..api.session import SessionControl, TurnResult
from ..engine.session import Session
from ..util.streams import StandardStreams
from ..util.threads import in_thread

if TYPE_CHECKING:
    from ..api.tool_context import Clock
    from ..api.ui import Lead
    from .notices import Notices


class LedRun:
    """The `RunControl` of one run."""

    def __init__(self, config: Config, session: Session, streams: StandardStreams) -> None:
        self.config = config
        self._session = session
        self._streams = streams
        self._notices: Notices | None = None

    @property
    def session(self) -> SessionControl:
        """The session."""
        return self._session

    @property
    def clock(self) -> Clock:
        """The clock of the session."""
        return self._session.parts.clock

    @property
    def model_flags(self) -> Sequence[str]:
        """Flags that give another Marvin process the provider and the models of this run."""
        from ..engine.agents.command_line import tier_flags

        config = self.config
        named = (("provider", config.provider, config.provider_from), ("model", config.model, config.model_from))
        return [*(f"--{name}={value}" for name, value, origin in named if origin == "flag"), *tier_flags(config)]

    async def prompt(self, *, required: bool = True) -> str:
        """The prompt from a flag, a file or arguments, else from standard input; empty if there is none.

        Known secrets are removed, since the sub-command may store the prompt.
        """
        from .prompt_input import read_prompt, read_what_came

        config, streams = self.config, self._streams
        read = read_prompt
        if config.prompt is None and config.prompt_file is None:
            if config.lifeline or streams.stdin_is_terminal():
                return ""
            read = read_prompt if required else read_what_came
        clean = self._session.parts.redactor.text
        return clean(await in_thread(lambda: read(config, streams)))

    async def price(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """The cost of these tokens for a tier or a model, in USD; None if the price is unknown."""
        parts = self._session.parts
        used = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        current = parts.model.provider if parts.model.configured else None

        def found() -> float | None:
            known = parts.setup.models.for_agent(model, current)
            return parts.meter.price(known.provider, known.model, used)

        try:
            return await in_thread(found)
        except MarvinError:  # the agent itself reports the problem with the model
            return None

    def count(self, cost_line: str) -> float | None:
        """Add the usage of a Marvin process that this run started. Returns its cost in USD; None if it is unknown."""
        from ..engine.agents.stream import used_by

        used = used_by(cost_line.encode("utf-8", "replace"))
        if used is None:
            return None
        self._session.parts.meter.add_agent(used)
        costs = [model.cost for model in used.values()]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def warn(self, text: str) -> None:
        """Report a line on standard error, and as an event if events are written."""
        self._session.parts.bus.tell(text)

    def notify(self, text: str, *, title: str = "", priority: str = "default") -> None:
        """Send a notice to the topic of --ntfy, if one is set. Returns at once."""
        if not self.config.ntfy:
            return
        if self._notices is None:
            from .notices import Notices

            self._notices = Notices(self.config, self.warn)
        clean = self._session.parts.redactor.text
        self._notices.send(clean(text), clean(title), priority)

    async def work(self, lead: Lead) -> TurnResult:
        """Let the sub-command lead the run to its end."""
        try:
            result = await lead(self)
            return result.replace(text=self._session.parts.redactor.text(result.text))
        finally:
            if self._notices is not None:
                await self._notices.aclose()
