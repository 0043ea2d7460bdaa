"""The tool tk: runs a line of the ticket program without a shell."""

from __future__ import annotations

import shlex
from typing import Annotated

from marvin_core import (
    Call,
    TicketError,
    TicketOutcome,
    TicketPlace,
    ToolContext,
    ToolError,
    ToolResult,
    did_you_mean,
    in_thread,
    near_names,
    output_text,
    run_tickets,
    ticket_commands,
    tool,
)

from .adapters import LINE_IGNORED, LINE_NAMES, line_arguments

_LONGEST = 100_000
"""Characters of a line: a ticket with its description."""
_OUTPUT = 1_000_000
_ADVICE = {
    "not found": "`ls` lists the tickets.",
    "ambiguous ID": "Give more characters of the id; `ls` lists the tickets.",
    "Unknown option": "`help` lists the options.",
    "Put it in quotes": "As in: create 'Fix the login' -d 'What and why'",
}
"""What to do next, by a part of the error message."""


@tool(
    access=["write"],
    group="tickets",
    passes=["ticket", "readonly"],
    settings=["TICKETS_DIR"],
    aliases=LINE_NAMES,
    ignores=LINE_IGNORED,
    adapt=line_arguments,
)
async def tk(
    context: ToolContext,
    args: Annotated[str, "As in a shell: create 'Fix login' -d 'Why' -p 1"],
) -> ToolResult:
    """Tickets, by one command: create TITLE (-d TEXT, --acceptance TEXT, -t TYPE, -p 0-4, --parent ID), start, close or
    reopen ID, add-note ID TEXT, show ID, ls, ready, blocked, closed, dep ID ON, undep, dep tree ID, link ID ID, unlink,
    query, help.
    """
    words = _words(args)
    place = TicketPlace(str(context.paths.root), context.setting("TICKETS_DIR") or "")
    place.strict = True
    place.timeouts = context.timeouts
    if words[0] == "create" and not {"-a", "--assignee"} & {*words}:
        name = await _user(context)
        place.user = lambda: name
    try:
        outcome = await in_thread(lambda: run_tickets(words, place))
    except TicketError as error:
        raise ToolError(_explained(str(error))) from None
    text = await _text(context, outcome)
    if outcome.exit_code:
        raise ToolError(f"{text}. Use `show` to see the ticket.")
    undo = Call(name="tk", arguments={"args": shlex.join(outcome.undo)}) if outcome.undo else None
    return ToolResult(content=text or "There are none.", undo=undo)


def _words(line: str) -> list[str]:
    """The words of a line. Raises `ToolError` for an empty or malformed line."""
    if len(line) > _LONGEST:
        raise ToolError(f"The line has {len(line):,} characters; the limit is {_LONGEST:,}. Shorten it.")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ToolError(
            f"The line cannot be parsed: {error}. Put texts in quotes, and a text with an apostrophe in double quotes, "
            'as in: add-note ab12 "It\'s done"'
        ) from None
    if not words:
        raise ToolError(f"The line is empty. Commands: {', '.join(ticket_commands())}.")
    if words[0] == "edit":
        raise ToolError("edit opens an editor for people. Use status, dep, link or add-note, or create another ticket.")
    if words[0] not in ticket_commands():
        near = did_you_mean(near_names(words[0], ticket_commands()))
        told = [f"There is no command {words[0]!r}.", near, f"Commands: {', '.join(ticket_commands())}."]
        raise ToolError(" ".join(filter(None, told)))
    return words


async def _user(context: ToolContext) -> str:
    """The name of the git user; empty if git is missing or has none."""
    try:
        told = await context.processes.run(["git", "config", "--get", "user.name"], cwd=context.paths.root)
    except ToolError:
        return ""
    return told.output.decode("utf-8", "replace").strip() if told.exit_code == 0 else ""


async def _text(context: ToolContext, outcome: TicketOutcome) -> str:
    """The output, filtered if there is a filter."""
    text = "\n".join(outcome.lines)
    if not outcome.jq or not text:
        return output_text(text.encode("utf-8", "surrogateescape")).rstrip("\n")
    argv = ["jq", "-c", f"select({outcome.jq})"]
    filtered = await context.processes.run(argv, stdin=text.encode("utf-8", "replace"), output_limit=_OUTPUT)
    if filtered.exit_code != 0:
        said = output_text(filtered.stderr).strip()
        raise ToolError(f"jq refuses the filter: {said}. A filter is a condition, as in: query '.status == \"open\"'")
    return output_text(filtered.output, filtered.omitted).rstrip("\n")


def _explained(error: str) -> str:
    """An error of the program, with what to do next."""
    advice = next((told for part, told in _ADVICE.items() if part in error), "")
    return f"{error.removeprefix('Error: ').rstrip('.')}. {advice}".strip()
