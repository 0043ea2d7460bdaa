"""Answers that have to fit a schema, in the real program: what is asked, what is printed, what is an error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from marvin_core.testing import ModelServer, calls, error, text
from tests.e2e.support_e2e import QUICK_RETRIES, Marvin, posts

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"files": {"type": "integer", "minimum": 0}, "names": {"type": "array", "items": {"type": "string"}}},
    "required": ["files"],
}
FITS = {"files": 2, "names": ["a", "ü"]}
WRITE = ("create_file", {"path": "a.txt", "content": "x"})


@pytest.fixture
def asking(marvin: Marvin) -> Marvin:
    (marvin.project / "schema.json").write_text(json.dumps(SCHEMA), "utf-8")
    return marvin


def bodies(server: ModelServer) -> list[dict[str, Any]]:
    return [request.body for request in server.requests if request.method == "POST"]


@pytest.mark.slow
def test_what_is_printed_is_the_value_and_nothing_else(asking: Marvin, marvin_model_server: ModelServer) -> None:
    """Though tools ran and the model spoke in between; each request says what the answer is to be."""
    fenced = f"```json\n{json.dumps(FITS, indent=2)}\n```"
    marvin_model_server.script(calls(WRITE, text="I look."), text(fenced, chunks=5))
    result = asking.ask("--output-schema", "schema.json")
    assert (result.code, json.loads(result.out)) == (0, FITS)
    assert result.out.count(b"\n") == 1
    for body in bodies(marvin_model_server):
        assert body["response_format"]["json_schema"]["schema"] == SCHEMA
        assert '"minimum": 0' in body["messages"][0]["content"]


def test_the_report_has_the_value(asking: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text(json.dumps(FITS)))
    report = json.loads(asking.ask("--output-schema", "schema.json", "--output-format", "json").out)
    assert (report["output"], report["exit_code"]) == (FITS, 0)


def test_a_model_that_gets_it_wrong_is_told_what_is_wrong_once(
    asking: Marvin, marvin_model_server: ModelServer
) -> None:
    marvin_model_server.script(text('{"files": -1, "names": [1]}'), text('{"files": 1}'))
    result = asking.ask("--output-schema", "schema.json")
    assert (result.code, result.text) == (0, '{"files": 1}\n')
    told = bodies(marvin_model_server)[1]["messages"][-1]
    assert told["role"] == "user"
    assert "$.files: -1 is less than the minimum of 0" in told["content"]
    assert "$.names[0]: 1 is not of type 'string'" in told["content"]
    assert "asked once more" in result.said


@pytest.mark.parametrize("wrong", ["Two files.", '{"files": "two"}', '{"files": NaN}', "{}", ""])
def test_what_is_wrong_twice_is_an_error(asking: Marvin, marvin_model_server: ModelServer, wrong: str) -> None:
    asking.config(QUICK_RETRIES)  # an empty answer is asked for again
    marvin_model_server.script(*[text(wrong)] * 2)
    result = asking.ask("--output-schema", "schema.json", "--output-format", "json")
    report = json.loads(result.out)
    assert (result.code, report["is_error"]) == (1, True)
    assert "output" not in report
    if wrong:
        assert posts(marvin_model_server) == 2
        assert "does not match the schema of --output-schema" in result.said


def test_a_service_that_knows_no_schemas_is_asked_in_words(asking: Marvin, marvin_model_server: ModelServer) -> None:
    refusal = error(400, "json mode cannot be combined with tool/function calling")
    marvin_model_server.script(refusal, text(json.dumps(FITS)))
    result = asking.ask("--output-schema", "schema.json")
    assert (result.code, json.loads(result.out)) == (0, FITS)
    assert ["response_format" in body for body in bodies(marvin_model_server)] == [True, False]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not JSON"),
        ("[1]", "must hold a JSON schema"),
        ('{"type": "thing"}', "is not a valid JSON schema: $.type: 'thing' is not valid"),
    ],
)
def test_a_file_that_holds_no_schema(marvin: Marvin, content: str | None, said: str) -> None:
    if content is not None:
        (marvin.project / "schema.json").write_text(content, "utf-8")
    result = marvin.ask("--output-schema", "schema.json")
    assert (result.code, result.text) == (2, "")
    assert said in result.said


def test_a_chat_has_no_last_answer(asking: Marvin) -> None:
    result = asking.run("--plain", "--output-schema", "schema.json", stdin=b"")
    assert result.code == 2
    assert "Add --non-interactive." in result.said
