"""The reports of one run, written at its start, after each phase and at its end, however it ends."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from marvin_core import MarvinError, in_thread

from ...run.failures import RedTests
from .results import Ending, Results, gather
from .strict import red_end, weaknesses
from .writing import write_report

if TYPE_CHECKING:
    from ...run.context import Run
    from ...run.summary import Summary


class Reports:
    """The reports of one run.

    Args:
        run: the run that they are about.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._config = run.control.config
        self._annotations = ""

    async def begun(self) -> None:
        """Write a first report, which remains if the run is killed. Errors are reported at the end."""
        with suppress(MarvinError):
            await write_report(self._run, Ending(ended="running", is_strict=self._config.strict))

    async def check(self) -> None:
        """Fail a completed run with failing tests, and with `--strict` one with weak evidence.

        Raises:
            RedTests: the run fails; the text says why.
            FileFault: a log cannot be read.
            GitFault: git fails.
        """
        run = self._run
        results = await gather(run.files, run.git, run.settings.review_floor, Ending(ended="running"))
        if red := red_end(results):
            raise RedTests(red)
        if not self._config.strict:
            return
        if weak := await in_thread(lambda: weaknesses(results, run.settings.unmeasured)):
            raise RedTests(f"The evidence is too weak for --strict. {' '.join(weak)}")

    async def ended(self, ending: Ending) -> None:
        """Write the last report, and the output for `--github`.

        Raises:
            FileFault: a log cannot be read, or the report cannot be written.
            GitFault: git fails.
        """
        results = await write_report(self._run, ending.replace(is_strict=self._config.strict))
        if self._config.github:
            await in_thread(lambda: self._of_github(results))

    def text(self, summary: Summary) -> str:
        """The run's output: its summary, and with `--github` the annotations after it."""
        text = summary.text()
        if not self._config.github:
            return text
        from .github import harmless

        return f"{harmless(text)}\n{self._annotations}"

    def told(self, error: MarvinError | None) -> MarvinError | None:
        """Why the run stopped, safe to print."""
        if error is not None and self._config.github:
            from .github import harmless

            error.args = (harmless(str(error)),)
        return error

    def _of_github(self, results: Results) -> None:
        from .github import annotation_lines, write_summary
        from .markdown import summary_markdown

        self._annotations = annotation_lines(results)
        path = self._run.settings.step_summary
        if path and (why := write_summary(path, summary_markdown(results))):
            self._run.tell(why)
