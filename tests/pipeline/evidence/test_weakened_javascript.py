"""What tests in JavaScript and TypeScript ask for less than they did."""

from __future__ import annotations

from typing import Any

import pytest

from marvin_pipeline.evidence.syntax.program import compare

PATH = "test/add.test.js"
HEAD = (
    "const test = require('node:test');\nconst assert = require('node:assert');\n"
    "const { add } = require('../adder.js');\n\n"
)
NODE = HEAD + "test('adds', () => {\n  const total = add(2, 3);\n  assert.strictEqual(total, 5);\n});\n"
JEST = (
    "import { add } from '../src/add';\n\ndescribe('add', () => {\n  it('adds', async () => {\n"
    "    expect(add(2, 3)).toBe(5);\n    expect(add(0.1, 0.2)).toBeCloseTo(0.3, 5);\n"
    "    await expect(add('x')).rejects.toThrow(TypeError);\n  });\n});\n"
)
EACH = "it.each([[1, 2, 3], [2, 2, 4]])('adds %i', (a, b, total) => {\n  expect(add(a, b)).toBe(total);\n});\n"


def weakened(before: str, now: str, path: str = PATH) -> list[dict[str, Any]]:
    """The places that were found."""
    found = compare({PATH: before}, {path: now} if now else {}, [PATH])
    assert found["unread"] == []
    return list(found["weakened"])


def whats(before: str, now: str) -> str:
    return "\n".join(each["what"] for each in weakened(before, now))


@pytest.mark.parametrize(
    ("before", "old", "new", "what"),
    [
        (NODE, "assert.strictEqual(total, 5)", "assert.ok(total)", "weaker, `truthy` in place of `exact`"),
        (NODE, "assert.strictEqual(total, 5)", "assert.equal(total, 5)", "weaker, `equal` in place of `exact`"),
        (NODE, "assert.strictEqual(total, 5)", "assert.notStrictEqual(total, 6)", "weaker, `differs`"),
        (NODE, "assert.strictEqual(total, 5)", "assert.strictEqual(total, -1)", "the expected value was changed"),
        (
            NODE,
            "assert.strictEqual(total, 5)",
            "assert.strictEqual(5, 5)",
            ("it is always true, whatever the program does"),
        ),
        (NODE, "assert.strictEqual(total, 5)", "assert(true)", "it is always true, whatever the program does"),
        (NODE, "  assert.strictEqual(total, 5);\n", "", "an assertion was removed"),
        (NODE, "  assert.", "  if (false) assert.", "put behind a condition: if"),
        (NODE, "  assert.strictEqual(total, 5);", "  try { assert.strictEqual(total, 5); } catch {}", "try ... catch"),
        (NODE, "  assert.", "  return;\n  assert.", "it returns early"),
        (NODE, "  assert.", "  if (total !== 5) return;\n  assert.", "it returns early"),
        (NODE, "() => {", "(t) => {\n  t.skip();", "it is skipped"),
        (NODE, "test('adds', ", "test('adds', { skip: true }, ", "it is skipped"),
        (NODE, "test('adds', ", "test('adds', { todo: 'later' }, ", "it is skipped"),
        (NODE, "test('adds'", "test.skip('adds'", "it is skipped"),
        (NODE, "test('adds'", "test.todo('adds'", "it is skipped"),
        (NODE, "test('adds'", "xtest('adds'", "it is skipped"),
        (NODE, HEAD, HEAD + "test.only('nothing', () => {});\n", "an `only`"),
        (NODE, "test('adds'", "check('adds'", "the test was removed, or no runner finds it any more"),
        (NODE, "const total = add(2, 3)", "const total = 5", "what it does was changed"),
        (NODE, "require('node:test')", "() => {}", "a name that tests use gets another meaning"),
        (NODE, "const { add } = require('../adder.js');", "const add = () => 5;", "the value add, which tests use"),
        (NODE, HEAD, HEAD + "function expect() {}\n", "a name that tests use gets another meaning"),
        (JEST, "'../src/add'", "'./own'", "the value add, which tests use, was changed"),
        (JEST, "describe('add'", "describe.skip('add'", "it is skipped"),
        (JEST, "describe('add'", "describe.skipIf(true)('add'", "it is skipped"),
        (JEST, "it('adds'", "it.failing('adds'", "it is skipped"),
        (JEST, "it('adds'", "it.only('adds'", "an `only`"),
        (JEST, "it('adds'", "fit('adds'", "an `only`"),
        (JEST, "toBe(5)", "toBeTruthy()", "weaker, `truthy` in place of `exact`"),
        (JEST, "toBe(5)", "toBeDefined()", "weaker, `differs` in place of `exact`"),
        (JEST, "toBe(5)", "not.toBe(6)", "weaker, `differs` in place of `exact`"),
        (JEST, "toBe(5)", "toBeGreaterThan(0)", "weaker, `bound` in place of `exact`"),
        (JEST, "toBe(5)", "toEqual(expect.anything())", "weaker"),
        (JEST, "(0.3, 5)", "(0.3, 0)", "the tolerance is wider"),
        (JEST, "toThrow(TypeError)", "toThrow()", "it accepts nearly any exception"),
        (JEST, "toThrow(TypeError)", "toThrow(Error)", "it accepts nearly any exception"),
        (EACH, ", [2, 2, 4]", "", "a case was removed or changed"),
        (EACH, "[2, 2, 4]", "[2, 2, 5]", "a case was removed or changed"),
    ],
)
def test_what_asks_for_less_is_found(before: str, old: str, new: str, what: str) -> None:
    assert old in before
    assert what in whats(before, before.replace(old, new, 1))


@pytest.mark.parametrize(
    "now",
    [
        NODE.replace("'", '"').replace(";", ""),
        NODE.replace("strictEqual(total, 5)", "strictEqual(\n    total, // the sum\n    5,\n  )"),
        NODE.replace("  assert.", "  assert.ok(total);\n  assert."),
        NODE + "test('more', () => assert.strictEqual(add(1, 1), 2));\n",
        NODE.replace("test('adds'", "test('adds two numbers'"),
        NODE.replace("() => {", "async () => {"),
        NODE.replace("test('adds'", "describe('add', () => { test('adds'") + "});\n",
    ],
)
def test_what_is_laid_out_or_named_otherwise_asks_for_no_less(now: str) -> None:
    assert weakened(NODE, now) == []


def test_what_asks_for_more_is_no_weakening() -> None:
    assert weakened(JEST.replace("toBe(5)", "toEqual(5)"), JEST) == []
    assert weakened(EACH, EACH.replace("[2, 2, 4]", "[2, 2, 4], [0, 0, 0]")) == []


def test_a_test_that_moved_is_found_again_and_one_that_moved_out_of_sight_is_not() -> None:
    assert weakened(NODE, NODE, "test/unit/sums.test.js") == []
    assert [each["what"][:20] for each in weakened(NODE, NODE, "lib/add.js")] == ["the test was removed"]
    assert [each["what"][:20] for each in weakened(NODE, "")] == ["the test was removed"]


@pytest.mark.parametrize("path", ["src/add.test.ts", "src/add.test.tsx", "src/add.spec.mts"])
def test_typescript_is_read_as_well(path: str) -> None:
    typed = JEST.replace("async () => {", "async (): Promise<void> => {").replace("add(2, 3)", "add(2 as number, 3)")
    assert compare({path: typed}, {path: typed}, [])["weakened"] == []
    found = compare({path: typed}, {path: typed.replace("toBe(5)", "toBeTruthy()")}, [])
    assert ["weaker" in each["what"] for each in found["weakened"]] == [True]


def test_jsx_is_read_as_well() -> None:
    page = "it('shows', () => {\n  render(<App name='x' />);\n  expect(screen.getByText('x')).toBeVisible();\n});\n"
    found = compare({PATH: page}, {PATH: page.replace(".toBeVisible()", ".toBeTruthy()")}, [])
    assert len(found["weakened"]) == 1


@pytest.mark.parametrize("hostile", ["(" * 50_000, "[" * 3_000 + "]" * 3_000, "`${" * 20_000, "a" * 2_000_000])
def test_hostile_source_is_unread_and_harms_nothing(hostile: str) -> None:
    found = compare({PATH: NODE}, {PATH: f"const x = {hostile}"}, [PATH])
    assert len(found["weakened"]) == 1
