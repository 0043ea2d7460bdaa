"""Which agents write at the same time: alone, or beside those that have other files."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from marvin_core.engine.agents.writers import Writers
from tests.support.examples import examples

wanted = st.none() | st.sets(st.sampled_from("abc"), min_size=1).map(sorted)


@given(st.lists(st.tuples(wanted, st.integers(0, 3), st.booleans()), min_size=1, max_size=8))
@examples(60)
def test_two_that_could_write_the_same_file_are_never_at_work_together(
    tasks: list[tuple[list[str] | None, int, bool]],
) -> None:
    """Some are cancelled while they wait or work; all others come to their turn."""

    async def work() -> int:
        writers, at_work, done = Writers(), dict[int, list[str] | None](), set[int]()

        async def one(number: int, files: list[str] | None, steps: int) -> None:
            async with writers.turn(files):
                for other in at_work.values():
                    assert files is not None
                    assert other is not None
                    assert not set(files) & set(other)
                at_work[number] = files
                try:
                    for _ in range(steps):
                        await asyncio.sleep(0)
                finally:
                    del at_work[number]
            done.add(number)

        started = [asyncio.ensure_future(one(number, files, steps)) for number, (files, steps, _) in enumerate(tasks)]
        await asyncio.sleep(0)
        for task, (_, _, is_cancelled) in zip(started, tasks, strict=True):
            if is_cancelled:
                task.cancel()
        async with asyncio.timeout(60):
            ends = await asyncio.gather(*started, return_exceptions=True)
        assert all(end is None or isinstance(end, asyncio.CancelledError) for end in ends)
        return len(done)

    kept = sum(not is_cancelled for _, _, is_cancelled in tasks)
    assert asyncio.run(work()) >= kept


def test_writers_of_different_files_work_side_by_side() -> None:
    async def work() -> int:
        writers, both = Writers(), asyncio.Barrier(2)

        async def one(file: str) -> int:
            async with writers.turn([file]):
                return await both.wait()

        async with asyncio.timeout(60):
            return len(await asyncio.gather(one("spec.md"), one("ux.md")))

    assert asyncio.run(work()) == 2
