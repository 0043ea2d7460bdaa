"""The clones and runs of a batch with child processes only: the baseline for `marvin pipeline batch`."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def main(python: str, source: str, place: str, tasks: int, workers: int, prompt: str) -> None:
    """Clone the repository for each task and run the pipeline in it, with a limited number at a time."""
    Path(place).mkdir()

    def work(number: int) -> None:
        clone = f"{place}/{number}"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", source, clone], check=True)
        flags = ["--non-interactive", "--design-first", f"--working-dir={clone}", f"--prompt={prompt}"]
        command = [python, "-P", "-m", "marvin_core", *flags]
        subprocess.run(command, cwd=clone, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(tasks)))


if __name__ == "__main__":
    python, source, place, tasks, workers, prompt = sys.argv[1:]
    main(python, source, place, int(tasks), int(workers), prompt)
