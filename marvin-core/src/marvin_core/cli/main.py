"""The command line: flags in, exit code out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from ..api.config import Config, OutputFormat
from ..api.errors import EXIT_INTERRUPTED, ConfigError, MarvinError, UsageError
from ..api.messages import Usage
from ..config.flags import SUBCOMMANDS
from ..config.load import load
from ..config.program import command_name
from ..config.secrets import Secrets
from ..ui.report import cost_line, result_line
from ..util.streams import StandardStreams

if TYPE_CHECKING:
    from ..app import App
    from ..engine.session import Session

_PIPELINE = 'No installed pack brings the pipeline. Install it: pip install "marvin-core[pipeline]"'
_NOTHING_USED = {"session_cost": 0.0, "llm_turns": 0, "model_turns": {}, "model_cost": {}}


def main(argv: Sequence[str], env: Mapping[str, str], streams: StandardStreams) -> int:
    """Run the program.

    Args:
        argv: the words behind the program's name.
        env: the environment.

    Returns:
        The exit code: 0 done, 1 error, 2 wrong flags, 3 budget reached, 130 interrupted.
    """
    index: int | None = None
    try:
        if [*argv] == ["help"]:
            from ..config.flags import parser

            streams.out(parser().format_help())
            return 0
        index = _subcommand(argv, env)
        if index is not None:
            from ..util.signals import end_like_ctrl_c

            end_like_ctrl_c()
            return _run_subcommand(argv[index:], *_loaded(argv, index, env), streams)
        return _prompted(argv, env, streams)
    except MarvinError as error:
        if not isinstance(error, ConfigError) or index is not None or not _is_headless(argv, streams):
            streams.err(f"marvin: {error}")
            return error.exit_code
        from ..config.flags import parse

        code = _failed(streams, parse(argv).output_format, str(error), error.exit_code)
        streams.err(cost_line(_NOTHING_USED))  # the arguments were right, so the line is due
        return code
    except KeyboardInterrupt:
        streams.err("marvin: interrupted")
        return EXIT_INTERRUPTED


def _prompted(argv: Sequence[str], env: Mapping[str, str], streams: StandardStreams) -> int:
    """What is no sub-command: one prompt, or a chat."""
    config, secrets = load(argv, env)
    sys.dont_write_bytecode = sys.dont_write_bytecode or "-B" in argv
    if config.design_first:
        raise UsageError(_PIPELINE)
    interactive = streams.stdin_is_terminal() or config.plain
    if config.non_interactive or not interactive:
        return _non_interactive(config.replace(non_interactive=True), secrets, streams)
    if config.output_schema is not None:
        raise UsageError("--output-schema is for runs without a chat. Add --non-interactive.")
    return _chat(config, secrets, streams)


def _run_subcommand(words: Sequence[str], config: Config, secrets: Secrets, streams: StandardStreams) -> int:
    """Run a sub-command; returns its exit code."""
    from .commands import all as subcommands
    from .run import CommandContext, application, ended

    run, typed = CommandContext(config, secrets, streams), application()
    if words[0] in SUBCOMMANDS:
        # What helps to mend an installation must not need a sound one, and no stranger's code has a part in ours.
        subcommands.extend(typed)
    else:
        app = run.app()
        run.own = partial(app.packs.of, app.plugins.extend_cli(typed, words[0]))
    return ended(typed, words, command_name(), run)


def _loaded(argv: Sequence[str], index: int, env: Mapping[str, str]) -> tuple[Config, Secrets]:
    """The configuration for a sub-command. Those that help to mend config.yaml start without it, and say so."""
    try:
        return load(argv[:index], env)
    except ConfigError:
        if argv[index] not in ("config", "doctor"):
            raise
        return load(argv[:index], env, with_file=False)


def _is_headless(argv: Sequence[str], streams: StandardStreams) -> bool:
    """Whether arguments that could be read ask for a non-interactive run, where there is no Config to say so."""
    return "--non-interactive" in argv or not ("--plain" in argv or streams.stdin_is_terminal())


def _subcommand(argv: Sequence[str], env: Mapping[str, str]) -> int | None:
    """Where the sub-command is, if the first bare word names one of the core or of a pack."""
    if all(word.startswith("-") for word in argv):
        return None
    from ..config.flags import first_word

    index = first_word(argv)
    if index is None or argv[index] in SUBCOMMANDS:
        return index
    from ..plugins.manager import Plugins

    of_packs = Plugins(load((), env)[0], lambda text: None).cli_names()
    if argv[index] in of_packs:
        return index
    if not any(map(str.isspace, argv[index])):
        from .misspelled import refuse

        refuse(argv, index, {*SUBCOMMANDS, *of_packs})
    return None


def _non_interactive(config: Config, secrets: Secrets, streams: StandardStreams) -> int:
    """One prompt. From here on MARVIN_COST is the last line of standard error, whatever happens."""
    import signal

    from ..util.failures import told
    from ..util.signals import ending
    from ..util.streams import keep_stdout, silence_packs
    from ..util.watchdog import owner_of

    app: App | None = None
    numbers = ending()
    keep_stdout(streams, owner_of)
    try:
        for number in numbers:
            signal.signal(number, lambda *_: _leave(streams))
        from .prompt_input import read_prompt

        prompt = read_prompt(config, streams)
        from ..app import App
        from ..ui.headless import Headless

        app = App(config, secrets, lambda text: streams.err(f"marvin: {text}"))
        if app.choice.endpoint is None:
            raise ConfigError(app.choice.how_to)
        session = app.session(asker=None, interactive=False)
        _resume(config, session)
        form = config.output_schema is not None
        return Headless(streams, config.output_format, app.meter, form=form).run(session, prompt)
    except MarvinError as error:
        return _failed(streams, config.output_format, str(error), error.exit_code)
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # whatever is wrong, the last line below must come
        return _failed(streams, config.output_format, f"internal error: {told(error)}", 1)
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)  # only the last line is left
        if app is not None:
            app.save_usage()
        silence_packs()
        streams.err(cost_line(_NOTHING_USED if app is None else _summary(app)))


def _summary(app: App) -> Mapping[str, object]:
    """What was used; where that cannot be said, that the cost is not known. The last line must come."""
    try:
        return app.meter.summary()
    except Exception:
        return {**_NOTHING_USED, "session_cost": None}


def _failed(streams: StandardStreams, output_format: OutputFormat, reason: str, code: int) -> int:
    """Tell of a run that failed before its session could; returns the exit code."""
    streams.err(f"marvin: {reason}")
    if output_format == "json":
        from contextlib import suppress

        with suppress(OSError):
            streams.out(result_line("", "", dict.fromkeys(Usage().as_dict(), 0), _NOTHING_USED, code))
    return code


def _leave(streams: StandardStreams) -> NoReturn:
    """Interrupted before anything began. An exception instead could be lost in a callback of an import."""
    import os

    streams.err("marvin: interrupted")
    streams.err(cost_line(_NOTHING_USED))
    os._exit(EXIT_INTERRUPTED)


def _resume(config: Config, session: Session) -> None:
    """Load the session that --resume or --continue asks for."""
    if not config.resume and not config.continue_session:
        return
    from ..sessions import store

    folder = config.data_folder / "sessions"
    if config.resume:
        session.resume(store.find(folder, config.resume))
    else:
        session.resume(store.newest_of(folder, str(session.working_dir)))


def _chat(config: Config, secrets: Secrets, streams: StandardStreams) -> int:
    from ..app import App

    prompt = config.prompt
    if config.prompt_file is not None:
        from .prompt_input import read_prompt

        prompt = read_prompt(config, streams)
    app = App(config, secrets, lambda text: streams.err(f"marvin: {text}"), chat=True)
    ui = app.ui()
    session = app.session(asker=ui.ask, interactive=True)
    _resume(config, session)
    if app.choice.endpoint is None:
        streams.err(app.choice.how_to)
    from ..util.failures import told

    try:
        return ui.run(session, prompt)
    except (KeyboardInterrupt, MarvinError):
        raise
    except (Exception, SystemExit) as error:  # of an interface of a pack, or of what runs in it
        session.rescue()
        streams.err(f"marvin: the chat was ended by {told(error)}. What was said is saved.")
        return 1
    finally:
        app.save_usage()
