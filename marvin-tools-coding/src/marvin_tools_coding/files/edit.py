"""The tools that write files: create_file, append_file, write_file and apply_patch."""

from __future__ import annotations

import os
from typing import Annotated

from marvin_core import Call, Field, ToolContext, ToolError, ToolResult, tool

from .diffs import unified_diff
from .foreign_patches import explain_refusal
from .matching import NoMatch, Replacement, replace_once
from .textfiles import HEAD_BYTES, UTF8, Codec, binary_kind, codecs_of, count_lines, refuse_binary

_DIFF_LIMIT = 1_000_000

FilePath = Annotated[str, "File, relative to the working directory"]


@tool(access=["write"], group="files", passes=["writable-files"])
async def create_file(context: ToolContext, path: FilePath, content: str) -> str:
    """Create a new file, and its folders. Fails if the file exists."""
    data = UTF8.encode(content, path)
    try:
        context.paths.replace(path, data, create_only=True)
    except ToolError as error:
        if not isinstance(error.__cause__, FileExistsError):
            raise
        hint = "Change it with apply_patch, or overwrite it with write_file."
        raise ToolError(f"{path!r} exists already, and nothing was changed. {hint}") from error
    return f"Created {path}: {_size(content, data)}."


@tool(access=["write"], group="files", passes=["writable-files"])
async def append_file(context: ToolContext, path: FilePath, content: Annotated[str, Field(min_length=1)]) -> str:
    """Append to an existing file exactly as given. Write large files in sections with it."""
    if not content:
        raise ToolError("content is empty, so there is nothing to append. Give the text to append.")
    try:
        data = _read(context, path)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            hint = "append_file needs an existing file; make a new one with create_file."
            raise ToolError(f"{error}\n{hint}") from error
        raise
    codec = codecs_of(data)[0]
    addition = codec.replace(mark=b"").encode(content, path)
    context.paths.replace(path, data + addition)
    notes = ""
    if data and not codec.decode(data).endswith("\n"):
        notes += " The file did not end in a newline, so its last line goes on with this text."
    if b"\r\n" in data and "\n" in content.replace("\r\n", ""):
        notes += " The file has CRLF line ends, the appended text LF."
    total = len(data) + len(addition)
    return f"Appended {_size(content, addition)} to {path}; it has {total:,} bytes now.{notes}"


@tool(access=["write"], group="files", passes=["writable-files"])
async def write_file(context: ToolContext, path: FilePath, content: str) -> ToolResult:
    """Create a file, or replace all of an existing one."""
    data = UTF8.encode(content, path)
    try:
        with context.paths.open(path) as file:
            old_size, old = os.fstat(file.fileno()).st_size, file.read(_DIFF_LIMIT)
        said = f"Replaced {path}, which had {old_size:,} bytes: {_size(content, data)}."
    except ToolError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        old_size, old = 0, b""
        said = f"Created {path}: {_size(content, data)}."
    context.paths.replace(path, data)
    if max(old_size, len(data)) > _DIFF_LIMIT or binary_kind(old):
        return ToolResult(content=said)
    diff = unified_diff(path, old.decode("utf-8", "replace"), content)
    return ToolResult(content=said, details={"diff": diff})


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
    data = _read(context, target)
    codec, before, change = _change(target, data, old, new)
    context.paths.replace(target, codec.encode(change.text, target))
    return ToolResult(
        content=(
            f"Changed {target} at line {change.line}: {change.removed} line(s) replaced by {change.added}. "
            f"The file has {count_lines(change.text):,} lines now."
        ),
        details={"diff": unified_diff(target, before, change.text)},
        undo=_undo(target, before, change, old, new),
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


def _change(path: str, data: bytes, old: str, new: str) -> tuple[Codec, str, Replacement]:
    """The change, in the first encoding of the file in which the text occurs."""
    *others, last = codecs_of(data)
    for codec in others:
        try:
            text = codec.decode(data)
            return codec, text, replace_once(path, text, old, new)
        except NoMatch:
            continue
    text = last.decode(data)
    return last, text, replace_once(path, text, old, new)


def _undo(path: str, before: str, change: Replacement, old: str, new: str) -> Call | None:
    """The call that takes a change back, where it does so exactly."""
    if not new:
        return None
    try:
        restored = replace_once(path, change.text, new, old)
    except ToolError:
        return None
    if restored.text != before:
        return None
    return Call(name="apply_patch", arguments={"path": path, "old_str": new, "new_str": old})


def _read(context: ToolContext, path: str) -> bytes:
    with context.paths.open(path) as file:
        data = file.read()
    refuse_binary(path, data[:HEAD_BYTES], len(data))
    return data


def _size(content: str, data: bytes) -> str:
    return f"{count_lines(content):,} lines, {len(data):,} bytes"
