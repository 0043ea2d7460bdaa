"""The git tools, each against real repositories in the states that users bring."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from marvin_core import ToolError, ToolResult
from marvin_tools_coding.git.committing import git_commit
from marvin_tools_coding.git.history import git_blame
from marvin_tools_coding.git.inspecting import git_diff, git_log, git_status
from marvin_tools_coding.git.switching import git_checkout

from .support_shell import Folder, text

AUTHOR = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


@pytest.fixture
def bare(tmp_path: Path) -> Folder:
    """A folder that is no repository; git looks no further up."""
    (tmp_path / "project").mkdir()
    return Folder(tmp_path / "project", GIT_CEILING_DIRECTORIES=str(tmp_path), **AUTHOR)


@pytest.fixture
def new(bare: Folder) -> Folder:
    """A repository without a commit."""
    bare.sh("git init -q -b main")
    return bare


@pytest.fixture
def repo(new: Folder) -> Folder:
    """A repository with one commit of two files."""
    new.sh("printf 'one\\ntwo\\n' > a.txt; echo b > b.txt; git add .; git commit -qm 'First commit'")
    return new


def committed(folder: Folder) -> set[str]:
    """The files of the last commit."""
    return set(folder.sh("git show --format= --name-only -z").rstrip("\0").split("\0"))


# Status


def test_status_shows_branch_and_changes(repo: Folder) -> None:
    """Branch, staged, changed and untracked files; a clean tree says so."""
    assert "working tree clean" in repo.call(git_status)
    repo.sh("echo x >> a.txt; echo y > staged.txt; git add staged.txt; echo z > 'new ü.txt'; rm b.txt")
    got = repo.call(git_status)
    assert got.startswith("On branch main")
    for expected in ("new file:   staged.txt", "modified:   a.txt", "deleted:    b.txt", "new ü.txt"):
        assert expected in got
    assert '(use "git' not in got


def test_status_of_a_new_repository_and_a_detached_head(repo: Folder, tmp_path: Path) -> None:
    """A repository without commits and a detached HEAD are no errors."""
    repo.sh("git checkout -q --detach")
    assert "HEAD detached at" in repo.call(git_status)
    (tmp_path / "other").mkdir()
    other = Folder(tmp_path / "other", **AUTHOR)
    other.sh("git init -q -b trunk")
    assert "No commits yet" in other.call(git_status)


@pytest.mark.slow
def test_status_of_very_many_files_is_bounded(new: Folder) -> None:
    """10,000 untracked files do not flood the context."""
    for number in range(2_000):
        (new.root / f"a-rather-long-name-of-a-file-{number}").touch()
    got = new.call(git_status)
    assert len(got) < 21_000
    assert "bytes omitted" in got


# Diff


@pytest.mark.slow
def test_diff_of_work_tree_index_and_commits(repo: Folder) -> None:
    """Unstaged, staged, against a commit, between two, and one path of it."""
    repo.sh("echo c > c.txt; git add .; git commit -qm Second; echo staged >> a.txt; git add a.txt; echo open >> b.txt")
    unstaged, staged = repo.call(git_diff), repo.call(git_diff, staged=True)
    assert "+open" in unstaged
    assert "+staged" not in unstaged
    assert "+staged" in staged
    assert "+open" not in staged
    assert "+c" in repo.call(git_diff, ref="HEAD~1")
    assert "+c" in repo.call(git_diff, ref="HEAD~1..HEAD")
    assert "+c" in repo.call(git_diff, ref="main~1..")
    assert "-c" in repo.call(git_diff, ref="HEAD..HEAD~1")
    assert "-c" not in repo.call(git_diff, ref="HEAD...HEAD~1")
    assert "+c" in repo.call(git_diff, ref="HEAD~1", staged=True)
    assert "+open" not in repo.call(git_diff, ref="HEAD~1", path="c.txt")
    assert "no commit" not in repo.call(git_diff, path="c.txt")
    assert repo.call(git_diff, path="c.txt").startswith("No differences in c.txt.")


def test_diff_of_a_deleted_file_and_of_a_new_repository(repo: Folder, tmp_path: Path) -> None:
    """A path that is gone can be diffed; without commits the staged files are the diff."""
    repo.sh("rm b.txt")
    assert "deleted file" in repo.call(git_diff, path="b.txt")
    (tmp_path / "other").mkdir()
    other = Folder(tmp_path / "other", **AUTHOR)
    other.sh("git init -q; echo x > x; git add x")
    assert "+x" in other.call(git_diff, staged=True)
    assert "There is no such commit" in other.error(git_diff, ref="HEAD")


@pytest.mark.slow
def test_a_huge_diff_is_cut_with_its_files_listed(repo: Folder) -> None:
    """Of 5 MB the model sees the list of files, whole lines of the beginning, and how to see the rest."""
    repo.sh("seq 1 700000 > a.txt; echo more >> b.txt")
    got = repo.call(git_diff)
    assert len(got.encode()) < 51_000
    assert got.index("b.txt") < got.index("diff --git")
    lines = got.splitlines()
    assert lines[-1].endswith("bytes omitted. Pass path to see one file or folder.]")
    assert lines[-2].removeprefix("+").isdigit()
    assert int(lines[-1].split()[1].replace(",", "")) > 4_000_000
    assert "+more" in repo.call(git_diff, path="b.txt")


def test_diff_of_binary_and_undecodable_files(repo: Folder) -> None:
    """A binary file is named, not printed; bytes that are no UTF-8 are marked."""
    (repo.root / "a.txt").write_bytes(b"caf\xe9\n")
    (repo.root / "b.txt").write_bytes(b"\0\1\2")
    got = repo.call(git_diff)
    assert "+caf\ufffd" in got
    assert "Binary files a/b.txt and b/b.txt differ" in got


def test_diff_looks_the_same_whatever_the_user_configured(repo: Folder) -> None:
    """Colours, missing prefixes and a pager of the user's do not change what the model reads."""
    repo.sh("echo x >> a.txt")
    plain = repo.call(git_diff)
    repo.sh("git config color.ui always; git config diff.noprefix true; git config core.pager 'sed s/x/y/'")
    repo.sh("git config diff.mnemonicPrefix true; git config color.diff always")
    assert repo.call(git_diff) == plain
    assert plain.startswith("diff --git a/a.txt b/a.txt")


# Log


def test_log_in_both_forms(repo: Folder) -> None:
    """Newest first; one line a commit, or the whole message; limited in number and to a path."""
    repo.sh("echo x > x; git add x; git commit -qm 'Second: ü' -m 'Body of it.'; git tag v1")
    first, second = repo.call(git_log).splitlines()
    assert "Ada: (HEAD -> main, tag: v1) Second: ü" in first
    assert second.endswith("Ada: First commit")
    assert repo.call(git_log, max_count=1) == first
    whole = repo.call(git_log, oneline=False)
    assert "Author: Ada <ada@example.org>" in whole
    assert "    Body of it." in whole
    assert repo.call(git_log, path="a.txt") == second
    assert repo.call(git_log, path="never.txt").startswith("No commit changes never.txt")


def test_log_without_commits(new: Folder) -> None:
    """I10: a new repository has no log, and the model is told why."""
    assert "There are no commits yet" in new.error(git_log)


# Commit


def test_commit_everything(repo: Folder) -> None:
    """By default all changes go in: new, changed and deleted files; hash, subject and files come back."""
    repo.sh("echo x >> a.txt; rm b.txt; mkdir .tickets; echo t > .tickets/t.md; echo ü > 'ü \n.txt'")
    result = repo.run(lambda: git_commit.function(repo.context, message="Change\n\nWhy: because.\n# no comment"))
    got = text(result)
    short = repo.sh("git rev-parse --short HEAD").strip()
    assert f"[main {short}] Change" in got
    assert "4 files changed" in got
    assert isinstance(result, ToolResult)
    assert result.details == {"commit": short}
    assert committed(repo) == {"a.txt", "b.txt", ".tickets/t.md", "ü \n.txt"}
    assert repo.sh("git log -1 --format=%B").strip() == "Change\n\nWhy: because.\n# no comment"
    assert not repo.sh("git status --porcelain")


def test_commit_exactly_these_paths(repo: Folder) -> None:
    """With paths only those are committed, whatever else is changed or staged, and that stays as it was."""
    repo.sh("echo x >> a.txt; git add a.txt; rm b.txt; echo n > n.txt; echo o > o.txt")
    repo.call(git_commit, message="Some", paths=["b.txt", "n.txt"], add_all=True)
    assert committed(repo) == {"b.txt", "n.txt"}
    assert repo.sh("git status --porcelain").splitlines() == ["M  a.txt", "?? o.txt"]


def test_first_commit_with_paths(new: Folder) -> None:
    """Paths work in a repository without commits, and so do folders."""
    new.sh("mkdir d; echo x > d/x; echo y > y")
    assert "root-commit" in new.call(git_commit, message="Begin", paths=["d"])
    assert committed(new) == {"d/x"}


def test_commit_what_is_staged(repo: Folder) -> None:
    """With add_all=false the index is committed as it is; where it is empty the text says what to pass."""
    repo.sh("echo x >> a.txt")
    assert "nothing is staged. Pass paths" in repo.error(git_commit, message="m", add_all=False)
    repo.sh("git add a.txt; echo y >> b.txt")
    repo.call(git_commit, message="m", add_all=False)
    assert committed(repo) == {"a.txt"}


def test_nothing_to_commit(repo: Folder) -> None:
    """I10: without changes the model is told so, and an empty message is refused."""
    assert "there are no changes" in repo.error(git_commit, message="m")
    assert "there are no changes" in repo.error(git_commit, message="m", paths=["a.txt"])
    assert "message is empty" in repo.error(git_commit, message=" \n")


def test_only_what_is_below_the_working_directory(repo: Folder) -> None:
    """I4: in a folder of a repository, files outside of it are not staged."""
    repo.sh("mkdir sub; echo in > sub/in.txt; echo out > out.txt")
    below = Folder(repo.root / "sub", **AUTHOR)
    below.call(git_commit, message="Inside")
    assert committed(repo) == {"sub/in.txt"}
    assert "out.txt" in repo.sh("git status --porcelain")
    for tool, arguments in ((git_diff, {"path": "../a.txt"}), (git_log, {"path": "../a.txt"})):
        assert "sub" in below.error(tool, **arguments)
    assert below.error(git_commit, message="m", paths=["../out.txt"])
    assert "?? out.txt" in below.sh("git status --porcelain")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Fix it", "Fix it\n\nTicket: ab-12"),
        ("fix: it", "fix: it\n\nTicket: ab-12"),
        ("Fix\n\nWhy.\n\nCo-authored-by: B <b@c>", "Fix\n\nWhy.\n\nCo-authored-by: B <b@c>\nTicket: ab-12"),
        ("ab-12: Fix it", "ab-12: Fix it"),
        ("Fix tab-12 and ab-123", "Fix tab-12 and ab-123\n\nTicket: ab-12"),
    ],
)
def test_the_ticket_is_in_the_message(repo: Folder, message: str, expected: str) -> None:
    """The id of the agent's ticket stands in every commit message, once, as a trailer git understands."""
    repo.sh("echo x >> a.txt")
    Folder(repo.root, ticket="ab-12", **AUTHOR).call(git_commit, message=message)
    assert repo.sh("git log -1 --format=%B").strip() == expected


@pytest.mark.slow
def test_conflicts_are_not_committed_until_resolved(repo: Folder) -> None:
    """A file with conflict markers is not staged as resolved; once it is edited the merge is committed."""
    repo.sh("git checkout -qb side; echo side > a.txt; git commit -qam Side")
    repo.sh("git checkout -q main; echo main > a.txt; git commit -qam Main; git merge side || true")
    assert "You have unmerged paths" in repo.call(git_status)
    assert "conflict markers (<<<<<<<) in a.txt" in repo.error(git_commit, message="Merge")
    assert "UU a.txt" in repo.sh("git status --porcelain")
    (repo.root / "a.txt").write_text("both\n")
    assert "Resolve the conflicts" in repo.error(git_commit, message="Merge", add_all=False)
    assert "call git_commit without paths" in repo.error(git_commit, message="Merge", paths=["a.txt"])
    repo.call(git_commit, message="Merge")
    assert len(repo.sh("git log -1 --format=%P").split()) == 2


@pytest.mark.parametrize("tool", ["commit", "checkout"])
def test_what_a_hook_prints_is_shown_while_it_runs(repo: Folder, tool: str) -> None:
    name = {"commit": "pre-commit", "checkout": "post-checkout"}[tool]
    hook = repo.root / ".git/hooks" / name
    hook.write_text("#!/bin/sh\necho checking the tree\nwhile [ ! -e go ]; do sleep 0.05; done\n")
    hook.chmod(0o755)

    calls: dict[str, Callable[[], Coroutine[Any, Any, str | ToolResult]]] = {
        "commit": lambda: git_commit.function(repo.context, message="More"),
        "checkout": lambda: git_checkout.function(repo.context, target="new", create_branch=True),
    }

    async def use() -> str | ToolResult:
        running = asyncio.ensure_future(calls[tool]())
        while "checking the tree" not in "".join(repo.told):
            await asyncio.wait_for(repo.told_something.wait(), 60)
            repo.told_something.clear()
        assert not running.done()
        (repo.root / "go").touch()
        return await running

    (repo.root / "a.txt").write_text("changed")
    assert "checking the tree" in text(repo.run(use))
    assert "".join(repo.told).count("checking the tree") == 1


def test_a_hook_that_refuses_is_heard(repo: Folder) -> None:
    """The model reads what a failing hook says; a passing one runs too, and may speak."""
    hook = repo.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho 'line 3: missing semicolon'\ngrep -q good a.txt\n")
    hook.chmod(0o755)
    repo.sh("echo x >> a.txt")
    assert "missing semicolon" in repo.error(git_commit, message="m")
    repo.sh("echo good >> a.txt")
    got = repo.call(git_commit, message="m")
    assert "2 insertions" in got
    assert "missing semicolon" in got


def test_what_a_hook_says_of_its_tests_is_no_advice_on_git(repo: Folder) -> None:
    hook = repo.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho 'FAILED test_sum: got 3 but expected 4'\nexit 1\n")
    hook.chmod(0o755)
    repo.sh("echo x >> a.txt")
    told = repo.error(git_commit, message="m")
    assert "got 3 but expected 4" in told
    assert "Somebody else" not in told


def test_a_commit_of_somebody_else_during_a_hook_is_told(repo: Folder) -> None:
    hook = repo.root / ".git/hooks/pre-commit"
    hook.write_text('#!/bin/sh\ngit update-ref HEAD "$(git commit-tree HEAD^{tree} -p HEAD -m theirs)"\n')
    hook.chmod(0o755)
    repo.sh("echo x >> a.txt")
    assert "Somebody else committed" in repo.error(git_commit, message="m")


def test_no_author_says_how_to_set_one(repo: Folder) -> None:
    """I10: git without a name tells how to set it."""
    repo.sh("echo x >> a.txt; git config user.useConfigOnly true")
    nobody = Folder(repo.root)
    got = nobody.error(git_commit, message="m")
    assert "git config user.name" in got
    assert "user.email" in got


def test_ignored_and_unknown_paths(repo: Folder) -> None:
    """I10: a path that is ignored, and one that is nowhere, are named with what to do."""
    repo.sh("echo '*.log' > .gitignore; touch x.log")
    assert "git add -f" in repo.error(git_commit, message="m", paths=["x.log"])
    assert "No such file exists on disk or in git" in repo.error(git_commit, message="m", paths=["nowhere.txt"])


def test_a_lock_left_behind(repo: Folder) -> None:
    """I10: a lock of a killed git is named, with what to do about it; reading needs no lock."""
    repo.sh("echo x >> a.txt; touch .git/index.lock")
    got = repo.error(git_commit, message="m")
    assert "index.lock" in got
    assert (
        "Try again. If this continues and no git is running, remove the .lock file in the message with run_command"
        in got
    )
    assert "a.txt" in repo.call(git_status)


# What no repository and no model string may do


def test_no_repository(bare: Folder) -> None:
    """I10: outside of a repository every tool says so, and what to do."""
    for tool, arguments in ((git_status, {}), (git_diff, {}), (git_log, {}), (git_commit, {"message": "m"})):
        got = bare.error(tool, **arguments)
        assert "is not in a git repository" in got
        assert "git init" in got
        assert "usage:" not in got


def test_git_missing(repo: Folder, tmp_path: Path) -> None:
    """I10: without git the text names it."""
    (tmp_path / "empty").mkdir()
    assert "'git' is not installed" in Folder(repo.root, PATH=str(tmp_path / "empty")).error(git_status)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: chown")
def test_a_repository_of_another_user(repo: Folder) -> None:
    """I10: git refuses a repository that is not ours; the text has the command that allows it."""
    for folder in (repo.root, repo.root / ".git"):
        os.chown(folder, 12345, 12345)
    got = Folder(repo.root, **AUTHOR).error(git_status)
    assert f"git config --global --add safe.directory {repo.root}" in got


def test_git_dir_of_the_environment_has_no_effect(repo: Folder, tmp_path: Path) -> None:
    """I8: with GIT_DIR set for Marvin itself, the repository of the working directory is read and written."""
    other = tmp_path / "other"
    repo.sh(f"git init -q {other}; echo x >> a.txt")
    os.environ.update(GIT_DIR=str(other / ".git"), GIT_WORK_TREE=str(other))
    try:
        assert "modified:   a.txt" in repo.call(git_status)
        repo.call(git_commit, message="Here")
    finally:
        del os.environ["GIT_DIR"], os.environ["GIT_WORK_TREE"]
    assert "Here" in repo.call(git_log)


@pytest.mark.parametrize("ref", ["--output=stolen", "-p", "--no-index", "-O/etc/passwd", "a\0b"])
def test_a_ref_is_never_an_option(repo: Folder, ref: str) -> None:
    """I27: a commit whose name looks like an option is refused with a text."""
    repo.sh("echo x >> a.txt")
    assert "is not a commit" in repo.error(git_diff, ref=ref)
    assert not (repo.root / "stolen").exists()


def test_a_ref_is_never_a_path(repo: Folder) -> None:
    """I27: a file's name given as a commit is an unknown commit, not a filter."""
    repo.sh("echo x >> a.txt")
    assert "There is no such commit" in repo.error(git_diff, ref="a.txt")
    assert "names two" in repo.error(git_diff, ref="HEAD..HEAD", staged=True)


def test_a_ref_reads_no_file_outside(repo: Folder, tmp_path: Path) -> None:
    """I4: git diff compares files where it finds no commits; a path given as a commit shows nothing of it."""
    (tmp_path / "secret").write_text("s3cret")
    for name in ("--", "x"):
        (repo.root / name).write_text("")
    for ref in (str(tmp_path / "secret"), "../secret", "../secret..x"):
        assert "s3cret" not in repo.error(git_diff, ref=ref)
        assert "s3cret" not in repo.error(git_diff, ref=ref, path="x")
    repo.sh("rm -rf .git")
    assert "is not in a git repository" in repo.error(git_diff, ref="../secret", path="x")


@pytest.mark.slow
def test_paths_are_neither_options_nor_patterns(repo: Folder) -> None:
    """I27: names with a leading dash, stars, colons and newlines are those files and no others."""
    odd = ["--all", "-f", "*", ":(top)x", "new\nline", "ü", "[a]"]
    for name in odd:
        (repo.root / name).write_text("x\n")
    for name in odd:
        repo.call(git_commit, message="One", paths=[name])
        assert committed(repo) == {name}
        assert len(repo.call(git_log, path=name).splitlines()) == 1
        (repo.root / name).write_text("changed\n")
        assert repo.call(git_diff, path=name).count("diff --git") == 1


def test_a_message_is_never_an_option(repo: Folder) -> None:
    """I27: a message may begin with a dash."""
    repo.sh("echo x >> a.txt")
    repo.call(git_commit, message="--amend --no-verify")
    assert repo.sh("git log --format=%s").splitlines() == ["--amend --no-verify", "First commit"]


def test_reading_runs_no_program_of_the_repository(repo: Folder) -> None:
    """What a repository's configuration names is not run by the tools that only read."""
    signer = repo.root.parent / "signer"
    signer.write_text(
        "#!/bin/sh\ncat > /dev/null; echo '[GNUPG:] SIG_CREATED ' >&2; echo '-----BEGIN PGP SIGNATURE-----'\n"
    )
    signer.chmod(0o755)
    program = repo.root.parent / "evil"
    program.write_text(f"#!/bin/sh\ntouch {repo.root.parent}/ran\ncat\n")
    program.chmod(0o755)
    repo.sh(f"git -c gpg.program={signer} commit -qS --allow-empty -m Signed")
    for setting in ("core.fsmonitor", "diff.external", "diff.d.textconv", "diff.d.command", "core.pager"):
        repo.sh(f"git config {setting} {program}")
    repo.sh(f"git config log.showSignature true; git config gpg.program {program}; git config pager.log {program}")
    hooks = repo.root / ".git/hooks"
    for name in ("post-index-change", "pre-commit", "fsmonitor-watchman"):
        (hooks / name).write_text(program.read_text())
        (hooks / name).chmod(0o755)
    (repo.root / ".gitattributes").write_text("* diff=d\n")
    (repo.root / "a.txt").write_text("changed\n")
    repo.sh("touch -d '2001-01-01' b.txt")  # only its time differs: git would like to note that in the index
    (repo.root.parent / "ran").unlink(missing_ok=True)
    assert "a.txt" in repo.call(git_status)
    assert "+changed" in repo.call(git_diff)
    assert "+changed" in repo.call(git_diff, ref="HEAD")
    assert "First commit" in repo.call(git_log, oneline=False)
    assert not (repo.root.parent / "ran").exists()


FILTERS = ("filter.e.clean", "filter.e.process", "filter.a=b.E.clean")


@pytest.mark.parametrize("setting", FILTERS)
@pytest.mark.parametrize("where", ["itself", "included", "submodule"])
def test_reading_runs_no_filter_of_the_repository(repo: Folder, setting: str, where: str) -> None:
    """A read-only agent has these tools, too. Filters of the user's own go on working."""
    ran = repo.root.parent / "ran"
    place = "."
    if where == "submodule":
        repo.sh("git init -q sub; cd sub; echo one > a.txt; git add .; git commit -qm sub; cd ..; git add sub 2>&1")
        repo.sh("git commit -qm more")
        place = "sub"
    name = setting.removeprefix("filter.").rpartition(".")[0]
    file = "--file ../included" if where == "included" else ""
    repo.sh(
        f"cd {place}; git config {file} '{setting}' 'touch {ran}; cat'; git config {file} 'filter.{name}.required' true"
    )
    if where == "included":
        repo.sh("git config include.path ../../included")
    (repo.root / place / ".gitattributes").write_text(f"* filter={name}\n")
    # In a submodule git looks at the content only where the size is as before.
    (repo.root / place / "a.txt").write_text("two\n" if where == "submodule" else "changed\n")
    repo.sh(f"git config --global filter.mine.clean 'tr a-z A-Z'; echo 'b.txt filter=mine' >> {place}/.gitattributes")
    (repo.root / "b.txt").write_text("mine\n")
    repo.call(git_status)
    for arguments in ({}, {"ref": "HEAD"}, {"path": "a.txt"}):
        repo.call(git_diff, **arguments)
    assert not ran.exists()
    if where != "submodule":
        assert "+changed" in repo.call(git_diff)
        assert "+MINE" in repo.call(git_diff)


def test_reading_fetches_nothing_that_is_missing(repo: Folder) -> None:
    """In a partial clone git would run what the repository says for that."""
    ran = repo.root.parent / "ran"
    repo.sh("git config extensions.partialClone origin; git config remote.origin.promisor true")
    repo.sh(f"git config remote.origin.url ssh://x.invalid/y; git config core.sshCommand 'touch {ran}; false'")
    repo.sh("git config protocol.ssh.allow always; git config remote.origin.partialclonefilter blob:none")
    repo.sh("rm .git/objects/$(git rev-parse HEAD:a.txt | sed 's|^..|&/|'); echo changed > a.txt")
    assert "git says" in repo.error(git_diff)
    assert "a.txt" in repo.call(git_status)
    assert not ran.exists()


def test_a_cancelled_commit_leaves_the_repository_usable(repo: Folder) -> None:
    """I25: when a hook hangs and the call is cancelled, the hook is gone and no lock stays."""

    hook = repo.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntouch started\nexec sleep 300\n")
    hook.chmod(0o755)
    repo.sh("echo x >> a.txt")

    async def use() -> None:
        call = asyncio.ensure_future(git_commit.function(repo.context, message="m"))
        while True:
            await asyncio.sleep(0)
            if (repo.root / "started").exists():
                break
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    repo.run(use)
    hook.unlink()
    assert "2 files changed" in repo.call(git_commit, message="m")


def test_errors_are_tool_errors(repo: Folder) -> None:
    """I10: whatever git says is handed on, where no better text is known."""
    repo.sh("echo x >> a.txt")
    with pytest.raises(ToolError, match=r"git says: .*NUL"):
        repo.run(lambda: git_commit.function(repo.context, message="nul\0byte", add_all=True))


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("echo '*.txt working-tree-encoding=UTF-16LE' > .gitattributes; printf 'a\\0\\n\\0b\\0\\n\\0'", "+c"),
        ("git config core.autocrlf true; printf 'a\\r\\nb\\r\\n'", "+c"),
        ("printf 'a\\nb'", "+c\n\\ No newline"),
        ("git config diff.suppressBlankEmpty true; printf 'a\\n\\nb\\n\\nd\\n'", "\n\n-b\n+c\n\n d\n"),
        ("git config diff.noprefix true; printf -- '-- a\\n@@ -1 +1 @@\\n++ b\\n'", "+++ c"),
    ],
    ids=["encoding", "line ends", "no newline", "blank context", "like a diff"],
)  # fmt: skip
def test_a_diff_is_shown_as_git_converts_the_file(repo: Folder, script: str, shown: str) -> None:
    """What git shows is compared with what the sandbox reads."""
    repo.sh(f"({script}) > f.txt; git add . 2>&1; git commit -qm more")
    content = (repo.root / "f.txt").read_bytes()
    (repo.root / "f.txt").write_bytes(content.replace(b"b", b"c"))
    assert shown in repo.call(git_diff)
    assert shown in repo.call(git_diff, ref="HEAD", path="f.txt")


def test_blame_names_what_is_in_no_commit(repo: Folder) -> None:
    (repo.root / "a.txt").write_text("changed\n")
    assert "(Not Committed Yet " in repo.call(git_blame, path="a.txt")
    (repo.root / "link").symlink_to("a.txt")
    assert "link is a link" in repo.error(git_blame, path="link")
    (repo.root / "a.txt").unlink()
    assert "There is no such file in the working tree" in repo.error(git_blame, path="a.txt")


LFS = r"""hash=$(sha256sum)
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 1\n' "${hash%% *}"
"""
"""A filter that stores what Git LFS stores."""
OLD_ENDS = (
    "printf '$Id$\\r\\na\\r\\n' > f.txt; git add f.txt; git commit -qm f; git config core.autocrlf true; rm f.txt; "
)
CONTENTS = {
    "line ends": "git config core.autocrlf true; printf 'a\\r\\nb\\r\\n' > f.txt",
    "old line ends": f"{OLD_ENDS} echo '*.txt ident' > .gitattributes; git checkout f.txt; printf 'b\\r\\n' >> f.txt",
    "encoding": "echo '*.txt working-tree-encoding=UTF-16LE' > .gitattributes; printf 'a\\0\\n\\0' > f.txt",
    "filter": "git config filter.up.clean 'tr a-z A-Z'; echo '*.txt filter=up' > .gitattributes; echo small > f.txt",
    "no filter": "echo '*.txt filter=' > .gitattributes; echo small > f.txt",
    "ident": "echo '*.txt ident' > .gitattributes; echo '$Id: 1234567 $' > f.txt",
    "link": "ln -s nowhere f.txt",
    "link out": "ln -s ../project f.txt",
    "tickets": "mkdir .tickets; echo t > .tickets/t.md; git add .tickets; echo u > .tickets/t.md; touch f.txt",
    "module": "git init -q module; git -C module commit -q --allow-empty -m m; git add module 2>&1; touch f.txt",
    "mode": "chmod +x b.txt; : > f.txt",
    "moved": "git mv a.txt c.txt; touch f.txt",
}


@pytest.mark.parametrize("script", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("paths", [None, ["."]], ids=["all", "paths"])
def test_what_is_committed_is_compared_as_git_stores_it(repo: Folder, script: str, paths: list[str] | None) -> None:
    repo.sh(script)
    assert "Committed: " in repo.call(git_commit, message="m", paths=paths)
    assert "f.txt" in committed(repo)
    assert repo.sh("git status --porcelain") == ""


def test_a_file_that_stands_for_a_link_is_committed(repo: Folder) -> None:
    repo.sh("ln -s a.txt l; git add l; git commit -qm l; git config core.symlinks false; rm l; printf b.txt > l")
    repo.call(git_commit, message="m")
    assert repo.sh("git show HEAD:l") == "b.txt"


def test_a_commit_in_a_repository_with_long_hashes(bare: Folder) -> None:
    bare.sh("git init -q -b main --object-format=sha256; echo x > x")
    assert "root-commit" in bare.call(git_commit, message="m")


def test_files_that_git_does_not_look_at_are_committed_as_staged(repo: Folder) -> None:
    repo.sh("echo staged > a.txt; git add a.txt; git update-index --skip-worktree a.txt; rm a.txt; touch n.txt")
    repo.call(git_commit, message="m")
    assert committed(repo) == {"a.txt", "n.txt"}
    assert repo.sh("git show HEAD:a.txt") == "staged\n"


@pytest.mark.parametrize("paths", [None, ["a.txt"]], ids=["all", "paths"])
def test_what_a_hook_changes_in_a_file_and_stages_is_committed(repo: Folder, paths: list[str] | None) -> None:
    repo.sh("mkdir -p .git/hooks; printf '#!/bin/sh\\necho formatted > a.txt; git add a.txt' > .git/hooks/pre-commit")
    repo.sh("chmod +x .git/hooks/pre-commit; echo x >> a.txt")
    repo.call(git_commit, message="m", paths=paths)
    assert repo.sh("git show HEAD:a.txt") == "formatted\n"


@pytest.mark.parametrize("paths", [None, ["a.txt", "b.txt"]], ids=["all", "paths"])
def test_a_commit_with_other_content_than_its_files_have_is_undone(repo: Folder, paths: list[str] | None) -> None:
    """git reads files once more for a commit of some paths. What it read elsewhere is not committed."""
    change = "printf 'from elsewhere\\n' | git hash-object -w --stdin"
    hook = f"#!/bin/sh\ngit update-index --cacheinfo 100644,$({change}),a.txt\n"
    (repo.root / ".git/hooks").mkdir(exist_ok=True)
    (repo.root / ".git/hooks/pre-commit").write_text(hook)
    repo.sh("chmod +x .git/hooks/pre-commit; echo x >> a.txt; echo x >> b.txt")
    head = repo.sh("git rev-parse HEAD")
    told = repo.error(git_commit, message="m", paths=paths)
    assert "The commit was undone: git stored other content of a.txt than is there." in told
    assert repo.sh("git rev-parse HEAD") == head
    assert "elsewhere" not in repo.sh("git diff; git diff --cached")
    assert (repo.root / "a.txt").read_text() == "one\ntwo\nx\n"


def test_status_lists_tickets_and_links_that_lead_out(repo: Folder) -> None:
    repo.sh("mkdir -p .tickets; touch .tickets/t.md; ln -s /etc out; ln -s nowhere broken; mkdir f; touch f/x")
    said = repo.call(git_status)
    assert all(f"\t{name}\n" in f"{said}\n" for name in (".tickets/", "out", "broken", "f/"))


@pytest.mark.parametrize("staged", ["a.txt", "n.txt"])
def test_what_was_staged_before_outlives_a_failure(repo: Folder, staged: str) -> None:
    repo.sh(f"echo staged > {staged}; git add {staged}; rm {staged}")
    assert "missing" in repo.error(git_commit, message="m", paths=[staged, "missing"])
    assert repo.sh(f"git show :{staged}") == "staged\n"


def test_a_new_file_outside_of_a_sparse_checkout_is_committed(repo: Folder) -> None:
    repo.sh("git sparse-checkout set k; mkdir -p o; echo 4 > o/f")
    repo.call(git_commit, message="o")
    assert repo.sh("git show --stat --format=%s").split()[:2] == ["o", "o/f"]


def test_what_is_staged_outside_of_a_sparse_checkout_is_committed(repo: Folder) -> None:
    repo.sh("git sparse-checkout set k; mkdir -p o k; echo 4 > o/f; git add --sparse o/f; echo 5 >> o/f; echo 2 > k/f")
    repo.call(git_commit, message="m")
    assert repo.sh("git show HEAD:o/f") == "4\n"


def test_a_hook_may_stage_a_file_above_the_working_directory(repo: Folder) -> None:
    repo.sh("mkdir -p s .git/hooks; echo 1 > s/VERSION; git add s; git commit -qm s; echo hand > s/VERSION; git add s")
    hook = '#!/bin/sh\ncd "$(git rev-parse --show-toplevel)"; date > VERSION; git add VERSION\n'
    (repo.root / ".git/hooks/pre-commit").write_text(hook)
    repo.sh("chmod +x .git/hooks/pre-commit; echo x > s/x")
    Folder(repo.root / "s", **AUTHOR).call(git_commit, message="m")
    assert committed(repo) == {"VERSION", "s/VERSION", "s/x"}


def test_a_commit_that_cannot_be_undone_is_told(repo: Folder, tmp_path: Path) -> None:
    change = "printf 'elsewhere\\n' | git hash-object -w --stdin"
    (repo.root / ".git/hooks").mkdir(exist_ok=True)
    for name, line in (("pre", f"git update-index --cacheinfo 100644,$({change}),a.txt"), ("post", "git push -q")):
        (repo.root / f".git/hooks/{name}-commit").write_text(f"#!/bin/sh\n{line}\n")
    repo.sh(f"git init -q --bare {tmp_path}/far; git remote add origin {tmp_path}/far; git push -qu origin main")
    repo.sh("chmod +x .git/hooks/*; echo x >> a.txt")
    told = repo.error(git_commit, message="m", paths=["a.txt"])
    assert "was made, but git stored other content of a.txt than is there" in told
    assert "was already pushed" in told


def test_a_log_may_grow_during_a_commit(repo: Folder) -> None:
    repo.sh("mkdir -p .git/hooks; printf '#!/bin/sh\\necho more >> a.txt' > .git/hooks/pre-commit")
    repo.sh("chmod +x .git/hooks/pre-commit; echo x >> a.txt")
    repo.call(git_commit, message="m", paths=["."])
    assert repo.sh("git show HEAD:a.txt") == "one\ntwo\nx\n"


CONFLICT = "git switch -qc o; git rm -q b.txt; git commit -qm o; git switch -q main; echo x >> b.txt; git commit -qam x"
WITH_IDENT = "echo '*.txt ident' > .gitattributes; echo '/* $Id:$ */' > b.txt; git add .; git commit -qm i"
SHAPES = {
    "emptied": ": > a.txt",
    "only removed lines": "seq 60000 > b.txt; git commit -qam b; seq 60000 120000 > b.txt; echo x >> a.txt",
    "without context": "git config diff.context 0; echo one > a.txt",
    "unmerged path": f"{CONFLICT}; git merge -q o || true; echo y >> a.txt",
    "ident": f"{WITH_IDENT}; echo x >> b.txt; echo x >> a.txt",
}


@pytest.mark.parametrize("script", SHAPES.values(), ids=SHAPES)
def test_a_diff_of_any_shape_is_shown(repo: Folder, script: str) -> None:
    repo.sh(f"({script}) > /dev/null 2>&1; true")
    assert "a/a.txt" in repo.call(git_diff)
    assert "a/a.txt" in repo.call(git_diff, ref="HEAD")


def test_a_diff_of_files_that_are_not_there_or_not_looked_at_is_shown(repo: Folder) -> None:
    repo.sh("mkdir p q; echo 1 > p/a; echo 1 > q/a; git add .; git commit -qm 1; echo 2 > q/a; git commit -qam 2")
    repo.sh("echo 2 > p/a; git commit -qam 3; git update-index --assume-unchanged a.txt; echo 3 > a.txt")
    repo.sh("git sparse-checkout set p")
    shown = repo.call(git_diff, ref="HEAD~2")
    assert "a/q/a" in shown
    assert "a/p/a" in shown


@pytest.mark.parametrize(
    "setting", ["status.relativePaths false", "color.status always", "status.displayCommentPrefix true"]
)
def test_status_looks_the_same_whatever_the_user_configured(repo: Folder, setting: str) -> None:
    repo.sh(f"mkdir s; touch s/x s/n; git add s/x; git commit -qm s; git config {setting}")
    assert "\tn\n" in f"{Folder(repo.root / 's', **AUTHOR).call(git_status)}\n"


def test_relative_names_of_diffs_change_nothing(repo: Folder) -> None:
    repo.sh("mkdir s; echo s > s/x; git add s; git commit -qm s; git config diff.relative true; echo t > s/x")
    below = Folder(repo.root / "s", **AUTHOR)
    assert "+t" in below.call(git_diff)
    assert "Files: M s/x." in below.call(git_commit, message="m")


@pytest.mark.parametrize("name", ["none-such", "up", "lfs"])
def test_what_a_filter_converts_is_compared(repo: Folder, name: str) -> None:
    repo.sh("git config filter.up.clean 'tr a-z A-Z'")
    (repo.root / ".git/lfs").write_text(LFS)
    repo.sh("git config filter.lfs.clean 'sh .git/lfs'")
    repo.sh(f"echo '* filter={name}' > .gitattributes; git add .; git commit -qm f; echo mine > a.txt")
    repo.call(git_commit, message="m", paths=["a.txt"])
    assert ("sha256:" in repo.sh("git show HEAD:a.txt")) == (name == "lfs")
    (repo.root / "a.txt").write_text("mine again\n")
    change = "echo elsewhere | git hash-object -w --stdin --path=a.txt"
    (repo.root / ".git/hooks").mkdir(exist_ok=True)
    hook = f"#!/bin/sh\ngit update-index --cacheinfo 100644,$({change}),a.txt\n"
    (repo.root / ".git/hooks/pre-commit").write_text(hook)
    repo.sh("chmod +x .git/hooks/pre-commit")
    assert "The commit was undone" in repo.error(git_commit, message="m", paths=["a.txt"])


def test_what_a_filter_stores_differently_each_time_is_not_committed(repo: Folder) -> None:
    repo.sh("git config filter.dated.clean 'date +%s%N; cat'; echo '*.dat filter=dated' > .gitattributes; touch f.dat")
    told = repo.error(git_commit, message="m")
    assert "git stored other content of f.dat than is there" in told
    assert "git commit" in told
    assert "f.dat" not in committed(repo)


@pytest.mark.parametrize("encoding", ["UCS-2LE", "UTF-16LE-BOM", "idna"])
def test_encodings_that_python_calls_otherwise(repo: Folder, encoding: str) -> None:
    repo.sh(f"echo '*.txt working-tree-encoding={encoding}' > .gitattributes; git add .gitattributes; git commit -qm e")
    text = "\ufeffnew\n" if encoding.endswith("BOM") else "new\n"
    (repo.root / "a.txt").write_bytes(text.encode("utf-16le"))
    if encoding == "idna":
        repo.error(git_commit, message="m", paths=["a.txt"])
    else:
        repo.call(git_commit, message="m", paths=["a.txt"])
        assert repo.sh("git show HEAD:a.txt") == "new\n"


def test_after_a_commit_that_was_undone_all_is_staged_as_before(repo: Folder) -> None:
    repo.sh("echo x >> b.txt; git add b.txt; echo x >> a.txt; mkdir -p .git/hooks")
    (repo.root / ".git/hooks/pre-commit").write_text("#!/bin/sh\necho v > v.txt; git add v.txt; rm v.txt\n")
    repo.sh("chmod +x .git/hooks/pre-commit")
    assert "The commit was undone" in repo.error(git_commit, message="m", paths=["a.txt"])
    assert repo.sh("git status --porcelain").splitlines() == [" M a.txt", "M  b.txt"]


def test_blame_of_a_huge_file_is_refused(repo: Folder) -> None:
    repo.sh("truncate -s 200M a.txt")
    assert "a.txt has more than 100,000,000 bytes" in repo.error(git_blame, path="a.txt")


# Diffs that read no files


@pytest.mark.parametrize("given", [{"ref": "HEAD~1..HEAD"}, {"staged": True}], ids=["between", "staged"])
def test_attributes_count_in_each_diff(repo: Folder, given: dict[str, Any]) -> None:
    """A file that the project calls binary, such as a lock file, is not shown, and one that it calls text is."""
    repo.sh("printf 'a.txt -diff\nb.txt diff\n' > .gitattributes; git add .; git commit -qm attributes")
    repo.sh(
        "echo x > a.txt; printf 'b\\0\n' > b.txt; git commit -qam change; echo y > a.txt; echo c > b.txt; git add ."
    )
    got = repo.call(git_diff, **given)
    assert "Binary files a/a.txt and b/a.txt differ" in got
    assert "+++ b/b.txt" in got


def test_staged_changes_of_an_index_that_the_user_names(repo: Folder) -> None:
    """As in a hook, where git names the index relative to the top folder."""
    repo.sh("echo x > a.txt; git add .")
    repo.env["GIT_INDEX_FILE"] = ".git/index"
    got = repo.call(git_diff, staged=True)
    assert "+x" in got
    assert "b.txt" not in got


@pytest.mark.parametrize(
    "change", ["echo x > t", "printf x > t", "rm t", "rm t; ln -s a.txt t", "git mv t u; echo x >> u"]
)
def test_what_was_before_a_change_is_shown(repo: Folder, change: str) -> None:
    """It is compared with what git has stored, also if it looks like a part of a diff."""
    repo.sh("printf 'diff --git a/t b/t\nindex 1..2 160000\n\nSubproject commit 1\n@@ -1 +1 @@\n' > t; git add t")
    repo.sh(f"git commit -qm t; git config diff.suppressBlankEmpty true; {change}")
    got = repo.call(git_diff, ref="HEAD")
    assert "Subproject commit 1" in got


def test_a_change_of_a_submodule_is_shown(repo: Folder) -> None:
    """Its commit is in another repository."""
    repo.sh("git init -q sub; cd sub; git commit -q --allow-empty -m one; cd ..; git add sub 2>&1; git commit -qm sub")
    repo.sh("git -C sub commit -q --allow-empty -m two; echo x >> a.txt")
    got = repo.call(git_diff)
    assert "+Subproject commit " in got
    assert "+x" in got
    repo.sh("rm -r sub; echo file > sub")
    assert "-Subproject commit " in repo.call(git_diff)


# Hooks that stage something else


def test_a_hook_may_take_a_file_out_of_the_index(repo: Folder) -> None:
    """As one that keeps keys or large files from being committed."""
    hook = repo.root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ngit rm -q --cached b.txt\n")
    hook.chmod(0o755)
    repo.sh("echo x > a.txt; echo y > b.txt")
    assert "Committed" in repo.call(git_commit, message="m")
    assert committed(repo) == {"a.txt", "b.txt"}
    assert repo.sh("git ls-files") == "a.txt\n"


def test_a_file_of_git_lfs_with_extensions(repo: Folder) -> None:
    """Its hash is that of what an extension made of it."""
    (repo.root / ".git/lfs").write_text("tr a-z A-Z | (" + LFS + ")")
    repo.sh("git config filter.lfs.clean 'sh .git/lfs'; echo '*.dat filter=lfs' > .gitattributes; echo x > f.dat")
    assert "A f.dat" in repo.call(git_commit, message="m")
