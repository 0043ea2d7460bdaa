"""Maps calls of the git tools, as models trained with other programs write them, to our arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marvin_core import ToolError

from ..adapters import IGNORED, MOST, PATHS, at_most, for_real, lines, one, refuse, taken

_FILES = (*PATHS, "paths", "files", "dir_path", "directory", "pathspec")
_REFS = ("commit", "revision", "rev", "commit_hash", "hash", "sha", "target", "branch", "base", "commit_id")
_HERE = ("repo_path", "repo", "repository", "cwd", "workdir", "working_directory", "repoPath")
_SEVERAL = "Give a folder that contains them, or make a separate call for each."
GIT_IGNORED = (*IGNORED, "color", "porcelain", "short", "context_lines", "no_color", "task_progress")

STATUS_NAMES = {"path": _FILES}
DIFF_NAMES = {"staged": ("cached", "--cached", "--staged"), "path": _FILES, "ref": _REFS}
LOG_NAMES = {
    "max_count": (*MOST, "-n", "count", "num", "number", "maxCount", "num_commits"),
    "path": _FILES,
    "ref": _REFS,
}
BRANCH_NAMES = {"all": ("-a", "remote", "remotes", "include_remote", "-r")}
SHOW_NAMES = {"ref": (*_REFS, "object"), "path": _FILES}
BLAME_NAMES = {"path": _FILES, "start_line": ("offset", "startLine"), "end_line": ("endLine",)}
COMMIT_NAMES = {
    "message": ("commit_message", "commitMessage", "msg", "-m", "m"),
    "add_all": ("all", "-a", "stage_all", "stageAll", "addAll"),
    "paths": ("files", "file_paths", "filePaths", "path", "file", "file_path", "pathspec"),
}
CHECKOUT_NAMES = {
    "target": ("branch", "branch_name", "branchName", "ref", "commit", "revision", "name", "tag"),
    "create_branch": ("create", "-b", "new_branch", "createBranch", "new", "b"),
    "path": _FILES,
}


def status_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of git_status."""
    _here(given)
    one(given, "path", _SEVERAL)
    return given


def diff_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of git_diff."""
    status_arguments(given)
    head = taken(given, "head", "to", "compare")
    if head and given.get("ref"):
        given["ref"] = f"{given['ref']}..{head}"
    elif head:
        given["ref"] = head
    return given


def log_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of git_log."""
    status_arguments(given)
    for name in ("author", "since", "until", "grep"):
        refuse(given, (name,), f"Run it in a shell: run_command: git log --{name}=...")
    at_most(given, "max_count", 200)
    return given


def branch_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of git_branch."""
    _here(given)
    if given.get("action") in ("list", "show"):
        given.pop("action")
    refuse(
        given,
        ("name", "branch_name", "branch", "create", "action"),
        "It only lists branches. git_checkout with create_branch=true creates one; run_command: git branch -d "
        "removes one.",
    )
    return given


def show_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of git_show."""
    status_arguments(given)
    ref = given.get("ref")
    if isinstance(ref, str) and not given.get("path"):
        commit, colon, path = ref.partition(":")
        if commit and colon and path and "{" not in commit:
            given.update(ref=commit, path=path)
    return given


def blame_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of git_blame."""
    status_arguments(given)
    lines(given)
    return given


def commit_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of git_commit."""
    _here(for_real(given))
    refuse(given, ("amend", "--amend"), "To change the last commit, run_command: git commit --amend.")
    refuse(given, ("no_verify", "noVerify", "--no-verify"), "Hooks always run; fix what they report, or ask the user.")
    return given


def checkout_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of git_checkout."""
    status_arguments(for_real(given))
    refuse(given, ("force", "-f"), "Switching never discards changes: commit them first, or restore files with path.")
    refuse(
        given,
        ("start_point", "startPoint", "base", "base_branch", "from"),
        "A branch starts at the current commit: git_checkout that commit first, then create the branch.",
    )
    created = given.get("create_branch")
    if isinstance(created, str) and created.lower() not in ("true", "false"):
        if given.get("target") not in (None, created):
            raise ToolError(
                "Give the new name as target, with create_branch=true. The branch starts at the current commit."
            )
        given.update(target=created, create_branch=True)
    return given


def _here(given: dict[str, Any]) -> None:
    """Refuse any repository other than that of the working directory."""
    for name in _HERE:
        if given.pop(name, None) not in (None, "", ".", "./"):
            raise ToolError(f"Leave out {name}: the tool uses the repository of the working directory.")
