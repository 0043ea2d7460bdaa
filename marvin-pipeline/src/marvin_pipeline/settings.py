"""What the pipeline is configured with."""

from __future__ import annotations

from typing import Literal

from marvin_core import Field, Settings


class PipelineSettings(Settings):
    """The section `packs.pipeline:` of config.yaml."""

    debug_rounds: int = Field(default=50, ge=0, le=1_000)
    """How often the tests are run and mended before phase 4a gives up."""
    e2e_rounds: int = Field(default=10, ge=0, le=1_000)
    """How often the program is tried and mended in phase 4b."""
    fe_rounds: int = Field(default=10, ge=0, le=1_000)
    """How often the frontend is checked and mended in phase 4c."""
    qa_rounds: int = Field(default=3, ge=0, le=1_000)
    """How often the program is attacked and mended in phase 5."""
    test_command: str = ""
    """The command that runs the project's tests, where the one that is found is not it. It is run without a shell."""
    proof_rounds: int = Field(default=3, ge=0, le=20)
    """How often tests that do not prove what they should go back to an agent before the run stops."""
    command_timeout: float = Field(default=900.0, gt=0)
    """Seconds for one run of the project's tests, and of each other command of it."""
    serve_timeout: float = Field(default=60.0, gt=0)
    """Seconds for what serves the project's frontend to answer."""
    review_cost: float = Field(default=10.0, gt=0)
    """The USD that a review job may use, where it is not started with a --max-cost."""
    review_time: float = Field(default=7_200.0, gt=0)
    """The seconds that a review job may take."""
    review_rounds: int = Field(default=4, ge=1, le=20)
    """How many rounds a review has at most."""
    review_floor: Literal["critical", "high", "medium", "low"] = "high"
    """Findings of at least this severity are mended before a run goes on, and stop it where that does not succeed."""
    reserve: float = Field(default=0.05, ge=0.0, le=0.9)
    """The part of --max-cost that no new agent is started with, so that what runs can come to its end."""
    max_time: float | None = Field(default=None, gt=0)
    """The seconds that a run may take, where no --max-time is given."""
    fallback: dict[str, str] = Field(default={})
    """By tier, the model that goes on where an agent with the tier's own fails."""
    tickets_dir: str = ""
    """The folder of the tickets; without it the nearest `.tickets` from the project upwards."""
    step_summary: str = ""
    """The file that `--github` adds the job summary to."""
    mutations: int = Field(default=20, ge=0, le=1_000)
    """How many small changes of the new code are tried, to see whether the tests catch them; 0 for none."""
    mutation_time: float = Field(default=600.0, gt=0)
    """Seconds that this may take."""
    unmeasured: list[Literal["red", "green", "unweakened", "no_mocks", "mutations"]] = Field(default=[])
    """The gates that `--strict` lets pass where nothing can measure them, as `red` where `make test` runs the tests."""
    git_timeout: float = Field(default=120.0, gt=0)
    """Seconds for a step of git."""
    batch_tries: int = Field(default=3, ge=1, le=100)
    """How many workers may die of a task of a batch, in one run of it, before the task counts as lost."""
    clone_timeout: float = Field(default=900.0, gt=0)
    """Seconds for git to clone the repository of a task of a batch, and to push its branch."""
