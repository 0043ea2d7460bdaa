"""What packs bring as data: none of their code runs for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.installing import Place

SKILL = "---\nname: notes\ndescription: Write release notes.\n---\nList what was merged.\n"
MARKS = (
    "from pathlib import Path\nwith Path(__file__).with_suffix('.imported').open('a') as mark:\n    mark.write('x')\n"
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A distribution of skills alone, the package around its plugin without any code."""
    made = Place(tmp_path)
    made.install("acme-office", MARKS, entry_points="[marvin]\noffice = acme_rooms.plugin\n")
    package = made.packages / "acme_rooms"
    (package / "skills" / "notes").mkdir(parents=True)
    (package / "skills" / "notes" / "SKILL.md").write_text(SKILL)
    (package / "__init__.py").touch()
    (package / "plugin.py").write_text(MARKS)
    return made


@pytest.mark.slow
def test_a_pack_of_skills_needs_no_hook_and_its_code_does_not_run_for_them(place: Place) -> None:
    mark = place.packages / "acme_rooms" / "plugin.imported"
    listed = place.marvin("packs", "list")
    assert (
        "implements no hook, so it provides nothing. Check its entry point, and mark its hooks with @hookimpl"
        not in listed.out + listed.err
    )
    assert "office  acme-office 1.0, 1 skill\n" in listed.out
    before = mark.read_text()
    shown = place.marvin("config", "show")
    assert (
        f"skill          notes: {mark.with_name('skills')}/notes ({len(SKILL)} bytes, the pack office): used"
        in shown.out
    )
    called = place.marvin("tools", "call", "read_skill", "name=notes")
    assert called.out.endswith("List what was merged.\n")
    assert mark.read_text() == before
    assert "the pack office" not in place.marvin("config", "show", MARVIN_PACKS="coding").out


@pytest.mark.slow
def test_a_pack_without_hooks_and_data_is_told(place: Place) -> None:
    (place.packages / "acme_rooms" / "skills").rename(place.packages / "acme_rooms" / "unskilled")
    assert (
        "implements no hook, so it provides nothing. Check its entry point, and mark its hooks with @hookimpl"
        in place.marvin("packs", "list").out
    )
