"""Runs of the pipeline on a module of Go, from red to green."""

from __future__ import annotations

import shutil

import pytest

from tests.e2e.support_e2e import Marvin
from tests.support.pipeline import PipelineModels, writer
from tests.support.proofs import gates, lay, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("go"),
    pytest.mark.skipif(not shutil.which("go"), reason="go is missing"),
]
TEST = (
    'package checks\n\nimport (\n\t"testing"\n\n\t"example.org/adder/inner"\n)\n\nfunc TestAdd(t *testing.T) {\n'
    '\tif got := inner.Add(2, 3); got != 5 {\n\t\tt.Fatalf("got %d", got)\n\t}\n}\n'
)
CODE = "package inner\n\nfunc Add(a, b int) int { return a + b }\n"


def test_a_package_that_is_missing_is_red_and_its_tests_are_green(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, "2a", {"go.mod": "module example.org/adder\n\ngo 1.19\n"})
    marvin.git("rm", "-q", "pyproject.toml")
    marvin.git("commit", "-q", "-m", "Go")
    models.scripts["integration_tests"] = writer({"checks/add_test.go": TEST}, "Test adder")
    models.scripts["implementation"] = writer({"inner/add.go": CODE}, "Implement adder")
    done = until(marvin, "3", MARVIN_SANDBOX="auto", GOFLAGS="-mod=mod", GOPROXY="off")
    assert done.code == 0, done.err.decode() + done.text
    (red,) = gates(marvin, "red")
    (green,) = gates(marvin, "green")
    assert (red["outcome"], red["tests"]) == ("passed", ["example.org/adder/checks"])
    assert (green["outcome"], green["tests"], green["faults"]) == ("passed", ["example.org/adder/checks"], [])
