"""Texts about review jobs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from marvin_core import counted, one_line, output_text

from ..run.limits import words_of
from .records import ReviewJob

_LISTED, _NEWS = 30, 300


def job_line(job: ReviewJob) -> str:
    """A job on one line."""
    found = f"{counted(len(job.blocking), 'finding')} above the floor, {len(job.carried)} below"
    cost = "cost unknown" if job.cost is None else f"{job.cost:.4f} USD"
    facts = [f"round {job.round} of {job.order.rounds}", cost, words_of(job.seconds)]
    return f"{job.order.id}  {job.state}  {job.order.branch}  ({'; '.join([*facts, found])})"


def job_text(job: ReviewJob, news: str = "", report: str = "") -> str:
    """A job in full.

    Args:
        news: the last output line of a running one.
        report: the path of its report; empty for none.
    """
    order = job.order
    parts = [job_line(job), f"It reviews {order.folder} ({order.focus}), starting at the commit {order.base[:12]}."]
    if order.left_out:
        parts.append(f"Not in it: {counted(order.left_out, 'file')} whose changes were not committed when it began.")
    parts += [job.reason] if job.reason else []
    parts += [f"Last: {news}"] if news and job.state == "running" else []
    parts += _listed("Open findings above the threshold", job.blocking) + _listed(
        "Open findings below the threshold", job.carried
    )
    if job.state == "running":
        parts.append(f"review_status shows its progress; /jobs stop {order.id} stops it.")
    else:
        parts += _kept(job)
        if job.commits:
            branch = shlex.quote(order.branch)
            parts.append(
                f"Its {job.commits} commits are on {branch}: `git diff {order.base[:12]}...{branch}` shows them, "
                f"`git merge {branch}` merges them."
            )
        parts += [f"Report: {report}"] if report else []
    return "\n".join(parts)


def _kept(job: ReviewJob) -> list[str]:
    """Where the work of a job that ended early is, and how to use it."""
    if not job.can_go_on:
        return []
    tree, branch = shlex.quote(job.order.tree), shlex.quote(job.order.branch)
    return [
        f"Its work so far is in {job.order.tree}, on its branch.",
        (
            f"`marvin pipeline review --resume {job.order.id}` continues it; `git worktree remove --force {tree} && "
            f"git branch -D {branch}` discards it."
        ),
    ]


def jobs_text(jobs: Sequence[ReviewJob], start: str = "review_codebase") -> str:
    """All jobs of a folder, the newest first.

    Args:
        start: how to start one, shown if there is none.
    """
    lines = [job_line(job) for job in reversed(jobs)]
    more = [f"[{len(lines) - _LISTED} older ones were left out.]"] if len(lines) > _LISTED else []
    return "\n".join([*lines[:_LISTED], *more]) or f"There are no review jobs in this folder. Start one: {start}"


def last_line(output: bytes) -> str:
    """The last line of a job's output; empty without output."""
    lines = output_text(output).strip().splitlines()
    return one_line(lines[-1].removeprefix("marvin: "), _NEWS) if lines else ""


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    more = [f"- and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
    return [f"{title}:", *(f"- {line}" for line in lines[:_LISTED]), *more]
