"""Tiers: names for what a model is wanted for, so that the model itself can be set in one place."""

from __future__ import annotations

from collections.abc import Mapping

from ..api.errors import UsageError
from ..api.record import Record


class Tier(Record):
    """A kind of work: the variable that names its model, and the model without one."""

    variable: str
    model: str


TIERS: Mapping[str, Tier] = {
    "opus": Tier(variable="MARVIN_CODE_MODEL_HIGH", model="claude-opus-4.6"),
    "codex": Tier(variable="MARVIN_CODE_MODEL_LOW", model="gpt-5.3-codex"),
    "plan": Tier(variable="MARVIN_CODE_MODEL_PLAN", model="gpt-5.2"),
    "plan_gen": Tier(variable="MARVIN_CODE_MODEL_PLAN_GEN", model="gemini-3.8-flash"),
    "test_writer": Tier(variable="MARVIN_CODE_MODEL_TEST_WRITER", model="gemini-3.8-flash"),
    "aux_reviewer": Tier(variable="MARVIN_CODE_MODEL_AUX_REVIEWER", model="gpt-5.2"),
}
"""The tiers by name."""

ALIASES: Mapping[str, str] = {"high": "opus", "low": "codex"}
"""Names of tiers that may stand wherever a model is named."""


def tier_models(named: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """The model of each tier: as named by flags and config.yaml, by its variable, else its default.

    Raises:
        UsageError: for a tier that does not exist.
    """
    chosen = {}
    for name, model in named.items():
        tier = ALIASES.get(name, name)
        if tier not in TIERS:
            raise UsageError(f"Unknown tier {name!r} for {model}. Known: {', '.join([*TIERS, *ALIASES])}.")
        chosen[tier] = model
    models = {name: chosen.get(name) or env.get(tier.variable) or tier.model for name, tier in TIERS.items()}
    # Planning goes where the best reviews go, if only that was set.
    high = TIERS["opus"]
    if not chosen.get("plan") and not env.get(TIERS["plan"].variable) and (env.get(high.variable) or "opus" in chosen):
        models["plan"] = models["opus"]
    return models
