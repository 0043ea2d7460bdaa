"""The tools that write files: create_file, append_file, write_file and apply_patch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from marvin_core import (
    EditedFile,
    EditFailed,
    Field,
    KnownFiles,
    ToolContext,
    ToolError,
    ToolResult,
    append_to_file,
    count_lines,
    counted,
    edit_files,
    in_thread,
    tool,
    write_text_file,
)

from ..adapters import IGNORED, PATHS, for_real
from ..lsp.catalog import SUFFIXES
from .edit_arguments import (
    EVERY,
    NEWS,
    OLDS,
    PATCHES,
    EditArguments,
    created_arguments,
    edit_arguments,
    patches_of,
    written_arguments,
)

FilePath = Annotated[str, "File below the working directory"]
Content = Annotated[str, "Its whole content"]
_TEXTS = ("contents", "text", "file_text", "fileContent", "file_content", "code", "body", "data", "new_str")
_WHOLE = {"path": PATHS, "content": _TEXTS}
_FOLDERS = (*IGNORED, "create_dirs", "create_directories", "createDirectories", "mkdir", "parents")
"""Parameters that say to create folders, which is always done."""
_CREATE_IGNORED = (*_FOLDERS, "overwrite", "force")
_APPEND_IGNORED = (*_FOLDERS, "append")
_PLACES_SHOWN = 20


@tool(
    access=["write"],
    group="files",
    passes=["writable-files"],
    aliases=_WHOLE,
    ignores=_CREATE_IGNORED,
    adapt=created_arguments,
)
async def create_file(context: ToolContext, path: FilePath, content: Content) -> ToolResult:
    """Create a new file, and its folders. Fails if the file exists; apply_patch changes one."""
    known = _known(context)
    try:
        written = await in_thread(
            lambda: write_text_file(context.paths, path, content, create_only=True, known=known), to_the_end=True
        )
    except ToolError as error:
        if not isinstance(error.__cause__, FileExistsError):
            raise
        hint = "Change it with apply_patch, or overwrite it with write_file."
        raise ToolError(f"{path!r} exists already, and nothing was changed. {hint}") from error
    said = f"Created {path}: {_size(content, written.size)}."
    return await _looked_at(context, [path], ToolResult(content=said, details=_details(written.diff)))


@tool(
    access=["write"], group="files", passes=["writable-files"], aliases=_WHOLE, ignores=_APPEND_IGNORED, adapt=for_real
)
async def append_file(
    context: ToolContext, path: FilePath, content: Annotated[str, Field(min_length=1), "Text to add"]
) -> ToolResult:
    """Append to an existing file exactly as given. Write large files in sections with it, below 15 KB each."""
    if not content:
        raise ToolError("content is empty, so there is nothing to append. Give the text to append.")
    known = _known(context)
    try:
        appended = await in_thread(lambda: append_to_file(context.paths, path, content, known=known), to_the_end=True)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            hint = "append_file needs an existing file; create a new one with create_file."
            raise ToolError(f"{error}\n{hint}") from error
        raise
    notes = ""
    if appended.joins_line:
        notes += " The file did not end with a newline, so this text was added to its last line."
    if appended.mixes_line_ends:
        notes += " The file uses CRLF line endings, the appended text LF."
    result = ToolResult(
        content=f"Appended {_size(content, appended.size)} to {path}; "
        f"it has {counted(appended.total, 'byte')} now.{notes}",
        details=_details(appended.diff),
    )
    return await _looked_at(context, [path], result)


@tool(
    known_as=["write", "save", "write_to_file"],
    access=["write"],
    group="files",
    passes=["writable-files"],
    aliases=_WHOLE,
    ignores=_FOLDERS,
    adapt=written_arguments,
)
async def write_file(context: ToolContext, path: FilePath, content: Content) -> ToolResult:
    """Create a file, or replace all of an existing one, after read_file of all of it. apply_patch changes a part."""
    known = _known(context)
    written = await in_thread(lambda: write_text_file(context.paths, path, content, known=known), to_the_end=True)
    size = _size(content, written.size)
    if written.old_size is None:
        said = f"Created {path}: {size}."
    else:
        said = f"Replaced {path}, which had {counted(written.old_size, 'byte')}: {size}."
        if written.changes_line_ends:
            said += " Its lines ended in CRLF, and end in LF now. apply_patch keeps line ends."
    return await _looked_at(context, [path], ToolResult(content=said, details=_details(written.diff)))


@tool(
    known_as=[
        "edit",
        "multiedit",
        "edit_file",
        "multi_edit",
        "patch",
        "replace",
        "search_replace",
        "str_replace",
        "str_replace_editor",
        "str_replace_based_edit_tool",
        "notebookedit",
    ],
    access=["write"],
    group="files",
    passes=["writable-files"],
    too_long="Make smaller changes, one in each call; add large content in sections with append_file.",
    aliases={"path": PATHS, "old_str": OLDS, "new_str": NEWS, "patch": PATCHES, "replace_all": EVERY},
    unlisted=["edits", "replace_all", "expected_replacements", "keep_earlier", "command"],
    ignores=IGNORED,
    adapt=edit_arguments,
)
async def apply_patch(
    context: ToolContext,
    path: Annotated[str | None, "File below the working directory"] = None,
    old_str: Annotated[
        str | None, Field(json_schema_extra={"minLength": 1}), "Text to replace, as in the file, without line numbers"
    ] = None,
    new_str: Annotated[str | None, 'Its replacement; "" deletes'] = None,
    patch: Annotated[
        str | None, "Instead: '*** Begin Patch' envelope, SEARCH/REPLACE blocks or unified diff, for any files"
    ] = None,
    edits: list[dict[str, Any]] | dict[str, Any] | str | None = None,
    replace_all: bool = False,
    expected_replacements: int | None = None,
    keep_earlier: bool = False,
    command: list[str] | str | None = None,
) -> ToolResult:
    """Change existing files: replace old_str, which must occur exactly once, or apply a patch. All or nothing."""
    given = EditArguments(
        path=path,
        old=old_str,
        new=new_str,
        patch=patch,
        edits=edits,
        every=replace_all,
        times=expected_replacements,
        command=command,
    )
    known = _known(context)
    patches = await in_thread(lambda: patches_of(given))
    work = partial(edit_files, context.paths, patches, known=known, keep_earlier=keep_earlier)
    try:
        done = await in_thread(work, to_the_end=True)
    except EditFailed as error:
        if not error.occurs_often or patch:
            raise
        raise EditFailed(f'{error} To change all of them, pass "replace_all": true.') from error
    paths = [name for file in done for name in (file.path, file.moved_from) if name]
    result = await in_thread(lambda: ToolResult(content="\n".join(map(_said, done)), details=_details(_diffs(done))))
    return await _looked_at(context, paths, result)


async def _looked_at(context: ToolContext, paths: Sequence[str], result: ToolResult) -> ToolResult:
    """The result, with diagnostics of language servers for the files."""
    if not any(path.endswith(tuple(SUFFIXES)) for path in paths):
        return result  # nothing of language servers is imported
    from ..lsp.service import diagnostics_after

    said = await diagnostics_after(context, paths)
    return result.replace(content=f"{result.content}\n{said}") if said else result


def _known(context: ToolContext) -> KnownFiles | None:
    """The files that the session has read; None for a call by a person, who need not read a file first."""
    return None if context.origin in ("person", "typed") else KnownFiles(context.state)


def _diffs(files: Sequence[EditedFile]) -> str:
    return "".join(file.diff for file in files)


def _details(diff: str) -> dict[str, str] | None:
    return {"diff": diff} if diff else None


def _said(file: EditedFile) -> str:
    """What happened to a file, for the model."""
    notes = "".join(f" {note}" for note in file.notes)
    if file.kind == "deleted":
        return f"Deleted {file.path}.{notes}"
    size = _size(file.after, len(file.after.encode("utf-8", "replace")))
    if file.kind == "created":
        return f"Created {file.path}: {size}.{notes}"
    if file.kind == "replaced":
        return f"Replaced all of {file.path}, which had {counted(count_lines(file.before), 'line')}: {size}.{notes}"
    moved = f"Moved {file.moved_from} to {file.path}." if file.moved_from else ""
    changed = f"Changed {file.path} {_places(file)}" if file.places else ""
    return f"{moved} {changed}".strip() + notes


def _places(file: EditedFile) -> str:
    removed, added = sum(place.removed for place in file.places), sum(place.added for place in file.places)
    lines = [f"{place.line:,}" for place in file.places[:_PLACES_SHOWN]]
    if len(file.places) == 1:
        where = f"at line {lines[0]}"
    else:
        where = f"in {len(file.places):,} places, at lines {', '.join(lines)}"
        where += ", ..." if len(file.places) > len(lines) else ""
    how = "; ".join(dict.fromkeys(place.how for place in file.places if place.how))
    lenient = f" The match differs from the given text in {how}." if how else ""
    return (
        f"{where}: {counted(removed, 'line')} replaced by {added:,}. "
        f"The file has {counted(count_lines(file.after), 'line')} now.{lenient}"
    )


def _size(content: str, size: int) -> str:
    return f"{counted(count_lines(content), 'line')}, {counted(size, 'byte')}"
