"""The start of a run: the request, checked against the project's state, and what phases need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256

from marvin_core import ConfigError, MarvinError, RunControl, Timeouts, UsageError, in_thread

from ..checks.commands import configured_test
from ..progress import carried, forget
from ..prompts.loading import Prompts
from ..settings import PipelineSettings
from ..state import PHASES, PipelineState, StateError
from .checkpoints import Checkpoints
from .context import Run
from .files import FileFault, Held, ProjectFiles
from .journal import Journal
from .limits import RunLimits
from .request import PipelineRequest
from .summary import NAME as REPORT
from .tickets import Tickets
from .upstream import copy_upstream

REQUEST = "request.md"
"""The document below `.marvin` with the request."""
_LOCK = "logs/pipeline.lock"
_AT_ONCE = Timeouts(lock=0.0)
_LONGEST = 1_000_000
"""Bytes of a request at most."""


class Busy(MarvinError):
    """Another run works on the project."""


async def request_of(control: RunControl, settings: PipelineSettings) -> PipelineRequest:
    """The request of a run, from its flags and the project's recorded state.

    Raises:
        UsageError: flags that do not fit each other or the project; the text says which ones do.
        MarvinError: nothing says what to build.
    """
    config = control.config
    files = ProjectFiles(control.session.working_dir)
    if config.in_home or files.root == config.home.resolve():
        raise UsageError("The pipeline does not run in your home folder. Give a project with --working-dir.")
    if config.read_only or config.writable_files is not None:
        raise UsageError("A read-only agent cannot run the pipeline. Run it from a session that may write.")
    if settings.test_command:
        configured_test(settings.test_command)
    for flag, phase in (("--from", config.pipeline_from), ("--until", config.pipeline_until)):
        if phase and phase not in PHASES:
            raise UsageError(f"{flag} {phase!r} is not a phase. Use one of {', '.join(PHASES)}.")
    if config.github and config.output_format != "text":
        raise UsageError("--github prints annotations together with the text of the run. Leave --output-format out.")
    prompt = await _prompt(control, files)
    request = PipelineRequest(
        prompt=prompt,
        folder=files.root,
        from_phase=config.pipeline_from,
        until_phase=config.pipeline_until,
        upstream=config.upstream,
        max_time=config.max_time or settings.max_time,
        yes=config.yes,
    )
    await in_thread(lambda: _check(request, files))
    return request


async def _prompt(control: RunControl, files: ProjectFiles) -> str:
    """What to build: the recorded prompt, unless the run starts again from the first phase."""
    recorded = await in_thread(lambda: _recorded(files))
    config = control.config
    # Bytes of the command line that are not text are escaped, always in the same way.
    given = (await control.prompt(required=not recorded)).strip().encode("utf-8", "backslashreplace").decode()
    if len((given or recorded).encode()) > _LONGEST:
        raise UsageError(
            f"The prompt has more than {_LONGEST:,} bytes, and each agent gets the whole prompt. Put the details "
            "into documents, and pass their folder with --upstream."
        )
    if not given and not recorded:
        raise MarvinError(
            "There is no description of what to build. Give one with --prompt TEXT or --prompt-file PATH."
        )
    if given and recorded and given != recorded and config.pipeline_from != PHASES[0]:
        raise UsageError(
            f"The pipeline of {files.root} was started with another prompt (.marvin/{REQUEST}). Leave the prompt out "
            f"to continue with that one, or restart with --from {PHASES[0]} --yes."
        )
    return given or recorded


def _recorded(files: ProjectFiles) -> str:
    return files.text(REQUEST, 2 * _LONGEST).strip()


def _check(request: PipelineRequest, files: ProjectFiles) -> None:
    state = PipelineState(files.root)
    first = request.from_phase
    if request.from_phase == PHASES[0] and not request.yes and (last := _finished(state)):
        raise UsageError(
            f"--from {PHASES[0]} restarts the pipeline of {request.folder}, which has finished {last}. No document "
            "is removed, but agents write them again. Add --yes to confirm."
        )
    if not first and not _recorded(files) and (finished := state.last_finished()):
        raise UsageError(
            f"{state.path} says that {finished} is finished, but .marvin/{REQUEST} is missing, so the task is not "
            f"known. Choose where to start: --from {state.next_phase() or PHASES[-1]} continues, --from {PHASES[0]} "
            "--yes restarts."
        )
    if request.until_phase and first and PHASES.index(request.until_phase) < PHASES.index(first):
        raise UsageError(
            f"--until {request.until_phase} comes before --from {first}, with which this run starts. Give a later "
            f"phase, or go back with --from {request.until_phase}."
        )


def _finished(state: PipelineState) -> str:
    """The last finished phase as text; empty without one."""
    try:
        return state.last_finished() or ""
    except StateError:  # it is damaged, and restarting repairs it
        return "an unknown phase"


async def begin(control: RunControl, request: PipelineRequest, settings: PipelineSettings) -> Run:
    """Prepare the first phase.

    Raises:
        MarvinError: git, the tickets or the pipeline's own files cannot be used.
    """
    files, state = ProjectFiles(request.folder), PipelineState(request.folder, control.config.timeouts)
    config, journal = control.config, Journal(files)
    tickets = Tickets(files, config.timeouts, settings.tickets_dir, config.ticket)
    git = Checkpoints(request.folder, control.session.processes, settings.git_timeout, config.timeouts)
    trusted = (await in_thread(control.session.permissions.project)).trusted
    await in_thread(lambda: _tidy(files))
    prompts = await in_thread(lambda: Prompts(files if trusted else None))
    made = await git.prepare()
    upstream = await in_thread(lambda: copy_upstream(files, request.upstream, config.home))
    is_new = await in_thread(lambda: _recorded(files) != request.prompt)
    await in_thread(lambda: _record(request, files, state, is_new=is_new))
    epic = await tickets.open_epic(request.prompt, is_new=is_new)
    journal.note(
        "begin",
        prompt=request.prompt,
        request=sha256(request.prompt.encode()).hexdigest(),
        phase=state.next_phase() or "",
        epic=epic,
        repository_made=made,
    )
    run = Run(
        control=control,
        request=request,
        settings=settings,
        files=files,
        state=state,
        prompts=prompts,
        git=git,
        tickets=tickets,
        journal=journal,
        limits=RunLimits(
            control.clock, lambda: journal.known_cost, config.max_cost, settings.reserve, request.max_time
        ),
        carried=await in_thread(lambda: carried(files, filter(state.is_done, PHASES))),
        upstream=upstream,
    )
    journal.note("base", commit=await git.checkpoint("The pipeline starts"))
    run.tell_of_checkpoints()
    if not await git.branch():
        run.tell(
            "HEAD is detached: the commits of this run are not on a branch. Create one with `git switch -c NAME` "
            "before you switch to another commit."
        )
    return run


def _tidy(files: ProjectFiles) -> None:
    """Remove what a killed run left, and the last report, which is not about this run."""
    from ..checks.e2e import remove_empty_folders
    from ..evidence.mutations.copying import remove_copies
    from ..evidence.reports.running import remove_reports

    files.sweep()
    remove_copies(files.root)
    remove_empty_folders(files.root)
    remove_reports(files.root)
    files.remove(REPORT)


def _record(request: PipelineRequest, files: ProjectFiles, state: PipelineState, *, is_new: bool) -> None:
    """Go back if requested, and record the prompt. Progress on another prompt is removed."""
    if request.from_phase:
        state.restart_from(request.from_phase)
    elif is_new:
        forget(files, PHASES)
    if is_new:
        files.write(REQUEST, f"{request.prompt}\n".encode())


@contextmanager
def alone_in(files: ProjectFiles) -> Iterator[None]:
    """Lock the project against other runs; the system releases the lock when this process exits.

    Raises:
        Busy: another run works on it.
        ConfigError: the project's folder cannot be written.
    """
    with ExitStack() as held:
        try:
            held.enter_context(files.locked(_LOCK, _AT_ONCE))
        except FileFault as error:
            raise ConfigError(f"{files.root} cannot be used. {error}") from error
        except Held as error:
            raise Busy(
                f"Another run of the pipeline is working on {files.root}. Wait until it ends, or stop it."
            ) from error
        yield
