"""Runs to the end of the pipeline with all of their gates, under `--strict`."""

from __future__ import annotations

import json

import pytest
from junitparser import JUnitXml

from tests.e2e.support_e2e import Marvin
from tests.support.pipeline import PipelineModels, document, writer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FLAGS = ("--non-interactive", "--design-first", "--working-dir=.", "--strict")
SPECIFICATION = "- AC-1: given 2 and 3, add gives 5.\n- AC-2: given 2 and 3, the program prints 5.\n"
TESTS = """import unittest

from adder import add


class Add(unittest.TestCase):
    def test_ac_1_adds(self):
        self.assertEqual(add(2, 3), 5)
        self.assertEqual(add(7, 1), 8)
"""
PROGRAM_TESTS = """import subprocess
import sys
import unittest


class Program(unittest.TestCase):
    def test_prints_the_sum(self):
        # AC-2
        argv = [sys.executable, "adder.py", "2", "3"]
        done = subprocess.run(argv, capture_output=True, text=True)
        self.assertEqual(done.stdout, "5\\n")
"""


def test_a_run_whose_evidence_is_whole_passes_all_gates(marvin: Marvin, models: PipelineModels) -> None:
    body = f"{SPECIFICATION}\n{'It says in all detail what there is to be said. ' * 30}"
    models.scripts["spec"] = document(".marvin/spec.md", "The specification of adder", body)
    models.scripts["tests"] = writer({"tests/test_adder.py": TESTS, "tests/__init__.py": ""}, "Test that adder adds")
    models.scripts["integration_tests"] = writer(
        {"tests/integration/test_program.py": PROGRAM_TESTS, "tests/integration/__init__.py": ""}, "Test the program"
    )
    env = {"MARVIN_MUTATIONS": "6", "MARVIN_SANDBOX": "auto"}
    done = marvin.run(*FLAGS, "--prompt", "Build adder, a program that adds two numbers.", limit=800, env=env)
    assert done.code == 0, done.err.decode() + done.text
    told = json.loads((marvin.project / ".marvin/report/report.json").read_text())
    assert (told["ended"], told["exit_code"], told["strict"]) == ("done", 0, True)
    standing = {(one["phase"], one["name"]): one["standing"] for one in told["gates"]}
    assert standing.pop(("3", "green")) == "settled", "the program subtracts until phase 4a"
    assert set(standing.values()) == {"passed"}, standing
    assert {"red", "green", "unweakened", "no_mocks", "mutations"} == {name for _, name in standing}
    assert {one["id"]: one["proof"] for one in told["criteria"]} == {"AC-1": "shown", "AC-2": "shown"}
    suites = JUnitXml.fromfile(str(marvin.project / ".marvin/report/junit.xml"))
    assert (suites.failures, suites.errors) == (0, 0)
    lines = [
        json.loads(line) for line in (marvin.project / ".marvin/logs/evidence.jsonl").read_text().split("\n") if line
    ]
    assert all(marvin.git("cat-file", "-t", line["commit"]).strip() == "commit" for line in lines)
