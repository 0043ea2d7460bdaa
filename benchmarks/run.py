"""Run the benchmarks: `make bench`, or `.venv/bin/python benchmarks/run.py --quick`."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """Find the package that this file lies in, also under `python -P`, and run it."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.suite import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
