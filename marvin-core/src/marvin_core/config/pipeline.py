"""The flags for the pipeline, and the topic of the notices of a run."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from ..api.errors import UsageError
from ..util.patterns.topics import is_topic, refused_topic

_FLAGS = {
    "from_": ("--from", "sets the first phase of the pipeline"),
    "until": ("--until", "sets the last phase of the pipeline"),
    "upstream": ("--upstream", "is for the agents of the pipeline"),
    "max_time": ("--max-time", "is a limit of the pipeline"),
    "yes": ("--yes", "answers a question of the pipeline"),
    "strict": ("--strict", "sets how strictly the pipeline judges its evidence"),
    "github": ("--github", "is for the reports of the pipeline"),
}
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = 10.0 * 365 * 24 * 3600


def pipeline_fields(flags: Namespace, cwd: Path) -> dict[str, Any]:
    """The fields of the configuration that these flags set.

    Raises:
        UsageError: a value is invalid, or a flag needs --design-first, which is missing.
    """
    for name, (flag, what) in _FLAGS.items():
        if getattr(flags, name) not in (None, False) and not flags.design_first:
            raise UsageError(f"{flag} {what}. Add --design-first, or leave it out.")
    if flags.ntfy is not None and not is_topic(flags.ntfy):
        raise UsageError(f"--ntfy {refused_topic(flags.ntfy)}")
    return {
        "design_first": flags.design_first,
        "pipeline_from": flags.from_ or "",
        "pipeline_until": flags.until or "",
        "upstream": None if flags.upstream is None else cwd / flags.upstream,
        "max_time": None if flags.max_time is None else _seconds(flags.max_time),
        "yes": flags.yes,
        "strict": flags.strict,
        "github": flags.github,
        "ntfy": flags.ntfy or "",
    }


def _seconds(given: str) -> float:
    """Parse a value of `--max-time`; in seconds."""
    number, factor = (given[:-1], _UNITS[given[-1]]) if given[-1:] in _UNITS else (given, 1.0)
    try:
        seconds = float(number) * factor
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _LONGEST:
        raise UsageError(
            f"--max-time {given[:80]!r} is not a duration. Give seconds, or a number with s, m or h, as in 90m."
        )
    return seconds
