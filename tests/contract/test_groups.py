"""Tests of one group run on one worker: what they share is made once, and what they compete for has one user."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.xdist_group("group of this test")


def test_a_group_is_kept_together(request: pytest.FixtureRequest) -> None:
    """Where pytest-xdist cannot keep it together, it says nothing: the group is missing in the name of the test."""
    if hasattr(request.config, "workerinput"):
        assert request.node.nodeid.endswith("@group of this test")
