"""The configuration of the pipeline."""

from __future__ import annotations

from typing import Literal

from marvin_core import Field, Settings


class PipelineSettings(Settings):
    """The section `packs.pipeline:` of config.yaml."""

    debug_rounds: int = Field(default=50, ge=0, le=1_000)
    """How often the tests are run and the code is fixed before phase 4a gives up."""
    e2e_rounds: int = Field(default=10, ge=0, le=1_000)
    """How often the program is tested and fixed in phase 4b."""
    fe_rounds: int = Field(default=10, ge=0, le=1_000)
    """How often the frontend is checked and fixed in phase 4c."""
    qa_rounds: int = Field(default=3, ge=0, le=1_000)
    """How often the program is attacked and fixed in phase 5."""
    test_command: str = ""
    """The command that runs the project's tests. Default: the command that is found. It is run without a shell."""
    proof_rounds: int = Field(default=3, ge=0, le=20)
    """How often tests with insufficient evidence are returned to an agent before the run stops."""
    command_timeout: float = Field(default=900.0, gt=0)
    """Seconds for one run of the project's tests, and of each other command of it."""
    serve_timeout: float = Field(default=60.0, gt=0)
    """Seconds for the server of the project's frontend to answer."""
    review_cost: float = Field(default=10.0, gt=0)
    """The cost ceiling of a review job in USD, if it is started without --max-cost."""
    review_time: float = Field(default=7_200.0, gt=0)
    """The seconds that a review job may take."""
    review_rounds: int = Field(default=4, ge=1, le=20)
    """The maximum number of rounds of a review."""
    review_floor: Literal["critical", "high", "medium", "low"] = "high"
    """Findings of at least this severity must be fixed before a run continues; otherwise it stops."""
    reserve: float = Field(default=0.05, ge=0.0, le=0.9)
    """The part of --max-cost that is reserved so that running agents can finish; no new agent is started with it."""
    max_time: float | None = Field(default=None, gt=0)
    """The seconds that a run may take, if --max-time is not given."""
    fallback: dict[str, str] = Field(default={})
    """For each tier, the model that continues if an agent with the tier's own model fails."""
    tickets_dir: str = ""
    """The folder of the tickets; default: the nearest `.tickets` from the project upwards."""
    step_summary: str = ""
    """The file that `--github` adds the job summary to."""
    mutations: int = Field(default=20, ge=0, le=1_000)
    """How many mutations of the new code are tested, to see whether the tests catch them; 0 for none."""
    mutation_time: float = Field(default=600.0, gt=0)
    """Seconds that this may take."""
    unmeasured: list[Literal["red", "green", "unweakened", "no_mocks", "mutations"]] = Field(default=[])
    """The gates that may stay unmeasured with `--strict`, such as `red` if the tests run with `make test`."""
    git_timeout: float = Field(default=120.0, gt=0)
    """Seconds for a step of git."""
    batch_tries: int = Field(default=3, ge=1, le=100)
    """How many workers may die on a task of a batch, in one run of the batch, before the task counts as lost."""
    clone_timeout: float = Field(default=900.0, gt=0)
    """Seconds for git to clone the repository of a task of a batch, and to push its branch."""
