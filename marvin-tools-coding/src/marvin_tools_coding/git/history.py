"""The tools git_show and git_blame: a commit, a file at a commit, and the authors of its lines."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

from marvin_core import Field, ProcessResult, ToolContext, ToolError, in_thread, output_text, tool

from .adapters import BLAME_NAMES, GIT_IGNORED, SHOW_NAMES, blame_arguments, show_arguments
from .place import Place, find
from .running import DIFF_LIMIT, LIST_LIMIT, WITHOUT_INDEX, failure, hash_of, read, try_read

_HEADER = "commit %H%d%nParents: %p%nAuthor: %an <%ae>%nDate:   %ad%n%n%w(0,4,4)%B%w()"
_PATCH = ("--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
_LARGEST = 100_000_000
_BINARY_SAMPLE = 8_000
_SUBMODULE = "{} is a submodule at another repository's commit. Change into it with set_working_dir."
_UNCOMMITTED = (b"(External file (--contents) ", b"(Not Committed Yet          ")
"""Of lines that are in no commit: what git says of a content that it was given, and what it says of a file."""


@tool(
    access=["read"],
    group="git",
    requires=["program:git"],
    aliases=SHOW_NAMES,
    ignores=GIT_IGNORED,
    adapt=show_arguments,
)
async def git_show(
    context: ToolContext,
    ref: Annotated[str, "Commit, branch or tag"] = "HEAD",
    path: Annotated[str, "A file as it was in that commit, or a folder to list"] = "",
) -> str:
    """Show one commit: message, changed files, diff (50 KB at most). With path: that file as it was at ref."""
    place = await find(context, "git show", files=False)
    commit = await hash_of(context, ref)
    if path:
        return await _path_at(context, place, commit, (context.paths.locate(path), f"{path} at {ref}"))
    return await _commit(context, place, commit)


async def _commit(context: ToolContext, place: Place, commit: str) -> str:
    header = await read(context, "git show", ["show", "--no-patch", f"--format={_HEADER}", "--date=iso", commit])
    scope = ["--", *place.scope]
    options = ["show", "--format=", *_PATCH]
    stat = await read(context, "git show", [*options, "--stat=100", commit, *scope], env=WITHOUT_INDEX)
    patch = await read(context, "git show", [*options, commit, *scope], 2 * DIFF_LIMIT, WITHOUT_INDEX)
    files = output_text(stat.output, stat.omitted, "git_diff with ref and path shows a part.").rstrip()
    begin = output_text(header.output, header.omitted, "").rstrip()
    none = f"(It changes nothing in {place.prefix})" if place.below else "(It changes no file.)"
    diff = _cut(patch, DIFF_LIMIT, f"git_diff(ref='{commit[:12]}~1..{commit[:12]}', path=...) shows one file.")
    return "\n\n".join(filter(None, (begin, files or none, diff)))


def _cut(result: ProcessResult, limit: int, how: str) -> str:
    """As many whole lines from the start as fit."""
    if len(result.output) + result.omitted <= limit:
        return result.output.decode("utf-8", "replace").rstrip("\n")
    shown = result.output[: result.output.rfind(b"\n", 0, limit) + 1] or result.output[:limit]
    rest = len(result.output) + result.omitted - len(shown)
    text = shown.decode("utf-8", "replace").rstrip("\n")
    return f"{text}\n[... {rest:,} bytes omitted after line {shown.count(bytes([10])):,}. {how}]"


async def _path_at(context: ToolContext, place: Place, commit: str, path_and_name: tuple[str, str]) -> str:
    path, name = path_and_name
    whole = place.name_of(path)
    thing = f"{commit}:{whole}"
    kind = await try_read(context, ["cat-file", "-t", thing])
    if kind.exit_code != 0:
        return await _not_here(context, commit, whole, name)
    if kind.output == b"tree\n":
        listed = await read(context, "git show", ["ls-tree", "--name-only", thing])
        return output_text(listed.output, listed.omitted, "Show a folder in it.").rstrip() or "(empty folder)"
    if kind.output != b"blob\n":
        return _SUBMODULE.format(name)
    content = await read(context, "git show", ["cat-file", "blob", thing], limit=2 * DIFF_LIMIT)
    if b"\0" in content.output[:_BINARY_SAMPLE]:
        return f"{name} is a binary file of {len(content.output) + content.omitted:,} bytes."
    how = f"run_command: git show {commit[:12]}:{shlex.quote(whole)} | sed -n '1000,2000p'"
    return _cut(content, DIFF_LIMIT, f"To continue, {how}") or "(empty file)"


async def _not_here(context: ToolContext, commit: str, whole: str, name: str) -> str:
    """What a path is whose object is not in the repository. Raises `ToolError` unless it is a submodule."""
    listed = await try_read(context, ["ls-tree", "--full-tree", commit, "--", *filter(None, [whole])])
    if listed.output.startswith(b"160000 "):
        return _SUBMODULE.format(name)
    if listed.exit_code != 0 or listed.output:
        fetch = shlex.quote(f"{commit[:12]}:{whole}")
        raise ToolError(
            f"The content of {name} is not in this clone, which is partial or damaged, and tools that read fetch "
            f"nothing. To fetch it, run_command: git cat-file -p {fetch}"
        )
    raise ToolError(
        f"There is no {name}. git_log(path=...) shows the commits that changed a file; use the name that it had "
        "in that commit."
    )


@tool(
    access=["read"],
    group="git",
    requires=["program:git"],
    aliases=BLAME_NAMES,
    ignores=GIT_IGNORED,
    adapt=blame_arguments,
)
async def git_blame(
    context: ToolContext,
    path: Annotated[str, "The file"],
    start_line: Annotated[int | None, Field(ge=0), "First line, from 1"] = None,
    end_line: Annotated[int | None, Field(ge=0), "Last line"] = None,
) -> str:
    """Who last changed each line of a file, and in which commit. 20 KB at most: pass lines."""
    await find(context, "git blame")
    lines = f"{start_line or 1},{end_line or ''}"
    if start_line and end_line and end_line < start_line:
        raise ToolError(f"end_line {end_line} is before start_line {start_line}. Swap them.")
    located = context.paths.locate(path)
    kind = _kind(context, path, located)
    if kind in ("folder", "link"):
        raise ToolError(f"{path} is a {kind}. Pass one file; git_log(path={path!r}) shows who changed a {kind}.")
    # git opens files by name; if a folder became a link meanwhile, it would read a file outside.
    options = ["blame", "--no-textconv", "--date=short", "--abbrev=8", "--contents", "-", "-L", lines]
    content = await in_thread(lambda: _content(context, located))
    if content is None:
        raise await _no_blame(context, path, located, b"There is no such file in the working tree.")
    result = await try_read(context, [*options, "--", located], 2 * LIST_LIMIT, stdin=content)
    result = result.replace(output=result.output.replace(*_UNCOMMITTED))
    if result.exit_code != 0:
        if b"promisor remote" in result.stderr:
            raise failure(context, "git blame", result)
        raise await _no_blame(context, path, located, result.stderr)
    how = "Pass start_line and end_line for a part."
    return _cut(result, LIST_LIMIT, how)


def _kind(context: ToolContext, path: str, located: str) -> str:
    if os.path.islink(context.paths.root / located):
        return "link"
    return context.paths.stat(path).kind if context.paths.exists(path) else ""


def _content(context: ToolContext, path: str) -> bytes | None:
    try:
        with context.paths.open(path) as file:
            if os.fstat(file.fileno()).st_size > _LARGEST:
                raise ToolError(f"{path} has more than {_LARGEST:,} bytes, too many for git blame here.")
            return file.read()
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


async def _no_blame(context: ToolContext, path: str, located: str, stderr: bytes) -> ToolError:
    said = stderr.decode("utf-8", "replace").strip()
    known = await try_read(context, ["ls-files", "--error-unmatch", "--", located])
    if known.exit_code != 0 or "no such path" in said:
        return ToolError(f"No commit has {path}: it is new, ignored or does not exist. git_status lists new files.")
    if "has only 0 lines" in said:
        return ToolError(f"{path} is empty: there are no lines to show.")
    if "object name" in said:  # git's message quotes the file, which may lie anywhere
        return ToolError(
            "git blame failed: the setting blame.ignoreRevsFile names a file that is not a list of commits. Ask the "
            "user; run_command: git config --unset-all blame.ignoreRevsFile"
        )
    if "has only" in said:
        return ToolError(f"{said.removeprefix('fatal: ')}. Pass a smaller start_line.")
    return ToolError(f"git blame failed. git_log and git_show show deleted files.\ngit says: {said}")
