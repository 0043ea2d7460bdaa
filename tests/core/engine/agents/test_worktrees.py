"""Worktrees of agents: what goes into them, what comes back, and that nothing is lost."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from marvin_core.api.errors import ToolError
from marvin_core.api.timeouts import Timeouts
from marvin_core.engine.agents.worktrees import Worktree, Worktrees
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.util.threads import in_thread
from tests.support.repositories import TestRepository

pytestmark = pytest.mark.slow


@pytest.fixture(params=["outside", "inside"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> TestRepository:
    """A repository whose git runs outside of the sandbox, and one whose git runs in it."""
    return TestRepository(tmp_path / "home", sandboxed=request.param == "inside")


@pytest.fixture
def plain(tmp_path: Path) -> TestRepository:
    """A repository whose git runs outside of the sandbox, for what has nothing to do with it."""
    return TestRepository(tmp_path / "home")


def worktrees_of(repository: TestRepository) -> list[str]:
    """The names of the worktrees that there are."""
    folder = repository.root / ".marvin/worktrees"
    return sorted(path.name for path in folder.iterdir() if path.name != ".gitignore") if folder.is_dir() else []


def test_what_an_agent_committed_is_merged_and_the_worktree_removed(repository: TestRepository) -> None:
    """The branch of the main folder goes forward to the agent's commit, and nothing of the worktree is left."""

    def work(folder: Path) -> None:
        assert folder == repository.root / ".marvin/worktrees/t-1"
        assert (folder / "a.txt").read_text() == "one\n"
        repository.write("new.txt", "made\n", folder)
        repository.commit("Add new.txt", folder)

    told = repository.agent(work)
    assert "1 commit" in told
    assert "merged into main" in told
    assert "new.txt" in told
    assert "The worktree and its branch were removed" in told
    assert (repository.root / "new.txt").read_text() == "made\n"
    assert repository.git("log", "--format=%s").split("\n")[:2] == ["Add new.txt", "First"]
    assert repository.branches() == ["main"]
    assert worktrees_of(repository) == []
    assert repository.git("worktree", "list").count("\n") == 1
    assert repository.dirty() == ""


def test_what_it_left_uncommitted_is_committed_with_the_ticket(repository: TestRepository) -> None:
    """Changed, removed and new files; the commit names the ticket, and what was left is named."""

    def work(folder: Path) -> None:
        repository.write("a.txt", "changed\n", folder)
        (folder / "b.txt").unlink()
        repository.write("deep/new\nline.txt", "new\n", folder)

    told = repository.agent(work, ticket="abc-1234")
    assert "left 3 files uncommitted" in told
    assert "a.txt" in told
    message = repository.git("log", "-1", "--format=%B")
    assert message.startswith("abc-1234: ")
    assert message.rstrip().endswith("Ticket: abc-1234")
    assert (repository.root / "a.txt").read_text() == "changed\n"
    assert not (repository.root / "b.txt").exists()
    assert (repository.root / "deep/new\nline.txt").read_text() == "new\n"
    assert repository.dirty() == ""
    assert worktrees_of(repository) == []


def test_the_main_folder_may_have_gone_on(repository: TestRepository) -> None:
    """Both sides have commits: a merge with the main folder first, and its uncommitted files untouched."""
    repository.write("notes.txt", "mine\n")

    def work(folder: Path) -> None:
        repository.write("new.txt", "made\n", folder)
        repository.commit("Agent", folder)
        repository.write("c.txt", "three\n")
        repository.git("add", "c.txt")
        repository.git("commit", "--quiet", "-m", "Main")

    told = repository.agent(work)
    assert "Not in the worktree, because it is not committed: notes.txt." in told
    assert "merged into main" in told
    first, second = repository.git("log", "-1", "--format=%P").split()
    assert repository.git("log", "-1", "--format=%s", first).strip() == "Main"
    assert repository.git("log", "-1", "--format=%s", second).strip() == "Agent"
    assert repository.dirty() == "?? notes.txt\n"
    assert {"c.txt", "new.txt", "notes.txt"} <= set(os.listdir(repository.root))


def test_a_conflict_is_reported_and_nothing_is_touched(repository: TestRepository) -> None:
    """The main folder stays as it is; branch, files and commands are named, and the commands work."""

    def work(folder: Path) -> None:
        repository.write("a.txt", "theirs\n", folder)
        repository.commit("Agent", folder)
        repository.write("a.txt", "ours\n")
        repository.commit("Main")

    told = repository.agent(work)
    assert "not merged: both sides changed a.txt" in told
    assert "The worktree was kept" in told
    assert "marvin/t-1" in told
    assert (repository.root / "a.txt").read_text() == "ours\n"
    assert repository.dirty() == ""
    assert repository.branches() == ["main", "marvin/t-1"]
    tree = repository.root / ".marvin/worktrees/t-1"
    assert repository.git("status", "--porcelain", at=tree) == ""
    assert (tree / "a.txt").read_text() == "theirs\n"
    commands = told[told.index("To remove it: ") :].removeprefix("To remove it: ").split(" && ")
    for command in commands:
        repository.git(*command.split()[1:])
    assert repository.branches() == ["main"]
    assert worktrees_of(repository) == []


def test_files_of_the_user_are_not_overwritten(repository: TestRepository) -> None:
    """Where the main folder has changes in a file that the agent changed, or a file that it made, nothing is merged."""
    repository.write("b.txt", "by hand\n")

    def work(folder: Path) -> None:
        repository.write("b.txt", "by the agent\n", folder)
        repository.commit("Agent", folder)

    told = repository.agent(work)
    assert "not merged: the main folder has uncommitted changes or new commits. git says" in told
    assert "b.txt" in told
    assert (repository.root / "b.txt").read_text() == "by hand\n"
    assert "First" in repository.git("log", "-1", "--format=%s")

    def another(folder: Path) -> None:
        repository.write("c.txt", "by the agent\n", folder)
        repository.write("c.txt", "by hand\n")

    assert "not merged" in repository.agent(another, ticket="t-2")
    assert (repository.root / "c.txt").read_text() == "by hand\n"
    assert worktrees_of(repository) == ["t-1", "t-2"]


def test_what_failed_is_committed_and_not_merged(plain: TestRepository) -> None:
    """An agent that did not come to its end: its work stays on its branch; where it did nothing, nothing stays."""
    told = plain.agent(lambda folder: plain.write("a.txt", "half\n", folder), answered=False)
    assert "not merged: the agent did not finish" in told
    assert plain.git("log", "-1", "--format=%s", "marvin/t-1").startswith("t-1: ")
    assert (plain.root / "a.txt").read_text() == "one\n"
    assert "removed" in plain.agent(answered=False, ticket="t-2")
    assert worktrees_of(plain) == ["t-1"]
    assert plain.branches() == ["main", "marvin/t-1"]


def test_keys_logs_and_large_files_stay_in_the_worktree(plain: TestRepository) -> None:
    """What no commit should have is named, and the worktree stays for its sake; what is made again does not count."""

    def work(folder: Path) -> None:
        plain.write("src.py", "x = 1\n", folder)
        plain.write(".env", "KEY=1\n", folder)
        plain.write("pem.txt", "-----BEGIN RSA PRIVATE KEY-----\n", folder)
        plain.write("__pycache__/src.pyc", "compiled", folder)

    told = plain.agent(work)
    assert ".env (it may hold keys)" in told
    assert "pem.txt (it contains a private key)" in told
    assert "__pycache__" not in told
    assert "merged into main" in told
    assert "The worktree was kept" in told
    assert (plain.root / "src.py").exists()
    assert not (plain.root / ".env").exists()
    assert (plain.root / ".marvin/worktrees/t-1/.env").read_text() == "KEY=1\n"
    assert "removed" in plain.agent(lambda folder: plain.write("node_modules/x/y.js", "1", folder), ticket="t-2")


def test_a_folder_that_a_program_made_stays_in_the_worktree(plain: TestRepository) -> None:
    """Such as a virtual environment, whose files would all be merged."""

    def work(folder: Path) -> None:
        for name in ("env/pyvenv.cfg", "env/lib/m.py", "src/env/main.py", "target/x", "pom.xml"):
            plain.write(name, "x = 1\n", folder)

    told = plain.agent(work)
    assert "Not committed: env/ (usually ignored), target/ (usually ignored)." in told
    assert plain.git("ls-files", "env", "src", "target").split() == ["src/env/main.py"]
    assert (plain.root / ".marvin/worktrees/t-1/env/lib/m.py").exists()


@pytest.mark.parametrize("names", [["git~1"], ["git~1", "src.py"]], ids=str)
def test_a_file_whose_name_git_refuses_stays_in_the_worktree(plain: TestRepository, names: list[str]) -> None:
    """git stages the other files, and says nothing of it with its exit code."""

    def work(folder: Path) -> None:
        for name in names:
            plain.write(name, "new\n", folder)

    told = plain.agent(work)
    assert "Not committed: git~1 (git refuses its name)." in told
    assert plain.git("ls-files", *names).split() == names[1:]
    assert (plain.root / ".marvin/worktrees/t-1/git~1").read_text() == "new\n"


@pytest.mark.parametrize("answered", [True, False])
def test_a_repository_that_the_agent_committed_stays_in_the_worktree(plain: TestRepository, *, answered: bool) -> None:
    """The commit has none of its files: those are in the worktree only."""

    def work(folder: Path) -> None:
        plain.write("app/main.py", "x = 1\n", folder)
        plain.git("init", "--quiet", "app", at=folder)
        plain.commit("Begin", at=folder / "app")
        plain.commit("Add the app", at=folder)

    told = plain.agent(work, answered=answered)
    assert "Not committed: app/ (another repository; the commit has its name, but not its files)" in told
    assert "The worktree was kept" in told
    assert (plain.root / ".marvin/worktrees/t-1/app/main.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ([("switch", "--quiet", "-c", "other")], "on another branch"),
        ([("switch", "--quiet", "--detach")], "on another branch"),
        ([("branch", "--quiet", "side"), ("commit", "--quiet", "--allow-empty", "-m", "x")], "merged into main"),
    ],
)
def test_an_agent_that_plays_with_branches(plain: TestRepository, commands: list[tuple[str, ...]], said: str) -> None:
    """What is not where it was put is left as it is, and said."""

    def work(folder: Path) -> None:
        for command in commands:
            plain.git(*command, at=folder)
        plain.write("a.txt", "there\n", folder)

    assert said in plain.agent(work)


def test_a_merge_that_the_agent_did_not_end(plain: TestRepository) -> None:
    """Conflicts that it left are not committed for it."""
    plain.git("branch", "side")
    plain.write("a.txt", "main\n")
    plain.commit("Main")
    plain.git("switch", "--quiet", "side")
    plain.write("a.txt", "side\n")
    plain.commit("Side")
    plain.git("switch", "--quiet", "main")

    def work(folder: Path) -> None:
        with pytest.raises(AssertionError):
            plain.git("merge", "side", at=folder)

    assert "in the middle of a merge" in plain.agent(work)
    assert "<<<<<<<" in (plain.root / ".marvin/worktrees/t-1/a.txt").read_text()


def test_the_main_folder_is_on_another_branch_by_then(plain: TestRepository) -> None:
    """What was meant for one branch is not merged into another, nor into none."""

    def work(folder: Path) -> None:
        plain.write("new.txt", "made\n", folder)
        plain.git("switch", "--quiet", "-c", "elsewhere")

    assert "the main folder is on elsewhere now, and was on main" in plain.agent(work)
    plain.git("switch", "--quiet", "--detach")
    assert "the main folder is on no branch" in plain.agent(lambda f: plain.write("x.txt", "x", f), ticket="t-2")


def test_without_a_repository_or_a_commit(tmp_path: Path, plain: TestRepository) -> None:
    """The error says what to do."""
    bare = tmp_path / "elsewhere"
    bare.mkdir()
    with pytest.raises(ToolError, match=r"not in a git repository.*Leave isolation out"):
        plain.agent(root=bare)
    plain.git("init", "--quiet", at=bare)
    with pytest.raises(ToolError, match="There is no commit to create a worktree from"):
        plain.agent(root=bare)


def test_tickets_that_are_no_names_of_branches(plain: TestRepository) -> None:
    """Any ticket makes a branch that git takes; a second agent of a ticket gets its own; `marvin` may be taken."""
    for ticket in ("../../x", "-rf", "a b..c.lock", "", "ü" * 300, "@{-1}", "t\n\n[core]"):
        assert "removed" in plain.agent(ticket=ticket)

    async def two(runner: ProcessRunner) -> list[str]:
        worktrees = Worktrees(runner, Timeouts())
        trees = [await worktrees.open(plain.root, "t-1") for _ in range(2)]
        for tree in trees:
            await worktrees.close(tree, answered=True)
        return [tree.known.branch for tree in trees]

    assert plain.run(two) == ["marvin/t-1", "marvin/t-1-2"]
    plain.git("branch", "marvin")
    told = plain.agent(lambda folder: plain.write("a.txt", "x\n", folder), answered=False)
    assert "marvin-t-1" in told


def test_two_agents_side_by_side_are_both_merged(plain: TestRepository) -> None:
    """Each in its own worktree, from one commit; the second merge has both."""

    async def go(runner: ProcessRunner) -> list[str]:
        worktrees = Worktrees(runner, Timeouts())
        trees = await asyncio.gather(*(worktrees.open(plain.root, f"t-{n}") for n in range(4)))
        for number, tree in enumerate(trees):
            plain.write(f"{number}.txt", "x\n", tree.place.root)
        return list(await asyncio.gather(*(worktrees.close(tree, answered=True) for tree in trees)))

    assert all("merged into main" in told for told in plain.run(go))
    assert {f"{n}.txt" for n in range(4)} <= set(os.listdir(plain.root))
    assert worktrees_of(plain) == []
    assert plain.branches() == ["main"]


def test_a_working_directory_below_the_top(repository: TestRepository) -> None:
    """The agent works in the same folder of its worktree, and what it changes outside of it is not merged."""
    repository.write("part/in.txt", "in\n")
    repository.commit("Part")
    root = repository.root / "part"
    if repository.sandboxed:
        repository.root = root  # the sandbox has the working directory

    def work(folder: Path) -> None:
        assert folder == root / ".marvin/worktrees/t-1/part"
        repository.write("in.txt", "changed\n", folder)

    assert "merged into main" in repository.agent(work, root=root)
    assert (root / "in.txt").read_text() == "changed\n"
    told = repository.agent(lambda folder: repository.write("../a.txt", "outside\n", folder), root=root)
    assert "files outside of the working directory: a.txt" in told


def left(repository: TestRepository, *works: str) -> None:
    """Worktrees of a session that ended without a word; in some the agent did something."""

    async def go(runner: ProcessRunner) -> None:
        worktrees = Worktrees(runner, Timeouts())
        for number, work in enumerate(works):
            tree: Worktree = await worktrees.open(repository.root, f"left-{number}")
            if work == "commit":
                repository.write("a.txt", "x\n", tree.place.root)
                repository.commit("Agent", tree.place.root)
            elif work == "file":
                repository.write("new.txt", "x\n", tree.place.root)
            elif work == "document":
                repository.write(".marvin/notes/n.md", "found\n", tree.place.root)
            os.close(tree.lock)

    repository.run(go)


def test_interrupted_runs_are_told_and_swept_where_they_are_empty(repository: TestRepository) -> None:
    """At the next launch: what holds something is named once and stays, what holds nothing is gone."""
    left(repository, "commit", "", "file", "document")

    async def go(runner: ProcessRunner) -> tuple[list[str], list[str]]:
        worktrees = Worktrees(runner, Timeouts())
        first = await worktrees.open(repository.root, "next")
        second = await worktrees.open(repository.root, "next")
        for tree in (first, second):
            await worktrees.close(tree, answered=True)
        return first.notes, second.notes

    first, second = repository.run(go)
    assert len(first) == 3
    assert second == []
    assert "1 commit" in first[0]
    assert "left-0" in first[0]
    assert "1 uncommitted file" in first[1]
    assert "left-2" in first[1]
    assert "notes/n.md" in first[2]
    assert worktrees_of(repository) == ["left-0", "left-2", "left-3"]
    assert "marvin/left-1" not in repository.branches()


def test_what_another_session_works_in_is_left_alone(plain: TestRepository) -> None:
    """A worktree whose session lives is not swept, empty or not; nor one that was reported and kept."""

    async def go(runner: ProcessRunner) -> list[str]:
        first, second = Worktrees(runner, Timeouts()), Worktrees(runner, Timeouts())
        tree = await first.open(plain.root, "t-1")
        other = await second.open(plain.root, "t-2")
        assert tree.place.root.is_dir()
        await first.close(tree, answered=True)
        await second.close(other, answered=True)
        return other.notes

    assert plain.run(go) == []
    plain.agent(lambda folder: plain.write("a.txt", "half\n", folder), answered=False)
    assert "interrupted" not in plain.agent(ticket="t-3")
    assert worktrees_of(plain) == ["t-1"]


def test_a_folder_that_the_agent_removed(plain: TestRepository) -> None:
    """Its commits are still on the branch, which is named; the next launch goes on."""
    from shutil import rmtree

    assert "The folder of its worktree no longer exists" in plain.agent(rmtree)
    assert "removed" in plain.agent(ticket="t-2")


def test_a_worktree_within_a_worktree(plain: TestRepository) -> None:
    """An agent of an agent: its work goes back into the branch of the one that started it, and from there on."""

    async def go(runner: ProcessRunner) -> list[str]:
        outer, inner = Worktrees(runner, Timeouts()), Worktrees(runner, Timeouts())
        tree = await outer.open(plain.root, "t-1")
        below = await inner.open(tree.place.root, "t-2")
        assert below.place.root == tree.place.root / ".marvin/worktrees/t-2"
        plain.write("new.txt", "x\n", below.place.root)
        kept = await inner.open(tree.place.root, "t-3")
        return [
            await inner.close(below, answered=True),
            await outer.close(tree, answered=True),
            await inner.close(kept, answered=True),
        ]

    first, second, third = plain.run(go)
    assert "merged into marvin/t-1" in first
    assert "removed" in first
    assert "merged into main" in second
    assert "The worktree was kept" in second, "an agent still works below it"
    assert "removed" in third
    assert (plain.root / "new.txt").exists()


def test_a_worktree_that_is_given_up_while_it_is_made(plain: TestRepository) -> None:
    """A filter of the repository holds git, and the call is cancelled: nothing is left of it."""
    sign = plain.home / "begun"
    plain.write(".gitattributes", "*.slow filter=slow\n")
    plain.write("x.slow", "x\n")
    plain.commit("Slow")
    os.mkfifo(sign)
    plain.git("config", "filter.slow.smudge", f"echo > '{sign}'; sleep 300")

    async def go(runner: ProcessRunner) -> None:
        opening = asyncio.ensure_future(Worktrees(runner, Timeouts()).open(plain.root, "t-1"))
        await in_thread(sign.read_text)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    plain.run(go)
    assert worktrees_of(plain) == []
    assert plain.branches() == ["main"]
    assert plain.git("worktree", "list").count("\n") == 1


def test_what_nobody_is_told_of_counts_as_interrupted(plain: TestRepository) -> None:
    """The worktree of an agent whose call was cancelled is named by the next one, also in the same session."""

    async def go(runner: ProcessRunner) -> list[str]:
        worktrees = Worktrees(runner, Timeouts())
        for ticket in ("t-1", "t-2"):
            tree = await worktrees.open(plain.root, ticket)
            if ticket == "t-1":
                plain.write("a.txt", "half\n", tree.place.root)
            await worktrees.close(tree, answered=False, is_told=False)
        tree = await worktrees.open(plain.root, "t-3")
        await worktrees.close(tree, answered=True)
        return tree.notes

    (told,) = plain.run(go)
    assert "with 1 commit." in told
    assert worktrees_of(plain) == ["t-1"]


def test_a_session_that_closes_meanwhile(plain: TestRepository) -> None:
    """Nothing can be run any more: the worktree stays as it is, and the next session finds it."""

    async def go(runner: ProcessRunner) -> str:
        worktrees = Worktrees(runner, Timeouts())
        tree = await worktrees.open(plain.root, "t-1")
        plain.write("new.txt", "x\n", tree.place.root)
        await runner.close()
        return await worktrees.close(tree, answered=False, is_told=False)

    assert "The worktree was kept" in plain.run(go)
    assert "with 1 uncommitted file" in plain.agent(ticket="t-2")


def test_the_commands_of_the_how_to_take_over_a_worktree_that_stays(plain: TestRepository) -> None:
    """As they stand there, for an agent that failed."""
    plain.agent(lambda folder: plain.write("a.txt", "half\n", folder), answered=False, ticket="tk-12")
    page = Path(__file__).parents[4] / "docs/how-to/agents-in-worktrees.md"
    commands = page.read_text(encoding="utf-8").partition("```sh\n")[2].partition("```")[0]
    for command in commands.replace(" && ", "\n").splitlines():
        plain.git(*command.split()[1:])
    assert (plain.root / "a.txt").read_text() == "half\n"
    assert worktrees_of(plain) == []
    assert plain.branches() == ["main"]
