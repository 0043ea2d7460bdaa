"""The tools that write files: create_file, append_file, write_file and apply_patch."""

from __future__ import annotations

from typing import Annotated

from marvin_core import (
    Call,
    Field,
    FileChange,
    ToolContext,
    ToolError,
    ToolResult,
    append_to_file,
    count_lines,
    replace_in_file,
    tool,
    write_text_file,
)

from .foreign_patches import explain_refusal

FilePath = Annotated[str, "File, relative to the working directory"]


@tool(access=["write"], group="files", passes=["writable-files"])
async def create_file(context: ToolContext, path: FilePath, content: str) -> str:
    """Create a new file, and its folders. Fails if the file exists."""
    try:
        written = write_text_file(context.paths, path, content, create_only=True)
    except ToolError as error:
        if not isinstance(error.__cause__, FileExistsError):
            raise
        hint = "Change it with apply_patch, or overwrite it with write_file."
        raise ToolError(f"{path!r} exists already, and nothing was changed. {hint}") from error
    return f"Created {path}: {_size(content, written.size)}."


@tool(access=["write"], group="files", passes=["writable-files"])
async def append_file(context: ToolContext, path: FilePath, content: Annotated[str, Field(min_length=1)]) -> str:
    """Append to an existing file exactly as given. Write large files in sections with it."""
    if not content:
        raise ToolError("content is empty, so there is nothing to append. Give the text to append.")
    try:
        appended = append_to_file(context.paths, path, content)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            hint = "append_file needs an existing file; make a new one with create_file."
            raise ToolError(f"{error}\n{hint}") from error
        raise
    notes = ""
    if appended.joins_line:
        notes += " The file did not end in a newline, so its last line goes on with this text."
    if appended.mixes_line_ends:
        notes += " The file has CRLF line ends, the appended text LF."
    return f"Appended {_size(content, appended.size)} to {path}; it has {appended.total:,} bytes now.{notes}"


@tool(access=["write"], group="files", passes=["writable-files"])
async def write_file(context: ToolContext, path: FilePath, content: str) -> ToolResult:
    """Create a file, or replace all of an existing one."""
    written = write_text_file(context.paths, path, content)
    size = _size(content, written.size)
    if written.old_size is None:
        said = f"Created {path}: {size}."
    else:
        said = f"Replaced {path}, which had {written.old_size:,} bytes: {size}."
    return ToolResult(content=said, details={"diff": written.diff} if written.diff else None)


@tool(
    access=["write"],
    group="files",
    passes=["writable-files"],
    too_long="Make smaller changes, one in each call; add large content in sections with append_file.",
)
async def apply_patch(
    context: ToolContext,
    path: Annotated[str | None, "File, relative to the working directory"] = None,
    old_str: Annotated[
        str | None, Field(min_length=1), "Text to replace, exactly as in the file, without line numbers"
    ] = None,
    new_str: Annotated[str | None, 'Its replacement; "" deletes'] = None,
    patch: Annotated[str | None, "Not supported yet: use path, old_str and new_str"] = None,
) -> ToolResult:
    """Replace one text in a file. old_str must occur exactly once: include enough lines around it."""
    if patch:
        raise ToolError(explain_refusal(patch, path))
    target, old, new = _checked(path, old_str, new_str)
    change = replace_in_file(context.paths, target, old, new)
    return ToolResult(
        content=(
            f"Changed {target} at line {change.line}: {change.removed} line(s) replaced by {change.added}. "
            f"The file has {count_lines(change.after):,} lines now."
        ),
        details={"diff": change.diff},
        undo=_undo(change, old, new),
    )


def _checked(path: str | None, old: str | None, new: str | None) -> tuple[str, str, str]:
    correct = 'Correct call: apply_patch({"path": "a.py", "old_str": "exact text", "new_str": "new text"})'
    if path is None:
        raise ToolError(f"path is missing: name the file to change. {correct}")
    if old is None:
        raise ToolError(f"old_str is missing: give the exact text to replace. {correct}")
    if not old:
        raise ToolError(f"old_str is empty: give the exact text to replace, or use create_file. {correct}")
    if new is None:
        raise ToolError(f'new_str is missing; nothing was changed. To delete old_str give "". {correct}')
    if old == new:
        raise ToolError("old_str and new_str are the same: nothing to change. Check what should differ.")
    return path, old, new


def _undo(change: FileChange, old: str, new: str) -> Call | None:
    """The call that takes a change back, where it does so exactly."""
    if not change.is_undone_by(old, new):
        return None
    return Call(name="apply_patch", arguments={"path": change.path, "old_str": new, "new_str": old})


def _size(content: str, size: int) -> str:
    return f"{count_lines(content):,} lines, {size:,} bytes"
