"""A checkpoint has the same content as a commit that git makes by itself, except for files that are left out."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from marvin_core import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_pipeline.run.checkpoints import Checkpoints
from marvin_pipeline.run.git.project_git import GitFault
from tests.support.folders import Folders

ENV = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
BEGUN = r"""
git config user.name Ada; git config user.email ada@example.com
mkdir dir to-link to-file; echo 1 > dir/a; echo 1 > to-link/a; echo 1 > to-file/a; echo 1 > to-dir; ln -s a linked
ln -s dir link-to-dir; printf 'a\r\nb\r\n' > crlf.txt; echo '$Id$' > ident.c; echo 1 > gone; echo 1 > mode
echo 1 > both; echo 1 > moved; echo 1 > "$(printf 'new\nline "quoted"')"; echo 1 > assumed
echo a > kept.up; printf 'A' > utf16.txt
git add .; git commit -qm Begin
"""
CHANGED = r"""
echo 2 > dir/a; rm -r to-link; ln -s dir to-link; rm -r to-file; echo 2 > to-file; rm to-dir; mkdir to-dir
echo 2 > to-dir/a; ln -sf b linked; rm link-to-dir; mkdir link-to-dir; echo 2 > link-to-dir/a; rm gone; chmod +x mode
printf 'a\r\nc\r\n' > crlf.txt; printf 'new\r\n' > new.txt; echo 'int a; // $Id$' > ident.c; mv moved moved-to
printf '*.txt text=auto\n*.c ident\n*.up filter=up\n*.mine filter=mine\nutf16.txt text working-tree-encoding=UTF-16\n' \
  > .gitattributes
printf 'AB' | iconv -f UTF-8 -t UTF-16 > utf16.txt
echo 2 > "$(printf 'new\nline "quoted"')"; echo 2 > "$(printf 'odd\tname\377')"; echo 2 > -n; echo 2 > ' blank '
mkdir tools; printf '#!/bin/sh\ntr a-z A-Z\n' > tools/up; chmod +x tools/up; echo lower > kept.up; echo lower > new.up
echo lower > new.mine; : > empty; echo 2 > both; git add both; echo 3 > both; echo 1 > intended; git add -N intended
git update-index --assume-unchanged assumed; echo 2 > assumed; touch dir/a; mkdir deep; mkdir deep/er
echo 1 > deep/er/x; printf '*.txt -text\n' > deep/.gitattributes; printf 'raw\r\n' > deep/raw.txt
ln -s nowhere dangling; ln -s / outside.up
"""


def sh(folder: Path, script: str, home: Path = Path("/")) -> str:
    """What a script prints."""
    env = {**ENV, "HOME": str(home)}
    done = subprocess.run(["sh", "-ec", script], cwd=folder, env=env, check=True, capture_output=True, timeout=60)
    return os.fsdecode(done.stdout)


def checkpoint(folder: Path, home: Path = Path("/"), **variables: str) -> str:
    """Make one; returns its commit."""

    async def work() -> str:
        environment = {**ENV, "HOME": str(home), **variables}
        runner = ProcessRunner(Folders(root=folder, base=folder), environment, Timeouts())
        try:
            return await Checkpoints(folder, runner, 60).checkpoint("Marvin's")
        finally:
            await runner.close()

    return asyncio.run(work())


@pytest.mark.slow
@pytest.mark.parametrize("part", ["", "part"])
@pytest.mark.parametrize("form", ["sha1", "sha256"])
@pytest.mark.parametrize("setting", ["core.autocrlf=true", "core.fileMode=false"])
def test_a_checkpoint_has_what_git_would_commit(tmp_path: Path, part: str, form: str, setting: str) -> None:
    """Also attributes, filters, encodings, modes and links, and files that became folders."""
    (tmp_path / ".gitconfig").write_text('[filter "mine"]\n\tclean = tr a-z A-Z\n\trequired = true\n')
    trees = []
    for name in ("theirs", "ours"):
        root = tmp_path / name / part
        root.mkdir(parents=True)
        sh(tmp_path, f"git init -q --object-format={form} {name}; git -C {name} config {setting.replace('=', ' ')}")
        sh(root, BEGUN, tmp_path)
        sh(root, f"git config filter.up.clean ./{part or '.'}/tools/up; git config filter.up.required true")
        sh(root, CHANGED, tmp_path)
        if name == "theirs":
            sh(root, "git add -A .; git commit -qm Theirs", tmp_path)
        else:
            assert checkpoint(root, tmp_path) == sh(root, "git rev-parse HEAD").strip()
        trees.append(sh(root, "git ls-tree -rz HEAD").replace("\0", "\n"))
        assert sh(root, "git status --porcelain", tmp_path) == ""
    assert trees[0] == trees[1]
    shown = sh(tmp_path / "ours" / part, "git show HEAD:./new.up HEAD:./new.mine")
    assert shown.split() == ["LOWER", "LOWER"]


@pytest.mark.slow
@pytest.mark.parametrize("ignored", ["none", "all"])
def test_a_submodule_is_kept_at_its_new_commit(tmp_path: Path, ignored: str) -> None:
    """Also if git does not show it as changed."""
    root = tmp_path / "project"
    script = "git init -q project; cd project; git init -q sub; for at in sub .; do git -C $at config user.name Ada; "
    script += "git -C $at config user.email a@example.com; done; git -C sub commit -q --allow-empty -m 1; git add sub; "
    script += "git commit -qm Begin; git -C sub commit -q --allow-empty -m 2; echo 1 > sub/untracked; echo 1 > new"
    sh(tmp_path, f"{script}; git config diff.ignoreSubmodules {ignored}")
    checkpoint(root)
    assert sh(root, "git ls-tree HEAD sub").split()[2] == sh(root, "git -C sub rev-parse HEAD").strip()
    newest = checkpoint(root)
    assert checkpoint(root) == newest
    sh(root, "rm -r sub")
    checkpoint(root)
    assert sh(root, "git ls-tree --name-only HEAD").split() == ["new"]


@pytest.mark.slow
def test_a_tracked_file_that_cannot_be_committed_is_named(tmp_path: Path) -> None:
    root = tmp_path / "project"
    sh(tmp_path, "git init -q project")
    sh(root, BEGUN + "rm gone; mkfifo gone")
    with pytest.raises(GitFault, match=r"gone cannot be committed: it is not a file\. Change that, or have git ignore"):
        checkpoint(root)


@pytest.mark.slow
def test_a_file_that_was_changed_in_the_moment_of_the_last_commit_stays_changed(tmp_path: Path) -> None:
    """git knows such a change by the content only, and has to look at the file whenever it writes the index."""
    sh(tmp_path, "git init -q .; git config core.checkStat minimal; git config core.trustctime false")
    sh(tmp_path, "git config user.name Ada; git config user.email ada@example.com; mkdir part; echo 1 > theirs")
    sh(tmp_path, "touch -d '1 minute ago' theirs; git add .; git commit -qm Begin; echo 1 > part/ours")
    theirs, index = tmp_path / "theirs", tmp_path / ".git" / "index"
    moment = theirs.stat().st_mtime_ns
    theirs.write_text("2\n")
    for path in (theirs, index):
        os.utime(path, ns=(moment, moment))
    assert sh(tmp_path, "git --no-optional-locks status --porcelain").startswith(" M theirs\n")
    checkpoint(tmp_path / "part")
    assert sh(tmp_path, "git status --porcelain") == " M theirs\n"


@pytest.mark.parametrize("setting", ["core.splitIndex=false", "core.splitIndex=true"])
def test_nothing_is_left_of_a_checkpoint_but_the_commit(tmp_path: Path, setting: str) -> None:
    """Neither in the folder for temporary files nor in the git folder."""
    root, temporary = tmp_path / "top" / "part", tmp_path / "temporary"
    temporary.mkdir()
    root.mkdir(parents=True)
    sh(tmp_path, "git init -q top")
    sh(root, BEGUN)
    sh(root, CHANGED)
    sh(root, f"git config {setting.replace('=', ' ')}; git add -N -f . || true")
    before = set(os.listdir(tmp_path / "top" / ".git"))
    checkpoint(root, TMPDIR=str(temporary))
    assert os.listdir(temporary) == []
    assert set(os.listdir(tmp_path / "top" / ".git")) == before


@pytest.mark.slow
def test_new_attributes_hold_for_very_many_files(tmp_path: Path) -> None:
    """They are more than are stored at once."""
    script = "git init -q .; git config user.name Ada; git config user.email ada@example.com; "
    script += "seq -f '%g.txt' 5100 | xargs touch; git add .; git commit -qm Begin; "
    script += r"printf '*.txt text\n' > .gitattributes; for f in *.txt; do printf 'a\r\n' > $f; done; ln -s a.txt link"
    sh(tmp_path, script)
    checkpoint(tmp_path)
    listed = sh(tmp_path, "git ls-tree -r HEAD")
    assert listed.count(sh(tmp_path, "echo a | git hash-object --stdin").strip()) == 5100
    assert sh(tmp_path, "git status --porcelain") == ""


def test_settings_of_git_in_the_environment_hold(tmp_path: Path) -> None:
    sh(tmp_path, "git init -q .; git config user.name Ada; git config user.email ada@example.com")
    (tmp_path / "crlf.txt").write_bytes(b"a\r\n")
    checkpoint(tmp_path, GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="core.autocrlf", GIT_CONFIG_VALUE_0="input")
    assert sh(tmp_path, "git show HEAD:crlf.txt") == "a\n"
