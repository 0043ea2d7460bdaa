"""Converts what models send to apply_patch, in the formats of other programs, to patches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from posixpath import normpath
from typing import Any

from marvin_core import FilePatch, Hunk, Record, ToolError, is_patch, read_patch

from ..adapters import PATHS, for_real, refuse, taken, truth

OLDS = ("old_string", "oldString", "oldText", "old_text", "old", "search", "oldStr", "original", "target_content")
NEWS = ("new_string", "newString", "newText", "new_text", "new", "replace", "newStr", "replacement", "updated")
PATCHES = ("patchText", "patch_text", "diff", "input", "code_edit", "patch_content", "changes")
EVERY = ("replaceAll", "allow_multiple", "replace_all_occurrences")
_EDITS = ("str_replace", "replace", "edit", "update", "apply_patch")
_OTHERS = {
    "create": 'create_file({"path": ..., "content": ...})',
    "view": 'read_file({"path": ...})',
    "insert": "old_str (the line before the new ones) and new_str (that line followed by the new ones)",
    "undo_edit": "old_str and new_str swapped",
}
"""What to send instead of the other commands of an editing tool that models know from other programs."""
_CORRECT = 'Correct call: apply_patch({"path": "a.py", "old_str": "exact text", "new_str": "new text"})'


class EditArguments(Record):
    """The arguments of a call."""

    path: str | None = None
    old: str | None = None
    new: str | None = None
    patch: str | None = None
    edits: Sequence[Any] | Mapping[str, Any] | str | None = None
    every: bool = False
    times: int | None = None
    command: Sequence[str] | str | None = None


def patches_of(given: EditArguments) -> list[FilePatch]:
    """The changes that a call requests.

    Raises:
        ToolError: something is missing or malformed; the text says what to send.
    """
    text = _patch_text(given)
    if text is not None:
        path = given.path or ""
        return read_patch(text, "" if is_patch(path) else path)
    if given.edits:
        return _from_edits(given)
    return [_replacement(given)]


def edit_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of apply_patch. Parameters of commands that do not edit are no reason to refuse a call."""
    command = given.get("command")
    parts = command if isinstance(command, list) else [command]
    if command is not None and all(isinstance(part, str) for part in parts):  # else validation refuses it
        _check_command(command)
    return for_real(given)


def created_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of create_file. In other programs, an editing tool has a command that creates files."""
    if given.get("command") == "create":
        given.pop("command")
    return for_real(given)


def written_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of write_file, which overwrites and does not append."""
    if truth(taken(given, "overwrite", "force")) is False:
        raise ToolError("Nothing was done: write_file overwrites. Use create_file, which fails if the file exists.")
    refuse(given, ("append",), "To add text at the end of a file, use append_file.")
    return created_arguments(given)


def _check_command(command: Sequence[str] | str) -> None:
    """Refuse commands that do not edit, which the tools of other programs have as well."""
    if not command or command in _EDITS or _patch_in(command) is not None:
        return
    send = _OTHERS.get(command) if isinstance(command, str) else None
    raise ToolError(
        f"command {str(command)[:60]!r} is not supported by apply_patch; nothing was changed. Send {send}."
        if send
        else f"apply_patch does not run commands; nothing was changed. Use run_command. {_CORRECT}"
    )


def _patch_in(command: Sequence[str] | str) -> str | None:
    """The patch in a shell command that runs a program apply_patch."""
    parts = [command] if isinstance(command, str) else command
    return next((part for part in parts if is_patch(part)), None)


def _patch_text(given: EditArguments) -> str | None:
    """The patch, whichever parameter has it."""
    if given.patch:
        return given.patch
    if given.command and (found := _patch_in(given.command)) is not None:
        return found
    if isinstance(given.edits, str) and is_patch(given.edits):
        return given.edits
    if given.path and is_patch(given.path):
        return given.path
    if given.old and given.new is None and is_patch(given.old):
        return given.old
    unasked = given.old is None or (given.path is None and not given.old)  # an empty old_str creates the file
    if given.new and unasked and _is_patch_of(given.new, given.path):
        return given.new
    return None


def _is_patch_of(text: str, path: str | None) -> bool:
    """Whether a text is a patch, and of no other file than the one that is named: it may be the content of that."""
    return is_patch(text) and (path is None or _files_of(text, path) <= {normpath(path)})


def _files_of(text: str, path: str) -> set[str]:
    return {normpath(patch.path) for patch in read_patch(text, path)}


def _replacement(given: EditArguments) -> FilePatch:
    path, old, new = given.path, given.old, given.new
    if path is None:
        raise ToolError(f"path is missing: name the file to change. {_CORRECT}")
    if old is None and new and is_patch(new):
        files = ", ".join(sorted(_files_of(new, path)))
        raise ToolError(
            f"new_str is a patch of {files}, and path is {path}; nothing was changed. "
            "To apply the patch, pass only patch. To write it to a file, use create_file."
        )
    if old is None:
        raise ToolError(f"old_str is missing: give the exact text to replace. {_CORRECT}")
    if new is None:
        raise ToolError(f'new_str is missing; nothing was changed. To delete old_str give "". {_CORRECT}')
    if old == new:
        raise ToolError("old_str and new_str are the same (identical): nothing to change. Check the texts.")
    several = given.times is not None and given.times > 1
    hunk = Hunk(old=old, new=new, every=given.every or several, times=given.times or 0 if several else 0)
    return FilePatch(path=path, hunks=(hunk,))


def _from_edits(given: EditArguments) -> list[FilePatch]:
    """Several changes; consecutive ones in one file form one patch."""
    patches: list[FilePatch] = []
    for number, edit in enumerate(_listed(given.edits), 1):
        if not isinstance(edit, Mapping):
            raise ToolError(f'Edit {number} is not an object. Each is {{"old_str": "...", "new_str": "..."}}.')
        try:
            patch = _replacement(
                EditArguments(
                    path=_one(edit, ("path", *PATHS)) or given.path,
                    old=_one(edit, ("old_str", *OLDS)),
                    new=_one(edit, ("new_str", *NEWS)),
                    every=given.every or any(edit.get(name) is True for name in ("replace_all", *EVERY)),
                )
            )
        except ToolError as error:
            raise ToolError(f"Edit {number}: {error}") from None
        # An empty change creates the file for the ones after it.
        if (
            patches
            and patches[-1].path == patch.path
            and all(hunk.old for one in (patches[-1], patch) for hunk in one.hunks)
        ):
            patches[-1] = patches[-1].replace(hunks=(*patches[-1].hunks, *patch.hunks))
        else:
            patches.append(patch)
    return patches


def _listed(edits: Sequence[Any] | Mapping[str, Any] | str | None) -> Sequence[Any]:
    if isinstance(edits, str):
        try:
            edits = json.loads(edits, strict=False)
        except ValueError:
            raise ToolError('edits is not valid JSON. Give a list: [{"old_str": "...", "new_str": "..."}].') from None
    return edits if isinstance(edits, list) else [edits]


def _one(edit: Mapping[str, Any], names: Sequence[str]) -> str | None:
    value = next((edit[name] for name in names if edit.get(name) is not None), None)
    if value is not None and not isinstance(value, str):
        raise ToolError(f"{names[0]} is not text.")
    return value
