"""Searching with Marvin's own program, if ripgrep is missing."""

from __future__ import annotations

import sys
from json import dumps

from ...api.errors import ToolError
from ...api.tool_context import ToolContext
from .lines import OUTPUT_BYTES, LineReader, parsed_counts
from .program import NO_EXPRESSION, TOO_LARGE, UNSUPPORTED
from .results import (
    SearchPlaces,
    SearchQuery,
    SearchResult,
    as_counts,
    as_result,
    no_expression,
    takes_too_long,
)


async def own_search(context: ToolContext, query: SearchQuery, places: SearchPlaces) -> SearchResult:
    """Search with Marvin's own program, in a child process, because a regular expression may run without end.

    Raises:
        ToolError: the pattern is not a valid regular expression, or takes too long.
    """
    lists_files = query.output == "files"
    reader = LineReader(query.most, lambda path: True)
    fields = {
        "pattern": query.pattern,
        "literal": query.literal,
        "ignore_case": query.ignore_case,
        "context_lines": 0 if lists_files else query.context_lines,
        "max_results": query.most,
        "of_each": 1 if lists_files else query.most + 1,
        "count": query.output == "count",
        "files": places.files or (),
    }
    result = await context.processes.run(
        [sys.executable, "-P", "-m", f"{__package__}.program"],
        cwd=context.paths.root,
        stdin=dumps(fields).encode(),
        timeout=context.timeouts.search,
        output_limit=OUTPUT_BYTES,
        enough=None if query.output == "count" else reader,
    )
    if result.timed_out or result.exit_code == TOO_LARGE:
        raise takes_too_long(query)
    if result.exit_code:
        reason = result.stderr.decode("utf-8", "replace").strip()
        if result.exit_code == UNSUPPORTED:
            raise ToolError(reason)
        if result.exit_code != NO_EXPRESSION:
            raise ToolError(f"The search failed: {reason[-500:]}. Search a smaller part, or install ripgrep.")
        raise no_expression(query, reason)
    if query.output == "count":
        return as_counts(query, parsed_counts(result.output))
    return as_result(query, (raw.line() for raw in reader.lines), is_cut=reader.is_cut)
