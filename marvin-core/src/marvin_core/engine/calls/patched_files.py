"""The files that a patch call would change: the rules apply to each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...api.hooks import Ask, Deny
from ...api.tools import ToolSpec
from ...guard.permissions.policy import texts_in
from ...guard.permissions.verdicts import Explanation, Judgement, strongest


def files_of(spec: ToolSpec, arguments: Mapping[str, Any]) -> list[str]:
    """Every file that patches and lists of edits in the arguments name; empty for a call without any."""
    if "patch" not in spec.parameters.get("properties", {}):
        return []
    from ...kit.editing.formats import is_patch, paths_in

    path = arguments.get("path")
    path = path if isinstance(path, str) and not is_patch(path) else ""
    found = [named for text in texts_in(arguments) if is_patch(text) for named in paths_in(text, path)]
    edited = [one for edits in arguments.values() if isinstance(edits, (list, dict)) for one in _named(edits)]
    return list(dict.fromkeys([*filter(None, [path]), *found, *edited])) if found or edited else []


def together(whole: Judgement, parts: Sequence[Judgement]) -> Judgement:
    """The verdict on a call from those on the whole call and on each file: allowed only if all files are."""
    verdict = strongest(*(one.verdict for one in (whole, *parts) if isinstance(one.verdict, (Deny, Ask))))
    if verdict is None and all(one.verdict is not None for one in parts):
        verdict = parts[0].verdict
    return whole.replace(verdict=verdict, explain=lambda: Explanation(findings=whole.findings))


def _named(edits: Any) -> Iterator[str]:
    """The paths in a list of edits, under any of the usual names."""
    for edit in edits if isinstance(edits, list) else [edits]:
        if isinstance(edit, Mapping):
            for name, value in edit.items():
                if isinstance(value, str) and ("path" in str(name).lower() or "file" in str(name).lower()):
                    yield value
