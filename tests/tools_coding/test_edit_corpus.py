"""The corpus of edits: what is there, what is called, and what is there afterwards.

`edits` holds the cases of the engine's author, `edits_peers` those that were written without a look at the engine.
A case has `files`, `call`, and `after`: the files afterwards, where they are not as before. `says` are parts of what
the model is told, `fails` says that it is an error. `encodings` are those of files that are not UTF-8. `raw` is the
text of the arguments as a model sent it, in place of `call`; "{root}" in a call is the working directory. `links` are
symbolic links, `modes` the files' permission bits, which stay unless `modes_after` says otherwise.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from marvin_core import ToolError
from marvin_core.tools.arguments import parse_arguments
from marvin_core.tools.schema import describe, validator
from marvin_tools_coding.files.edit import apply_patch
from marvin_tools_coding.files.read import read_file
from tests.tools_coding.support import Project, files_below

CORPUS = sorted(Path(__file__).parent.glob("edits*/*.toml"))
CASES = [
    pytest.param(case, id=f"{path.parent.name}/{path.stem}: {case['name']}")
    for path in CORPUS
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
]
SPEC = describe(apply_patch)


def encoded(case: dict[str, Any], files: dict[str, str]) -> dict[str, bytes]:
    """The files of a case as bytes."""
    encodings = case.get("encodings", {})
    return {path: text.encode(encodings.get(path, "utf-8")) for path, text in files.items()}


def laid_out(project: Project, case: dict[str, Any]) -> dict[str, bytes]:
    """The project as the case has it, and its files as bytes (those behind links too)."""
    for path, content in encoded(case, case["files"]).items():
        project.write(path, content)
    for path, target in case.get("links", {}).items():
        (project.root / path).symlink_to(target)
    for path, mode in case.get("modes", {}).items():
        (project.root / path).chmod(int(mode, 8))
    return files_below(project.root)


def arguments_of(project: Project, case: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a case, read as a model's text is."""
    text: str = case["raw"] if "raw" in case else json.dumps(case["call"])
    return parse_arguments(text.replace("{root}", str(project.root)), SPEC)


@pytest.mark.parametrize("case", CASES)
def test_the_tree_and_the_message_are_as_expected(project: Project, case: dict[str, Any]) -> None:
    """I10: a failure says what to do, and leaves everything as it was."""
    before = laid_out(project, case)
    for path in case.get("reads", ()):
        project.call(read_file, path=path)
    failed = False
    try:
        said = project.call(apply_patch, **validator(apply_patch)(arguments_of(project, case)))
    except ToolError as error:
        said, failed = str(error), True
    assert failed is case.get("fails", False), said
    assert files_below(project.root) == (encoded(case, case["after"]) if "after" in case else before)
    for part in case.get("says", ()):
        assert part in said
    for path in case.get("links", {}):
        assert (project.root / path).is_symlink()
    for path, mode in case.get("modes_after", case.get("modes", {})).items():
        assert (project.root / path).stat().st_mode & 0o7777 == int(mode, 8)


def test_a_third_of_each_corpus_fails() -> None:
    for folder, least in (("edits", 100), ("edits_peers", 150)):
        values: list[Any] = [case.values[0] for case in CASES if str(case.id).startswith(f"{folder}/")]
        assert len(values) >= least
        assert sum(value.get("fails", False) for value in values) * 3 >= len(values)
