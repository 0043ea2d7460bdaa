"""The ceiling table of the benchmarks: whatever a service does, its bill stays within the ceiling."""

from __future__ import annotations

import pytest

from benchmarks.ceiling import CASES, GOAL, Case, measured

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.agents}: {case.what}")
def test_a_service_bills_no_more_than_the_ceiling(case: Case) -> None:
    """I11: by the bill of the service, not by what Marvin says of it."""
    spent, _ = measured(case)
    assert spent / case.ceiling <= GOAL
