"""Compare this checkout's Marvin with another's: `.venv/bin/python benchmarks/compare.py OLD_CHECKOUT`."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """Find the package that this file lies in, also under `python -P`, and run the comparison."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.comparison import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
