"""What the tests of money share: counts of services, and the ledgers that a run left."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def usage(fed: Any, out: Any, **more: Any) -> dict[str, Any]:
    """What a service says that a request used, in tokens."""
    return {"prompt_tokens": fed, "completion_tokens": out, **more}


def ledgers(home: Path) -> list[Path]:
    """The ledgers of cost ceilings below a home."""
    return list((home / ".local" / "share" / "marvin" / "ledgers").glob("*"))
