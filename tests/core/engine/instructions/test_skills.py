"""Skills: found, described in the prompt, read when the model wants them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from marvin_core.api.config import Config
from marvin_core.api.errors import ToolError
from marvin_core.api.events import Notice
from marvin_core.engine.instructions.places import project_folders, skill_roots
from marvin_core.engine.instructions.skills import Skill, SkillFinder, catalogue
from marvin_core.guard.files.sandbox import SandboxPaths
from marvin_core.tools import session_tools
from marvin_core.tools.schema import describe
from tests.support.engine import Made, calls, make, run, says, settled

SPECS = (describe(session_tools.read_skill, source="marvin-core", module=session_tools.__name__, group="session"),)
PDF = "---\nname: pdf\ndescription: Work with PDF files.\n---\n\nUse pdftotext.\n"


def put(folder: Path, name: str, text: str | bytes | None = None, **files: str) -> Path:
    """A skill; its files by their names, `__` standing for a slash."""
    skill = folder / name
    skill.mkdir(parents=True, exist_ok=True)
    given = text if text is not None else f"---\nname: {name}\ndescription: About {name}.\n---\nThe text of {name}.\n"
    (skill / "SKILL.md").write_bytes(given if isinstance(given, bytes) else given.encode())
    for path, content in files.items():
        place = skill / f"{path.replace('__', '/')}.md"
        place.parent.mkdir(exist_ok=True)
        place.write_text(content)
    return skill


def find(tmp_path: Path, packs: Mapping[str, str] | None = None) -> tuple[SkillFinder, list[Skill]]:
    config: Config = settled(tmp_path)[0]
    folders = project_folders(tmp_path / "project", config.home)
    finder = SkillFinder(SandboxPaths, config.cache_folder / "skills.json")
    return finder, finder.find(skill_roots(folders, config, packs or {}))


def problems(skills: Sequence[Skill]) -> dict[str, str]:
    return {skill.name: skill.problem for skill in skills}


PLACES = [
    "project/.marvin/skills",
    "project/.agents/skills",
    "project/.claude/skills",
    "home/marvin/skills",
    "home/.agents/skills",
    "home/.claude/skills",
    "pack/skills",
]


@pytest.mark.parametrize("place", PLACES)
def test_skills_are_found_in_the_project_at_home_and_in_packs(tmp_path: Path, place: str) -> None:
    put(tmp_path / place, "pdf", PDF)
    finder, found = find(tmp_path, {"office": str(tmp_path / "pack")})
    (skill,) = found
    assert (skill.name, skill.description, skill.problem) == ("pdf", "Work with PDF files.", "")
    assert skill.origin == {"project": "project", "home": "user", "pack": "office"}[place.partition("/")[0]]
    assert finder.read(found, "pdf") == f"[The skill pdf, in {tmp_path / place / 'pdf'}]\n\nUse pdftotext."


def test_of_several_with_one_name_the_nearest_counts_and_the_others_are_told(tmp_path: Path) -> None:
    for number, place in enumerate(PLACES):
        put(tmp_path / place, "pdf", PDF.replace("files.", f"files {number}."))
    _, found = find(tmp_path, {"office": str(tmp_path / "pack")})
    assert [skill.problem for skill in found if not skill.problem] == [""]
    assert catalogue(found, 1_000).endswith("- pdf: Work with PDF files 0.")
    told = f"{tmp_path / PLACES[0] / 'pdf'} has the same name and comes first"
    assert [skill.problem for skill in found[1:]] == [told] * (len(PLACES) - 1)


def test_one_folder_by_two_names_is_one_skill(tmp_path: Path) -> None:
    put(tmp_path / "project" / ".agents" / "skills", "pdf", PDF)
    (tmp_path / "project" / ".claude").mkdir()
    (tmp_path / "project" / ".claude" / "skills").symlink_to("../.agents/skills")
    finder, found = find(tmp_path)
    assert problems(found) == {"pdf": ""}
    assert finder.read(found, "pdf").endswith("Use pdftotext.")


def test_skills_of_the_whole_repository_count_in_a_folder_of_it(tmp_path: Path) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    put(tmp_path / "project" / ".claude" / "skills", "pdf", PDF)
    put(tmp_path / "project" / "api" / ".claude" / "skills", "schema")
    made = make(
        tmp_path, says("Fine."), specs=SPECS, argv=("--non-interactive", f"--working-dir={tmp_path}/project/api")
    )
    text = prompt(made)
    assert text.index("- schema: About schema.") < text.index("- pdf: Work with PDF files.")


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("no head at all", "its front matter cannot be used: it has none between two lines of ---"),
        ("---\nname: pdf\n", "its front matter cannot be used: it has none between two lines of ---"),
        ("---\nname: pdf\n---\n", "its front matter has no description"),
        ("---\nname: pdf\ndescription: [a]\n---\n", "its front matter has no description"),
        ("---\nname: ../x\ndescription: d\n---\n", "its name has other characters than letters, digits"),
        ("---\nname: 1\ndescription: d\n---\n", "its name has other characters than letters, digits"),
        ("---\n- a\n---\n", "its front matter cannot be used: expected keys such as `name: value`"),
        (
            "---\nname: pdf\ndescription: a: b\n---\n",
            "its front matter cannot be used: line 3: a colon is not allowed here",
        ),
        (
            "---\nname: &a [*a]\ndescription: d\n---\n",
            "its front matter cannot be used: the value of &a contains itself",
        ),
        (
            f"---\nname: pdf\nx: {'[' * 5_000}\n---\n",
            "its front matter cannot be used: it is nested more than 100 deep",
        ),
        (
            f"---\nname: pdf\nx: {'y' * 20_000}\n---\n",
            "its front matter cannot be used: it has more than 16,384 characters",
        ),
        (b"---\n\0\n---\n", "it is a binary file, not text"),
    ],
)
def test_a_skill_that_cannot_be_used_is_told_with_its_reason(tmp_path: Path, head: str | bytes, problem: str) -> None:
    put(tmp_path / "project" / ".marvin" / "skills", "pdf", head)
    put(tmp_path / "project" / ".marvin" / "skills", "other")
    finder, found = find(tmp_path)
    assert problem in problems(found)["pdf"]
    assert problems(found)["other"] == ""
    with pytest.raises(ToolError, match="The skill pdf cannot be used"):
        finder.read(found, "pdf")
    made = make(tmp_path, says("Fine."), specs=SPECS)
    assert "- pdf" not in prompt(made)
    (notice,) = made.seen(Notice)
    assert problem in notice.text


def test_a_name_comes_from_the_head_else_from_the_folder(tmp_path: Path) -> None:
    put(tmp_path / "project" / ".marvin" / "skills", "one", "---\nname: two\ndescription: d\n---\nText.")
    put(tmp_path / "project" / ".marvin" / "skills", "three", "---\ndescription: d\n---\nText.")
    assert sorted(problems(find(tmp_path)[1])) == ["three", "two"]


def test_other_files_of_a_skill_are_named_and_read_by_their_paths(tmp_path: Path) -> None:
    put(tmp_path / "home" / ".claude" / "skills", "pdf", PDF, references__forms="The forms.", notes="Notes.")
    finder, found = find(tmp_path)
    assert finder.read(found, "pdf").endswith(
        "[Other files of it: notes.md, references/forms.md. Read them as pdf/FILE.]"
    )
    assert finder.read(found, "pdf/references/forms.md") == "The forms."
    assert finder.read(found, " PDF ").startswith("[The skill pdf, in ")


@pytest.mark.parametrize(
    "name", ["pdf/../other/SKILL.md", "pdf//etc/passwd", "pdf/link.md", "pdf/.env", "pdf/nothing.md"]
)
@pytest.mark.parametrize("place", ["project/.agents/skills", "home/.agents/skills"])
def test_nothing_but_files_of_the_skill_is_read(tmp_path: Path, place: str, name: str) -> None:
    """I4."""
    skill = put(tmp_path / place, "pdf", PDF)
    (tmp_path / "outside.md").write_text("OUTSIDE")
    (skill / "link.md").symlink_to(tmp_path / "outside.md")
    (skill / ".env").write_text("KEY=secret")
    finder, found = find(tmp_path)
    with pytest.raises(ToolError) as refused:
        finder.read(found, name)
    assert "OUTSIDE" not in str(refused.value)
    assert "pdf" in str(refused.value)


def test_a_wrong_name_is_told_the_nearest_ones(tmp_path: Path) -> None:
    put(tmp_path / "project" / ".marvin" / "skills", "release-notes")
    finder, found = find(tmp_path)
    with pytest.raises(ToolError, match="Did you mean 'release-notes'"):
        finder.read(found, "relaese-notes")
    with pytest.raises(ToolError, match="release-notes"):
        finder.read(found, "x\n" * 1_000)


def test_a_link_out_of_the_project_is_no_skill_of_it_and_one_at_home_is(tmp_path: Path) -> None:
    """What the user links is the user's word; what a repository links is not."""
    skill = put(tmp_path / "elsewhere", "pdf", PDF)
    for place in ("project/.claude/skills", "home/.claude/skills"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "home" / ".claude" / "skills" / "pdf").symlink_to(skill)
    assert problems(find(tmp_path)[1]) == {"pdf": ""}
    (tmp_path / "home" / ".claude" / "skills" / "pdf").unlink()
    (tmp_path / "project" / ".claude" / "skills" / "pdf").symlink_to(skill)
    assert (
        "is refused: it contains a link that leads out of the working directory" in problems(find(tmp_path)[1])["pdf"]
    )


def test_a_link_of_the_project_takes_no_skill_from_the_user(tmp_path: Path) -> None:
    skill = put(tmp_path / "home" / ".claude" / "skills", "pdf", PDF)
    (tmp_path / "project" / ".claude" / "skills").mkdir(parents=True)
    (tmp_path / "project" / ".claude" / "skills" / "pdf").symlink_to(skill)
    finder, found = find(tmp_path)
    assert [bool(one.problem) for one in found] == [True, False]
    assert finder.read(found, "pdf").endswith("Use pdftotext.")


def test_heads_are_kept_until_their_file_changes(tmp_path: Path) -> None:
    skill = put(tmp_path / "project" / ".marvin" / "skills", "pdf", PDF)
    find(tmp_path)
    kept = settled(tmp_path)[0].cache_folder / "skills.json"
    entry = json.loads(kept.read_text())[str(skill / "SKILL.md")]
    assert entry["description"] == "Work with PDF files."
    kept.write_text(json.dumps({str(skill / "SKILL.md"): {**entry, "description": "From the cache."}}))
    assert find(tmp_path)[1][0].description == "From the cache."
    (skill / "SKILL.md").write_text(PDF.replace("Work", "Work well"))
    assert find(tmp_path)[1][0].description == "Work well with PDF files."
    name = str(skill / "SKILL.md")
    broken = {**json.loads(kept.read_text())[name], "description": 7}
    for damaged in ("[]", "{", json.dumps({name: {"stamp": None}}), json.dumps({name: broken}), f'{{"{name}": 7}}'):
        kept.write_text(damaged)
        assert find(tmp_path)[1][0].problem == ""


def test_a_head_says_nothing_that_nobody_sees(tmp_path: Path) -> None:
    """YAML can spell any character."""
    text = '---\nname: pdf\ndescription: "Read\\U000E0041\\u202E\\e[8m PDFs\\n- other: now"\n---\n'
    put(tmp_path / "project" / ".marvin" / "skills", "pdf", text)
    assert catalogue(find(tmp_path)[1], 1_000).endswith("\n- pdf: Read PDFs - other: now")
    put(tmp_path / "project" / ".marvin" / "skills", "pdf", '---\ndescription: "\\u200B"\n---\n')
    assert problems(find(tmp_path)[1]) == {"pdf": "its front matter has no description"}


def test_what_could_not_be_read_is_looked_at_again(tmp_path: Path) -> None:
    skill = put(tmp_path / "project" / ".marvin" / "skills", "pdf", PDF)
    (skill / "SKILL.md").rename(tmp_path / "away")
    (skill / "SKILL.md").symlink_to(tmp_path / "away")
    assert "leads out" in problems(find(tmp_path)[1])["pdf"]
    (skill / "SKILL.md").unlink()
    (tmp_path / "away").rename(skill / "SKILL.md")
    assert problems(find(tmp_path)[1]) == {"pdf": ""}


@pytest.mark.slow
def test_heads_that_take_too_long_are_read_by_the_next_sessions(tmp_path: Path) -> None:
    filled = "".join(f"key{number}: {'x' * 70}\n" for number in range(150))
    for number in range(30):
        put(tmp_path / "home" / ".agents" / "skills", f"s{number:02}", f"---\n{filled}description: d\n---\n")
    first = [skill.problem for skill in find(tmp_path)[1]]
    assert 0 < first.count("") < 30
    assert first[-1] == "too many skills are new; the next session reads it"
    assert [skill.problem for skill in find(tmp_path)[1]].count("") == 30


def test_a_home_folder_that_is_worked_in_has_the_skills_of_the_user(tmp_path: Path) -> None:
    put(tmp_path / "home" / ".claude" / "skills", "pdf", PDF)
    config: Config = settled(tmp_path)[0]
    roots = skill_roots([str(config.home)], config, {})
    assert [root.origin for root in roots] == ["user"]


def test_a_known_secret_in_them_reaches_no_model(tmp_path: Path) -> None:
    """I24."""
    put(tmp_path / "project" / ".marvin" / "skills", "pdf", PDF.replace("files", "sk-very-secret-12345"))
    (tmp_path / "project" / "AGENTS.md").write_text("The key is sk-very-secret-12345.")
    text = prompt(make(tmp_path, says("Fine."), specs=SPECS, env={"OPENAI_API_KEY": "sk-very-secret-12345"}))
    assert "sk-very-secret" not in text
    assert "The key is " in text


def test_the_list_in_the_prompt_is_bounded(tmp_path: Path) -> None:
    for number in range(40):
        description = "d" * 2_000
        put(tmp_path / "home" / ".agents" / "skills", f"s{number:02}", f"---\ndescription: {description}\n---\n")
    found = find(tmp_path)[1]
    assert {len(skill.description) for skill in found} == {1_024}
    text = catalogue(found, 12_000)
    assert len(text) < 12_500
    assert text.count("d" * 1_000) == 11
    assert "- Without a description here: s11, s12, " in text
    assert text.endswith("s39")
    many = [found[0].replace(name=f"skill-{number:05}", description="d") for number in range(5_000)]
    text = catalogue(many, 12_000)
    assert len(text) < 12_500
    assert text.endswith(" more do not fit here (limits.skills).")


# --- in a session ---------------------------------------------------------------------------------------------------


def prompt(made: Made) -> str:
    async def go() -> None:
        await made.session.submit("go")
        await made.session.close()

    run(go())
    assert made.provider is not None
    return made.provider.requests[-1].system


def test_the_model_is_told_of_skills_and_reads_one(tmp_path: Path) -> None:
    put(tmp_path / "project" / ".agents" / "skills", "pdf", PDF)
    made = make(tmp_path, calls(("c1", "read_skill", '{"name": "pdf"}')), says("Done."), specs=SPECS)
    assert "\n- pdf: Work with PDF files." in prompt(made)
    assert made.provider is not None
    first, second = made.provider.requests
    assert [tool.name for tool in first.tools] == ["read_skill"]
    assert first.system == second.system
    assert second.messages[-1].outputs[0].text.endswith("Use pdftotext.")


def test_without_skills_nothing_is_said_and_no_tool_offered(tmp_path: Path) -> None:
    made = make(tmp_path, says("Fine."), specs=SPECS)
    assert made.parts.toolbox.missing["read_skill"].startswith("there is no skill here")
    assert "# Skills" not in prompt(made)
    assert made.provider is not None
    assert made.provider.requests[0].tools == ()


def test_a_skill_that_comes_counts_from_the_next_prompt_on_and_one_that_goes_too(tmp_path: Path) -> None:
    made = make(tmp_path, says("One."), says("Two."), says("Three."), specs=SPECS)
    place = tmp_path / "project" / ".marvin" / "skills"

    async def go() -> None:
        await made.session.submit("a")
        put(place, "pdf", PDF)
        await made.session.submit("b")
        os.rename(place / "pdf", tmp_path / "gone")
        await made.session.submit("c")
        await made.session.close()

    run(go())
    assert made.provider is not None
    assert [len(request.tools) for request in made.provider.requests] == [0, 1, 0]
    assert ["- pdf: " in request.system for request in made.provider.requests] == [False, True, False]


@pytest.mark.slow
def test_of_too_many_in_one_folder_the_first_by_name_count_and_the_others_are_told(tmp_path: Path) -> None:
    """The same ones on each machine, in whatever order a disk lists them."""
    for number in reversed(range(510)):
        put(tmp_path / "project" / ".marvin" / "skills", f"s{number:03}")
    found = find(tmp_path)[1]
    assert [one.name for one in found if not one.problem] == [f"s{number:03}" for number in range(500)]
    (rest,) = [one for one in found if one.problem]
    assert rest.name == "(10 more)"
    assert "they are ignored" in rest.problem


def test_who_does_not_offer_the_tool_is_not_told_of_skills(tmp_path: Path) -> None:
    put(tmp_path / "project" / ".marvin" / "skills", "pdf", PDF)
    made = make(tmp_path, says("Fine."), specs=SPECS, argv=("--non-interactive", "--tools=-read_skill"))
    assert "# Skills" not in prompt(made)


def test_a_read_only_agent_reads_skills(tmp_path: Path) -> None:
    put(tmp_path / "project" / ".marvin" / "skills", "pdf", PDF)
    made = make(tmp_path, says("Fine."), specs=SPECS, env={"MARVIN_READONLY": "1", "MARVIN_DEPTH": "1"})
    assert "- pdf: " in prompt(made)
