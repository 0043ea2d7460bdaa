"""How much proposed rules would reduce questions: a dry run of `marvin permissions history` over recorded sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.table import Row
from marvin_core.cli.commands.permission_history import DryRun, past_calls
from marvin_core.config.load import load
from marvin_core.plugins.index import load_index

_SESSIONS = Path(__file__).resolve().parents[1] / "tests" / "support" / "sessions"


def rows() -> Iterator[Row]:
    """The questions of past sessions today, without the proposed rules and with them."""
    calls = list(past_calls(_SESSIONS, 1_000))
    with TemporaryDirectory() as folder:
        tools = [spec for _, spec in load_index(Path(folder)).tools]
    dry = DryRun(load([], {}, with_file=False)[0], tools, calls, holds=False)
    how = f"{len(dry.calls)} calls of {len(list(_SESSIONS.glob('*.jsonl')))} recorded sessions, mode ask, no sandbox"
    yield Row("questions, no rules", len(dry.asked), None, "", how)
    rules = ", ".join(proposal.rule for proposal in dry.proposals)
    yield Row("questions, with the rules that history proposes", dry.left, None, "", f"{len(dry.proposals)}: {rules}")
