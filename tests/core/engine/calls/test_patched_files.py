"""Rules on paths and patches: each file of a patch counts, wherever in the call the patch stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.config import Permissions
from marvin_core.api.hooks import Ask, Deny
from marvin_core.engine.calls.patched_files import files_of, together
from marvin_core.guard.permissions.policy import Policy
from marvin_core.guard.permissions.verdicts import Allow, Judgement
from tests.support.engine import settled, spec

PARAMETERS = {"type": "object", "properties": {"path": {}, "patch": {}}}
EDITOR = spec("edit", access=["write"]).replace(parameters=PARAMETERS)
CODEX = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: keys/b\n+x\n*** End Patch"
MOVE = "*** Begin Patch\n*** Update File: src/a.py\n*** Move to: keys/a.py\n*** End Patch"
BLOCKS = "keys/b\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n"
UNIFIED = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x\n+y\n--- a/keys/b\n+++ b/keys/b\n@@ -1 +1 @@\n-x\n+y\n"
HOSTILE: dict[str, dict[str, Any]] = {
    "codex": {"patch": CODEX},
    "beside an allowed path": {"path": "src/a.py", "patch": CODEX},
    "moved": {"patch": MOVE},
    "blocks": {"patch": BLOCKS},
    "unified": {"patch": UNIFIED},
    "in another parameter": {"path": "src/a.py", "old_str": CODEX},
    "as the path": {"path": CODEX},
    "other spelling": {"patch": CODEX.replace("keys/b", "src/../keys//b")},
    "edits": {"path": "src/a.py", "edits": [{"old_str": "x"}, {"filePath": "keys/b", "old_str": "x"}]},
    "edits in edits": {"edits": {"target_file": "keys/b"}},
}


def judged(tmp_path: Path, arguments: dict[str, Any], **rules: tuple[str, ...]) -> Judgement:
    policy = Policy(settled(tmp_path)[0].replace(permissions=Permissions(**rules)))
    parts = [policy.judge(EDITOR, {"path": file}, tmp_path) for file in files_of(EDITOR, arguments)]
    return together(policy.judge(EDITOR, arguments, tmp_path), parts)


@pytest.mark.parametrize("arguments", HOSTILE.values(), ids=HOSTILE)
def test_a_rule_holds_for_each_file_of_a_patch(tmp_path: Path, arguments: dict[str, Any]) -> None:
    assert isinstance(judged(tmp_path, arguments, deny=("edit(keys/**)",)).verdict, Deny)
    assert isinstance(judged(tmp_path, arguments, ask=("edit(keys/**)",)).verdict, Ask)


@pytest.mark.parametrize("arguments", HOSTILE.values(), ids=HOSTILE)
def test_an_allowance_has_to_hold_for_all_of_them(tmp_path: Path, arguments: dict[str, Any]) -> None:
    assert judged(tmp_path, arguments, allow=("edit(src/**)",)).verdict is None
    assert isinstance(judged(tmp_path, arguments, allow=("edit(src/**)", "edit(keys/**)")).verdict, Allow)


def test_a_call_without_a_patch_is_left_to_the_rules() -> None:
    assert files_of(EDITOR, {"path": "a", "old_str": "x", "new_str": "y"}) == []
    assert files_of(spec("write", access=["write"]), {"path": "a", "content": CODEX}) == []
