"""The flags of the root command `marvin [PROMPT]`."""

from __future__ import annotations

import argparse

from ..api.errors import UsageError
from ..version import __version__

# Type checkers treat it as the constant of `typing`, which `marvin --help` does not import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

SUBCOMMANDS = frozenset(
    (
        "tools packs sessions profiles providers login logout models permissions undo mcp acp config doctor tk "
        "demo replay"
    ).split()
)
"""The sub-commands of the core. Packs may add more."""

USAGE = "marvin [FLAGS] [PROMPT]\n       marvin SUB-COMMAND ... (each has its own --help)"
DESCRIPTION = """\
Marvin is an assistant in your terminal. You say what you want; a language
model gets it done with tools: it reads and edits files, runs commands, uses
git, fetches pages. In the chat it asks before it runs a command.

examples:
  marvin                        open the chat; /help there says what works
  marvin "what does app.py do?" open the chat and ask this first
  marvin --non-interactive --prompt "fix the failing test" --working-dir app
                                do one job without questions, print the answer

sub-commands:
  doctor     what works here, what does not, and what to do about it
  login      store the key of a model service, or log in with an account
  logout     forget that key or login
  providers  the model services, and how to set one up
  models     the models of services: context windows, prices, end of service
  config     show or change what is configured
  permissions  the rules in force, and what they say of a command
  undo       undo what tools changed
  mcp        servers with tools (MCP): add, try, remove
  acp        Marvin in an editor that speaks the Agent Client Protocol
  tools      list the tools, or call one by hand, without a model
  demo       watch how a bug is fixed, without a model
  replay     run a recorded session again, and see what differs
  tk         tickets: what has to be done, by whom, and in which order
  sessions   list, search, show and export earlier conversations
  profiles   list and switch profiles: preferences, places, history
  packs      what is installed; a pack may add more sub-commands
"""

EPILOG = """\
No model yet? Set the key of a service, as in GROQ_API_KEY, or run a local
server and set OPENAI_COMPAT_URL; `marvin providers list` names them all.
Exit codes: 0 done, 1 error, 2 wrong flags, 3 budget reached, 130 interrupted.
The documentation is in the folder docs of Marvin's source.
"""
_STARTED = "\n`marvin` is not on your PATH. Type this in its place:\n  {}\n"
"""The last line of the help if `marvin` is not on PATH."""


_FLAGS: Mapping[str, Mapping[str, Any]] = {
    "--non-interactive": {
        "action": "store_true",
        "help": "run one prompt without asking any questions, then exit",
    },
    "--prompt": {"metavar": "TEXT", "help": "the prompt; the same as PROMPT"},
    "--prompt-file": {"metavar": "PATH", "help": "read the prompt from a file"},
    "--working-dir": {"metavar": "PATH", "help": "the folder that tools are confined to"},
    "--provider": {"metavar": "NAME", "help": "the model service"},
    "--model": {
        "metavar": "[TIER=]MODEL",
        "action": "append",
        "default": [],
        "help": "the model, or the model of a tier",
    },
    "--thinking": {
        "metavar": "[TIER=]LEVEL",
        "action": "append",
        "default": [],
        "help": "how much the model thinks, or the model of a tier: off, low, medium, high",
    },
    "--tools": {"metavar": "SETS", "help": "tool sets, groups and names; a leading - removes one (coding,-git)"},
    "--tool-search": {
        "choices": ("on", "off", "auto"),
        "help": "whether tools are hidden until the model searches for them: on (all but a few), off, or auto (if "
        "there are many)",
    },
    "--output-format": {
        "choices": ("text", "json", "stream-json"),
        "default": "text",
        "help": "what a non-interactive run prints",
    },
    "--output-schema": {
        "metavar": "FILE",
        "help": "the JSON schema that the final answer of a non-interactive run must match",
    },
    "--permission-mode": {
        "metavar": "MODE",
        "help": "which calls need approval before they run: ask, edit, auto, readonly",
    },
    "--on-ask": {
        "metavar": "[TOOL=]ANSWER",
        "help": "what a non-interactive run does with calls that need approval: allow, deny or allow-all; also for "
        "single tools: allow,TOOL=deny",
    },
    "--trust-project": {
        "action": "store_true",
        "help": "let this run load the hooks, tools, commands, settings and servers of the folder",
    },
    "--network": {
        "metavar": "WHAT",
        "help": "what commands can reach in the sandbox: none, loopback, all, or hosts (example.org,*.example.com)",
    },
    "--sandbox": {
        "choices": ("auto", "required", "off"),
        "help": "whether commands run in a sandbox: auto (if one works), required, or off",
    },
    "--continue": {
        "dest": "continue_",
        "action": "store_true",
        "help": "continue the newest session of this folder",
    },
    "--resume": {"metavar": "ID", "help": "continue this session"},
    "--record": {"metavar": "FILE", "help": "record the session to a file that `marvin replay` runs again"},
    "--max-cost": {"metavar": "USD", "help": "stop at this many US dollars, sub-agents included"},
    "--plain": {"action": "store_true", "help": "the chat in plain lines, on a terminal and in a pipe"},
    "--screen-reader": {"action": "store_true", "help": "the chat in words, written once from top to bottom"},
    "--curses": {"action": "store_true", "help": "the ordinary chat, as there is no other any more"},
    "--design-first": {"action": "store_true", "help": "run the test-first pipeline (needs marvin-pipeline)"},
    "--from": {"metavar": "PHASE", "dest": "from_", "help": "the first phase of the pipeline: 1a, 2a, ..."},
    "--until": {"metavar": "PHASE", "help": "the last phase of the pipeline"},
    "--upstream": {"metavar": "DIR", "help": "documents that the agents of the pipeline may read"},
    "--max-time": {"metavar": "TIME", "help": "how long the pipeline may take: seconds, or as 90m, 8h"},
    "--yes": {"action": "store_true", "help": "restart the pipeline from the beginning without asking"},
    "--strict": {
        "action": "store_true",
        "help": "fail the pipeline if the evidence for its result is weak, instead of only reporting it",
    },
    "--github": {
        "action": "store_true",
        "help": "write annotations and the job summary of the pipeline for GitHub Actions",
    },
    "--ntfy": {"metavar": "TOPIC", "help": "send notifications of a non-interactive run to this ntfy topic"},
    "-B": {"dest": "no_bytecode", "action": "store_true", "help": "do not write bytecode files"},
    "--version": {"action": "version", "version": f"marvin {__version__}"},
}
"""The flags in the order of the help, with their arguments for argparse."""
_WITH_VALUE = frozenset(flag for flag, options in _FLAGS.items() if options.get("action", "append") == "append")


class _Parser(argparse.ArgumentParser):
    def refuse_unknown(self, flag: str) -> NoReturn:
        """Raise `UsageError` for an unknown flag, with the nearest known one."""
        from ..util.text import cut, did_you_mean, near_names

        name = flag.partition("=")[0]
        near = did_you_mean(near_names(name, self._option_string_actions))
        self.error(f"There is no flag {cut(name)!r}. {near}".rstrip(" ."))

    def format_help(self) -> str:
        """The text of --help. If `marvin` is not on PATH, its last line is the command that starts Marvin."""
        from .program import command_name

        command = command_name()
        return super().format_help() + ("" if command == "marvin" else _STARTED.format(command))

    def error(self, message: str) -> NoReturn:
        from .program import command_name

        raise UsageError(
            f"{message}{'' if message.endswith('?') else '.'} Run `{command_name()} --help` for the flags."
        )


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the flags and words of a command line. Both may be mixed; all arguments after `--` are words.

    Raises:
        UsageError: a flag or value is invalid.
    """
    end = list(argv).index("--") if "--" in argv else len(argv)
    known = parser()
    flags, unknown = known.parse_known_intermixed_args(argv[:end])  # it does not support `--` on Python 3.11
    if unknown:
        known.refuse_unknown(unknown[0])
    flags.words = [*flags.words, *argv[end + 1 :]]
    return flags


def parser() -> _Parser:
    """The parser of the root command. It raises `UsageError` for errors, and exits only for --help and --version."""
    result = _Parser(
        prog="marvin",
        usage=USAGE,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    result.add_argument("words", nargs="*", metavar="PROMPT", help="what to do, in your words")
    for flag, options in _FLAGS.items():
        result.add_argument(flag, **options)
    return result


def first_word(argv: Sequence[str]) -> int | None:
    """The index of the first positional argument of a command line, or None."""
    index = 0
    while index < len(argv) and argv[index] != "--":
        if not argv[index].startswith("-"):
            return index
        index += 2 if argv[index] in _WITH_VALUE else 1
    return None
