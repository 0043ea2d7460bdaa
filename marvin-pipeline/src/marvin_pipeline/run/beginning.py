"""The beginning of a run: what was asked for, checked against what the project says, and what phases need."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from marvin_core import ConfigError, MarvinError, RunControl, UsageError, in_thread, own_folder

from ..progress import carried, forget
from ..prompts.loading import Prompts
from ..settings import PipelineSettings
from ..state import PHASES, PipelineState
from .checkpoints import Checkpoints
from .context import Run
from .files import ProjectFiles
from .journal import Journal
from .limits import RunLimits
from .request import PipelineRequest
from .tickets import Tickets
from .upstream import copy_upstream

REQUEST = "request.md"
"""The document below `.marvin` with what was asked for."""
_LOCK = "pipeline.lock"
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Busy(MarvinError):
    """Another run works on the project."""


async def request_of(control: RunControl, settings: PipelineSettings) -> PipelineRequest:
    """What a run is asked for, by its flags and by what the project has recorded.

    Raises:
        UsageError: flags that do not fit each other or the project; the text says which ones do.
        MarvinError: nothing says what to build.
    """
    config = control.config
    files = ProjectFiles(control.session.working_dir)
    if config.in_home or files.root == config.home.resolve():
        raise UsageError("The pipeline does not work in your home folder itself. Name a project with --working-dir.")
    if config.read_only or config.writable_files is not None:
        raise UsageError("An agent that may not write cannot run the pipeline. Run it from a session that may.")
    for flag, phase in (("--from", config.pipeline_from), ("--until", config.pipeline_until)):
        if phase and phase not in PHASES:
            raise UsageError(f"{flag} {phase!r} is no phase. The phases are {', '.join(PHASES)}.")
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
    await in_thread(lambda: _check(request, PipelineState(files.root)))
    return request


async def _prompt(control: RunControl, files: ProjectFiles) -> str:
    """What is to be built: as it was recorded, unless the run begins anew."""
    recorded = files.text(REQUEST).strip()
    config = control.config
    is_given = config.prompt is not None or config.prompt_file is not None
    given = "" if recorded and not is_given else (await control.prompt()).strip()
    if not given and not recorded:
        raise MarvinError("Nothing says what to build. Give it with --prompt TEXT or --prompt-file PATH.")
    if given and recorded and given != recorded and config.pipeline_from != PHASES[0]:
        raise UsageError(
            f"The pipeline of {files.root} was begun with another prompt (.marvin/{REQUEST}). Leave the prompt out to "
            f"go on with that one, or begin anew with --from {PHASES[0]} --yes."
        )
    return given or recorded


def _check(request: PipelineRequest, state: PipelineState) -> None:
    first = request.from_phase or state.next_phase() or ""
    if request.from_phase == PHASES[0] and not request.yes and state.last_finished():
        raise UsageError(
            f"--from {PHASES[0]} begins the pipeline of {request.folder} anew, of which {state.last_finished()} is "
            "finished. No document is removed, but agents write them again. Add --yes if that is wanted."
        )
    if request.until_phase and first and PHASES.index(request.until_phase) < PHASES.index(first):
        raise UsageError(
            f"--until {request.until_phase} comes before {first}, with which this run begins. Name a later phase, or "
            f"go back with --from {request.until_phase}."
        )


async def begin(control: RunControl, request: PipelineRequest, settings: PipelineSettings) -> Run:
    """Have everything ready for the first phase.

    Raises:
        MarvinError: git, the tickets or the pipeline's own files cannot be used.
    """
    files, state = ProjectFiles(request.folder), PipelineState(request.folder)
    config, journal = control.config, Journal(files)
    tickets = Tickets(files, config.timeouts, settings.tickets_dir, config.ticket)
    git = Checkpoints(request.folder, control.session.processes, settings.git_timeout)
    trusted = (await in_thread(control.session.permissions.project)).trusted
    prompts = await in_thread(lambda: Prompts(files if trusted else None))
    upstream = await in_thread(lambda: copy_upstream(files, request.upstream, config.home))
    made = await git.prepare()
    if request.from_phase:
        await in_thread(lambda: state.restart_from(request.from_phase))
        forget(files, PHASES[PHASES.index(request.from_phase) :])
    if files.text(REQUEST) != f"{request.prompt}\n":
        files.write(REQUEST, f"{request.prompt}\n".encode())
    epic = await tickets.open_epic(request.prompt)
    journal.note("begin", prompt=request.prompt, phase=state.next_phase() or "", epic=epic, repository_made=made)
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
    await git.checkpoint("The pipeline begins")
    return run


@contextmanager
def alone_in(files: ProjectFiles) -> Iterator[None]:
    """Keep other runs off the project; the system lets go of it when this process ends, however that happens.

    Raises:
        Busy: another run works on it.
        ConfigError: the project's folder cannot be written.
    """
    try:
        with own_folder(files.root, files.root / ".marvin" / "logs") as folder:
            descriptor = os.open(_LOCK, _OPEN, 0o600, dir_fd=folder)
    except OSError as error:
        why = error.strerror or "there is a link in the way"
        raise ConfigError(
            f"{files.root}/.marvin/logs cannot be written: {why}. Make that a folder of yours."
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Busy(f"Another run of the pipeline works on {files.root}. Wait for its end, or stop it.") from error
        yield
    finally:
        os.close(descriptor)
