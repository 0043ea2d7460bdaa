"""Which models there are, in the real program: servers with names of their own, lists, ends, `marvin models`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from marvin_core.testing import ModelServer, calls, error, text
from tests.e2e.support_e2e import Marvin, posts
from tests.support.listing_servers import StrictServer

pytestmark = pytest.mark.slow

PATIENT = "timeouts: {probe: 50, model_list: 50, retry_backoff: [0.01]}\n"


@pytest.fixture
def strict() -> Iterator[StrictServer]:
    with StrictServer(models=["fake-1", "fake-2"]) as server:
        yield server


@pytest.fixture
def here(unconfigured: Marvin, strict: StrictServer) -> Marvin:
    """Marvin with nothing but the address of a server that checks the names of models."""
    unconfigured.config(PATIENT)
    unconfigured.env["OPENAI_COMPAT_URL"] = strict.url
    return unconfigured


def test_the_first_minute_with_a_server_of_ones_own(here: Marvin, strict: StrictServer) -> None:
    result = here.ask()
    assert (result.code, result.text) == (0, "Here.\n")
    assert strict.asked_for() == ["fake-1"]
    assert here.session()[0]["model"] == "fake-1"


def test_a_chat_names_what_answers_and_offers_what_is_served(here: Marvin, strict: StrictServer) -> None:
    shown = here.run("--plain", stdin=b"hi\n/model\n/model fake-2\nhi again\n/model fake-3\n")
    assert "Marvin, with fake-1 of openai-compat (OPENAI_COMPAT_URL is set)" in shown.text
    assert "* openai-compat/fake-1\n  openai-compat/fake-2\n" in shown.text
    assert "Now using openai-compat/fake-2" in shown.text
    assert "known to serve 'fake-3'. Nearest: openai-compat/fake-" in f"{shown.text}{shown.said}"
    assert strict.asked_for() == ["fake-1", "fake-2"]


def test_doctor_compares_the_model_with_what_is_served(here: Marvin) -> None:
    good = here.run("doctor")
    assert good.code == 0
    assert "model fake-1" in good.text
    assert "answers and serves the model" in good.text
    bad = here.run("doctor", env={"OPENAI_COMPAT_MODEL": "qwen/qwen3-32b"})
    assert bad.code == 1
    assert "does not list the model qwen/qwen3-32b" in bad.text
    assert "fake-1, fake-2" in bad.text


def test_a_server_that_answers_to_any_name_is_told_the_one_it_has(unconfigured: Marvin) -> None:
    """As llama.cpp does: costs and sessions then name what really answered, and its window counts."""
    with StrictServer(models=["SmolLM2.gguf"], entries=[{"meta": {"n_ctx": 4_096}}]) as server:
        unconfigured.config(PATIENT)
        result = unconfigured.ask(env={"OPENAI_COMPAT_URL": server.url})
        assert (result.code, server.asked_for()) == (0, ["SmolLM2.gguf"])
        assert set(result.cost()["model_turns"]) == {"SmolLM2.gguf"}
        told = unconfigured.run("models", "openai-compat", env={"OPENAI_COMPAT_URL": server.url}).text
        assert "4,096" in told


def test_a_service_that_refuses_what_it_lists_ends_the_run(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I22: it was asked for ever, without a pause."""
    del marvin.env["OPENAI_COMPAT_MODEL"]
    marvin.config(PATIENT)
    refused = error(
        404, {"error": {"message": "It does not exist or you do not have access", "code": "model_not_found"}}
    )
    marvin_model_server.models[:] = ["qwen/qwen3-32b"]
    marvin_model_server.script(*[refused] * 50)
    result = marvin.ask()
    assert (result.code, posts(marvin_model_server)) == (1, 1)


def test_a_server_that_refuses_all_that_it_lists_is_told_as_that(unconfigured: Marvin) -> None:
    names = [f"m-{number}" for number in range(3)]
    refused = error(404, {"error": {"message": "The model does not exist", "code": "model_not_found"}})
    with StrictServer(refused, models=names) as server:
        unconfigured.config(PATIENT)
        result = unconfigured.ask(env={"OPENAI_COMPAT_URL": server.url})
        assert result.code == 1
        assert "m-0 is listed by its service" in result.said
        assert "but this account may not use it; openai-compat/m-1 replaces it" in result.said
        assert "no longer served" not in result.said
        assert "lists the model 'm-1', but this account may not use it" in result.said
        assert server.asked_for() == ["m-0", "m-1"]


def test_a_default_that_is_gone_is_replaced_once_told_once_and_remembered(unconfigured: Marvin) -> None:
    with StrictServer(models=["gemini-3.7-flash", "text-embedding"]) as server:
        unconfigured.config(PATIENT)
        unconfigured.env |= {"GEMINI_API_KEY": "k-0123456789", "GEMINI_BASE_URL": server.url}
        first, second = unconfigured.ask(), unconfigured.ask()
        assert (first.text, second.text) == ("Here.\n", "Here.\n")
        assert "gemini-3.8-flash is no longer served; gemini/gemini-3.7-flash replaces it" in first.said
        assert "no longer served" not in second.said
        assert server.asked_for() == ["gemini-3.8-flash", "gemini-3.7-flash", "gemini-3.7-flash"]
        named = unconfigured.ask("--model", "gemini-3.8-flash")
        assert named.code == 1, "a model by name has no successor"


def test_a_model_that_ends_is_told_once(unconfigured: Marvin) -> None:
    ends = (datetime.now(UTC) + timedelta(days=30)).strftime("%Y-%m-%d")
    with StrictServer(models=["box-1"], entries=[{"shutdown_date": ends}]) as server:
        unconfigured.config(f"{PATIENT}provider: box\nproviders: {{box: {{base_url: '{server.url}'}}}}\n")
        first, second = unconfigured.ask(), unconfigured.ask()
        assert f"box-1 of box will be retired on {ends}" in first.said
        assert "retired" not in second.said


def test_a_model_that_is_taken_in_a_chat_and_ends_is_told_of_once(here: Marvin, strict: StrictServer) -> None:
    strict.entries = [{}, {"shutdown_date": "2020-01-01"}]
    asked = here.run("doctor"), here.run("models")  # which show the end in their own way, or not at all
    assert [result.code for result in asked] == [0, 0]
    shown = here.run("--plain", stdin=b"/model fake-2\n/model fake-1\n/model fake-2\n")
    assert f"{shown.text}{shown.said}".count("fake-2 of openai-compat was retired on 2020-01-01") == 1


def test_the_list_of_models(here: Marvin, strict: StrictServer) -> None:
    strict.entries = [{"max_model_len": 8_192, "capabilities": {"vision": True}}]
    text_of = here.run("models").text
    lines = text_of.splitlines()
    assert lines[0] == "openai-compat (OPENAI_COMPAT_URL is set)"
    assert lines[1].split() == ["model", "window", "longest", "input", "output", "thinks", "images", "ends"]
    assert lines[2].split() == ["*", "fake-1", "8,192", "-", "0.00", "0.00", "-", "yes", "-"]
    assert lines[3].split() == ["fake-2", "-", "-", "0.00", "0.00", "-", "-", "-"]
    assert text_of == here.run("models", "openai-compat").text, "it is stable"
    entries = json.loads(here.run("models", "--json").text)
    assert [(entry["model"], entry["default"], entry["window"]) for entry in entries] == [
        ("fake-1", True, 8_192),
        ("fake-2", False, None),
    ]


def test_a_name_in_json_steers_no_terminal(unconfigured: Marvin) -> None:
    unconfigured.config('providers: {box: {base_url: "https://box.example/v1", models: ["a\\u202eb"]}}\n')
    printed = unconfigured.run("models", "box", "--json").text
    assert "a\\u202eb" in printed
    assert [entry["model"] for entry in json.loads(printed)] == ["a\u202eb"]


def test_a_gateway_on_this_machine_shows_what_its_models_cost(unconfigured: Marvin) -> None:
    with StrictServer(models=["gpt-5.1", "nobody-sells-this"]) as server:
        unconfigured.config(f"{PATIENT}providers: {{box: {{base_url: '{server.url}'}}}}\n")
        lines = unconfigured.run("models", "box").text.splitlines()
        assert [line.removeprefix("* ").split()[3:5] for line in lines[2:]] == [["1.25", "10.00"], ["0.00", "0.00"]]
        unconfigured.config(f"{PATIENT}providers: {{box: {{base_url: '{server.url}', free: true}}}}\n")
        lines = unconfigured.run("models", "box").text.splitlines()
        assert [line.removeprefix("* ").split()[3:5] for line in lines[2:]] == [["0.00", "0.00"]] * 2


def test_models_of_a_service_that_is_not_set_up(unconfigured: Marvin) -> None:
    shown = unconfigured.run("models", "openai")
    assert (shown.code, shown.said) == (0, "")
    (line,) = [line for line in shown.text.splitlines() if line.startswith("* ")]
    assert line.split() == ["*", "gpt-5.1", "400,000", "128,000", "1.25", "10.00", "yes", "yes", "2027-04-01"]
    assert any("gpt-6.1-sol" in line and "1,050,000" in line for line in shown.text.splitlines())
    nobody = unconfigured.run("models")
    assert nobody.code == 0
    assert "To set a provider" in nobody.text
    wrong = unconfigured.run("models", "opnai")
    assert wrong.code == 2
    assert "Did you mean 'openai' or" in wrong.said


def test_updating_asks_the_services_again(here: Marvin) -> None:
    here.env["MARVIN_URL_PRICES"] = "http://127.0.0.1:9/prices.json"
    result = here.run("models", "update")
    assert "openai-compat: 2 models" in result.text
    assert "prices" in result.text
    here.env["OPENAI_COMPAT_URL"] = "http://127.0.0.1:9/v1"
    gone = here.run("models", "update")
    assert gone.code == 1
    assert "cannot be reached" in gone.text
    assert "The price table cannot be downloaded from" in gone.text


def test_the_table_of_prices_may_be_on_a_server_of_the_users_own(here: Marvin) -> None:
    with ModelServer() as server:
        here.env["MARVIN_URL_PRICES"] = f"http://127.0.0.1:{server.port}/prices.json"
        assert "it answered 404" in here.run("models", "update").text
        assert any(asked.path.endswith("/prices.json") for asked in server.requests)


def test_a_model_with_a_small_window_is_compacted_at_its_own(unconfigured: Marvin) -> None:
    """What a server says of its window counts, and that nothing is asked of it before it has answered."""
    long_answer = text("word " * 2_000)
    with StrictServer(
        calls(("get_usage", {})), long_answer, models=["m"], entries=[{"max_model_len": 6_000}]
    ) as server:
        unconfigured.config(PATIENT)
        unconfigured.env["OPENAI_COMPAT_URL"] = server.url
        assert unconfigured.ask("--tools", "get_usage").code == 0
        assert [request.method for request in server.requests] == ["GET", "POST", "POST"]
