"""How Marvin calls git: with output for programs, and without running programs that a repository names.

A call that a person requested, such as a commit, runs the hooks of the repository. All other calls run no hook,
monitor, signature or housekeeping, and fetch no missing objects of a partial clone, because the repository may name the
program for it. Filters and hooks in settings have names of their own. They are first listed (`GIT_PROGRAMS`), then
switched off one by one (`git_without_programs`).
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
"""The hooks for actions in one repository: https://git-scm.com/docs/githooks"""
_NO_PROGRAMS = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false"),
    *(f"hook.{event}.enabled=false" for event in _EVENTS),  # only since git 2.55
    *("commit.gpgSign=false", "log.showSignature=false", "merge.verifySignatures=false"),
    *("submodule.recurse=false", "fetch.recurseSubmodules=false"),
    *("status.submoduleSummary=false", "diff.submodule=short"),
)
_AS_DELIVERED = (
    "rerere.enabled=false",
    "merge.autoStash=false",
    "advice.statusHints=false",
    "diff.orderFile=/dev/null",
    "diff.relative=false",
    "status.relativePaths=true",
    "status.displayCommentPrefix=false",
    "color.status=false",
)

GIT_ASKS_NOBODY = MappingProxyType(
    {
        "LANGUAGE": "C",  # the output is searched for English words
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
    }
)
"""Variables for every git call: git never waits for input."""
GIT_ALONE = MappingProxyType({**GIT_ASKS_NOBODY, "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""})
"""Further variables for calls that nobody requested: nothing is fetched."""
GIT_TRANSFERS = MappingProxyType({**GIT_ASKS_NOBODY, "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"})
"""Variables for calls that fetch or push: never by `ext`, whose address is a program."""
GIT_PROGRAMS = (
    *("config", "--show-scope", "--null", "--get-regexp"),
    r"^(filter\..*\.(clean|smudge|process|required)|hook\..*\.(command|event))$",
)
"""The git call that lists the programs with names of their own in its settings; exit code 1 means none."""
_OF_THE_REPOSITORY = ("local", "worktree")


def git_command(*settings: str, alone: bool = True) -> tuple[str, ...]:
    """The first words of a git call.

    Args:
        settings: further settings of this call, each as NAME=VALUE.
        alone: whether programs from settings are switched off; otherwise hooks, signatures and monitors are those of
            the user and the repository.
    """
    given = (*_PLAIN, *(_NO_PROGRAMS if alone else ()), *(_AS_DELIVERED if alone else ()), *settings)
    return ("git", "--no-pager", *(word for setting in given for word in ("-c", setting)))


def git_without_programs(listed: bytes, *, filters: bool = True) -> dict[str, str]:
    """Variables that switch off the programs that `GIT_PROGRAMS` listed, for later calls.

    Hooks in settings run regardless of `core.hooksPath`, and those of the user are switched off as well. Filters of the
    user stay on. Otherwise git would report every file that such a filter has converted as changed.

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
    """The settings that switch them off, by name."""
    # Scope and setting alternate; the name of a setting ends at a newline.
    parts = listed.decode("utf-8", "surrogateescape").split("\0")
    for scope, setting in zip(parts[::2], parts[1::2], strict=False):
        name = setting.partition("\n")[0]
        if name.startswith("hook."):
            yield f"{name.rpartition('.')[0]}.enabled", "false"
        elif filters and scope in _OF_THE_REPOSITORY:
            yield name, "false" if name.endswith(".required") else ""
