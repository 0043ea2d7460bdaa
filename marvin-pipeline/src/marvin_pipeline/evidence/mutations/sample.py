"""Takes a sample of the mutations that Cosmic Ray found. It is run by its path, in the sandbox.

Arguments: the session with all of them, the session to make, a file with the new lines by file, how many, and a seed.
"""

import json
import random
import sys
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db  # type: ignore[import-not-found,import-untyped,unused-ignore]


def main(whole: str, made: str, lines: str, count: str, seed: str) -> None:
    """Write the session to make: of the mutations in new lines, so many that were drawn by the seed."""
    new = {file: set(numbers) for file, numbers in json.loads(Path(lines).read_text(encoding="utf-8")).items()}
    with use_db(whole, WorkDB.Mode.open) as database:
        found = [item for item in database.work_items if is_new(item, new)]
    # Names of jobs are made by chance, so the order is that of the places, and the same in each run.
    found.sort(key=lambda item: [(str(one.module_path), *one.start_pos, one.operator_name, one.occurrence)
                                 for one in item.mutations])  # fmt: skip
    drawn = random.Random(seed).sample(found, min(int(count), len(found)))
    with use_db(made, WorkDB.Mode.create) as database:
        database.add_work_items(drawn)
    print(json.dumps({"found": len(found), "drawn": len(drawn)}))  # noqa: T201


def is_new(item: object, new: dict[str, set[int]]) -> bool:
    """Whether a mutation is in a line that is new."""
    return all(
        new.get(str(one.module_path), set()) & set(range(one.start_pos[0], one.end_pos[0] + 1))
        for one in item.mutations  # type: ignore[attr-defined]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
