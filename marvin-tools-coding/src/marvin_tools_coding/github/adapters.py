"""Maps calls of the GitHub tools, as models trained with other programs write them, to our arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..adapters import IGNORED, MOST, at_most, one, refuse, taken
from ..files.adapters import GREP_IGNORED, GREP_NAMES, READ_IGNORED, READ_NAMES, grep_arguments, read_arguments

_REPOSITORY = ("repository", "repo_name", "repoName", "full_name", "url", "repo_url", "project")
_KINDS = {
    "repository": "repositories",
    "repo": "repositories",
    "repos": "repositories",
    "issue": "issues",
    "pr": "issues",
    "prs": "issues",
    "pull_request": "issues",
    "pull_requests": "issues",
    "pulls": "issues",
    "commit": "commits",
    "user": "users",
    "organizations": "users",
    "files": "code",
}
_PULLS = ("pr", "prs", "pull_request", "pull_requests", "pulls")

SEARCH_NAMES = {
    "query": ("q", "search_query", "searchQuery", "keywords", "search", "term"),
    "search_type": ("type", "searchType", "kind", "entity", "scope", "category"),
    "max_results": (*MOST, "per_page", "perPage", "first", "count"),
}
SEARCH_IGNORED = (*IGNORED, "page", "minimal_output")
CLONE_NAMES = {"repo": _REPOSITORY, "refresh": ("update", "pull", "force")}
CLONE_IGNORED = IGNORED
READ_FILE_NAMES = {
    "repo": _REPOSITORY,
    "path": READ_NAMES["path"],
    "start": ("start_line", *READ_NAMES["start_line"]),
    "end": ("end_line", *READ_NAMES["end_line"]),
}
READ_FILE_IGNORED = READ_IGNORED
GREP_FILE_NAMES = {
    "repo": _REPOSITORY,
    "pattern": GREP_NAMES["pattern"],
    "glob_filter": GREP_NAMES["glob_filter"],
    "max_results": GREP_NAMES["max_results"],
}
GREP_FILE_IGNORED = GREP_IGNORED
_LARGEST = 100
_HELD = "The clone has one branch with its current files: leave this out."


def search_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of github_search."""
    kind = given.get("search_type")
    if isinstance(kind, str):
        given["search_type"] = _KINDS.get(kind.lower(), kind.lower())
        query = given.get("query")
        if kind.lower() in _PULLS and isinstance(query, str) and "is:" not in query and "type:" not in query:
            given["query"] = f"{query} is:pr"
    qualifiers = {name: taken(given, name) for name in ("language", "user", "repo")}
    owner = taken(given, "owner", "org")
    if qualifiers["repo"] and owner and "/" not in str(qualifiers["repo"]):
        qualifiers["repo"] = f"{owner}/{qualifiers['repo']}"
    elif owner and not qualifiers["repo"]:
        qualifiers["user"] = owner
    for name, value in qualifiers.items():
        if value and isinstance(given.get("query"), str) and f"{name}:" not in given["query"]:
            given["query"] = f"{given['query']} {name}:{value}"
    at_most(given, "max_results", 30)
    return given


def clone_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of github_clone."""
    _repository(given, "Clone each with a separate call.")
    depth = taken(given, "depth", "--depth")
    if isinstance(depth, int):
        given.setdefault("shallow", depth > 0)
    refuse(given, ("branch", "ref", "tag", "commit"), "The default branch is cloned.")
    refuse(
        given,
        ("path", "destination", "directory", "dest", "target_dir", "local_path", "dir"),
        "Clones go to ~/github-clones/OWNER/REPO; github_read_file and github_grep find them there.",
    )
    return given


def read_file_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of github_read_file."""
    _repository(given, "Read each with a separate call.")
    refuse(given, ("ref", "branch", "sha"), _HELD)
    for name, usual in (("start", "start_line"), ("end", "end_line")):
        if given.get(name) is not None:
            given[usual] = given.pop(name)
    adapted = dict(read_arguments(given))
    for name, usual in (("start", "start_line"), ("end", "end_line")):
        if usual in adapted:
            adapted[name] = adapted.pop(usual)
    return adapted


def grep_file_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of github_grep."""
    _repository(given, "Search each with a separate call.")
    refuse(given, ("ref", "branch", "sha"), _HELD)
    adapted = dict(grep_arguments(given))
    at_most(adapted, "max_results", _LARGEST)
    return adapted


def _repository(given: dict[str, Any], several: str) -> None:
    """Join an owner and a name that were given separately."""
    one(given, "repo", several)
    owner = taken(given, "owner", "org", "user")
    repo = given.get("repo")
    name = repo if repo is not None else taken(given, "name")
    given.pop("name", None)
    if isinstance(owner, str) and isinstance(name, str) and "/" not in name:
        name = f"{owner}/{name}"
    if name is not None:
        given["repo"] = name
