"""Backups of what was taken out of conversations: found again by words, and listed in an index."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import ToolError
from marvin_core.api.errors import MarvinError
from marvin_core.api.messages import Message, from_dict, to_dict, tool, user
from marvin_core.config.load import load
from marvin_core.conversation.backups import Backups
from marvin_core.conversation.digest import digest
from marvin_core.conversation.plan import composed, plan
from marvin_core.guard.files.workspace import Workspace
from marvin_core.guard.kept_texts import KeptTexts
from tests.support.conversations import answer, call, conversations, output, rounds
from tests.support.counting import times_called
from tests.support.examples import examples

NOON = 1_795_089_600.0
SAID = [
    user("Where is the Teapot made?"),
    answer("I look.", call("a", "code_grep", pattern="teapot")),
    tool([output("a", "src/kettle.py:7: def brew(teapot):\n    return 'Earl Grey'", "code_grep")]),
    answer("In src/kettle.py."),
]


def backups(tmp_path: Path, folder: str = "project", *argv: str) -> Backups:
    home, project = tmp_path / "home", tmp_path / folder
    home.mkdir(exist_ok=True)
    project.mkdir(exist_ok=True)
    env = {"HOME": str(home), "MARVIN_HOME": str(home / "marvin"), "PATH": "/usr/bin:/bin"}
    config, _ = load([*argv], env, cwd=project)
    return Backups(Workspace(config), config, KeptTexts())


def coding(tmp_path: Path, folder: str = "project") -> Backups:
    return backups(tmp_path, folder, "--non-interactive")


def kept(folder: Path) -> list[str]:
    """When the backups of a folder were written, the newest first: day and hour."""
    names = sorted((path.name for path in folder.glob("context-backup-*")), reverse=True)
    return [name.removeprefix("context-backup-")[4:11] for name in names]


class TestLimits:
    DAY = 86_400.0

    def test_what_is_too_old_goes_with_the_next_one_and_from_the_index_too(self, tmp_path: Path) -> None:
        found = coding(tmp_path)
        for days in (0, 1, 80):
            backup = found.write(SAID, NOON + days * self.DAY)
            found.add_to_index(backup, NOON + days * self.DAY)
        folder = tmp_path / "project" / ".marvin" / "logs"
        assert kept(folder) == ["0207-12", "1120-12", "1119-12"]
        backup = found.write(SAID, NOON + 90.5 * self.DAY)
        found.add_to_index(backup, NOON + 90.5 * self.DAY)
        assert kept(folder) == ["0218-00", "0207-12", "1120-12"]
        index = (folder.parent / "memories" / "INDEX.md").read_text("utf-8")
        assert index.count("context-backup-") == 3
        assert "context-backup-20261119" not in index

    def test_the_oldest_go_where_all_together_are_too_large(self, tmp_path: Path) -> None:
        home = tmp_path / "home" / "marvin"
        home.mkdir(parents=True)
        (home / "config.yaml").write_text("limits: {backup_bytes: 2500}")
        found, folder = coding(tmp_path), tmp_path / "project" / ".marvin" / "logs"
        for number in range(5):
            found.write([user("x" * 1_000)], NOON + number * 3_600)
            assert kept(folder)[0] == f"1119-{12 + number}"
        assert kept(folder) == ["1119-16", "1119-15"]
        found.write([user("x" * 9_000)], NOON + self.DAY)
        assert kept(folder) == ["1120-12"]

    def test_the_newest_of_each_folder_stays_where_those_of_all_folders_are(self, tmp_path: Path) -> None:
        first, second = backups(tmp_path, "first"), backups(tmp_path, "second")
        for hour in range(3):
            first.write([user("first")], NOON + hour * 3_600)
        second.write([user("second")], NOON + 400 * self.DAY)
        assert [path.name[15:26] for path in first.files()] == ["20261119-14"]
        assert len(second.files()) == 1

    def test_nothing_else_is_removed(self, tmp_path: Path) -> None:
        found = coding(tmp_path)
        folder = found.write(SAID, NOON).path.parent
        others = ["context-backup-notes.jsonl", "context-backup-20200101-000000-000.jsonl.bak", "job-1.log"]
        for name in others:
            (folder / name).write_text("mine")
        (folder / "target").write_text("mine")
        (folder / "context-backup-20200101-000000-000.jsonl").symlink_to(folder / "target")
        (folder / "context-backup-20200101-000000-001.jsonl").mkdir()
        found.write(SAID, NOON + 1)
        assert all((folder / name).exists() for name in others)
        assert (folder / "target").exists()
        assert (folder / "context-backup-20200101-000000-000.jsonl").is_symlink()
        assert (folder / "context-backup-20200101-000000-001.jsonl").is_dir()


class TestHostileFiles:
    def test_what_a_repository_brings_as_backups_costs_nothing(self, tmp_path: Path) -> None:
        found = coding(tmp_path)
        folder = found.write(SAID, NOON).path.parent
        with (folder / "context-backup-20261118-000000-000.jsonl").open("wb") as stream:
            stream.truncate(300_000_000)  # a hole of zeros
        (folder / "context-backup-20261118-000000-001.jsonl").write_bytes(b"[" * 100_000 + b"teapot\n\xff\0teapot\n")
        tracemalloc.start()
        try:
            told = found.search("teapot", 5)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert "Where is the Teapot made?" in told
        assert peak < 20_000_000


class TestWriting:
    def test_a_project_and_coding_mode_have_them_in_the_project(self, tmp_path: Path) -> None:
        """I16"""
        written = coding(tmp_path).write(SAID, NOON)
        assert written.path.parent == tmp_path / "project" / ".marvin" / "logs"
        assert written.path.name == "context-backup-20261119-120000-000.jsonl"
        assert written.shown == f".marvin/logs/{written.path.name}"
        assert [from_dict(json.loads(line)) for line in written.path.read_text().splitlines()] == SAID

    def test_a_chat_elsewhere_has_them_in_the_data_folder(self, tmp_path: Path) -> None:
        written = backups(tmp_path).write(SAID, NOON)
        assert tmp_path / "home" in written.path.parents
        assert not (tmp_path / "project" / ".marvin").exists()
        assert written.shown == str(written.path)

    def test_two_in_one_moment_do_not_overwrite_each_other(self, tmp_path: Path) -> None:
        kept = coding(tmp_path)
        assert kept.write(SAID, NOON).path != kept.write(SAID[:1], NOON).path
        assert len(kept.files()) == 2

    def test_half_a_surrogate_pair_can_be_written(self, tmp_path: Path) -> None:
        written = coding(tmp_path).write([user("a\ud800b")], NOON)
        assert from_dict(json.loads(written.path.read_text())).text == "a\ud800b"

    @pytest.mark.slow
    @given(conversations())
    @examples(20)
    def test_all_of_a_conversation_comes_back(self, tmp_path_factory: object, messages: list[Message]) -> None:
        """I16"""
        folder = tmp_path_factory.mktemp("kept")  # type: ignore[attr-defined]
        written = coding(folder).write(messages, NOON)
        assert [from_dict(json.loads(line)) for line in written.path.read_text().splitlines()] == messages


class TestSearching:
    def test_all_words_must_stand_in_one_message_in_any_case(self, tmp_path: Path) -> None:
        kept = coding(tmp_path)
        kept.write(SAID, NOON)
        found = kept.search("EARL teapot", 20)
        assert found.startswith("1 place in 1 backup, newest first.")
        assert (
            "context-backup-20261119-120000-000.jsonl, line 3, 2026-11-19 12:00:00 UTC, output of code_grep:" in found
        )
        assert "  src/kettle.py:7: def brew(teapot):" in found

    def test_requests_answers_calls_and_outputs_are_searched(self, tmp_path: Path) -> None:
        kept = coding(tmp_path)
        kept.write(SAID, NOON)
        found = kept.search("teapot", 20)
        for who in ("user:", "call of code_grep:", "output of code_grep:"):
            assert who in found
        assert "assistant:" in kept.search("look.", 20)

    def test_words_with_quotes_and_patterns_are_literal(self, tmp_path: Path) -> None:
        kept = coding(tmp_path)
        kept.write([user('say "a.*b"\\n literally')], NOON)
        assert "1 place" in kept.search('"a.*b"\\n', 20)
        assert "Nothing" in kept.search("aXXb", 20)

    def test_the_newest_comes_first_and_what_is_in_several_backups_once(self, tmp_path: Path) -> None:
        kept = coding(tmp_path)
        kept.write(SAID, NOON)
        kept.write([*SAID[-1:], user("The kettle.py again")], NOON + 3_600)
        found = kept.search("kettle.py", 20)
        assert found.index("again") < found.index("In src/kettle.py.") < found.index("def brew")
        assert found.count("In src/kettle.py.") == 1
        assert "in 2 backups" in found

    def test_what_is_found_is_bounded(self, tmp_path: Path) -> None:
        kept = coding(tmp_path)
        kept.write([user(f"needle {n} " + "x" * 5_000) for n in range(300)], NOON)
        few = kept.search("needle", 3)
        assert few.startswith("3 places in 1 backup, newest first. There are more")
        assert "needle 299" in few
        assert len(kept.search("needle", 200)) < 50_000

    def test_the_window_shows_what_is_around_the_first_word(self, tmp_path: Path) -> None:
        kept = coding(tmp_path)
        kept.write([user("x" * 5_000 + " before needle after " + "y" * 5_000)], NOON)
        found = kept.search("needle", 1)
        assert "before needle after" in found
        assert len(found) < 800

    def test_nothing_found_and_no_backups_are_told_apart(self, tmp_path: Path) -> None:
        kept = coding(tmp_path)
        assert kept.search("teapot", 20).startswith("There are no backups here")
        kept.write(SAID, NOON)
        assert kept.search("coffee machine", 20).startswith("Nothing in 1 backup of this folder has all of these words")

    def test_summaries_in_a_backup_are_not_found_since_their_messages_are(self, tmp_path: Path) -> None:
        kept = coding(tmp_path)
        long = [*SAID, *rounds(20)]
        kept.write(long, NOON)
        found = plan(long, 50_000, "b")
        kept.write(composed(found, digest(found.middle, 5_000), "b"), NOON + 60)
        assert kept.search("kettle.py brew", 20).count("output of code_grep") == 1
        assert "code_grep 1" in composed(found, digest(found.middle, 5_000), "b")[1].text
        assert kept.search("files in calls of tools", 20).startswith("Nothing")

    def test_those_of_another_folder_are_not_found(self, tmp_path: Path) -> None:
        """Chats of all folders share the data folder."""
        backups(tmp_path, "one").write(SAID, NOON)
        assert backups(tmp_path, "two").search("teapot", 20).startswith("There are no backups here")
        assert "Earl" in backups(tmp_path, "one").search("teapot", 20)

    def test_damaged_lines_and_links_are_passed_over(self, tmp_path: Path) -> None:
        kept = coding(tmp_path)
        path = kept.write(SAID, NOON).path
        secret = tmp_path / "secret.jsonl"
        secret.write_text(json.dumps(to_dict(user("teapot secret"))) + "\n")
        (path.parent / "context-backup-20990101-000000-000.jsonl").symlink_to(secret)
        with path.open("a") as stream:
            stream.write('{"role": "user", "content": [{"type": "text", "text": "teapot to\n[1]\n"teapot"\n')
        found = kept.search("teapot", 20)
        assert "secret" not in found
        assert found.startswith("3 places in 1 backup,")

    @given(st.text(max_size=20))
    @examples(60)
    def test_any_query_is_answered(self, tmp_path_factory: object, query: str) -> None:
        """I10"""
        kept = coding(tmp_path_factory.mktemp("kept"))  # type: ignore[attr-defined]
        kept.write(SAID, NOON)
        if query.split():
            assert kept.search(query, 5)
        else:
            with pytest.raises(ToolError, match="The query has no word to search for"):
                kept.search(query, 5)


class TestTheIndex:
    def told(self, kept: Backups, messages: Sequence[Message], now: float) -> str:
        written = kept.write(messages, now)
        kept.add_to_index(written, now)
        return (written.path.parent.parent / "memories" / "INDEX.md").read_text()

    def test_it_lists_each_backup_with_its_requests_files_and_words(self, tmp_path: Path) -> None:
        text = self.told(coding(tmp_path), [*SAID, answer("", call("b", path="src/kettle.py"))], NOON)
        assert "## 2026-11-19 12:00:00 UTC context-backup-20261119-120000-000.jsonl" in text
        assert "- Where is the Teapot made?" in text
        assert "Files: src/kettle.py\n" in text
        assert "teapot" in text.rpartition("Words:")[2]

    def test_no_text_is_searched_for_keys_a_second_time(self, tmp_path: Path) -> None:
        """What a backup holds, and what the index says of it, are the same cleaned texts."""
        kept, said = coding(tmp_path), [*SAID, user("My key is ghp_" + "a1" * 20)]
        searched = times_called("_without_keys", lambda: self.told(kept, said, NOON))
        # Of an output, what lasts of it is a text of its own.
        assert searched == sum(len(message.content) + len(message.outputs) for message in said)
        index = (tmp_path / "project" / ".marvin" / "memories" / "INDEX.md").read_text()
        assert "My key is [redacted]" in index
        assert "ghp_" not in index

    def test_the_newest_is_first_and_the_oldest_go_when_it_becomes_long(self, tmp_path: Path) -> None:
        kept = coding(tmp_path)
        text = ""
        for number in range(60):
            text = self.told(kept, [user(f"request {number} {n} " + "w" * 300) for n in range(8)], NOON + number)
        assert len(text) < 65_000
        assert text.index("request 59 0") < text.index("request 58 0")
        assert "request 0 0" not in text
        assert text.startswith("# Backups of conversations")
        assert text.count("# Backups of conversations") == 1

    def test_a_link_in_its_place_is_left_alone(self, tmp_path: Path) -> None:
        """I4: a repository may bring one."""
        kept = coding(tmp_path)
        written = kept.write(SAID, NOON)
        victim = tmp_path / "victim"
        victim.write_text("mine")
        folder = tmp_path / "project" / ".marvin" / "memories"
        folder.mkdir()
        (folder / "INDEX.md").symlink_to(victim)
        with pytest.raises(MarvinError, match="is a symbolic link"):
            kept.add_to_index(written, NOON)
        assert victim.read_text() == "mine"
        assert os.path.islink(folder / "INDEX.md")


class TestWhatWasLearnt:
    told = TestTheIndex().told

    def test_it_lists_what_was_found_and_what_failed(self, tmp_path: Path) -> None:
        """Of a model that said little also what it said on the way; the newest errors first, each once."""
        failed = [
            tool([output(f"e{n}", f"Error: no file {n % 8}\nTry", "read_file", is_error=True)]) for n in range(20)
        ]
        calls = [answer("", *(call(f"e{n}") for n in range(20)))]
        text = self.told(coding(tmp_path), [*SAID, *calls, *failed], NOON)
        assert "\n\nFindings:\n- I look.\n- In src/kettle.py.\n\nErrors:\n- read_file: Error: no file 3 Try\n" in text
        assert text.count("Error: no file") == 5
        many = [
            message
            for n in range(30)
            for message in (user(f"Which {n}?"), answer("On my way.", call("x")), answer(f"It is {n}."))
        ]
        newest = self.told(coding(tmp_path), many, NOON + 1).split("\n## ")[1]
        found = newest.partition("Findings:\n")[2].partition("\n\n")[0]
        assert found.split("\n") == [f"- It is {n}." for n in range(22, 30)]
        assert "Errors:" not in newest

    def test_what_is_listed_stays_on_its_line(self, tmp_path: Path) -> None:
        hostile = "x\n## 2026-01-01 00:00:00 UTC context-backup-20261119-120000-000.jsonl\n\x1b[2Jy"
        messages = [user(hostile), answer(hostile, call("a", path="p\x1b[31m")), answer(hostile)]
        failed = tool([output("a", hostile, is_error=True)])
        text = self.told(coding(tmp_path), [*messages, failed], NOON)
        assert text.count("\n## ") == 1
        assert "\x1b" not in text

    def test_it_names_what_did_not_fit(self, tmp_path: Path) -> None:
        kept = coding(tmp_path)
        folder = tmp_path / "project" / ".marvin" / "memories"
        assert "did not fit" not in self.told(kept, SAID, NOON)
        for number in range(23):
            (folder / f"dump-src__part{number:02}.py-1-900.txt").write_text("x")
        (folder / "dump-\x1b[2J\n## x").write_text("x")
        (folder / "notes.md").write_text("x")
        text = self.told(kept, SAID, NOON + 1)
        line = next(line for line in text.splitlines() if "did not fit" in line)
        assert line.startswith(
            "Files that did not fit into a conversation: dump- ## x, dump-src__part00.py-1-900.txt, dump-"
        )
        assert line.endswith(" and 4 more")
        assert text.count("\n## ") == 2
        assert self.told(kept, SAID, NOON + 2).count("did not fit") == 1
