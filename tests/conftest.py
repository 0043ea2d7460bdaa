"""What holds for every test: under the switch that CI sets, a skip is a failure; no example has to be fast."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# By themselves both look at the clock: an example may take 0.2 s, and making ten of them 1 s.
ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", ANY_MACHINE, max_examples=12)
settings.register_profile("thorough", ANY_MACHINE, max_examples=100)  # `make test-slow` chooses it
settings.load_profile("quick")


_LONGEST_ID = 60
"""The maximum length of a text in the name of a test, in characters."""


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten a long text in the name of a test: each worker sends all names, and hostile texts have millions of signs.

    pytest numbers names that are alike then.
    """
    if isinstance(val, (str, bytes)) and len(val) > _LONGEST_ID:
        return f"{val[:_LONGEST_ID]!r:.{_LONGEST_ID}}... {len(val)}"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that was skipped where MARVIN_TEST_NO_SKIP is set: there, nothing may be missing."""
    report = yield
    if report.skipped and os.environ.get("MARVIN_TEST_NO_SKIP") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and MARVIN_TEST_NO_SKIP is set: {report.longrepr}"
    return report


def pytest_runtest_setup() -> None:
    """Signals mean what they mean in a terminal, also where the tests were started by nohup or in the background.

    Who starts programs hands on what it ignores, and a run that a test makes in this process ignores them at its end.
    """
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGQUIT, signal.SIG_DFL),
        (signal.SIGHUP, signal.SIG_DFL),
        (signal.SIGTERM, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def pytest_collection_finish() -> None:
    """Keep what stays to the end out of the way: a collection of garbage would look at all of the tests each time."""
    gc.collect()
    gc.freeze()
