"""Git as Marvin runs it: in words that a program reads, and with no program that a repository names.

A call that a person asked for, as a commit, runs the hooks of the repository. Any other call runs nothing: no hook, no
monitor, no signature, no housekeeping, and what is missing in a partial clone is not fetched, since the repository may
name the program that does it. Filters and hooks that stand in settings go by names of their own, so that they are
listed first (`GIT_PROGRAMS`) and switched off one by one (`git_without_programs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

_PLAIN = (
    *("core.quotepath=off", "color.ui=false"),
    *("gc.auto=0", "maintenance.auto=false"),  # a call must not end with housekeeping in the background
)
_EVENTS = (
    "pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase post-checkout post-merge "
    "reference-transaction pre-auto-gc post-rewrite post-index-change fsmonitor-watchman"
).split()
"""The hooks of what is done in one repository: https://git-scm.com/docs/githooks"""
_NO_PROGRAMS = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false"),
    *(f"hook.{event}.enabled=false" for event in _EVENTS),  # from git 2.55 on, and nothing before
    *("commit.gpgSign=false", "log.showSignature=false", "merge.verifySignatures=false"),
    *("submodule.recurse=false", "fetch.recurseSubmodules=false"),
    *("status.submoduleSummary=false", "diff.submodule=short"),
)
_AS_DELIVERED = (
    "rerere.enabled=false",
    "merge.autoStash=false",
    "advice.statusHints=false",
    "diff.orderFile=/dev/null",
)

GIT_ASKS_NOBODY = MappingProxyType(
    {
        "LANGUAGE": "C",  # what it says is looked for in English
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
    }
)
"""Variables for every call of git: it waits for nobody."""
GIT_ALONE = MappingProxyType({**GIT_ASKS_NOBODY, "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""})
"""Variables for calls that nobody asked for, beside: nothing is fetched."""
GIT_TRANSFERS = MappingProxyType({**GIT_ASKS_NOBODY, "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"})
"""Variables for calls that fetch or push: never by `ext`, with which an address is a program."""
GIT_PROGRAMS = (
    *("config", "--show-scope", "--null", "--get-regexp"),
    r"^(filter\..*\.(clean|smudge|process|required)|hook\..*\.(command|event))$",
)
"""What has git list the programs of its settings that go by names of their own; 1 says that there are none."""
_OF_THE_REPOSITORY = ("local", "worktree")


def git_command(*settings: str, alone: bool = True) -> tuple[str, ...]:
    """The words that a call of git begins with.

    Args:
        settings: what else is set for this call, each as NAME=VALUE.
        alone: whether no program that settings name has a part in it; else hooks, signatures and monitors are as the
            user and the repository have them.
    """
    given = (*_PLAIN, *(_NO_PROGRAMS if alone else ()), *(_AS_DELIVERED if alone else ()), *settings)
    return ("git", "--no-pager", *(word for setting in given for word in ("-c", setting)))


def git_without_programs(listed: bytes, *, filters: bool = True) -> dict[str, str]:
    """Variables that switch off what `GIT_PROGRAMS` has listed, for the calls behind it.

    Hooks of settings run whatever `core.hooksPath` says, and those of the user are switched off with those of the
    repository. Filters of the user stay: without them all files that they made would seem to be changed.

    Args:
        filters: whether filters of the repository are switched off as well.
    """
    settings = dict(_switches(listed, filters=filters))
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(sorted(settings.items())):
        variables[f"GIT_CONFIG_KEY_{number}"] = name
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables


def _switches(listed: bytes, *, filters: bool) -> Iterator[tuple[str, str]]:
    """Settings that switch them off, by name."""
    # A scope and a setting by turns; the name of a setting ends with a line.
    parts = listed.decode("utf-8", "surrogateescape").split("\0")
    for scope, setting in zip(parts[::2], parts[1::2], strict=False):
        name = setting.partition("\n")[0]
        if name.startswith("hook."):
            yield f"{name.rpartition('.')[0]}.enabled", "false"
        elif filters and scope in _OF_THE_REPOSITORY:
            yield name, "false" if name.endswith(".required") else ""
