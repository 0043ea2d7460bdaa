"""Attempts to escape from the sandbox through its surroundings: repositories with links, replaced files, services."""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.escapes import KEY, Scenario
from tests.support.sandboxes import Place

_ADD_KEY = {"x86_64": (248, 250), "aarch64": (217, 219)}
_SESSION_KEYRING = -3
_JOIN_SESSION_KEYRING = 1
_AUTHOR = (
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b;"
    " echo x >> file && git add file && git commit -qm"
)


def _git(place: Place, *arguments: str, cwd: Path | None = None) -> None:
    """Git, run outside as by a person."""
    settings = {"user.name": "a", "user.email": "a@b", "protocol.file.allow": "always", "init.defaultBranch": "main"}
    given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    environment = {"PATH": os.environ["PATH"], "HOME": str(place.home), "GIT_CONFIG_NOSYSTEM": "1"}
    folder = cwd or place.root
    subprocess.run(["git", *given, *arguments], cwd=folder, env=environment, check=True, capture_output=True)


async def replaced_outside(place: Place) -> None:
    """What a person's programs put in the place of a file is as guarded and as hidden as what stood there."""
    config = place.root / ".git" / "config"
    await place.sh("true")
    _git(place, "config", "remote.origin.url", "somewhere")  # it writes another file and renames it
    for name in (".bash_history", ".new"):
        (place.home / name).write_text(f"{KEY} again", encoding="utf-8")
    (place.home / ".new").rename(place.home / ".bash_history")
    (place.home / ".kube").mkdir()
    (place.home / ".kube" / "config").write_text(KEY, encoding="utf-8")
    result = await place.sh(
        "cat ~/.bash_history ~/.kube/config; echo evil >> .git/config; touch x; mv -f x .git/config"
    )
    assert KEY.encode() not in result.output
    assert "somewhere" in config.read_text(encoding="utf-8")
    assert "evil" not in config.read_text(encoding="utf-8")


async def links_in_git(place: Place) -> None:
    """Where git's own files are links, which no mount holds, nothing of the folder can be changed."""
    git, kept = place.root / ".git", place.root / "githooks"
    (git / "hooks").rmdir()
    kept.mkdir()
    (git / "hooks").symlink_to("../githooks")
    before = (git / "config").read_bytes()
    result = await place.sh(
        "echo evil >> .git/config; rm .git/hooks; mkdir .git/hooks; echo evil > .git/hooks/post-checkout;"
        " mv .git x; echo evil > githooks/post-checkout; mv githooks y; echo evil > .git/hooks/pre-commit"
    )
    assert (git / "config").read_bytes() == before
    assert os.readlink(git / "hooks") == "../githooks"
    assert list(kept.iterdir()) == []
    assert str(git) in result.held_back


async def git_is_a_link(place: Place) -> None:
    """A `.git` that is a link is one afterwards, and what a command made instead is set aside."""
    git, real = place.root / ".git", place.home / "git-of-project"
    git.rename(real)
    git.symlink_to("../git-of-project")
    before = (real / "config").read_bytes()
    result = await place.sh("echo evil >> .git/config; rm .git; mkdir .git; echo evil > .git/config; echo x > .git/y")
    assert os.readlink(git) == "../git-of-project"
    assert (real / "config").read_bytes() == before
    assert str(git) in result.held_back
    assert [(path / "y").read_text() for path in place.root.glob(".git.*")] == ["x\n"]


async def git_led_elsewhere(place: Place) -> None:
    """What would have git read settings from elsewhere is taken away, a folder too, and after the last command."""
    common = place.root / ".git" / "commondir"
    result = await place.sh("mkdir .git/commondir; echo kept > .git/commondir/x")
    assert not common.exists()
    assert str(common) in result.held_back
    job = "(while [ ! -e go ]; do sleep 0.01; done; echo /tmp/evil > .git/commondir; touch done; sleep 300) &"
    await place.sh(job, leave_jobs=True)
    (place.root / "go").touch()
    await place.sh("while [ ! -e done ]; do sleep 0.01; done")
    await place.sh("echo /tmp/evil > .git/commondir & sleep 300 &", leave_jobs=True)
    await place.runner.close()
    assert not common.exists()


async def pipes_are_not_waited_for(place: Place) -> None:
    """A pipe where Marvin looks into a file does not hold up every further command."""
    await place.sh("true")
    (place.root / ".git").rename(place.home / "away")
    for made in ("mkfifo .git", "rm .git; mkdir -p .git/objects .git/refs; touch .git/HEAD; mkfifo .git/config; true"):
        assert (await place.sh(made)).exit_code == 0
        async with asyncio.timeout(60):
            assert (await place.sh("echo goes on")).output == b"goes on\n"


async def worktrees_are_kept(place: Place) -> None:
    """A linked worktree can be worked in; its repository's settings and hooks, and what leads there, stay."""
    main, tree = place.home / "main", place.root
    tree.rename(main)
    _git(place, "commit", "-q", "--allow-empty", "-m", "zero", cwd=main)
    _git(place, "worktree", "add", "-q", str(tree), cwd=main)
    git = main / ".git"
    own = git / "worktrees" / "project"
    before = [(path, path.read_bytes()) for path in (git / "config", own / "commondir", own / "gitdir", tree / ".git")]
    result = await place.sh(f"{_AUTHOR} one && git log --oneline")
    assert result.exit_code == 0, result.output
    await place.sh(
        f"for f in {git}/config {git}/config.worktree {git}/info/attributes {git}/hooks/pre-commit {own}/commondir"
        f" {own}/gitdir {own}/config.worktree .git; do echo evil > $f; rm -f $f; touch z; mv -f z $f; done;"
        f" mv {own} {own}-2; mv {git}/worktrees {git}/w; mv {git} {git}-2; echo evil > {git}/commondir;"
        f" echo evil > {main}/owned"
    )
    assert before == [(path, path.read_bytes()) for path, _ in before]
    assert [path.name for path in (git / "hooks").iterdir() if not path.name.endswith(".sample")] == []
    assert (git / "info" / "attributes").read_bytes() == (own / "config.worktree").read_bytes() == b""
    assert not (main / "owned").exists()
    await place.sh("true")
    assert not (git / "commondir").exists()


async def submodules_are_kept(place: Place) -> None:
    """A submodule can be worked in, its settings and hooks stay, also of one that comes while a session lasts."""
    other = place.home / "other"
    other.mkdir()
    _git(place, "init", "-q", cwd=other)
    _git(place, "commit", "-q", "--allow-empty", "-m", "zero", cwd=other)
    await place.sh("true")
    _git(place, "submodule", "add", "-q", str(other), "libs/other")
    module, dot = place.root / ".git" / "modules" / "libs" / "other", place.root / "libs" / "other" / ".git"
    before = [(path, path.read_bytes()) for path in (module / "config", dot)]
    result = await place.sh(f"cd libs/other && {_AUTHOR} one && git log --oneline")
    assert result.exit_code == 0, result.output
    await place.sh(
        f"for f in {module}/config {module}/info/attributes {module}/hooks/post-checkout {dot}; do echo evil > $f;"
        f" rm -f $f; touch z; mv -f z $f; done; mv {module} {module}-2; mv .git/modules .git/m; mv libs l;"
        " mv libs/other libs/o; mkdir -p libs/other/.git; echo evil > libs/other/.git/config"
    )
    assert before == [(path, path.read_bytes()) for path, _ in before]
    assert [path.name for path in (module / "hooks").iterdir() if not path.name.endswith(".sample")] == []


async def sockets_of_services_are_hidden(place: Place) -> None:
    """What listens at a path outside is not reached, one in the working directory is."""
    code = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('reached')"
    found = []
    for path in (place.home / "service", place.root / "service"):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            result = await place.sh(shlex.join([sys.executable, "-I", "-S", "-c", code, str(path)]))
            found.append(b"reached" in result.output)
            await place.sh("touch .tickets/x; mkdir -p .marvin/logs/x")
            await place.sandbox.close()
    assert found == [False, True]


async def keyrings_are_out_of_reach(place: Place) -> None:
    """What a login keeps in the kernel's keyring is not found from inside."""
    if platform.machine() not in _ADD_KEY:
        return
    add_key, keyctl = _ADD_KEY[platform.machine()]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(keyctl, _JOIN_SESSION_KEYRING, None)  # the test leaves nothing in that of whoever runs it
    if libc.syscall(add_key, b"user", b"marvin-escape", KEY.encode(), len(KEY), _SESSION_KEYRING) < 0:
        return  # a container forbids keyrings altogether
    code = (
        "import ctypes, sys; libc = ctypes.CDLL(None)\n"
        "for ring in (-3, -4, -5):\n"
        "    key = libc.syscall(int(sys.argv[1]), 10, ring, b'user', b'marvin-escape', 0)\n"
        "    content = ctypes.create_string_buffer(100)\n"
        "    if key > 0 and libc.syscall(int(sys.argv[1]), 11, key, content, 100) > 0: print(content.value)"
    )
    result = await place.sh(shlex.join([sys.executable, "-I", "-S", "-c", code, str(keyctl)]))
    assert result.output == b"", result.output


async def odd_places_in_errors(place: Place) -> None:
    """What a program says of places that cannot even be looked at does not make the call fail."""
    closed = place.home / "closed"
    closed.mkdir(mode=0)
    names = f"/{'a' * 300}/{'b' * 5000} {closed}/x/y '{place.home}'/\\\\"
    result = await place.sh(f"echo permission denied: {names}; exit 3")
    assert result.exit_code == 3


SCENARIOS: Mapping[str, tuple[Scenario, Mapping[str, str]]] = {
    "replaced outside": (replaced_outside, {}),
    "links in .git": (links_in_git, {}),
    ".git is a link": (git_is_a_link, {}),
    "commondir": (git_led_elsewhere, {}),
    "pipes": (pipes_are_not_waited_for, {}),
    "worktrees": (worktrees_are_kept, {}),
    "submodules": (submodules_are_kept, {}),
    "sockets of services": (sockets_of_services_are_hidden, {}),
    "keyrings": (keyrings_are_out_of_reach, {}),
    "odd places": (odd_places_in_errors, {}),
}
"""Each way with what its sandbox is made with."""
