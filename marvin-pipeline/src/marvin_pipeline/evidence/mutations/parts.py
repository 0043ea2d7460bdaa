"""Assigns new code to the commands that test it, for the mutation tools."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

from ...checks.commands import CONFIGURED, ProjectCommand
from .tried import Part

_ANY = "make"
"""A program that may run tests of any language."""


def parts_of(
    tests: Sequence[ProjectCommand], new: Mapping[str, Sequence[int]], programs: Collection[str]
) -> tuple[Sequence[Part], Sequence[str]]:
    """New code with the commands that test it, and the files that no command tests.

    A file belongs to the command in the nearest folder above it, and to the first one of several.

    Args:
        tests: the commands that run tests.
        new: the numbers of new lines by file, relative to the project.
        programs: those that run tests of the language, without versions, such as `python` for `python3.12`.
    """
    folders: dict[str, ProjectCommand] = {}
    for one in tests:
        name = PurePosixPath(one.argv[0]).name.rstrip(".0123456789")
        if one.why == CONFIGURED or name == _ANY or name in programs:
            folders.setdefault(one.folder, one)
    found: dict[str, dict[str, Sequence[int]]] = {}
    untested = []
    for file, lines in new.items():
        around = [str(place) for place in PurePosixPath(file).parents if str(place) in folders]
        if around:
            found.setdefault(around[0], {})[file] = lines
        else:
            untested.append(file)
    return [Part(command=folders[folder], new=files) for folder, files in found.items()], untested
