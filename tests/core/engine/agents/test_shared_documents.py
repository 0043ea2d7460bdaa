"""The documents of `.marvin` in a worktree: from the main folder, and back into it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.repositories import TestRepository


@pytest.fixture
def repository(tmp_path: Path) -> TestRepository:
    """A repository with documents that git does not have."""
    made = TestRepository(tmp_path / "home")
    made.write(".marvin/spec.md", "The spec\n")
    made.write(".marvin/upstream/README.md", "Upstream\n")
    made.write(".marvin/memories/INDEX.md", "a | b\n")
    for own in ("logs/x.log", "pipeline_state", "review-history-spec.md", "undo/1"):
        made.write(f".marvin/{own}", "own\n")
    return made


def test_the_agent_has_the_documents_of_the_main_folder(repository: TestRepository) -> None:
    """Untracked ones too; what each folder has for itself is not copied, and git sees none of the copies."""

    def work(folder: Path) -> None:
        copied = {str(path.relative_to(folder / ".marvin")) for path in (folder / ".marvin").rglob("*.*")}
        assert copied == {".gitignore", "spec.md", "upstream/README.md", "memories/INDEX.md"}
        assert repository.git("status", "--porcelain", at=folder) == ""

    told = repository.agent(work)
    assert "It committed nothing" in told
    assert "removed" in told


def test_what_the_agent_wrote_comes_back(repository: TestRepository) -> None:
    """Changed and new documents, without a commit; lines of the index of findings from both sides."""

    def work(folder: Path) -> None:
        repository.write(".marvin/spec.md", "The spec, better\n", folder)
        repository.write(".marvin/notes/deep/n.md", "A note\n", folder)
        repository.write(".marvin/memories/INDEX.md", "a | b\nc | d\n", folder)
        repository.write(".marvin/memories/INDEX.md", "a | b\ne | f\n")

    told = repository.agent(work)
    assert "Copied into .marvin: " in told
    assert "removed" in told
    assert (repository.root / ".marvin/spec.md").read_text() == "The spec, better\n"
    assert (repository.root / ".marvin/notes/deep/n.md").read_text() == "A note\n"
    assert (repository.root / ".marvin/memories/INDEX.md").read_text() == "a | b\ne | f\nc | d\n"


def test_what_was_changed_meanwhile_is_not_overwritten(repository: TestRepository) -> None:
    """Nor what no agent may change; the worktree stays for its sake."""

    def work(folder: Path) -> None:
        repository.write(".marvin/spec.md", "theirs\n", folder)
        repository.write(".marvin/upstream/README.md", "theirs\n", folder)
        repository.write(".marvin/spec.md", "ours\n")

    told = repository.agent(work)
    assert "Not copied into .marvin, because they changed there in the meantime" in told
    assert "spec.md" in told
    assert "upstream/README.md" in told
    assert "The worktree was kept" in told
    assert (repository.root / ".marvin/spec.md").read_text() == "ours\n"
    assert (repository.root / ".marvin/upstream/README.md").read_text() == "Upstream\n"
    assert (repository.root / ".marvin/worktrees/t-1/.marvin/spec.md").read_text() == "theirs\n"


def test_documents_that_git_has(repository: TestRepository) -> None:
    """Committed ones go by way of git; what the user changed in them since goes along, and into no commit."""
    repository.write(".marvin/.gitignore", "logs/\nundo/\nworktrees/\n")
    repository.commit("Documents")
    repository.write(".marvin/spec.md", "The spec, not committed\n")

    def work(folder: Path) -> None:
        assert (folder / ".marvin/spec.md").read_text() == "The spec, not committed\n"
        assert repository.git("status", "--porcelain", at=folder) == ""
        repository.write(".marvin/upstream/README.md", "Committed\n", folder)
        repository.write("a.txt", "changed\n", folder)
        repository.commit("Agent", folder)

    told = repository.agent(work)
    assert "merged into main" in told
    assert repository.git("diff", "--name-only", "HEAD~", "HEAD").split() == [".marvin/upstream/README.md", "a.txt"]
    assert repository.dirty() == " M .marvin/spec.md\n"
    assert (repository.root / ".marvin/spec.md").read_text() == "The spec, not committed\n"


def test_links_and_large_files_are_left_out(repository: TestRepository, tmp_path: Path) -> None:
    """A link is followed nowhere, in neither direction."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret\n")
    (repository.root / ".marvin/notes").symlink_to(secret)
    (repository.root / ".marvin/linked.md").symlink_to(secret / "key")
    with (repository.root / ".marvin/huge.md").open("wb") as file:
        file.truncate(40_000_000)

    def work(folder: Path) -> None:
        names = {path.name for path in (folder / ".marvin").iterdir()}
        assert not names & {"notes", "linked.md", "huge.md"}
        repository.write(".marvin/notes/key", "changed\n", folder)

    told = repository.agent(work)
    assert "notes/key" in told
    assert (secret / "key").read_text() == "secret\n"
