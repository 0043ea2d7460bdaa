"""Tiers: names for kinds of work, so that the model of each kind is set in one place."""

from __future__ import annotations

from collections.abc import Mapping

from ..api.errors import UsageError
from ..api.record import Record


class Tier(Record):
    """A kind of work: the variable that sets its model, and the default model."""

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
"""Alternative names of tiers. They are also valid in place of a model's name."""


def tier_models(named: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """The model of each tier: from flags and config.yaml, else from its variable, else its default.

    Raises:
        UsageError: a tier does not exist.
    """
    chosen = {}
    for name, model in named.items():
        tier = ALIASES.get(name, name)
        if tier not in TIERS:
            raise UsageError(f"Unknown tier {name!r} for {model}. Known: {', '.join([*TIERS, *ALIASES])}.")
        chosen[tier] = model
    models = {name: chosen.get(name) or env.get(tier.variable) or tier.model for name, tier in TIERS.items()}
    # The tier plan uses the model of the tier opus if only that one is set.
    high = TIERS["opus"]
    if not chosen.get("plan") and not env.get(TIERS["plan"].variable) and (env.get(high.variable) or "opus" in chosen):
        models["plan"] = models["opus"]
    return models
