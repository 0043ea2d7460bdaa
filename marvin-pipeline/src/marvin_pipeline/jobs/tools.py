"""The tools review_codebase and review_status."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from marvin_core import Field, ToolContext, ToolError, in_thread, near_names, tool

from ..settings import PipelineSettings
from .records import ReviewJobs
from .starting import DOCUMENTS, Starter, Wanted
from .texts import job_text, jobs_text, last_line

_START = 120.0
_NEWS = 4_000


@tool(access=["write", "exec", "net"], group="review", timeout=_START)
async def review_codebase(
    context: ToolContext,
    working_dir: Annotated[str, "A repository inside the working directory"],
    ref_dir: Annotated[str, "Documents that explain intent"] = DOCUMENTS,
    focus: Annotated[str, "all, backend, frontend, tests or a glob"] = "all",
    max_rounds: Annotated[int, Field(ge=1, le=8), "Maximum rounds"] = 4,
) -> str:
    """Review and fix code in rounds, in the background on a separate branch; returns a job id."""
    folder = await in_thread(lambda: _folder(context, working_dir))
    documents = await in_thread(lambda: _documents(context, folder, ref_dir))
    starter = Starter(context.agents, context.processes, _jobs(context), context.settings(PipelineSettings))
    job = await starter.start(Wanted(folder=folder, documents=documents, focus=focus, rounds=max_rounds))
    return f"Started. It continues after this session ends.\n{job_text(job)}"


@tool(access=["read"], group="review")
async def review_status(context: ToolContext, job_id: Annotated[str, "Default: all of this folder"] = "") -> str:
    """How far review jobs are, what they found and cost, and how to take over their branches."""
    jobs, root = _jobs(context), await in_thread(lambda: Path(os.path.realpath(context.paths.root)))
    found = await jobs.of_folder(root)
    if not job_id:
        return jobs_text(found)
    job = next((one for one in found if one.order.id == job_id), None)
    if job is None:
        near = near_names(job_id, [one.order.id for one in found])
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ToolError(f"This folder has no review job {job_id[:80]!r}.{meant}\n{jobs_text(found)}")
    report = jobs.report(job_id)
    is_there = await in_thread(report.is_file)
    return job_text(job, await in_thread(lambda: _news(context, job_id)), str(report) if is_there else "")


def _news(context: ToolContext, job_id: str) -> str:
    """The last line of a job's log; empty without one. Blocks."""
    try:
        return last_line(context.processes.job_output(job_id, _NEWS)[0])
    except ToolError:
        return ""


def _jobs(context: ToolContext) -> ReviewJobs:
    def lives(job_id: str) -> bool:
        if context.session.depth:  # agents cannot see other processes; the record has to do
            return True
        return any(job.id == job_id and job.running for job in context.processes.job_list())

    return ReviewJobs(context.folders.state, lives, context.timeouts)


def _folder(context: ToolContext, name: str) -> Path:
    if context.paths.stat(name or ".").kind != "folder":
        raise ToolError(f"working_dir={name!r} is not a folder. Give a folder that is a git repository.")
    return Path(os.path.realpath(context.paths.root / context.paths.locate(name or ".")))


def _documents(context: ToolContext, folder: Path, name: str) -> Path | None:
    """The folder with documents, if there is one."""
    inside = os.path.relpath(folder / name, context.paths.root)
    if not name or not context.paths.exists(inside):
        if name not in ("", DOCUMENTS):
            raise ToolError(
                f"ref_dir={name!r} does not exist in {folder}. Give a folder of documents, or leave it out."
            )
        return None
    if context.paths.stat(inside).kind != "folder":
        raise ToolError(f"ref_dir={name!r} is not a folder. Give a folder of documents, or leave it out.")
    return Path(os.path.realpath(context.paths.root / context.paths.locate(inside)))
