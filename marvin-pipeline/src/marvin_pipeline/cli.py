"""`marvin pipeline`: runs the pipeline of a project, shows its state, and resets it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from marvin_core import CliContext, UsageError

from .state import MEANINGS, PHASES, PipelineState

pipeline = typer.Typer(no_args_is_help=True, help="The design-first pipeline of a project.")


_FLAGS = {"allow_extra_args": True, "ignore_unknown_options": True}
_Folder = Annotated[Path, typer.Option(exists=True, file_okay=False, help="The project's folder.")]


@pipeline.command(context_settings=_FLAGS)
def run(context: typer.Context) -> None:
    """Build what --prompt TEXT or --prompt-file PATH describes in --working-dir PATH, or continue where the last run
    ended.

    The flags are those of `marvin --non-interactive --design-first`, which is the same: --from PHASE, --until PHASE,
    --upstream DIR, --max-cost USD, --max-time TIME, --model TIER=MODEL, --ntfy TOPIC, --yes, and all others.
    """
    obj: CliContext = context.obj
    if not obj.config.design_first:
        is_rooted = obj.config.rooted or any(word.partition("=")[0] == "--working-dir" for word in context.args)
        given = [] if is_rooted else ["--working-dir=."]
        raise typer.Exit(obj.marvin(["--non-interactive", "--design-first", *given, *context.args]))
    from .run.runner import run_pipeline
    from .settings import PipelineSettings

    settings = obj.settings(PipelineSettings)
    raise typer.Exit(obj.lead(lambda control: run_pipeline(control, settings)))


@pipeline.command()
def status(
    working_dir: _Folder = Path("."),
) -> None:
    """Show which phases are finished, and which one is next."""
    state = PipelineState(working_dir)
    last, following = state.last_finished(), state.next_phase()
    finished = PHASES[: PHASES.index(last) + 1] if last else ()
    for phase in PHASES:
        mark = "done" if phase in finished else "next" if phase == following else ""
        typer.echo(f"{phase:10} {mark:5} {MEANINGS[phase]}".rstrip())


@pipeline.command()
def reset(
    working_dir: _Folder = Path("."),
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Make the next run start with the first phase again. No document is removed."""
    from .run.beginning import alone_in
    from .run.files import ProjectFiles

    folder = working_dir.resolve()
    if not yes:
        if sys.stdin is None or not sys.stdin.isatty():
            raise UsageError("Nobody can confirm this in a non-interactive run. Add --yes to restart the pipeline.")
        if not typer.confirm(f"Restart the pipeline of {folder} from the beginning? Its documents are kept."):
            raise typer.Exit(1)
    with alone_in(ProjectFiles(folder)):
        PipelineState(folder).restart_from(PHASES[0])
    typer.echo(f"The next run starts with {PHASES[0]}. The documents in {folder / '.marvin'} were kept.")


@pipeline.command()
def review(
    context: typer.Context,
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="The git repository to review.")] = None,
    focus: Annotated[str, typer.Option(help="all, backend, frontend, tests, or a glob.")] = "all",
    ref_dir: Annotated[
        str, typer.Option(help="Folder in DIR with documents that explain the purpose of the code.")
    ] = ".ref",
    rounds: Annotated[int, typer.Option(min=1, max=8, help="The maximum number of rounds.")] = 4,
    background: Annotated[bool, typer.Option("--background", help="Start it without waiting for its end.")] = False,
    stop: Annotated[str, typer.Option(metavar="ID", help="Stop a running review.")] = "",
    resume: Annotated[str, typer.Option(metavar="ID", help="Continue a review that ended early.")] = "",
    job: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Review and fix the code of DIR in rounds, on a separate branch.

    Without DIR it lists the reviews of this folder. The exit code is 0 if no findings above the threshold are left, 4
    if some are, and 5 if tests fail that passed before.
    """
    from .jobs.command import ReviewCommand, Typed

    typed = Typed(
        folder=folder,
        focus=focus,
        ref_dir=ref_dir,
        rounds=rounds,
        background=background,
        stop=stop,
        resume=resume,
        job=job,
    )
    raise typer.Exit(ReviewCommand(context.obj).run(typed))


@pipeline.command(context_settings=_FLAGS)
def batch(
    context: typer.Context,
    tasks: Annotated[Path, typer.Argument(metavar="TASKS", help="A file with one line of JSON for each task.")],
    workers: Annotated[int, typer.Option(min=1, max=1_000, help="How many tasks run at the same time.")] = 2,
    results: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder for the results; default: beside TASKS.")
    ] = None,
    engine: Annotated[str, typer.Option(help="local: processes on this machine. dask: workers of dask.")] = "local",
    scheduler: Annotated[str, typer.Option(metavar="ADDRESS", help="The address of a running dask scheduler.")] = "",
    retry: Annotated[bool, typer.Option("--retry", help="Also continue tasks that failed.")] = False,
    push: Annotated[bool, typer.Option("--push", help="Push each branch to its repository.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail a task if its evidence is weak.")] = False,
    until: Annotated[str, typer.Option(help="The last phase for tasks that do not set one.")] = "",
    task_cost: Annotated[
        float | None, typer.Option(metavar="USD", help="The cost ceiling for tasks that do not set one.")
    ] = None,
    task_time: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="The time limit for tasks that do not set one.")
    ] = None,
) -> None:
    """Run the pipeline for many tasks, each in a separate clone and on a separate branch.

    The same command continues a batch that ended early or was killed. Other flags are those of Marvin: --max-cost USD
    is the ceiling of all tasks together. The exit code is that of the worst task.
    """
    from .batch.batch import BatchOptions
    from .batch.command import start

    obj: CliContext = context.obj
    folder = obj.config.working_dir
    options = BatchOptions(
        results=(folder / (results or f"{tasks.with_suffix('')}-results")).resolve(),
        workers=workers,
        engine=engine,
        scheduler=scheduler,
        retry=retry,
        push=push,
        strict=strict,
        until=until,
        task_cost=task_cost,
        task_time=task_time,
    )
    if not context.args:
        raise typer.Exit(start(obj, options, folder / tasks))
    if not context.args[0].startswith("-"):
        raise UsageError(f"{context.args[0]!r} is an extra argument. A batch has one file of tasks.")
    raise typer.Exit(obj.marvin([*context.args, "pipeline", "batch", str(folder / tasks), *options.words]))
