"""The progress of unfinished phases, so that a killed run resumes in the middle of a phase."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .run.files import ProjectFiles

_FOLDER = "logs/progress"
_CARRIED = "carried"
_TESTS = "tests"
_NAMES = ("spec", "ux", "design", "code", "writers", "mending", "proof", "held", _TESTS, _CARRIED)
_LARGEST = 20_000_000
"""Bytes that are read."""


class Progress:
    """The progress of one part of a phase.

    Args:
        files: the pipeline's own files of the project.
        phase: the phase it belongs to.
        name: of the part: spec, ux, design or code; writers, for those who write the code; mending, for the
            rounds of a repair loop; held, for what reviews accepted; tests, for the numbers of tests.
    """

    def __init__(self, files: ProjectFiles, phase: str, name: str) -> None:
        self._files = files
        self._name = f"{_FOLDER}/{phase}-{name}.jsonl"
        self._copy = f"{_FOLDER}/{phase}-{name}.before"

    def read(self) -> Sequence[Mapping[str, Any]]:
        """The recorded entries. A truncated line is ignored: its step is repeated.

        Raises:
            FileFault: it cannot be read.
        """
        noted = []
        for line in (self._files.read(self._name, _LARGEST) or b"").splitlines():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                noted.append(value)
        return noted

    def note(self, **fields: Any) -> None:
        """Add an entry, on a line of its own even after a truncated line.

        Raises:
            FileFault: it cannot be written.
        """
        self._files.append(self._name, f"\n{json.dumps(fields)}\n".encode())

    def keep(self, document: bytes) -> None:
        """Back up a document before it is fixed. Raises `FileFault` if that cannot be written."""
        self._files.write(self._copy, document)

    def kept(self) -> bytes | None:
        """The last backup of the document; None without one. Raises `FileFault` if it cannot be read."""
        return self._files.read(self._copy)

    def forget(self) -> None:
        """Remove all entries. Raises `FileFault` if a file cannot be removed."""
        self._files.remove(self._name)
        self._files.remove(self._copy)


def forget(files: ProjectFiles, phases: Iterable[str]) -> None:
    """Remove the progress of phases, which start again from their beginning.

    Raises:
        FileFault: a file cannot be removed.
    """
    for phase in phases:
        for name in _NAMES:
            Progress(files, phase, name).forget()


def carry(files: ProjectFiles, phase: str, findings: Sequence[str]) -> None:
    """Record the findings that a finished phase leaves to later ones. Raises `FileFault`."""
    progress = Progress(files, phase, _CARRIED)
    progress.forget()  # it may have been killed before it was recorded as finished
    if findings:
        progress.note(findings=list(findings))


def carried(files: ProjectFiles, phases: Iterable[str]) -> list[str]:
    """The findings that phases have left, a line each. Raises `FileFault`."""
    notes = [note for phase in phases for note in Progress(files, phase, _CARRIED).read()]
    lists = [note.get("findings") for note in notes]
    return [str(finding) for found in lists if isinstance(found, list) for finding in found]


def note_tests(files: ProjectFiles, phase: str, counts: Mapping[str, int]) -> None:
    """Record how many tests each kind of command ran in a phase. Raises `FileFault`."""
    Progress(files, phase, _TESTS).note(most=dict(counts))


def most_tests(files: ProjectFiles, phases: Iterable[str]) -> dict[str, int]:
    """The most tests that each kind of command ran in these phases. Raises `FileFault`."""
    most: dict[str, int] = {}
    for note in (note for phase in phases for note in Progress(files, phase, _TESTS).read()):
        counts = note.get("most")
        for kind, count in counts.items() if isinstance(counts, dict) else ():
            if isinstance(count, int):
                most[kind] = max(count, most.get(kind, 0))
    return most
