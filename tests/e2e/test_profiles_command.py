"""`marvin profiles`, and chats that go on where the last one of the profile ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, text
from tests.e2e.support_e2e import Marvin, conversation

pytestmark = pytest.mark.slow


def test_list_use_new_and_show(unconfigured: Marvin) -> None:
    assert unconfigured.run("profiles").text == "* main\n"
    assert not (unconfigured.config_folder / "profiles").exists()
    made = unconfigured.run("profiles", "new", "work")
    assert made.code == 0
    assert "marvin profiles use work" in made.text
    assert unconfigured.run("profiles", "list").text == "* main\n  work\n"
    assert unconfigured.run("profiles", "use", "work").code == 0
    misspelled = unconfigured.run("profiles", "use", "wrok")
    assert misspelled.code == 2
    assert "Did you mean 'work'? `marvin profiles new wrok` creates it." in misspelled.said
    assert unconfigured.run("profiles").text == "  main\n* work\n"
    (unconfigured.config_folder / "profiles" / "work" / "preferences.yaml").write_text("dietary: [vegan]\n")
    shown = unconfigured.run("profiles", "show").text
    assert "dietary: ['vegan']" in shown
    assert str(unconfigured.config_folder / "profiles" / "work" / "preferences.yaml") in shown


def test_names_that_cannot_be_used_say_so(unconfigured: Marvin) -> None:
    unconfigured.run("profiles", "new", "work")
    for name, words in (("../x", "letters, digits"), ("work", "already"), ("a/b", "letters, digits")):
        result = unconfigured.run("profiles", "new", name)
        assert result.code == 2
        assert words in result.said
        assert "Traceback" not in result.said
    assert not (unconfigured.config_folder / "x").exists()


def chat(marvin: Marvin, *lines: str) -> None:
    result = marvin.run("--plain", stdin="".join(f"{line}\n" for line in lines).encode())
    assert result.code == 0, result.said


def logged(marvin: Marvin, profile: str) -> list[str]:
    path: Path = marvin.config_folder / "profiles" / profile / "chat_log.json"
    return [entry["text"] for entry in json.loads(path.read_text("utf-8"))]


def test_each_profile_goes_on_with_its_own_chat(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("Hello Ada."), text("Fresh."), text("You are Ada."))
    chat(marvin, "I am Ada")
    marvin.run("profiles", "use", "work")
    chat(marvin, "Who am I?")
    assert [message["content"] for message in conversation(marvin_model_server)] == ["Who am I?"]
    marvin.run("profiles", "use", "main")
    chat(marvin, "Who am I?")
    assert [message["content"] for message in conversation(marvin_model_server)] == [
        "I am Ada",
        "Hello Ada.",
        "Who am I?",
    ]
    assert logged(marvin, "work") == ["Who am I?", "Fresh."]
    assert logged(marvin, "main") == ["I am Ada", "Hello Ada.", "Who am I?", "You are Ada."]


def test_a_non_interactive_run_leaves_the_chat_log_alone(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("Done."))
    assert marvin.ask().code == 0
    assert not (marvin.config_folder / "profiles").exists()


def test_a_damaged_chat_log_is_kept_and_said(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("Fine."))
    folder = marvin.config_folder / "profiles" / "main"
    folder.mkdir(parents=True)
    (folder / "chat_log.json").write_text("[{")
    chat(marvin, "Hi")
    (kept,) = folder.glob("chat_log.json.damaged-*")
    assert kept.read_text() == "[{"
    assert logged(marvin, "main") == ["Hi", "Fine."]


def test_import_takes_over_what_an_older_marvin_kept(unconfigured: Marvin, tmp_path: Path) -> None:
    """The command of the life pack, as the installed program has it."""
    profile = tmp_path / "older" / "profiles" / "main"
    profile.mkdir(parents=True)
    (profile / "saved_places.json").write_text('[{"label": "home", "address": "Main St 5"}]')
    (profile / "history").write_text("find ramen\n")
    nothing = unconfigured.run("import", str(tmp_path))
    assert nothing.code == 2
    assert "marvin import FOLDER" in nothing.said
    assert "1 to import" in unconfigured.run("import", "--dry-run", str(tmp_path / "older")).text
    done = unconfigured.run("import", str(tmp_path / "older"))
    assert done.code == 0, done.said
    assert "main: places             1 imported" in done.text
    assert "home: Main St 5" in unconfigured.run("profiles", "show").text
    assert "+find ramen" in (unconfigured.config_folder / "profiles" / "main" / "history").read_text()
