"""The help of the ticket program."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMANDS = """\
  create [TITLE] [OPTIONS]  create a ticket and print its id
    -d, --description TEXT  what should be done, and why
    --design TEXT           how it should be done
    --acceptance TEXT       the acceptance criteria
    -t, --type TYPE         bug, feature, task, epic or chore; default: task
    -p, --priority NUMBER   0 to 4, 0 is the most urgent; default: 2
    -a, --assignee NAME     who does it; default: git's user.name
    --external-ref REF      its name elsewhere, such as gh-123
    --parent ID             the ticket that it is a part of
    --tags A,B              words to find it by
  start ID                  its status becomes in_progress
  close ID                  closed
  reopen ID                 open
  status ID STATUS          one of open, in_progress and closed
  dep ID OTHER              ID depends on OTHER
  dep tree [--full] ID      what it depends on; --full repeats what several need
  dep cycle                 circles among tickets that are not closed
  undep ID OTHER            ID no longer depends on OTHER
  link ID ID [ID ...]       tickets that have to do with one another
  unlink ID OTHER           remove such a link
  ls [FILTERS] [--status=STATUS]  all tickets; also: list
  ready [FILTERS]           what can be worked on, the most urgent first
  blocked [FILTERS]         what has to wait, and for what
  closed [FILTERS] [--limit=N]    what was closed last; 20 without --limit
  show ID                   a ticket, and the tickets that belong to it
  add-note ID [TEXT]        add a note with its time; without TEXT from a pipe
  query [FILTER]            tickets as JSON lines, those that a filter of jq takes
  edit ID                   open a ticket in the editor that EDITOR names
  super COMMAND ...         the command of this program, whatever plugins there are

FILTERS: -a NAME or --assignee=NAME, -T TAG or --tag=TAG"""


def help_lines(program: str, plugins: str = "") -> Iterator[str]:
    """The text, line by line.

    Args:
        program: the name of the program.
        plugins: the lines about the plugins on PATH.
    """
    yield f"{program} - a minimal ticket system in Markdown files, with dependencies"
    yield f"\nUsage: {program} COMMAND [ARGUMENTS]\n\nCommands:"
    yield from _COMMANDS.split("\n")
    if plugins:
        yield f"\nPlugins (tk-COMMAND or ticket-COMMAND on PATH):\n{plugins.rstrip()}"
    yield "\nA plugin gets TICKETS_DIR and TK_SCRIPT; '$TK_SCRIPT super COMMAND' runs the"
    yield "commands above. It describes itself in a line '# tk-plugin: TEXT', or with --tk-describe."
    yield "\nTickets are the files .tickets/ID.md of this folder or of the nearest parent folder."
    yield f"A part of an ID is enough: '{program} show 5c4' finds nw-5c46."
