"""Draws a sample of Cosmic Ray's mutations. It is run by its path, in the sandbox.

Arguments: the session with all mutations, the session to create, a file with the new lines by file, the size of the
sample, and a seed."""

import json
import random
import sys
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db  # type: ignore[import-not-found,import-untyped,unused-ignore]


def main(whole: str, made: str, lines: str, count: str, seed: str) -> None:
    """Write a session with a random sample of the mutations in new lines."""
    new = {file: set(numbers) for file, numbers in json.loads(Path(lines).read_text(encoding="utf-8")).items()}
    with use_db(whole, WorkDB.Mode.open) as database:
        found = [item for item in database.work_items if is_new(item, new)]
    # Job names are random, so the jobs are sorted by location, to get the same order in each run.
    found.sort(key=lambda item: [(str(one.module_path), *one.start_pos, one.operator_name, one.occurrence)
                                 for one in item.mutations])  # fmt: skip
    drawn = random.Random(seed).sample(found, min(int(count), len(found)))
    with use_db(made, WorkDB.Mode.create) as database:
        database.add_work_items(drawn)
    print(json.dumps({"found": len(found), "drawn": len(drawn)}))  # noqa: T201


def is_new(item: object, new: dict[str, set[int]]) -> bool:
    """Whether a mutation is in a new line."""
    return all(
        new.get(str(one.module_path), set()) & set(range(one.start_pos[0], one.end_pos[0] + 1))
        for one in item.mutations  # type: ignore[attr-defined]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
