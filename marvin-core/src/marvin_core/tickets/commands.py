"""The command line for tickets, without a terminal: it maps words to output and further actions."""

from __future__ import annotations

import os

from . import changes
from .folder import NAME, TicketFolder, find_ticket_folder, make_folder
from .ticket import STATUSES, TicketError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..api.timeouts import Timeouts
    from .views import Filter

_HELP_WORDS = ("help", "--help", "-h")
_FILTERS = {"--status": "status", "-a": "assignee", "--assignee": "assignee", "-T": "tag", "--tag": "tag"}
_NEWEST = 100
"""The number of files that `closed` reads."""


class TicketPlace:
    """The environment of a command line, and its inputs.

    Args:
        folder: the working folder, an absolute path.
        tickets_dir: the value of TICKETS_DIR.
        program: the name of the program in its help.
        user: the default assignee of new tickets.
        stdin: the piped input, None for a terminal.
    """

    def __init__(
        self,
        folder: str,
        tickets_dir: str = "",
        *,
        program: Callable[[], str] = lambda: "tk",
        user: Callable[[], str] = str,
        stdin: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.folder = folder
        self.tickets_dir = tickets_dir
        self.program = program
        self.user = user
        self.stdin = stdin
        self.timeouts: Timeouts | None = None
        self.strict = False
        """Reject what the public program ignores, and a folder that is a link: a model typed the command."""

    @property
    def may_be_link(self) -> bool:
        """Whether the folder of the tickets may be a link, since a person chose it and not a repository."""
        return not self.strict or bool(self.tickets_dir)


class TicketOutcome:
    """The result of a command line: the lines to print, and the exit code.

    `jq` is the filter for the lines. `edits` is the file to open in an editor. `undo` is the command line that reverts
    the change, if there is one. `paged` output is shown by a pager on a terminal.
    """

    def __init__(self, lines: Iterable[str] = (), exit_code: int = 0) -> None:
        self.lines = lines
        self.exit_code = exit_code
        self.jq = ""
        self.edits = ""
        self.undo: Sequence[str] = ()
        self.paged = False


def run_tickets(words: Sequence[str], place: TicketPlace) -> TicketOutcome:
    """Run a command line of the ticket program.

    Args:
        words: the words after the program's name.

    Returns:
        The complete output; no lock is held any more.

    Raises:
        TicketError: the command failed; the text is for standard error.
    """
    command = words[0] if words else "help"
    if command in _HELP_WORDS:
        from .help import help_lines

        return TicketOutcome(help_lines(place.program()))
    rest = list(words[1:])
    if command in ("dep-tree", "dep-cycle"):
        command, rest = "dep", [command.removeprefix("dep-"), *rest]
    run = _COMMANDS.get(command)
    if run is None:
        raise TicketError(f"Unknown command: {command}", UNKNOWN)
    path = _folder(place, command)
    with TicketFolder(path, follow=place.may_be_link, timeouts=place.timeouts) as folder:
        outcome = run(folder, rest, place)
        outcome.lines = list(outcome.lines)
        return outcome


UNKNOWN = -1
"""The exit code of a `TicketError` for an unknown command; the program prints its help and exits with 1."""


def _folder(place: TicketPlace, command: str) -> str:
    found = find_ticket_folder(place.folder, place.tickets_dir)
    if command == "create":
        found = found or os.path.join(place.folder, NAME)
        if not os.path.isdir(found):
            make_folder(found)
    if found is None:
        raise TicketError(
            "Error: no .tickets directory found (searched parent directories)\n"
            f"Run '{place.program()} create' to initialize, or set TICKETS_DIR env var"
        )
    return found


# --- what changes something ----------------------------------------------------------------------------------------


def _create(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    new = changes.NewTicket(changes.apart(words) if place.strict else words)
    if place.strict and len(new.titles) > 1:
        titles = ", ".join(f"'{title}'" for title in new.titles)
        raise TicketError(f"Error: create needs one title, but got {len(new.titles)}: {titles}. Put it in quotes")
    return TicketOutcome([new.create(folder, place.folder, place.user)])


def _status(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    if len(words) < 2:
        raise TicketError(f"Usage: {place.program()} status <id> <status>\nValid statuses: {' '.join(STATUSES)}")
    name, before = changes.set_status(folder, words[0], words[1])
    outcome = TicketOutcome([f"Updated {name} -> {words[1]}"])
    if before in STATUSES:
        outcome.undo = ("status", name, before)
    return outcome


def _to(command: str, status: str) -> _Command:
    def run(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
        _need(words, 1, place, f"{command} <id>")
        return _status(folder, [words[0], status], place)

    return run


def _dep(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    if words[:1] == ["tree"]:
        return _tree(folder, words[1:], place)
    if words[:1] == ["cycle"]:
        from .graph import cycle_lines

        return TicketOutcome(cycle_lines(folder.all()))
    _need(
        words,
        2,
        place,
        "dep <id> <dependency-id>",
        "dep tree <id>  - show dependency tree",
        "dep cycle      - find dependency cycles",
    )
    name, dependency, is_new = changes.add_dependency(folder, words[0], words[1])
    if not is_new:
        return TicketOutcome(["Dependency already exists"])
    outcome = TicketOutcome([f"Added dependency: {name} -> {dependency}"])
    outcome.undo = ("undep", name, dependency)
    return outcome


def _undep(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    _need(words, 2, place, "undep <id> <dependency-id>")
    name, dependency, was_there = changes.remove_dependency(folder, words[0], words[1])
    if not was_there:
        return TicketOutcome(["Dependency not found"], 1)
    outcome = TicketOutcome([f"Removed dependency: {name} -/-> {dependency}"])
    outcome.undo = ("dep", name, dependency)
    return outcome


def _link(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    _need(words, 2, place, "link <id> <id> [id...]")
    names, count = changes.link(folder, words)
    if not count:
        return TicketOutcome(["All links already exist"])
    outcome = TicketOutcome([f"Added {count} link(s) between {len(names)} tickets"])
    if len(names) == count == len({*names}) == 2:
        outcome.undo = ("unlink", *names)
    return outcome


def _unlink(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    _need(words, 2, place, "unlink <id> <target-id>")
    name, target, was_there = changes.unlink(folder, words[0], words[1])
    if not was_there:
        return TicketOutcome(["Link not found"], 1)
    outcome = TicketOutcome([f"Removed link: {name} <-> {target}"])
    outcome.undo = ("link", name, target)
    return outcome


def _add_note(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    _need(words, 1, place, "add-note <id> [note text]")

    def note() -> str:
        given = " ".join(words[1:]) if len(words) > 1 else place.stdin()
        if given is None:
            raise TicketError("Error: no note provided")
        return given if len(words) > 1 else given.rstrip("\n")

    return TicketOutcome([f"Note added to {changes.add_note(folder, words[0], note)}"])


def _edit(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    _need(words, 1, place, "edit <id>")
    path = os.path.join(folder.path, f"{folder.resolve(words[0])}.md")
    outcome = TicketOutcome([f"Edit ticket file: {path}"])
    outcome.edits = path
    return outcome


# --- what only looks -------------------------------------------------------------------------------------------------


def _show(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    from .views import shown

    _need(words, 1, place, "show <id>")
    outcome = TicketOutcome(shown(folder.all(), folder.read(folder.resolve(words[0]))))
    outcome.paged = True
    return outcome


def _ls(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    from .views import listed

    return TicketOutcome(listed(folder.all().values(), _filter(words, place, "--status=", "-a", "-T")))


def _ready(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    from .views import ready

    return TicketOutcome(ready(folder.all(), _filter(words, place, "-a", "-T")))


def _blocked(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    from .views import blocked

    return TicketOutcome(blocked(folder.all(), _filter(words, place, "-a", "-T")))


def _closed(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    from .views import closed

    wanted = _filter(words, place, "--limit=", "-a", "-T")
    if not (wanted.limit.isascii() and wanted.limit.isdigit() and len(wanted.limit) < 10):
        raise TicketError(f"Error: invalid limit '{wanted.limit}'. Use a number, as in --limit=20")
    return TicketOutcome(closed(folder.newest(_NEWEST), wanted, int(wanted.limit)))


def _tree(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    from .graph import DependencyTree

    ids = [word for word in words if word != "--full"]
    _need([word for word in ids if word], 1, place, "dep tree [--full] <id>")
    tickets = folder.all()
    root = folder.read(folder.resolve(ids[-1])).id
    if root not in tickets:
        raise TicketError(f"Error: ticket '{ids[-1]}' has no id in its front matter")
    return TicketOutcome(DependencyTree(tickets, root, full="--full" in words).lines())


def _query(folder: TicketFolder, words: list[str], place: TicketPlace) -> TicketOutcome:
    from .views import as_json

    outcome = TicketOutcome(as_json(folder.all().values()))
    outcome.jq = words[0] if words else ""
    return outcome


def _filter(words: list[str], place: TicketPlace, *known: str) -> Filter:
    """The options of a list. The public program ignores unknown ones, and so does this one for people."""
    from .views import Filter

    wanted = Filter()
    options = {**_FILTERS, "--limit": "limit"}
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        name = options.get(option)
        if name is None:
            if place.strict:
                raise TicketError(f"Error: unknown option '{word}'. Known options: {', '.join(known)} and a value")
            continue
        given = value if equals else next(rest, None)
        if given is None:
            raise TicketError(f"Error: option {option} needs a value")
        setattr(wanted, name, given)
    return wanted


def _need(words: Sequence[str], count: int, place: TicketPlace, *usage: str) -> None:
    """Raise an error with the usage if there are fewer words."""
    if len(words) < count:
        program = place.program()
        raise TicketError("Usage: " + "\n       ".join(f"{program} {line}" for line in usage))


if TYPE_CHECKING:
    from typing import TypeAlias

    _Command: TypeAlias = Callable[[TicketFolder, list[str], TicketPlace], TicketOutcome]

_COMMANDS: dict[str, _Command] = {
    "create": _create,
    "start": _to("start", "in_progress"),
    "close": _to("close", "closed"),
    "reopen": _to("reopen", "open"),
    "status": _status,
    "dep": _dep,
    "undep": _undep,
    "link": _link,
    "unlink": _unlink,
    "ready": _ready,
    "blocked": _blocked,
    "closed": _closed,
    "show": _show,
    "add-note": _add_note,
    "ls": _ls,
    "list": _ls,
    "query": _query,
    "edit": _edit,
}


def ticket_commands() -> Sequence[str]:
    """The commands, without `edit`, which is for people, and without those of the program itself."""
    return (*(name for name in _COMMANDS if name != "edit"), "dep-tree", "dep-cycle", "help")
