"""Non-interactive runs of one prompt or of a leading sub-command. MARVIN_COST is always their last line."""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, NoReturn

from ..api.config import Config, OutputFormat
from ..api.errors import EXIT_INTERRUPTED, ConfigError, MarvinError
from ..api.messages import Usage
from ..config.secrets import Secrets
from ..ui.report import cost_line, result_line
from ..util.failures import told
from ..util.signals import ending
from ..util.streams import StandardStreams, keep_stdout, silence_packs
from ..util.watchdog import owner_of

if TYPE_CHECKING:
    from ..api.session import TurnResult
    from ..api.ui import Lead
    from ..app import App
    from ..engine.session import Session

_NOTHING_USED = {"session_cost": 0.0, "llm_turns": 0, "model_turns": {}, "model_cost": {}}


class Unattended:
    """A non-interactive run."""

    def __init__(self, config: Config, streams: StandardStreams) -> None:
        self._config = config
        self._streams = streams
        self._app: App | None = None

    def run(self, body: Callable[[], int]) -> int:
        """Call `body`; returns the exit code. From here on MARVIN_COST is the last line of standard error."""
        config, streams, numbers, begun = self._config, self._streams, ending(), time.monotonic()
        code = 1
        keep_stdout(streams, owner_of)
        try:
            for number in numbers:
                signal.signal(number, lambda *_: _leave(streams))
            if config.lifeline:
                from .lifeline import end_with_parent

                end_with_parent(config.lifeline, config.timeouts)
            code = body()
        except MarvinError as error:
            code = _failed(streams, config.output_format, str(error), error.exit_code)
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # the last line must be printed after any error
            code = _failed(streams, config.output_format, f"internal error: {told(error)}", 1)
        finally:
            for number in numbers:
                signal.signal(number, signal.SIG_IGN)  # only the last line is left
            self._end(code, time.monotonic() - begun)
        return code

    def session(self, app: App) -> Session:
        """The session of the run. Raises `ConfigError` if no model is configured."""
        self._app = app
        if app.choice.endpoint is None:
            raise ConfigError(app.choice.how_to)
        return app.session(asker=None, interactive=False)

    def lead(self, app: App, work: Lead) -> int:
        """Let a sub-command lead the session; returns the exit code."""
        from ..ui.headless import Headless
        from .leading import LedRun

        config, streams = self._config, self._streams
        led, traces = LedRun(config, self.session(app), streams), app.telemetry

        def lead() -> Awaitable[TurnResult]:
            return led.work(work) if traces is None else traces.lead(lambda: led.work(work))

        return Headless(streams, config.output_format, app.meter).run(led.session, None, lead)

    def _end(self, code: int, seconds: float) -> None:
        app, streams = self._app, self._streams
        if app is not None:
            app.save_usage()
        used = _NOTHING_USED if app is None else _summary(app)
        if self._config.ntfy:
            from .ending_notice import send_ending

            send_ending(self._config, code, seconds, used, streams)
        silence_packs()
        streams.err(cost_line(used))


def run_prompt(config: Config, secrets: Secrets, streams: StandardStreams) -> int:
    """Run one prompt; returns the exit code."""
    run = Unattended(config, streams)

    def body() -> int:
        from .prompt_input import read_prompt

        prompt = read_prompt(config, streams)
        from ..app import App
        from ..ui.headless import Headless

        app = App(config, secrets, lambda text: streams.err(f"marvin: {text}"))
        session = run.session(app)
        resume(config, session)
        form = config.output_schema is not None
        return Headless(streams, config.output_format, app.meter, form=form).run(session, prompt)

    return run.run(body)


def failed_early(streams: StandardStreams, output_format: OutputFormat, error: MarvinError) -> int:
    """Report a run that failed before it began, though its arguments were valid. Returns the exit code."""
    code = _failed(streams, output_format, str(error), error.exit_code)
    streams.err(cost_line(_NOTHING_USED))
    return code


def resume(config: Config, session: Session) -> None:
    """Load the session that --resume or --continue asks for."""
    if not config.resume and not config.continue_session:
        return
    from ..sessions import store

    folder = config.data_folder / "sessions"
    if config.resume:
        session.resume(store.find(folder, config.resume))
    else:
        session.resume(store.newest_of(folder, str(session.working_dir)))


def _summary(app: App) -> Mapping[str, object]:
    """The usage of the run. If it cannot be computed, its cost is unknown: the last line must still be printed."""
    try:
        return app.meter.summary()
    except Exception:
        return {**_NOTHING_USED, "session_cost": None}


def _failed(streams: StandardStreams, output_format: OutputFormat, reason: str, code: int) -> int:
    """Report a failure outside the session; returns the exit code."""
    streams.err(f"marvin: {reason}")
    if output_format == "json":
        from contextlib import suppress

        with suppress(OSError):
            streams.out(result_line("", "", dict.fromkeys(Usage().as_dict(), 0), _NOTHING_USED, code))
    return code


def _leave(streams: StandardStreams) -> NoReturn:
    """Exit on a signal before the run begins. An exception could get lost in a callback of an import."""
    import os

    streams.err("marvin: interrupted")
    streams.err(cost_line(_NOTHING_USED))
    os._exit(EXIT_INTERRUPTED)
