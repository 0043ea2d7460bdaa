"""`marvin config`: what is set, changing it without losing anything, and the system prompt."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.support_e2e import Marvin

pytestmark = pytest.mark.slow


def test_show_names_the_file_and_where_values_come_from(unconfigured: Marvin) -> None:
    path = unconfigured.config("model: big\nproviders:\n  mine:\n    base_url: http://127.0.0.1:1/v1\n")
    shown = unconfigured.run("--provider", "mine", "config", "show")
    assert shown.code == 0
    for expected in (str(path), "mine (from --provider)", "big (from config.yaml)", "http://127.0.0.1:1/v1"):
        assert expected in shown.text


def test_show_keeps_the_values_of_headers_to_itself(unconfigured: Marvin) -> None:
    """I24: a header may be a key."""
    unconfigured.config("providers: {mine: {base_url: 'http://127.0.0.1:1/v1', headers: {X-Key: very-secret}}}\n")
    shown = unconfigured.run("config", "show")
    assert "X-Key" in shown.text
    assert "very-secret" not in shown.text


def test_set_keeps_comments_and_order(unconfigured: Marvin) -> None:
    path = unconfigured.config("# mine\nmodel: big  # the good one\n\ntimeouts:\n  tool: 50 # slow machine\n")
    assert unconfigured.run("config", "set", "timeouts.tool", "70").code == 0
    assert unconfigured.run("config", "set", "permissions.deny", "[run_command]").code == 0
    assert path.read_text() == (
        "# mine\nmodel: big  # the good one\n\ntimeouts:\n  tool: 70 # slow machine\n"
        "permissions:\n  deny: [run_command]\n"
    )
    assert unconfigured.run("config", "set", "timeouts.tool", "").code == 0
    assert "tool:" not in path.read_text()


def test_unset_takes_a_value_away_and_leaves_the_rest(unconfigured: Marvin) -> None:
    path = unconfigured.config("# mine\nmodel: big\ntimeouts:\n  tool: 50 # slow machine\n  http: 20\n")
    taken = unconfigured.run("config", "unset", "timeouts.tool")
    assert (taken.code, taken.text) == (0, f"{path}: timeouts.tool was removed.\n")
    assert unconfigured.run("config", "unset", "model").code == 0
    assert path.read_text() == "# mine\ntimeouts:\n  http: 20\n"


@pytest.mark.parametrize("key", ["model", "timeouts", "timeouts.tool", "model.x", ""])
def test_unset_of_what_is_not_set_says_so_and_changes_nothing(unconfigured: Marvin, key: str) -> None:
    path = unconfigured.config("provider: groq\n")
    result = unconfigured.run("config", "unset", key)
    assert result.code == 2
    assert f"{key} is not set in {path}, so there is nothing to remove." in result.said
    assert path.read_text() == "provider: groq\n"


def test_set_makes_the_file(unconfigured: Marvin) -> None:
    assert unconfigured.run("config", "set", "model", "yes").code == 0
    assert "yes (from config.yaml)" in unconfigured.run("config", "show").text


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("modell", "x", "Did you mean 'model'"),
        ("modle", "x", "Did you mean 'model' or 'models'?"),
        ("provider", "gorq", "Did you mean 'groq'?"),
        ("timeouts.tool", "soon", "a number"),
        ("timeouts.tool", "-1", "a number of at least 0"),
        ("provider", "nobody", "openai-compat"),
        ("transport", "pigeon", 'one of "direct", "stock"'),
        ("model.x", "y", "is a single value"),
        ("permissions.deny", "[a", "YAML"),
        ("providers.a.key", "sk-1234", "not the key itself"),
    ],
)
def test_a_value_that_would_not_do_changes_nothing(unconfigured: Marvin, key: str, value: str, words: str) -> None:
    path = unconfigured.config("# mine\nmodel: big\n")
    result = unconfigured.run("config", "set", key, value)
    assert result.code in (1, 2)
    assert words in result.said
    assert "Traceback" not in result.said
    assert path.read_text() == "# mine\nmodel: big\n"


def editor(folder: Path, code: str) -> dict[str, str]:
    """An editor that runs `code` with the file's path as `path`."""
    script = folder / "an editor.py"
    script.write_text(f"import sys\nfrom pathlib import Path\npath = Path(sys.argv[1])\n{code}\n")
    return {"EDITOR": f"{sys.executable} '{script}'"}


def test_edit_saves_what_the_editor_wrote(unconfigured: Marvin, tmp_path: Path) -> None:
    path = unconfigured.config("model: big\n")
    env = editor(tmp_path, "path.write_text(path.read_text() + 'ui: plain\\n')")
    result = unconfigured.run("config", "edit", env=env)
    assert (result.code, result.said) == (0, "")
    assert path.read_text() == "model: big\nui: plain\n"
    assert sorted(unconfigured.config_folder.glob("*draft*")) == []


def test_edit_keeps_the_file_where_the_new_one_is_wrong_and_goes_on_later(unconfigured: Marvin, tmp_path: Path) -> None:
    path = unconfigured.config("model: big\n")
    result = unconfigured.run("config", "edit", env=editor(tmp_path, "path.write_text('modell: small\\n')"))
    assert result.code == 1
    assert "Did you mean 'model'" in result.said
    assert "config.draft.yaml" in result.said
    assert path.read_text() == "model: big\n"
    mend = editor(tmp_path, "path.write_text(path.read_text().replace('modell', 'model'))")
    assert unconfigured.run("config", "edit", env=mend).code == 0
    assert path.read_text() == "model: small\n"


def test_edit_mends_a_file_that_no_run_can_start_with(unconfigured: Marvin, tmp_path: Path) -> None:
    path = unconfigured.config("timeouts: {tool: -1}\n")
    assert unconfigured.run("tools", "list").code == 1
    assert unconfigured.run("config", "edit", env=editor(tmp_path, "path.write_text('model: big\\n')")).code == 0
    assert path.read_text() == "model: big\n"


def test_an_editor_that_is_not_there_or_fails_changes_nothing(unconfigured: Marvin, tmp_path: Path) -> None:
    path = unconfigured.config("model: big\n")
    for env in ({"EDITOR": "no-such-editor"}, editor(tmp_path, "path.write_text('x'); sys.exit(3)")):
        result = unconfigured.run("config", "edit", env=env)
        assert result.code == 1
        assert "Traceback" not in result.said
        assert path.read_text() == "model: big\n"


def test_the_editor_gets_no_secret(unconfigured: Marvin, tmp_path: Path) -> None:
    """I24: keys go to no child."""
    env = editor(tmp_path, "import os; (path.parent / 'seen').write_text(repr(dict(os.environ)))")
    unconfigured.run("config", "edit", env={**env, "OPENAI_API_KEY": "sk-very-secret-1"})
    assert "sk-very-secret-1" not in (unconfigured.config_folder / "seen").read_text()


def test_show_prompt_prints_each_part_with_its_origin_and_size(unconfigured: Marvin) -> None:
    (unconfigured.project / "AGENTS.md").write_text("Use tabs.")
    unconfigured.run("profiles", "use", "work")
    shown = unconfigured.run("config", "show", "prompt")
    assert shown.code == 0
    part = "# Instructions from the repository, not from the user (AGENTS.md)\nUse tabs."
    assert f"== AGENTS.md ({len(part)} characters)\n{part}\n" in shown.text
    assert "== built in (" in shown.text
    assert "Active profile: work" in shown.text
    assert "Working on code" not in shown.text
    assert "Working on code" in unconfigured.run("--non-interactive", "config", "show", "prompt").text
    assert unconfigured.run("config", "show", "prompts").code == 2


def test_show_lists_instructions_and_skills_with_their_size_and_state(unconfigured: Marvin) -> None:
    project = unconfigured.project
    (project / "AGENTS.md").write_text("Use tabs.")
    (project / "CLAUDE.md").write_text("See @AGENTS.md")
    (project / ".marvin-instructions").write_bytes(b"\x00")
    for name, head in {"pdf": "description: Read PDFs.", "odd": "license: MIT"}.items():
        folder = project / ".agents" / "skills" / f"{name}\nx"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\n{head}\n---\n")
    lines = unconfigured.run("config", "show").text.splitlines()
    assert "instructions   AGENTS.md (9 bytes): used" in lines
    assert "instructions   CLAUDE.md (14 bytes): not used: AGENTS.md beside it is" in lines
    assert "instructions   .marvin-instructions (0 bytes): not used: it is a binary file, not text" in lines
    skills = [line for line in lines if line.startswith("skill ")]
    assert [line.rpartition("'s): ")[2] for line in skills] == ["not used: its front matter has no description", "used"]
    assert f"{project}/.agents/skills/pdf x (" in skills[1]


def test_values_are_set_in_the_form_that_their_keys_take_and_shown_as_they_are_written(unconfigured: Marvin) -> None:
    path = unconfigured.config("ui: plain\n")
    for key, value in (("seed", "off"), ("screen_reader", "true"), ("thinking", "low"), ("provider", "groq")):
        assert unconfigured.run("config", "set", key, value).code == 0
    assert path.read_text() == "ui: plain\nseed: off\nscreen_reader: true\nthinking: low\nprovider: groq\n"
    shown = unconfigured.run("config", "show").text
    assert 'ui: "plain"\nseed: "off"\nscreen_reader: true\n' in shown
    assert unconfigured.run("config", "unset", "ui").code == 0
    assert "ui" not in path.read_text()
    refused = unconfigured.run("config", "set", "seed", "maybe")
    assert (refused.code, 'seed: must be one of "on", "off"; found "maybe".' in refused.said) == (1, True)
