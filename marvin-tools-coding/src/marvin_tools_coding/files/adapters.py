"""Maps calls of the file tools, as models trained with other programs write them, to our arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from marvin_core import ToolError

from ..adapters import (
    FOLDERS,
    IGNORED,
    MOST,
    PATHS,
    at_most,
    lines,
    number,
    one,
    opposite,
    refuse,
    says_yes,
    taken,
    truth,
)

READ_NAMES = {
    "path": (*PATHS, "absolute_path", "AbsolutePath", "abs_path", "notebook_path", "paths", "files", "file_paths"),
    "start_line": (
        *("offset", "startLine", "line_start", "from_line", "line_offset", "StartLine", "start_line_one_indexed"),
        "line_number",
    ),
    "end_line": ("endLine", "line_end", "to_line", "EndLine", "end_line_one_indexed_inclusive"),
}
READ_IGNORED = (
    *IGNORED,
    *("encoding", "mode", "indentation", "show_line_numbers", "line_numbers", "task_progress", "security_risk"),
)
_PATTERNS = ("regex", "query", "search_pattern", "search_term", "Query", "regexp", "SearchTerm", "text")
GREP_NAMES = {
    "pattern": _PATTERNS,
    "path": (*FOLDERS, *PATHS),
    "glob_filter": (
        *("glob", "include", "file_pattern", "filePattern", "include_pattern", "includePattern", "Includes"),
        *("file_glob", "includes", "glob_pattern", "--glob", "-g"),
    ),
    "ignore_case": ("-i", "ignoreCase", "case_insensitive", "caseInsensitive", "i"),
    "context_lines": ("-C", "context", "contextLines", "C", "num_context_lines"),
    "max_results": (*MOST, "max_count", "-m"),
    "output": ("output_mode", "outputMode"),
    "literal": ("fixed_strings", "fixedStrings", "literal_text", "-F", "fixed", "is_literal"),
}
GREP_IGNORED = (
    *(*IGNORED, "-n", "-H", "-r", "-R", "line_numbers", "line_number", "show_line_numbers", "recursive"),
    *("smart_case", "sort", "max_matches_per_file", "task_progress"),
)
GLOB_NAMES = {
    "pattern": ("glob_pattern", "globPattern", "filePattern", "file_pattern", "glob", "query", "include", "patterns"),
    "path": (*FOLDERS, "cwd"),
    "max_results": (*MOST, "head_limit"),
    "ignore": ("exclude", "excludes", "ignore_globs"),
}
GLOB_IGNORED = (
    *(*IGNORED, "respect_gemini_ignore", "include_dirs", "recursive", "type"),
    *("nocase", "sort", "no_ignore_vcs", "task_progress"),
)
TREE_NAMES = {
    "path": FOLDERS,
    "max_depth": ("depth", "maxDepth", "levels", "level", "-L", "L"),
    "respect_gitignore": ("respect_git_ignore", "respectGitIgnore", "gitignore", "use_gitignore"),
    "ignore": ("ignore_globs", "exclude"),
}
TREE_IGNORED = (
    *(*IGNORED, "limit", "offset", "show_hidden", "include_hidden", "all"),
    *("file_filtering_options", "respect_gemini_ignore", "task_progress", "sort", "max_entries"),
)
_OUTPUTS = {"content": "lines", "files_with_matches": "files", "filesWithMatches": "files", "counts": "count"}
_TYPES = {
    "c": "*.{c,h}",
    "cpp": "*.{cpp,cc,cxx,hpp,hh,h}",
    "js": "*.{js,jsx,mjs,cjs}",
    "markdown": "*.{md,markdown}",
    "md": "*.{md,markdown}",
    "py": "*.{py,pyi}",
    "python": "*.{py,pyi}",
    "ruby": "*.rb",
    "rust": "*.rs",
    "sh": "*.{sh,bash,zsh}",
    "ts": "*.{ts,tsx,mts,cts}",
    "typescript": "*.{ts,tsx,mts,cts}",
    "yaml": "*.{yaml,yml}",
}
"""File patterns of a type by its name in ripgrep, where the name is not the extension."""
_ANY_TYPE = ("file", "files", "f", "all", "any", "text")


def read_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of read_file."""
    one(given, "path", "Read each file with a separate call; you may make several calls at once.")
    if given.get("command") == "view":
        given.pop("command")
    if says_yes(given, "should_read_entire_file", "read_entire_file"):
        given.pop("end_line", None)
        given["start_line"] = 1
    lines(given)
    return given


def grep_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of code_grep."""
    one(given, "path", "Search each with a separate call, or search a common folder with glob_filter.")
    refuse(
        given,
        ("multiline", "-U", "multi_line", "dotall"),
        "Lines are searched one by one: search for one of the lines, with context_lines.",
    )
    refuse(given, ("invert_match", "-v", "invert"), "Lines that do not match: run_command with grep -v.")
    hidden = "Hidden and ignored files are searched if path or glob_filter names them, as in path='.github'."
    refuse(given, ("hidden", "include_hidden", "no_ignore", "include_ignored", "includeIgnoredFiles"), hidden)
    if truth(taken(given, "respect_git_ignore", "respect_gitignore")) is False:
        raise ToolError(hidden)
    opposite(given, "ignore_case", "case_sensitive", "caseSensitive", "CaseSensitive")
    opposite(given, "literal", "isRegexp", "is_regexp", "is_regex", "isRegex", "IsRegex")
    _output(given)
    _filter(given)
    around = [taken(given, *names) for names in (("-A", "after", "after_context"), ("-B", "before", "before_context"))]
    wanted = [number("context_lines", value) for value in around if value is not None]
    if wanted and given.get("context_lines") is None:
        given["context_lines"] = max(wanted)
    at_most(given, "context_lines", 20)
    head = taken(given, "head_limit", "headLimit")
    if head is not None:
        given.setdefault("max_results", number("head_limit", head) or 500)
    _skipped(given, 20)
    at_most(given, "max_results", 500)
    if says_yes(given, "-w", "word", "whole_word", "wholeWord", "word_regexp"):
        _as_words(given)
    return given


def _as_words(given: dict[str, Any]) -> None:
    pattern = str(given.get("pattern", ""))
    given["pattern"] = rf"\b(?:{re.escape(pattern) if truth(given.pop('literal', False)) is True else pattern})\b"


def _output(given: dict[str, Any]) -> None:
    for names, output in (
        (("-l", "files_only", "names_only", "files_with_matches", "filesWithMatches"), "files"),
        (("-c", "count", "count_only"), "count"),
    ):
        if says_yes(given, *names):
            given.setdefault("output", output)
    wanted = given.get("output")
    if isinstance(wanted, str):
        given["output"] = _OUTPUTS.get(wanted, wanted)


def _filter(given: dict[str, Any]) -> None:
    """Which files are searched: patterns as one text, with exclusions and the type."""
    wanted = _listed(given.pop("glob_filter", None))
    unwanted = _listed(taken(given, "exclude_pattern", "excludePattern", "exclude", "Excludes", "excludes"))
    kind = taken(given, "type", "file_type", "fileType", "-t", "language")
    if kind in _ANY_TYPE:
        kind = None
    if kind and wanted not in ([], ["*"]):
        raise ToolError("Give one glob_filter instead of a glob and a type, such as 'src/**/*.py'.")
    if kind:
        wanted = [_TYPES.get(name, f"*.{name}") for name in _listed(kind)]
    if wanted or unwanted:
        given["glob_filter"] = ",".join([*(wanted or ["*"]), *(f"!{name.removeprefix('!')}" for name in unwanted)])


def _listed(value: Any) -> list[str]:
    return [str(item) for item in (value if isinstance(value, list) else [value]) if item not in (None, "")]


def _skipped(given: dict[str, Any], usual: int) -> None:
    """Convert an offset into results to a larger limit."""
    offset = taken(given, "offset", "skip")
    if offset is not None and (skipped := number("offset", offset)) > 0:
        given["max_results"] = number("max_results", given.get("max_results") or usual) + skipped


def glob_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of glob."""
    one(given, "path", "Search each with a separate call, or put the folders into the pattern: '{src,tests}/**'.")
    pattern = given.get("pattern")
    if isinstance(pattern, list) and pattern and all(isinstance(item, str) for item in pattern):
        given["pattern"] = pattern[0] if len(pattern) == 1 else "{" + ",".join(pattern) + "}"
    if truth(taken(given, "case_sensitive", "caseSensitive")) is False:
        given["pattern"] = re.sub(r"(?<!\[)[A-Za-z](?!\])", _either_case, str(given.get("pattern", "")))
    if truth(taken(given, "respect_git_ignore", "respect_gitignore")) is False:
        raise ToolError("Files that .gitignore excludes are listed if path names their folder, as in path='build'.")
    _skipped(given, 200)
    at_most(given, "max_results", 5000)
    return given


def _either_case(letter: re.Match[str]) -> str:
    return f"[{letter[0].lower()}{letter[0].upper()}]"


def tree_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of tree."""
    one(given, "path", "Show each with a separate call; you may make several calls at once.")
    options = given.get("file_filtering_options")
    if isinstance(options, Mapping) and isinstance(options.get("respect_git_ignore"), bool):
        given.setdefault("respect_gitignore", options["respect_git_ignore"])
    if truth(taken(given, "recursive", "Recursive")) is False:
        given.setdefault("max_depth", 1)
    at_most(given, "max_depth", 10)
    return given
