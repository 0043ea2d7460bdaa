"""Rules of .gitignore at random: glob and tree show what git would, code_grep what ripgrep would."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from marvin_tools_coding.files.folders import tree
from marvin_tools_coding.files.search import code_grep, glob
from tests.tools_coding.support import Project

_FOLDERS = ("", "a", "b", "build", "a/b", "a/build", "a/b/c", "b/doc")
_NAMES = ("x.py", "y.log", "z", "a", "b.txt", "[x].py", "back\\slash", "keep.log", "blank ", "ü.py", "#hash", "!bang")
_RULES = (
    *("*.log", "*.py", "x.py", "/x.py", "a", "a/", "/a", "b", "b/", "build", "build/", "/build/", "doc/", "a/b"),
    *("a/b/", "a/*", "a/**", "**/b", "**/build/", "a/**/c", "a/**/x.py", "*", "*/", "/*", "?", "?.py", "[xy].*"),
    *("[!x]*.py", "[[:alpha:]]", "[[:alpha:]].py", "\\[x\\].py", "[[]x].py", "back\\\\slash", "back\\slash"),
    *("{x,y}.py", "z*", "blank\\ ", "blank ", "blank", "ü.py", "\\#hash", "#hash", "\\!bang", "!bang", "foo\\"),
    *("[", "[a", "**", "**/", "/", "//a", "a//b", "./a", "../a", "a/../b", "keep*", "*.t?t", "c/", "*b*", "b.txt/"),
    *("x.py/", "\ta", "", "a**b", "**a", "a/**b", "[a-c]", "[^a]", "[]a]", "*.[lp]*", "build/*", "!build/", "!a/b/c"),
)  # fmt: skip
_NOTES = ("No file matches", "(empty)", "(everything here is ignored", "[Not a valid rule, ignored", "[1 more")
"""How the lines of glob and tree begin that are no names; no file here is named so."""


def make(project: Project, number: int) -> None:
    """Files with one line each, and rules in up to three folders."""
    choose = random.Random(number)
    for folder in _FOLDERS:
        for name in choose.sample(_NAMES, 6):
            if "/".join(filter(None, (folder, name))) not in _FOLDERS:
                project.write(f"{folder}/{name}" if folder else name, "needle\n")
    for folder in choose.sample(_FOLDERS, choose.randint(1, 3)):
        rules = choose.choices(_RULES, k=choose.randint(1, 5))
        lines = [f"!{rule}" if rule[:1] not in ("", "!") and choose.random() < 0.25 else rule for rule in rules]
        project.write(
            f"{folder}/.gitignore".lstrip("/"),
            choose.choice(["\n", "\n", "\r\n"]).join(lines) + choose.choice(["", "\n"]),
        )


def as_git_lists(project: Project) -> set[str]:
    """Without a repository in the folder itself."""
    apart = project.root.parent / "apart.git"
    if not apart.exists():
        subprocess.run(["git", "init", "--quiet", "--bare", str(apart)], check=True)
    command = ["git", f"--git-dir={apart}", f"--work-tree={project.root}", "-c", "core.bare=false"]
    listed = subprocess.run(
        [*command, "ls-files", "-o", "--exclude-standard", "-z"], cwd=project.root, stdout=subprocess.PIPE, check=True
    )
    names = listed.stdout.decode().split("\0")
    return {name for name in names if name and not name.rpartition("/")[2].startswith(".")}


def as_ripgrep_lists(project: Project) -> set[str]:
    """Its own reading of the rules knows no classes such as `[[:alpha:]]`."""
    options = ["--no-config", "--no-require-git", "--no-ignore-parent", "--no-ignore-dot", "--glob=!.*", "--null"]
    listed = subprocess.run(["rg", *options, "--files"], cwd=project.root, capture_output=True, check=False)
    return set(filter(None, listed.stdout.decode().split("\0")))


def of_tree(text: str) -> set[str]:
    """The files of a tree, by their paths."""
    found: set[str] = set()
    above: list[str] = []
    for line in text.split("\n")[1:]:
        name = line.lstrip(" ")
        above[(len(line) - len(name)) // 2 - 1 :] = [name]
        if not name.endswith("/") and not name.startswith((".", *_NOTES)):
            found.add("".join(above))
    return found


def listed(project: Project) -> dict[str, set[str]]:
    """What glob and tree show."""
    found = project.call(glob, pattern="**", max_results=5_000)
    of_glob = {line for line in found.split("\n") if not line.startswith(_NOTES)}
    return {"glob": of_glob, "tree": of_tree(project.call(tree, max_depth=9))}


def searched(project: Project, glob_filter: str) -> set[str]:
    """The files in which code_grep finds what stands in all of them."""
    found = project.call(code_grep, pattern="needle", glob_filter=glob_filter, max_results=500, output="files")
    return set() if found.startswith("No ") else set(found.split("\n"))


def check(folder: Path, number: int) -> None:
    """One set of rules, in a folder that is no repository and in one that is."""
    project = Project(folder / f"project{number}", programs=("git", "rg"))
    make(project, number)
    rules = {str(file): file.read_text() for file in project.root.rglob(".gitignore")}
    as_git = as_git_lists(project)
    by_itself = Project(project.root, programs=())
    for one in (project, by_itself):
        assert listed(one) == {"glob": as_git, "tree": as_git}, rules
    assert searched(by_itself, "*") == as_git, rules
    if shutil.which("rg"):
        as_ripgrep = as_ripgrep_lists(project)
        assert searched(project, "*") == searched(project, "?*") == as_ripgrep, rules
    project.git("init", "--quiet")
    assert listed(project) == {"glob": as_git, "tree": as_git}, rules
    shutil.rmtree(project.root)


@pytest.mark.slow
def test_some_random_rules_are_read_as_git_reads_them(tmp_path: Path) -> None:
    for number in range(8):
        check(tmp_path, number)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 1_200, 25))
def test_200_sets_of_random_rules_are_read_as_git_reads_them(tmp_path: Path, first: int) -> None:
    for number in range(first, first + 25):
        check(tmp_path, number)
