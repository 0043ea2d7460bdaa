"""Runs git. No string of the model is parsed as an option or a pattern, nothing waits for a terminal, and
reading commands run no program that the repository's configuration names."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from marvin_core import (
    GIT_ALONE,
    GIT_ASKS_NOBODY,
    GIT_PROGRAMS,
    ProcessResult,
    ToolContext,
    ToolError,
    git_command,
    git_without_programs,
    output_text,
)

from .here import without_names_elsewhere

T = TypeVar("T")

DIFF_LIMIT = 50_000
LIST_LIMIT = 20_000
ERROR_LIMIT = 6_000
LOCK_TRIES = 10
"""How often the index is tried to be changed: a `git status` of an editor locks it for a moment."""
LOCK_PAUSE = 0.1
"""Seconds between two of these tries."""
_PATIENCE = 10.0
"""Seconds for which a cancellation waits for work that is to be completed."""
_NAMES_LIMIT = 20_000_000


_WRITING_INSIDE = (sys.executable, "-I", "-S", "-B", str(Path(__file__).with_name("write_inside.py")))
_WRITING = (*git_command(alone=False), "--no-literal-pathspecs")
"""Options for commands of which hooks and filters run. These inherit them: with `--literal-pathspecs`, the
`git diff --cached --name-only -- '*.py'` of a hook finds nothing to check, and `git stash` fails. See `literal`."""
_LITERAL = ":(literal)"
_PRIVATE = (*git_command(), "--literal-pathspecs")
"""Options for what Marvin writes for itself: no hooks, no file system monitor."""
_READING = (*_PRIVATE, "--no-optional-locks")
_RUNS_PROGRAMS = ("status", "diff", "blame")
"""Commands that read files through filters, or may write the index, which runs a hook."""
LISTS_STAGED = ("diff", "--cached", "--raw")
"""The first words of a diff that reads no files and does not write the index."""
WITHOUT_INDEX = {"GIT_INDEX_FILE": "/marvin-reads-no-index"}
"""A variable for diffs between commits. Once git knows the index, it reads a file of the working tree in place of a
commit's if it takes both for the same (`reuse_worktree_file` in its diff.c), and the file may lie outside by then."""
_UNSUPPORTED = {"check-ignore": ("--literal-pathspecs",)}
"""Options that a command refuses. Names that it gets begin with `./`, so that none is a pathspec with magic."""

_ELSEWHERE = (
    "[git_checkout changes files in the working directory and in .git only. If a filter or a hook needs others, "
    "run_command: git switch, or git checkout]"
)
_ADVICE = {
    "from promisor remote": (
        "This clone is partial, and what is needed is not in it. Tools that read fetch nothing. To fetch all, "
        "run_command: git fetch --refetch --no-filter"
    ),
    "dubious ownership": (
        "The repository belongs to another user, so git refuses it. If the user trusts it, run_command: "
        "git config --global --add safe.directory {root}"
    ),
    "not a git repository": (
        "{root} is not in a git repository. Change to one with set_working_dir, or run_command: git init"
    ),
    "does not have any commits yet": "There are no commits yet: this is a new repository.",
    "Needed a single revision": "There is no such commit or branch. git_log and git_branch list them.",
    r"\.lock': File exists": (
        "Another git command is running here, or one was killed. Try again. If this continues and no git is "
        "running, remove the .lock file in the message with run_command."
    ),
    "cannot lock ref .* is at [0-9a-f]+ but expected": (
        "Somebody else committed, or switched the branch, in the same moment. Look at git_log; try again."
    ),
    "untracked working tree files would be overwritten": (
        "Nothing was switched. The listed files are in no commit of this branch, and the other branch has files of the "
        "same names, which git_show(ref, path) shows. Move yours away with run_command. If a checkout was killed, it "
        "may have left them: remove those that are the same."
    ),
    "would be overwritten by checkout": (
        "Nothing was switched. Commit the listed files first with git_commit, or run_command: git stash"
    ),
    "resolve your current index first": "Resolve the conflicts that git_status lists first, and commit.",
    "cannot switch branch while": "First finish or abort the operation that git_status reports.",
    "already checked out": "That branch is open in another worktree. Change to it with set_working_dir.",
    "already used by worktree": "That branch is open in another worktree. Change to it with set_working_dir.",
    "a branch named": "Leave out create_branch to switch to it, or use another name.",
    "not a valid branch name": "Use a name without spaces, '..', '~', '^', ':' and a leading hyphen.",
    "ignored by one of your .gitignore": "To commit an ignored file anyway, run_command: git add -f FILE",
    "no such path": "There is no such path in that commit. git_status lists the changes.",
    "did not match any file": "No such file exists on disk or in git. git_status lists the changes.",
    "partial commit during a": (
        "A merge, cherry-pick or rebase is committed as a whole: call git_commit without paths, in the top folder."
    ),
    "unmerged files": "Resolve the conflicts in the files that git_status lists, then use add_all=true.",
    "gpg failed to sign": "Commits are signed here, which only the user can do: ask them to commit, or to unlock "
    "the key.",
} | dict.fromkeys(
    ("Please tell me who you are", "auto-detect email", "empty ident name", "auto-detection is disabled"),
    "git does not know who commits. Ask the user, then run_command: "
    "git config user.name NAME && git config user.email ADDRESS",
)
"""What to do next, by a pattern of a part of git's message. Hooks may say similar things."""


def literal(paths: Iterable[str]) -> list[str]:
    """Pathspecs of exactly these paths, for commands that write."""
    return [f"{_LITERAL}{path}" for path in paths]


async def run(
    context: ToolContext,
    arguments: Sequence[str],
    *,
    limit: int = LIST_LIMIT,
    stdin: bytes | None = None,
    env: Mapping[str, str] = GIT_ASKS_NOBODY,
    on_output: Callable[[str], None] | None = None,
    interrupt: bool = False,
) -> ProcessResult:
    """Run a program in the working directory."""
    return await context.processes.run(
        arguments,
        cwd=context.paths.root,
        stdin=stdin,
        output_limit=limit,
        env=env,
        on_output=on_output,
        interrupt=interrupt,
    )


async def write(
    context: ToolContext, what: str, arguments: Sequence[str], *, stdin: bytes | None = None
) -> ProcessResult:
    """Run git with its hooks, filters and signatures. Raises `ToolError` if it fails."""
    result = await try_write(context, arguments, stdin=stdin)
    if result.exit_code != 0:
        raise failure(context, what, result)
    return result


async def try_write(
    context: ToolContext,
    arguments: Sequence[str],
    *,
    stdin: bytes | None = None,
    on_output: Callable[[str], None] | None = None,
    interrupt: bool = False,
) -> ProcessResult:
    """The same, for callers that check the exit code. Output of hooks is shown while they run.

    With `interrupt`, a cancellation gives hooks time to clean up.
    """
    shown = None if "--dry-run" in arguments else on_output or context.progress
    return await run(context, [*_WRITING, *arguments], stdin=stdin, on_output=shown, interrupt=interrupt)


async def change_files(
    context: ToolContext, what: str, arguments: Sequence[str], folders: Sequence[Path], *, stdin: bytes | None = None
) -> ProcessResult:
    """The same as `write`, for commands that change files of the working tree; those elsewhere stay as they are.

    Cancellations let it end: nobody can tell what half a checkout has left from changes of the user, and git refuses to
    go on with it.

    Args:
        folders: where files may change. Elsewhere a link may lead that a folder was replaced by.
    """
    through = (*_WRITING_INSIDE, *map(str, folders), "--") if sys.platform == "linux" else ()
    result = await completed(run(context, [*through, *_WRITING, *arguments], stdin=stdin, on_output=context.progress))
    is_denied = bool(through) and b"permission denied" in result.stderr.lower()
    if result.exit_code == 0:  # git goes on without a filter that fails and is not required
        return result.replace(stderr=result.stderr + f"\n{_ELSEWHERE}".encode()) if is_denied else result
    error = failure(context, what, result)
    if is_denied:
        raise ToolError(f"{error}\n{_ELSEWHERE}")
    raise error


async def keep(
    context: ToolContext, arguments: Sequence[str], env: Mapping[str, str], *, stdin: bytes | None = None
) -> ProcessResult:
    """Run git for what Marvin keeps in the repository for itself: without hooks and without fetching."""
    switches = await _without_programs(context)
    return await run(context, [*_PRIVATE, *arguments], env={**GIT_ALONE, **switches, **env}, stdin=stdin)


async def keep_unlocked(context: ToolContext, arguments: Sequence[str], stdin: bytes | None = None) -> ProcessResult:
    """The same for a command that locks the index: it is run again while another git holds the lock."""
    result = await keep(context, arguments, {}, stdin=stdin)
    for _ in range(LOCK_TRIES - 1):
        if not is_locked(result):
            break
        await asyncio.sleep(LOCK_PAUSE)
        result = await keep(context, arguments, {}, stdin=stdin)
    return result


async def completed(work: Coroutine[Any, Any, T]) -> T:
    """The result of work that cancellations are to let end; if that takes long, it is cancelled."""
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        until = loop.time() + _PATIENCE
        while not task.done() and (left := until - loop.time()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task], timeout=left)
        if not task.done():
            task.cancel()
            await asyncio.wait([task])  # its processes end
            raise
        return await task


def is_locked(result: ProcessResult) -> bool:
    """Whether git has failed because another git holds a lock."""
    return result.exit_code != 0 and b".lock': File exists" in result.stderr


async def hash_object(
    context: ToolContext,
    path: str,
    content: bytes,
    options: Sequence[str],
    *,
    alone: bool,
    env: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The hash of what git makes of a content; empty if a filter fails.

    Args:
        path: the file that git takes it for.
        options: settings for git, then those of `git hash-object`.
        alone: whether filters of the repository are switched off.
    """
    arguments = [*options, "--stdin", f"--path={path}"]
    if alone:
        result = await keep(context, arguments, env, stdin=content)
    else:
        result = await run(context, [*_WRITING, *arguments], stdin=content, env={**GIT_ASKS_NOBODY, **env})
    return result.output.decode("ascii", "replace").strip() if result.exit_code == 0 else ""


async def read(
    context: ToolContext,
    what: str,
    arguments: Sequence[str],
    limit: int = LIST_LIMIT,
    env: Mapping[str, str] = MappingProxyType({}),
) -> ProcessResult:
    """Run git to read only, with `env` added to its variables. Raises `ToolError` if it fails."""
    given = {**await _environment(context, arguments), **env}
    result = await run(context, [*_READING, *arguments], limit=limit, env=given)
    if result.exit_code != 0:
        raise failure(context, what, result)
    return result


async def try_read(
    context: ToolContext,
    arguments: Sequence[str],
    limit: int = LIST_LIMIT,
    *,
    stdin: bytes | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
) -> ProcessResult:
    """The same, for callers that check the exit code."""
    given = {**await _environment(context, arguments), **env}
    return await run(context, [*_READING, *arguments], limit=limit, env=given, stdin=stdin)


async def read_staged(
    context: ToolContext, git_dir: Path, what: str, arguments: Sequence[str], limit: int = LIST_LIMIT
) -> ProcessResult:
    """The same as `read`, for the index; names are relative to the top of the repository.

    So that git reads no files of the working tree (see `WITHOUT_INDEX`), it is given a working tree without files, and
    a folder that has none of them. It takes attributes from what is staged.
    """
    # The user may have set both, relative to a folder.
    asked = ["rev-parse", "--path-format=absolute", "--git-path", "index", "--git-path", "objects"]
    said = await read(context, what, asked)
    index, objects = said.output.decode("utf-8", "surrogateescape").rstrip("\n").split("\n")
    env = {
        **await _environment(context, arguments),
        "GIT_DIR": str(git_dir),
        "GIT_WORK_TREE": str(git_dir),
        "GIT_INDEX_FILE": index,
        "GIT_OBJECT_DIRECTORY": objects,
    }
    command = [*_READING, *arguments]
    result = await context.processes.run(command, cwd=Path(git_dir.anchor), output_limit=limit, env=env)
    if result.exit_code != 0:
        raise failure(context, what, result)
    return result


async def names(context: ToolContext, what: str, arguments: Sequence[str], *, stdin: bytes | None = None) -> list[str]:
    """The names, or other NUL-terminated fields, that git lists. Exit code 1 with no output means none.

    Raises:
        ToolError: git fails, or the list exceeds 20 MB.
    """
    env = await _environment(context, arguments)
    options = [option for option in _READING if option not in _UNSUPPORTED.get(arguments[0], ())]
    result = await run(context, [*options, *arguments], limit=_NAMES_LIMIT, stdin=stdin, env=env)
    if result.exit_code not in (0, 1) or (result.exit_code == 1 and result.stderr):
        raise failure(context, what, result)
    if result.omitted:
        raise ToolError(
            f"{what} failed: there are too many files. Pass paths, or add files that should not be committed to "
            ".gitignore."
        )
    return [name for name in result.output.decode("utf-8", "surrogateescape").split("\0") if name]


def failure(context: ToolContext, what: str, result: ProcessResult) -> ToolError:
    """git's error message, with advice if there is any."""
    said = output_text(result.stderr + result.output, result.omitted, "")[:ERROR_LIMIT].strip()
    said = said.partition("\nusage: ")[0]  # outside of a repository git diff prints its usage
    said = without_names_elsewhere(context.paths.root, said.replace(_LITERAL, ""))
    for sign, advice in _ADVICE.items():
        if re.search(sign, said, re.IGNORECASE):
            return ToolError(f"{what} failed. {advice.format(root=context.paths.root)}\ngit says: {said}")
    if result.exit_code is not None and result.exit_code < 0:
        return ToolError(
            f"{what} failed: a program, or the system for lack of memory, ended git (signal {-result.exit_code}). "
            f"git_status shows what is done; then try again. git says: {said or '(nothing)'}"
        )
    how = "was ended" if result.exit_code is None else f"failed with exit code {result.exit_code}"
    return ToolError(f"{what} {how}. git says: {said or '(nothing)'}")


async def _environment(context: ToolContext, arguments: Sequence[str]) -> Mapping[str, str]:
    """The variables of a command that reads."""
    runs_programs = arguments[0] in _RUNS_PROGRAMS and tuple(arguments[:3]) != LISTS_STAGED
    return {**GIT_ALONE, **await _without_programs(context)} if runs_programs else GIT_ALONE


async def _without_programs(context: ToolContext) -> dict[str, str]:
    """Environment variables that switch off all hooks, and the filters of the repository's config."""
    listed = await run(context, [*_PRIVATE, *GIT_PROGRAMS], env=GIT_ALONE)
    if listed.exit_code not in (0, 1):  # 1: there are no filters
        raise failure(context, "Reading the configuration", listed)
    if listed.omitted:
        raise ToolError(
            "The repository configures too many filters and hooks to switch them off. Use run_command: git status"
        )
    return git_without_programs(listed.output)


async def hash_of(context: ToolContext, name: str) -> str:
    """The hash of a commit's name. Raises `ToolError` if there is none."""
    if name.startswith("-") or "\0" in name:
        raise ToolError(f"{name!r} is not a commit: names do not start with '-'. git_log shows the commits.")
    what = f"Looking for the commit {name!r}"
    result = await read(context, what, ["rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}"])
    return result.output.decode("ascii").strip()
