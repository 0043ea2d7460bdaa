"""The command line: flags in, exit code out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..api.config import Config
from ..api.errors import EXIT_INTERRUPTED, ConfigError, MarvinError, UsageError
from ..config.flags import SUBCOMMANDS
from ..config.load import load
from ..config.program import command_name
from ..config.secrets import Secrets
from ..guard.redaction import Redactor
from ..util.streams import StandardStreams
from .project import ask_about_project, with_project

if TYPE_CHECKING:
    from .run import CommandContext
    from .unattended import Unattended


class _Given(NamedTuple):
    """The inputs of a sub-command."""

    config: Config
    secrets: Secrets
    env: Mapping[str, str]
    flags: Sequence[str] = ()
    """The flags before the sub-command."""


def main(argv: Sequence[str], env: Mapping[str, str], streams: StandardStreams) -> int:
    """Run the program.

    Args:
        argv: the arguments after the program's name.
        env: the environment.

    Returns:
        The exit code: 0 done, 1 error, 2 wrong flags, 3 cost ceiling reached, 130 interrupted.
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
            if argv[index] == "tk":
                return _tickets(argv[index + 1 :], env)
            return _run_subcommand(argv[index:], _loaded(argv, index, env), streams)
        return _prompted(argv, env, streams)
    except MarvinError as error:
        if not isinstance(error, ConfigError) or index is not None or not _is_headless(argv, streams):
            streams.err(f"marvin: {error}")
            return error.exit_code
        from ..config.flags import parse
        from .unattended import failed_early

        return failed_early(streams, parse(argv).output_format, error)
    except KeyboardInterrupt:
        streams.err("marvin: interrupted")
        return EXIT_INTERRUPTED


def _prompted(argv: Sequence[str], env: Mapping[str, str], streams: StandardStreams) -> int:
    """Run one prompt or a chat."""
    config, secrets = load(argv, env)
    streams.clean = Redactor(secrets.known).text
    sys.dont_write_bytecode = sys.dont_write_bytecode or "-B" in argv
    interactive = streams.stdin_is_terminal() or config.plain
    chat = interactive and not config.non_interactive and not config.design_first
    if chat:
        ask_about_project(config, streams)
    config = with_project(config, lambda text: streams.err(f"marvin: {text}"), attended=chat)
    if config.design_first:
        from .design_first import pipeline_words
        from .unattended import Unattended

        words, run = pipeline_words(config, argv), Unattended(config, streams)
        return run.run(lambda: _run_subcommand(words, _Given(config, secrets, env), streams, run))
    if config.non_interactive or not interactive:
        from .unattended import run_prompt

        return run_prompt(config.replace(non_interactive=True), secrets, streams)
    if config.output_schema is not None:
        raise UsageError("--output-schema is for runs without a chat. Add --non-interactive.")
    return _chat(config, secrets, streams)


def _tickets(words: Sequence[str], env: Mapping[str, str]) -> int:
    from ..tickets.program import TicketProgram

    return TicketProgram(env, sys.argv[0]).run(words)


def _run_subcommand(
    words: Sequence[str], given: _Given, streams: StandardStreams, unattended: Unattended | None = None
) -> int:
    """Run a sub-command, which leads the run `unattended` if one is given. Returns its exit code."""
    from .commands import all as subcommands
    from .run import CommandContext, application, ended

    config = given.config
    if config.project is None:
        config = with_project(config, lambda text: None)  # commands that run a session report what is not loaded
    run, typed = CommandContext(config, given.secrets, streams), application()
    run.load = lambda folder: load([*given.flags, "--working-dir", str(folder)], given.env)
    run.again, run.unattended = lambda words: main([*given.flags, *words], given.env, streams), unattended
    if words[0] in SUBCOMMANDS:
        # Commands that help to repair an installation must work in a broken one, so they load no third-party code.
        subcommands.extend(typed)
    else:
        app = run.app()
        run.own = partial(app.packs.of, app.plugins.extend_cli(typed, words[0]))
        return _of_pack(run, partial(ended, typed, words, command_name(), run), words[0])
    return ended(typed, words, command_name(), run)


def _of_pack(run: CommandContext, work: Callable[[], int], name: str) -> int:
    """Run a sub-command of a pack. Its errors are reported with its name, and without secrets."""
    try:
        return work()
    except (MarvinError, BrokenPipeError):
        raise
    except Exception as error:
        from traceback import format_exception

        from ..util.failures import told

        pack = run.own().distribution if run.own is not None else ""
        run.warn(f"{''.join(format_exception(error))}marvin: the sub-command {name} of {pack} failed: {told(error)}")
        return 1


def _loaded(argv: Sequence[str], index: int, env: Mapping[str, str]) -> _Given:
    """The inputs of a sub-command. `config` and `doctor` also start if config.yaml is invalid."""
    try:
        return _Given(*load(argv[:index], env), env, argv[:index])
    except ConfigError:
        if argv[index] not in ("config", "doctor"):
            raise
        return _Given(*load(argv[:index], env, with_file=False), env, argv[:index])


def _is_headless(argv: Sequence[str], streams: StandardStreams) -> bool:
    """Whether the arguments ask for a non-interactive run, for errors before the configuration is loaded."""
    return "--non-interactive" in argv or not ("--plain" in argv or streams.stdin_is_terminal())


def _subcommand(argv: Sequence[str], env: Mapping[str, str]) -> int | None:
    """The index of the first positional argument, if it names a sub-command of the core or of a pack."""
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


def _chat(config: Config, secrets: Secrets, streams: StandardStreams) -> int:
    from ..app import App
    from .unattended import resume

    prompt = config.prompt
    if config.prompt_file is not None:
        from .prompt_input import read_prompt

        prompt = read_prompt(config, streams)
    app = App(config, secrets, lambda text: streams.err(f"marvin: {text}"), chat=True)
    ui = app.ui()
    session = app.session(asker=ui.ask, interactive=True, ui=ui)
    resume(config, session)
    if app.choice.endpoint is None:
        streams.err(app.choice.how_to)
    from ..util.failures import told

    try:
        return ui.run(session, prompt)
    except (KeyboardInterrupt, MarvinError):
        raise
    except (Exception, SystemExit) as error:  # an interface of a pack may raise anything
        session.rescue()
        streams.err(f"marvin: the chat was ended by {told(error)}. The conversation is saved.")
        return 1
    finally:
        app.save_usage()
