"""The criteria of the check of a pack, and its findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from ...api.record import Record

Grade: TypeAlias = Literal["bronze", "silver", "gold"]


class Criterion(Record):
    """One criterion. The field `mend` has the advice if it is not met."""

    grade: Grade
    meaning: str
    mend: str


CRITERIA: Mapping[str, Criterion] = {
    "loads": Criterion(
        grade="bronze",
        meaning="the pack loads, and registers what it should",
        mend="Correct the reported problems; the sub-command `packs list` shows where they are.",
    ),
    "schemas": Criterion(
        grade="bronze",
        meaning="every model service accepts the schemas of its tools",
        mend="Use plain types, short names and descriptions of at most 1024 characters.",
    ),
    "quiet start": Criterion(
        grade="bronze",
        meaning="registering opens no connection, starts no program and writes no file",
        mend="Move that into the tool, hook or provider that needs it.",
    ),
    "public names": Criterion(
        grade="silver",
        meaning="it imports only public names of marvin_core and marvin_core.testing",
        mend="Import from marvin_core itself; all other names may change without notice.",
    ),
    "typed": Criterion(
        grade="silver",
        meaning="it ships py.typed, and its functions are annotated",
        mend="Add an empty py.typed to the package, and annotate the listed functions.",
    ),
    "quick start": Criterion(
        grade="silver",
        meaning="its plugin module is imported quickly",
        mend="Import slow modules inside the function that needs them, or in the module of a ToolGroup.",
    ),
    "no surprises": Criterion(
        grade="silver",
        meaning="no tool fails with an unexpected exception",
        mend="Catch it, and raise ToolError with what happened and what to do next.",
    ),
    "access": Criterion(
        grade="silver",
        meaning="tools do only what their access declares",
        mend="Declare it in @tool(access=[...]), or avoid it.",
    ),
    "in time": Criterion(
        grade="silver",
        meaning="calls end in time, end when they are cancelled, and never block the program",
        mend="Await slow operations, run blocking code with in_thread, and do not catch CancelledError.",
    ),
    "light start": Criterion(
        grade="gold",
        meaning="its plugin module imports no distribution except marvin-core",
        mend="Import it in the module of a ToolGroup, or inside the function that needs it.",
    ),
    "described": Criterion(
        grade="gold",
        meaning="every parameter is described to the model",
        mend='Describe it in its annotation: Annotated[str, "What it is"].',
    ),
    "advice": Criterion(
        grade="gold",
        meaning="errors say what happened and what to do next",
        mend="Write two sentences: first what happened, then what to do next.",
    ),
    "phrases": Criterion(
        grade="gold",
        meaning="every tool has a phrase of its own, so that it is found, and works without a model",
        mend="Add entries to phrases.toml beside the tools, as docs/how-to/write-phrases.md tells.",
    ),
    "tests": Criterion(
        grade="gold",
        meaning="every tool is named in a test of its project",
        mend="Write tests with the fixture marvin_tools, and check the pack in an environment where it is installed "
        "with --editable.",
    ),
    "docs": Criterion(
        grade="gold",
        meaning="its metadata is complete, and every tool is named in its README or docs",
        mend="Add the missing items to pyproject.toml, README.md or docs/.",
    ),
}
"""The criteria, in the order in which they are shown."""


class Finding(Record):
    """The result for one criterion. It is met without problems; `unmeasured` says why it could not be measured."""

    criterion: str
    problems: tuple[str, ...] = ()
    unmeasured: str = ""
    note: str = ""

    def as_json(self) -> dict[str, object]:
        """The finding with its criterion, as the sub-command reads it."""
        return {**CRITERIA[self.criterion].as_dict(), **self.as_dict(), "problems": list(self.problems)}


def found(criterion: str, problems: Sequence[str], note: str = "") -> Finding:
    """A finding, without duplicate problems."""
    return Finding(criterion=criterion, problems=tuple(dict.fromkeys(problems)), note=note)
