"""The entry point that Marvin loads. Subcommands import what they need when they are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marvin_core import PackSettings, ToolGroup, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    import typer

_REVIEW = (
    "A review with review_codebase runs in the background: start it, continue with your work, and check it later with "
    "review_status."
)


@hookimpl
def marvin_register_settings() -> PackSettings:
    """The section `pipeline` of the configuration: rounds and limits."""
    variables = {
        "debug_rounds": "MARVIN_DEBUG_ROUNDS",
        "e2e_rounds": "MARVIN_E2E_ROUNDS",
        "fe_rounds": "MARVIN_FE_ROUNDS",
        "qa_rounds": "MARVIN_QA_ROUNDS",
        "mutations": "MARVIN_MUTATIONS",
        "tickets_dir": "TICKETS_DIR",
        "step_summary": "GITHUB_STEP_SUMMARY",
    }
    return PackSettings(model=".settings:PipelineSettings", variables=variables)


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """The group review. Its guidance is for agents that may start one."""
    return (
        ToolGroup(name="review", module=".jobs.tools", tools=("review_codebase",), sets=("surf",), guidance=_REVIEW),
        ToolGroup(name="review", module=".jobs.tools", tools=("review_status",), sets=("surf",)),
    )


@hookimpl
def marvin_extend_cli(app: typer.Typer) -> None:
    """Add `marvin pipeline`."""
    from .cli import pipeline

    app.add_typer(pipeline, name="pipeline")
