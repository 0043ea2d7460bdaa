"""The tools git_status, git_diff, git_log and git_commit.

Git is run so that no string of the model is read as an option or a pattern, that nothing waits for a
terminal, and that reading runs no program which the repository's configuration names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from marvin_core import Field, ProcessResult, ToolContext, ToolError, ToolResult, output_text, tool

DIFF_LIMIT = 50_000
_STAT_LIMIT = 10_000
_LIST_LIMIT = 20_000
_ERROR_LIMIT = 6_000


def _settings(*settings: str) -> tuple[str, ...]:
    return tuple(part for setting in settings for part in ("-c", setting))


_GIT = ("git", "--no-pager", "--literal-pathspecs", *_settings("core.quotepath=off", "color.ui=false"))
_READING = (
    *_GIT,
    "--no-optional-locks",
    *_settings("core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false"),
    *_settings("diff.submodule=short", "status.submoduleSummary=false", "advice.statusHints=false"),
)
# A commit must not end with housekeeping in the background.
_WRITING = (*_GIT, *_settings("gc.auto=0", "maintenance.auto=false"))
# The texts below are looked for in English.
_ENVIRONMENT = {"LANGUAGE": "C", "GIT_TERMINAL_PROMPT": "0"}

_ADVICE = {
    "dubious ownership": (
        "The repository belongs to another user, so git refuses it. If the user trusts it, run_command: "
        "git config --global --add safe.directory {root}"
    ),
    "not a git repository": (
        "{root} is in no git repository. Use set_working_dir to go to one, or run_command: git init"
    ),
    "does not have any commits yet": "There are no commits yet: this is a new repository.",
    "Needed a single revision": "There is no such commit or branch. git_log shows the commits.",
    ".lock': File exists": (
        "Another git command is running here, or one was killed. Try again; if it stays, and no git runs, "
        "remove the named .lock file with run_command."
    ),
    "Please tell me who you are": (
        "git does not know who commits. Ask the user, then run_command: "
        "git config user.name NAME && git config user.email ADDRESS"
    ),
    "ignored by one of your .gitignore": "To commit an ignored file all the same, run_command: git add -f FILE",
    "did not match any file": "Such a file is neither on disk nor in git. git_status lists the changes.",
    "partial commit during a merge": "A merge is committed as a whole: call git_commit without paths.",
    "unmerged files": "Resolve the conflicts in the files that git_status lists, then use add_all=true.",
}
"""What to do next, by a part of what git says."""


async def _git(
    context: ToolContext, arguments: Sequence[str], *, limit: int = _LIST_LIMIT, stdin: bytes | None = None
) -> ProcessResult:
    return await context.processes.run(
        arguments, cwd=context.paths.root, stdin=stdin, output_limit=limit, env=_ENVIRONMENT
    )


def _failure(context: ToolContext, what: str, result: ProcessResult) -> ToolError:
    """What git said, and what to do about it where that is known."""
    said = output_text(result.stderr + result.output, result.omitted, "")[:_ERROR_LIMIT].strip()
    said = said.partition("\nusage: ")[0]  # outside of a repository git diff prints all its options
    for sign, advice in _ADVICE.items():
        if sign.lower() in said.lower():
            return ToolError(f"{what} failed. {advice.format(root=context.paths.root)}\ngit says: {said}")
    return ToolError(f"{what} failed with exit code {result.exit_code}. git says: {said or '(nothing)'}")


async def _read(context: ToolContext, what: str, arguments: Sequence[str], limit: int = _LIST_LIMIT) -> ProcessResult:
    result = await _git(context, [*_READING, *arguments], limit=limit)
    if result.exit_code != 0:
        raise _failure(context, what, result)
    return result


@tool(access=["read"], group="git", requires=["program:git"])
async def git_status(context: ToolContext) -> str:
    """Branch, merge or rebase in progress, staged, changed and untracked files."""
    result = await _read(context, "git status", ["status", "--long", "--untracked-files=normal", "--no-column"])
    return output_text(result.output, result.omitted, "Run git status -- FOLDER for a part.").strip()


@tool(access=["read"], group="git", requires=["program:git"])
async def git_diff(
    context: ToolContext,
    staged: Annotated[bool, "What the next commit holds, instead of what is not staged"] = False,
    path: Annotated[str | None, "Only this file or folder"] = None,
    ref: Annotated[str | None, "Against this commit or branch, or between two: A..B"] = None,
) -> str:
    """Show changes as a unified diff. Untracked files are not in it."""
    if staged and ref and ".." in ref:
        raise ToolError(f"staged compares with one commit, and {ref!r} names two. Leave out staged, or name one.")
    revision = await _resolved(context, ref) if ref else []
    scope = ["--", *([context.paths.locate(path)] if path else [])]
    options = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"]
    if staged:
        options.append("--cached")
    result = await _read(context, "git diff", [*options, *revision, *scope], limit=2 * DIFF_LIMIT)
    if not result.output:
        where = f" in {path}" if path else ""
        return f"No differences{where}. Staged changes show with staged=true, untracked files in git_status."
    if len(result.output) <= DIFF_LIMIT:
        return result.output.decode("utf-8", "replace")
    overview = await _read(context, "git diff", [*options, "--stat=100", *revision, *scope], limit=_STAT_LIMIT)
    return _beginning(result, overview)


def _beginning(diff: ProcessResult, overview: ProcessResult) -> str:
    """The list of files, and of the diff as many whole lines as fit."""
    stat = output_text(overview.output, overview.omitted, "Pass path for one folder.").rstrip()
    room = DIFF_LIMIT - len(stat.encode())
    shown = diff.output[: diff.output.rfind(b"\n", 0, room) + 1] or diff.output[:room]
    rest = len(diff.output) + diff.omitted - len(shown)
    text = shown.decode("utf-8", "replace").rstrip("\n")
    return f"{stat}\n\n{text}\n[... {rest:,} bytes omitted. Pass path to see one file or folder.]"


async def _resolved(context: ToolContext, ref: str) -> list[str]:
    """The commit or commits as hashes: where git diff finds none it compares files, also outside the sandbox."""
    first, dots, second = re.fullmatch(r"(.*?)(?:(\.{2,3})(.*))?", ref, re.DOTALL).groups("")  # type: ignore[union-attr]  # it matches any text
    sides = [await _hash_of(context, side or "HEAD") for side in ([first, second] if dots else [first])]
    return [dots.join(sides)]


async def _hash_of(context: ToolContext, name: str) -> str:
    if name.startswith("-") or "\0" in name:
        raise ToolError(f"{name!r} is no commit: names do not start with '-'. git_log shows the commits.")
    what = f"Looking for the commit {name!r}"
    result = await _read(context, what, ["rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}"])
    return result.output.decode("ascii").strip()


@tool(access=["read"], group="git", requires=["program:git"])
async def git_log(
    context: ToolContext,
    max_count: Annotated[int, Field(ge=1, le=200)] = 10,
    oneline: Annotated[bool, "One line a commit, or the whole message"] = True,
    path: Annotated[str | None, "Only commits that change this file or folder"] = None,
) -> str:
    """Recent commits, newest first: hash, date, author, branches, message."""
    shape = "%h %ad %an:%d %s" if oneline else "commit %H%d%nAuthor: %an <%ae>%nDate:   %ad%n%n%w(0,4,4)%B%w()"
    scope = ["--", *([context.paths.locate(path)] if path else [])]
    date = "--date=short" if oneline else "--date=iso"
    result = await _read(
        context,
        "git log",
        ["log", f"--max-count={max_count}", f"--format={shape}", date, "--no-color", "--no-patch", *scope],
        limit=DIFF_LIMIT,
    )
    log = output_text(result.output, result.omitted, "Ask for fewer commits.").strip()
    return log or f"No commit changes {path}. git_status shows what is not committed."


@tool(access=["write", "exec"], group="git", requires=["program:git"])
async def git_commit(
    context: ToolContext,
    message: str,
    add_all: Annotated[bool, "Stage all changes below the working directory first"] = True,
    paths: Annotated[list[str] | None, "Commit exactly these instead"] = None,
) -> ToolResult:
    """Stage and commit. The ticket id is added to the message; hooks run."""
    if not message.strip():
        raise ToolError("The commit message is empty. Say in one line what changes, and why.")
    scope = [context.paths.locate(path) for path in paths or ()]
    await _refuse_conflict_markers(context)
    if scope or add_all:
        staging = await _git(context, [*_WRITING, "add", "--all", "--", *(scope or ["."])])
        if staging.exit_code != 0:
            raise _failure(context, "git add", staging)
    only = ["--only", "--", *scope] if scope else []
    result = await _git(
        context,
        [*_WRITING, "commit", "--file=-", "--cleanup=whitespace", *only],
        stdin=_with_ticket(message, context.session.ticket).encode("utf-8", "replace"),
    )
    if result.exit_code != 0:
        raise _nothing_to_commit(result, add_all or bool(scope)) or _failure(context, "git commit", result)
    return _committed(result)


def _committed(result: ProcessResult) -> ToolResult:
    text = output_text(result.output, result.omitted, "git_log and git_diff show more.").strip()
    said = output_text(result.stderr, 0, "")[:_ERROR_LIMIT].strip()
    made = re.match(r"\[.*?([0-9a-f]{4,40})\] ", text)
    return ToolResult(
        content=f"Committed: {text}" + (f"\ngit and its hooks say:\n{said}" if said else ""),
        details={"commit": made[1] if made else ""},
    )


def _nothing_to_commit(result: ProcessResult, staged: bool) -> ToolError | None:
    said = result.output.decode("utf-8", "replace")
    if not re.search("^(nothing to commit|nothing added|no changes added)", said, re.MULTILINE):
        return None
    if staged:
        return ToolError("Nothing to commit: there are no changes. git_log shows what is committed already.")
    return ToolError("Nothing to commit: nothing is staged. Pass paths, or add_all=true.")


def _with_ticket(message: str, ticket: str) -> str:
    """The message, with the ticket's id as a trailer where it does not name the ticket already."""
    message = message.strip()
    if not ticket or re.search(rf"(?<![\w-]){re.escape(ticket)}(?![\w-])", message):
        return message + "\n"
    last = message.rpartition("\n\n")[2] if "\n\n" in message else ""
    is_trailer = bool(last) and all(re.match(r"[A-Za-z][A-Za-z-]*: \S", line) for line in last.splitlines())
    return f"{message}\n{'' if is_trailer else chr(10)}Ticket: {ticket}\n"


async def _refuse_conflict_markers(context: ToolContext) -> None:
    """Staging a file counts as resolving its conflict; one that still has markers is not resolved."""
    listed = await _git(context, [*_READING, "ls-files", "--unmerged", "-z"])
    if listed.exit_code != 0:
        raise _failure(context, "git commit", listed)
    names = {entry.partition(b"\t")[2].decode("utf-8", "surrogateescape") for entry in listed.output.split(b"\0")}
    marked = sorted(name for name in names - {""} if _has_markers(context, name))
    if marked:
        raise ToolError(
            f"Nothing was committed: there are conflict markers (<<<<<<<) in {', '.join(marked)}. "
            "Edit each to what it should be, then commit again."
        )


def _has_markers(context: ToolContext, name: str) -> bool:
    try:
        with context.paths.open(name) as file:
            return any(line.startswith((b"<<<<<<< ", b">>>>>>> ")) for line in file)
    except ToolError:  # deleted in one of the two: there is nothing to mark
        return False
