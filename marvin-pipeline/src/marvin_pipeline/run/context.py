"""What a run is made of: the one value that phases get, and the way to its agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from marvin_core import (
    AgentResult,
    AgentTask,
    BudgetExceeded,
    MarvinError,
    Record,
    RunControl,
    ToolError,
    did_you_mean,
    near_names,
)

from ..prompts.loading import Prompts
from ..settings import PipelineSettings
from ..state import MEANINGS, PipelineState
from .checkpoints import Checkpoints
from .files import ProjectFiles
from .journal import Journal
from .limits import RunLimits
from .request import PipelineRequest
from .roles import ROLES, Role
from .tickets import Tickets

_NO_MOCKS = (
    "Tests of this project use real components: no mocks and no test doubles. A plan or a test that uses them is "
    "wrong.\n"
)


class AgentFailed(MarvinError):
    """An agent that a phase cannot do without did not come to its end."""


class Run(Record):
    """One run of the pipeline."""

    control: RunControl
    """The session, and the way to the user."""
    request: PipelineRequest
    settings: PipelineSettings
    files: ProjectFiles
    """The documents and logs below `.marvin`."""
    state: PipelineState
    prompts: Prompts
    git: Checkpoints
    tickets: Tickets
    journal: Journal
    limits: RunLimits
    carried: list[str]
    """The findings below the floor that are left by earlier phases, a line each; phases add to it."""
    upstream: tuple[str, ...] = ()
    """The upstream documents, by their names below the project's folder."""

    @property
    def folder(self) -> Path:
        """The project's folder, links resolved."""
        return self.files.root

    async def ask(
        self,
        role: str,
        values: Mapping[str, str],
        *,
        phase: str,
        prompt: str = "",
        read_only: bool = False,
        writable_files: Sequence[str] = (),
        ticket: str = "",
        tools: Sequence[str] = (),
    ) -> AgentResult:
        """Have an agent do something; how it ended is in the result.

        Args:
            role: one of `ROLES`, which says the tier of its model.
            values: what its prompt is filled with, beside what `standing` gives to all of them.
            phase: the phase that it is for.
            prompt: the name of its prompt, where that is not the role's.
            writable_files: the only files that it may write, relative to the project; none for any.
            ticket: the ticket that it works on; without one, an agent that writes gets one of its own, and others work
                on the epic.
            tools: the tools that it has, as `--tools` takes them; none for those that agents have.

        Raises:
            BudgetExceeded: nothing new may be started, or the agent reached the cost ceiling.
            MarvinError: it cannot be started, or its prompt is not right.
        """
        self.limits.check()
        text = self.prompts.fill(prompt or role, {**self.standing(phase), **values})
        text = f"{text}\n{_NO_MOCKS}" if read_only else text  # those that write are told so by the core
        own = "" if ticket or read_only else await self._ticket(role, phase)
        task = AgentTask(
            prompt=text,
            model=_role(role).tier,
            ticket=ticket or own or self.tickets.epic,
            read_only=read_only,
            writable_files=tuple(writable_files) or None,
            tools=",".join(tools),
        )
        task = task.replace(timeout=self._timeout(task))
        result = await self._asked(task, role, phase)
        if own:
            await self._end_ticket(own, result)
        if result.ended == "budget":
            raise BudgetExceeded(f"The agent that was to {_role(role).words} reached the cost ceiling. {result.reason}")
        if result.ended == "timeout":
            self.limits.check_time()  # it may have been the time of the whole run that was up
        return result

    async def ask_for(self, role: str, values: Mapping[str, str], *, phase: str, prompt: str = "") -> AgentResult:
        """The same for an agent that writes and that the phase cannot do without.

        Raises:
            AgentFailed: it did not come to its end.
            TimeUp: since the run had no more time.
        """
        result = await self.ask(role, values, phase=phase, prompt=prompt)
        if not result.answered:
            self.limits.check()
            raise AgentFailed(
                f"The agent that was to {_role(role).words} did not finish ({result.ended}): {result.reason} Run the "
                "pipeline again to continue."
            )
        return result

    def standing(self, phase: str) -> dict[str, str]:
        """What every prompt may be filled with: request, phase, meaning, upstream, carried."""
        upstream = "\n".join(f"- {name}" for name in self.upstream)
        carried = "\n".join(f"- {finding}" for finding in self.carried)
        return {
            "request": self.request.prompt,
            "phase": phase,
            "meaning": MEANINGS.get(phase, phase),
            "upstream": upstream and f"Documents to read, which must not be changed:\n{upstream}",
            "carried": carried and f"Open findings of earlier phases; fix those that you come across:\n{carried}",
        }

    def tell(self, text: str) -> None:
        """Tell in one line how far the run is."""
        from ..evidence.ci.github import harmless

        self.control.warn(harmless(text) if self.control.config.github else text)

    async def _asked(self, task: AgentTask, role: str, phase: str) -> AgentResult:
        other = self.settings.fallback.get(_role(role).tier)
        try:
            result = await self._started(task, role, phase)
        except ToolError as error:  # as where no service has the model of the tier
            if not other:
                raise
            reason = str(error)
        else:
            if result.ended != "failed" or not other:
                return result
            reason = result.reason
        self.tell(f"{phase}: the agent with the tier {task.model} failed, so {other} continues. {reason}")
        self.limits.check()
        return await self._started(task.replace(model=other, timeout=self._timeout(task)), role, phase)

    async def _started(self, task: AgentTask, role: str, phase: str) -> AgentResult:
        self.journal.note("agent_start", phase=phase, role=role, model=task.model, ticket=task.ticket)
        result = await self.control.session.agents.run(task)
        self.journal.agent(result, phase=phase, role=role, model=task.model, ticket=task.ticket)
        return result

    def _timeout(self, task: AgentTask) -> float | None:
        """The seconds that an agent may take: no more than the run has left."""
        left, timeouts = self.limits.time_left, self.control.config.timeouts
        if left is None:
            return None
        return min(left, timeouts.agent_research if task.read_only else timeouts.agent_build)

    async def _ticket(self, role: str, phase: str) -> str:
        words = f"{phase}: {_role(role).words}"
        return await self.tickets.child(words, f"{words}.\n\n{MEANINGS.get(phase, '')}".strip())

    async def _end_ticket(self, ticket: str, result: AgentResult) -> None:
        if result.answered:
            await self.tickets.close(ticket)
        else:
            await self.tickets.note(ticket, f"The agent did not finish ({result.ended}): {result.reason}")


def _role(name: str) -> Role:
    if name not in ROLES:
        raise MarvinError(f"Unknown role {name!r}. {did_you_mean(near_names(name, ROLES))}")
    return ROLES[name]
