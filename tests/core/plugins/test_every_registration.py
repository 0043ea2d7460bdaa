"""What the types of hooks promise, registration and the real program keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core import Hook
from marvin_core.plugins.hook_calls import hooks_in
from tests.support.installing import Place

pytestmark = pytest.mark.xdist_group("crowd")

PACK = Path(__file__).parents[2] / "packs" / "marvin-complete" / "marvin_complete.py"


@pytest.mark.parametrize("name", [name for name in vars(Hook) if not name.startswith("_")])
def test_a_hook_may_have_each_member_that_its_class_has(name: str) -> None:
    async def method(self: Hook, *arguments: object) -> None:
        """Do nothing."""

    given = True if isinstance(getattr(Hook, name), bool) else method
    hook = type("Guard", (Hook,), {name: given})()
    assert hooks_in([hook]) == [hook]


@pytest.mark.slow
def test_a_pack_that_registers_everything_is_used_whole(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("marvin-complete", PACK.read_text(encoding="utf-8"), pack="complete")
    listed = place.marvin("packs", "list").out
    assert "problem" not in listed
    for part in ("3 tools", "1 hook", "1 provider", "1 interface", "1 command", "1 sub-command"):
        assert part in listed.partition("complete  ")[2]
    (place.home / "seen.txt").touch()
    looked = place.marvin("tools", "call", "complete_look")
    assert (looked.code, "seen.txt" in looked.out) == (0, True), looked.err
    denied = place.marvin("tools", "call", "complete_add", "text=a")
    assert (denied.code, "it runs programs" in denied.out) == (1, True)
    assert place.marvin("complete").out == "1\n"
    said = place.marvin("--non-interactive", "--provider", "complete", "--prompt", " Hello ")
    assert (said.code, said.out) == (0, "Hello\n"), said.err
