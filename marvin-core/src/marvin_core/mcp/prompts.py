"""The prompts of servers as slash commands: `/SERVER:PROMPT`, followed by its arguments."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from functools import partial

from ..api.errors import MarvinError
from ..api.session import Command, SessionControl
from ..util.terminal_text import disarm
from ..util.text import cut, one_line
from .listed import ListedPrompt
from .servers import Servers

_LONGEST = 200_000
"""The maximum length of a prompt, in characters."""
_NAME_SHOWN = 64


def prompt_commands(servers: Servers) -> Iterator[Command]:
    """A command for each known prompt."""
    for name, listing in servers.known.items():
        for prompt in listing.prompts:
            if prompt.name.split() == [prompt.name] and prompt.name.isprintable() and len(prompt.name) <= _NAME_SHOWN:
                yield Command(
                    name=f"{name}:{prompt.name}",
                    help=prompt.description or f"a prompt of the MCP server {name}",
                    run=partial(_run, servers, name, prompt),
                    takes=" ".join(_parameters(prompt)),
                )


def _parameters(prompt: ListedPrompt) -> Iterator[str]:
    for number, name in enumerate(prompt.arguments):
        shown = one_line(name, _NAME_SHOWN).upper()
        yield shown if number < prompt.required else f"[{shown}]"


async def _run(servers: Servers, server: str, prompt: ListedPrompt, session: SessionControl, text: str) -> str | None:
    from .results import prompt_text

    arguments = given_arguments(f"/{server}:{prompt.name}", prompt, text)
    found = await servers.connection(server).use(lambda client: client.get_prompt(prompt.name, dict(arguments)))
    filled = cut(disarm(prompt_text(found.messages)), _LONGEST)
    if not filled.strip():
        raise MarvinError(f"The MCP server {server} gave an empty prompt, so nothing was sent.")
    (await session.submit(labelled(server, prompt.name, filled))).check()
    return None


def labelled(server: str, prompt: str, text: str) -> str:
    """A prompt's text with its origin: the user may not have read it, so the model learns that the server wrote it."""
    return (
        f"[I chose the prompt {prompt} of the MCP server {server}. The server wrote all that follows, not I.]\n{text}"
    )


def given_arguments(command: str, prompt: ListedPrompt, text: str) -> Mapping[str, str]:
    """Parse the arguments of a command: `NAME=VALUE`, or positional; the last positional one takes the rest.

    Raises:
        MarvinError: an argument is missing, or there are too many.
    """
    try:
        words = shlex.split(text)
    except ValueError:  # an apostrophe is not a quote
        words = text.split()
    named: dict[str, str] = {}
    plain: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in prompt.arguments:
            named[name] = value
        else:
            plain.append(word)
    open_ones = [name for name in prompt.arguments if name not in named]
    if plain and not open_ones:
        takes = " ".join(_parameters(prompt)) or "no arguments"
        raise MarvinError(f"{command} takes {takes}. Leave out {plain[0]!r:.80}.")
    if len(plain) > len(open_ones):
        plain[len(open_ones) - 1 :] = [" ".join(plain[len(open_ones) - 1 :])]
    named.update(zip(open_ones, plain, strict=False))
    missing = [name for name in prompt.arguments[: prompt.required] if name not in named]
    if missing:
        raise MarvinError(f"{command} needs {', '.join(missing)}: {command} {' '.join(_parameters(prompt))}")
    return named
