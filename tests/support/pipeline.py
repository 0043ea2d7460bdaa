"""A model for each role of the pipeline, and projects that it works on."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from marvin_core.testing import ModelServer, RecordedRequest, answers
from marvin_core.testing.answers import Answer

Script: TypeAlias = Callable[["Asked"], Answer]
"""What an agent of a role answers to one of its requests."""

USAGE = {"prompt_tokens": 1_000, "completion_tokens": 100}
_ROLES: Mapping[str, str] = {
    "# Your task: the product specification": "spec",
    "# Your task: the user experience": "ux",
    "# Your task: the design and the plan of the tests": "design",
    "# Your task: the structure of the project": "structure",
    "# Your task: the functional tests": "tests",
    "# Your task: the integration tests": "integration_tests",
    "# Your task: the implementation": "implementation",
    "# Your task: tests that fail for the right reason": "red_tests",
    "# Your task: the tests that were red have to pass": "green_tests",
    "# Make the tests pass": "debug",
    "# Try the program from end to end": "e2e",
    "# Attack this program": "qa_reviewer",
    "# Fix what the attack found": "qa_fixer",
    "# Fix the frontend": "frontend",
    "# Find the cause": "diagnosis",
    "# Your role: DOCUMENT EDITOR": "fixer",
    "# Your work comes back": "sent_back",
    "# Your role: judge of changed tests": "tests_judge",
}


_REVIEWERS: Mapping[str, str] = {
    "the main reviewer of": "reviewer",
    "one of four who review": "aux_reviewer",
    "You review the quality of": "quality_reviewer",
    "You review what the phase": "code_reviewer",
    "You fix what a review found": "code_fixer",
}


class Asked:
    """One request of an agent: who it is, and how far it is."""

    def __init__(self, request: RecordedRequest) -> None:
        self.body: Mapping[str, Any] = request.body
        messages: Sequence[Mapping[str, Any]] = request.body["messages"]
        self.prompt = _text(next(message for message in messages if message["role"] == "user"))
        self.step = sum(message["role"] == "assistant" for message in messages)
        self.model = str(request.body["model"])
        self.outputs = [_text(message) for message in messages if message["role"] == "tool"]
        self.ticket = (re.search(r"\bticket (?:of your own )?below (\S+):", self.prompt) or [None, ""])[1]

    @property
    def role(self) -> str:
        """The role, told from the first line of the prompt; that line itself for one that is not known."""
        first, _, rest = self.prompt.lstrip().partition("\n")
        known = next((role for begin, role in _ROLES.items() if first.startswith(begin)), "")
        return known or next((role for part, role in _REVIEWERS.items() if part in rest[:300]), first)

    @property
    def document(self) -> str:
        """The document that a reviewer or an editor has before it; empty for code."""
        found = re.search(r"\.marvin/(?:spec|ux|design)\.md", self.prompt[:400])
        return found[0] if found else ""


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class PipelineModels(ModelServer):
    """Answers each agent by the script of its role. `asked` has the roles of the agents, in the order they came in.

    A role without a script gets `otherwise`, and without that an error that names the role.
    """

    def __init__(self, scripts: Mapping[str, Script], otherwise: Script | None = None) -> None:
        self.scripts = dict(scripts)
        self.otherwise = otherwise
        self.asked: list[str] = []
        self.newest: dict[str, str] = {}
        """By role, the prompt of the last agent."""
        self.holds: dict[str, threading.Event] = {}
        """By role, what its first answer waits for."""
        super().__init__(models=("qwen/qwen3-32b", "qwen/qwen3-14b"))

    def was_asked(self, role: str, since: int = 0) -> bool:
        """Whether an agent of this role came in, behind so many agents."""
        return role in self.asked[since:]

    def answer_to(self, request: RecordedRequest) -> Answer:
        """The next answer for whoever asks."""
        if request.method != "POST":
            return super().answer_to(request)
        asked = Asked(request)
        with self._lock:
            if asked.step == 0:
                self.asked.append(asked.role)
                self.newest[asked.role] = asked.prompt
        if asked.step == 0 and asked.role in self.holds:
            self.hold(self.holds[asked.role])
        script = self.scripts.get(asked.role, self.otherwise)
        return script(asked) if script else answers.error(500, f"no answer for {asked.role!r}")


def steps(*made: Answer | Callable[[Asked], Answer]) -> Script:
    """A script of answers, one after the other; the last one again for each further request."""

    def script(asked: Asked) -> Answer:
        step = made[min(asked.step, len(made) - 1)]
        return step if isinstance(step, Answer) else step(asked)

    return script


def said(text: str) -> Answer:
    """An answer with what it used."""
    return answers.text(text, usage=USAGE)


def called(*made: tuple[str, Mapping[str, Any]]) -> Answer:
    """Calls of tools, with what the answer used."""
    return answers.calls(*made, usage=USAGE)


def document(path: str, title: str, body: str = "") -> Script:
    """A writer of a document, in two sections."""
    text = body or "It says in all detail what there is to be said. " * 30
    return steps(
        called(("read_file", {"path": path}), ("write_file", {"path": path, "content": f"# {title}\n\n{text}\n"})),
        called(("append_file", {"path": path, "content": "\n## The end\n\nNothing is missing.\n"})),
        said("It is written."),
    )


def writer(files: Mapping[str, str], message: str, reads: Sequence[str] = ()) -> Script:
    """A writer of code: its ticket, refused once as every first one is, what it reads, its files, its commit."""

    def ticket(asked: Asked) -> Answer:
        line = f"create '{message}' --parent {asked.ticket} -d 'What the design asks for.' --acceptance 'It is there.'"
        return called(("tk", {"args": line}))

    before = [("read_file", {"path": path}) for path in reads]
    made = [("write_file", {"path": path, "content": content}) for path, content in files.items()]
    looked = [called(*before)] if before else []
    return steps(
        ticket, ticket, *looked, called(*made), called(("git_commit", {"message": message})), said("It is done.")
    )


def found(severity: str, claim: str, file: str, evidence: str = "Its second line.") -> str:
    """A finding as reviewers give it."""
    finding = {"id": "", "severity": severity, "file": file, "claim": claim, "evidence": evidence}
    return json.dumps({"findings": [finding]})


def verdict(asked: Asked, *findings: str) -> Answer:
    """A review: the findings, else in the first round a small thing, and in later ones nothing."""
    keyword = next((word for word in ("SPEC_VERIFIED", "CODE_VERIFIED") if word in asked.prompt), "")
    if findings or not keyword:
        small = found("low", "A word could be clearer.", asked.document or "adder.py")
        return said("\n".join(["```json", *(findings or (small,)), "```", "REVIEW_FAILED"]))
    return said(f'{{"findings": []}}\n{keyword}')


ADDER: Mapping[str, Script] = {
    "spec": document(".marvin/spec.md", "The specification of adder"),
    "ux": document(".marvin/ux.md", "The use of adder"),
    "design": document(".marvin/design.md", "The design of adder"),
    "structure": writer({"pyproject.toml": '[project]\nname = "adder"\nversion = "1.0"\n'}, "Set up adder"),
    "tests": writer(
        {
            "tests/test_adder.py": (
                "import unittest\n\nfrom adder import add\n\n\nclass Add(unittest.TestCase):\n"
                "    def test_adds(self):\n        self.assertEqual(add(2, 3), 5)\n"
            ),
            "tests/__init__.py": "",
        },
        "Test that adder adds",
    ),
    "integration_tests": writer(
        {
            "tests/integration/test_program.py": (
                "import subprocess\nimport sys\nimport unittest\n\n\nclass Program(unittest.TestCase):\n"
                "    def test_prints_the_sum(self):\n"
                '        argv = [sys.executable, "adder.py", "2", "3"]\n'
                "        done = subprocess.run(argv, capture_output=True, text=True)\n"
                '        self.assertEqual(done.stdout, "5\\n")\n'
            ),
            "tests/integration/__init__.py": "",
        },
        "Test the program adder",
    ),
    "implementation": writer(
        {
            "adder.py": (
                "import sys\n\n\ndef add(a, b):\n    return a - b\n\n\n"
                'if __name__ == "__main__":\n    print(add(int(sys.argv[1]), int(sys.argv[2])))\n'
            )
        },
        "Implement adder",
    ),
    "debug": writer(
        {
            "adder.py": (
                "import sys\n\n\ndef add(a, b):\n    return a + b\n\n\n"
                'if __name__ == "__main__":\n    print(add(int(sys.argv[1]), int(sys.argv[2])))\n'
            )
        },
        "Add instead of subtracting",
        reads=("adder.py",),
    ),
    "e2e": writer({".marvin/smoke.sh": 'set -e\ntest "$(python3 adder.py 20 22)" = 42\n'}, "Try adder"),
    "qa_fixer": writer({"README.md": "# adder\n\nIt adds two whole numbers.\n"}, "Say what adder does"),
    **dict.fromkeys(("reviewer", "aux_reviewer", "quality_reviewer", "code_reviewer", "qa_reviewer"), verdict),
    "fixer": steps(
        lambda asked: called(("read_file", {"path": asked.document})),
        lambda asked: called(("append_file", {"path": asked.document, "content": "\n## Clearer\n\nIt is clear.\n"})),
        said("It is mended."),
    ),
}
"""The agents that build a small program in Python, with one mistake on the way."""

_MANIFEST = {"name": "adder", "version": "1.0.0", "private": True, "scripts": {"test": "node --test"}}
_PROGRAM = (
    "const add = (a, b) => a SIGN b;\nmodule.exports = { add };\n"
    "if (require.main === module) console.log(add(Number(process.argv[2]), Number(process.argv[3])));\n"
)

ADDER_IN_JAVASCRIPT: Mapping[str, Script] = {
    **ADDER,
    "structure": writer({"package.json": json.dumps(_MANIFEST)}, "Set up adder"),
    "tests": writer(
        {
            "test/add.test.js": (
                "const test = require('node:test');\nconst assert = require('node:assert');\n"
                "const { add } = require('../adder.js');\n\ntest('adds', () => assert.strictEqual(add(2, 3), 5));\n"
            )
        },
        "Test that adder adds",
    ),
    "integration_tests": writer(
        {
            "test/program.test.js": (
                "const test = require('node:test');\nconst assert = require('node:assert');\n"
                "const { execFileSync } = require('node:child_process');\n\n"
                "test('prints the sum', () => {\n"
                "  const printed = execFileSync(process.execPath, ['adder.js', '2', '3'], { encoding: 'utf8' });\n"
                "  assert.strictEqual(printed, '5\\n');\n});\n"
            )
        },
        "Test the program adder",
    ),
    "implementation": writer({"adder.js": _PROGRAM.replace("SIGN", "-")}, "Implement adder"),
    "debug": writer({"adder.js": _PROGRAM.replace("SIGN", "+")}, "Add instead of subtracting", reads=("adder.js",)),
    "e2e": writer({".marvin/smoke.sh": 'set -e\ntest "$(node adder.js 20 22)" = 42\n'}, "Try adder"),
}
"""The same program in JavaScript."""


PAGE = "<!doctype html><title>Adder</title><script src='{script}'></script><p>2 + 3</p>"

WITH_A_PAGE: Mapping[str, Script] = {
    "structure": writer(
        {
            "pyproject.toml": '[project]\nname = "adder"\nversion = "1.0"\n',
            "public/index.html": PAGE.format(script="/app.js"),
        },
        "Set up adder and its page",
    ),
    "frontend": writer({"public/app.js": "console.log(5);\n"}, "The script of the page"),
}
"""What else is written where the program has a page, whose script is missing at first."""

FIRST: Mapping[str, str] = {
    "1a": "spec",
    "1a_review": "reviewer",
    "1b": "design",
    "1b_review": "reviewer",
    "2a": "structure",
    "2b": "integration_tests",
    "3": "implementation",
    "4a": "debug",
    "4b": "e2e",
    "4c": "frontend",
    "5": "qa_reviewer",
}
"""The role of the first agent of each phase, where the program has a page."""


def dear(script: Script) -> Script:
    """A script whose answers use 400,000 tokens each."""
    usual, many = (json.dumps({"prompt_tokens": count})[1:-1].encode() for count in (1_000, 400_000))

    def answer(asked: Asked) -> Answer:
        found = script(asked)
        steps = tuple(step.replace(usual, many) if isinstance(step, bytes) else step for step in found.steps)
        assert steps != found.steps, "the answer does not say what it used"
        return found.replace(steps=steps)

    return answer
