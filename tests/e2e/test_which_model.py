"""Which model answers, in the real program: another one by name, one that goes on, none at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, calls, cut_after, error, text
from tests.e2e.support_e2e import Marvin, conversation, posts
from tests.support.listing_servers import StrictServer

pytestmark = pytest.mark.slow

KEY = "sk-0123456789abcdef"


def spare(server: ModelServer, *, fallback: bool = True) -> str:
    """A config.yaml with a second service, which goes on where the first fails."""
    chain = "fallback: [spare/s1]\n" if fallback else ""
    services = f"providers: {{spare: {{base_url: '{server.url}', models: [s1, s2]}}}}\n"
    return f"{chain}{services}timeouts: {{retry_backoff: [0.01]}}\n"


@pytest.fixture
def second() -> ModelServer:
    return ModelServer(text("From the spare."), text("Again."))


def models_of(server: ModelServer) -> list[str]:
    return [request.body["model"] for request in server.requests if request.method == "POST"]


# --- another one goes on --------------------------------------------------------------------------------------------


def test_another_model_goes_on_where_the_first_fails(
    marvin: Marvin, marvin_model_server: ModelServer, second: ModelServer
) -> None:
    """I15: no call that was executed runs again, and the answer is whole."""
    marvin_model_server.script(calls(("create_file", {"path": "a.txt", "content": "x"})), error(401, "bad key"))
    with second:
        marvin.config(spare(second))
        result = marvin.ask()
        assert (result.code, result.text) == (0, "  🔧 create_file\nFrom the spare.\n")
        assert "failed: " in result.said
        assert "spare/s1 takes over" in result.said
        assert set(result.cost()["model_turns"]) == {"qwen/qwen3-32b", "s1"}
        handed_over = conversation(second)
    assert [message["role"] for message in handed_over] == ["user", "assistant", "tool"]
    assert posts(marvin_model_server) == 2


def test_after_visible_text_a_run_ends_with_an_error(
    marvin: Marvin, marvin_model_server: ModelServer, second: ModelServer
) -> None:
    answer = text("Half an answer")
    marvin_model_server.script(cut_after(answer.body.index(b'finish_reason": "stop'), answer))
    with second:
        marvin.config(spare(second))
        result = marvin.ask()
        assert (result.code, result.text) == (1, "Half an answer\n")
        assert posts(second) == 0


def test_after_visible_text_a_chat_goes_on_in_a_new_line(
    marvin: Marvin, marvin_model_server: ModelServer, second: ModelServer
) -> None:
    answer = text("Half an answer")
    marvin_model_server.script(cut_after(answer.body.index(b'finish_reason": "stop'), answer))
    with second:
        marvin.config(spare(second))
        shown = marvin.run("--plain", stdin=b"Do it.\nMore.\n").text
        assert shown.index("Half an answer\n(") < shown.index("spare/s1 takes over)\nFrom the spare.\n")
        assert [m["content"] for m in conversation(second, 0)] == ["Do it."], "the broken half does not count"
    second_prompt = conversation(marvin_model_server, 1)
    assert [m["content"] for m in second_prompt] == ["Do it.", "From the spare.", "More."], "the first is asked again"


def chain(*servers: ModelServer, fallback: str) -> str:
    """A config.yaml with services p1, p2, ..., and one without a key; the first is the one that is asked."""
    services = [f"p{n}: {{base_url: '{server.url}', models: [m{n}]}}" for n, server in enumerate(servers, 1)]
    services.append("bare: {base_url: 'https://models.example/v1', key: BARE_KEY, models: [b1]}")
    return (
        f"provider: p1\nproviders: {{{', '.join(services)}}}\nfallback: {fallback}\n"
        "timeouts: {retry_backoff: [0.01]}\n"
    )


def test_every_usable_one_of_the_chain_is_asked(tmp_path: Path, warm_cache: Path) -> None:
    """I15: from where it stands; what cannot be used is named once."""
    call = calls(("create_file", {"path": "a.txt", "content": "x"}))
    with ModelServer(call, error(500)) as p1, ModelServer(error(401, "no")) as p2, ModelServer(text("Third.")) as p3:
        marvin = Marvin(tmp_path, None, warm_cache)
        marvin.config(chain(p1, p2, p3, fallback="[p1, bare, p2, p2/m2, p3]"))
        result = marvin.ask()
        assert (result.code, result.text) == (0, "  🔧 create_file\nThird.\n")
        assert result.said.index("p2/m2 takes over") < result.said.index("p3/m3 takes over")
        assert result.said.count("bare in fallback: was skipped") == 1
        assert "BARE_KEY" in result.said
        assert [models_of(server) for server in (p1, p2, p3)] == [["m1", "m1"], ["m2"], ["m3"]]
        assert [message["role"] for message in conversation(p3)] == ["user", "assistant", "tool"]


def test_where_all_of_the_chain_fail_the_run_ends(tmp_path: Path, warm_cache: Path) -> None:
    """I22"""
    with ModelServer(*[error(500)] * 9) as p1, ModelServer(*[error(500)] * 9) as p2:
        marvin = Marvin(tmp_path, None, warm_cache)
        marvin.config(chain(p1, p2, fallback="[p2]"))
        result = marvin.ask()
        assert result.code == 1
        assert "p2 is failing or overloaded (500)" in result.said
        assert models_of(p1) == ["m1"]
        assert models_of(p2) == ["m2", "m2"], "the last one is tried again, since nobody else is left"


@pytest.mark.parametrize(
    ("name", "hint"), [("p22", "'p2'"), ("openrouterr", ""), ("m3x", "Available: "), ("offline", "not a model")]
)
def test_a_name_in_the_chain_that_means_nothing_is_an_error(
    tmp_path: Path, warm_cache: Path, second: ModelServer, name: str, hint: str
) -> None:
    with second:
        marvin = Marvin(tmp_path, None, warm_cache)
        marvin.config(chain(second, second, fallback=f"[{name}]"))
        result = marvin.ask()
        assert result.code == 1
        assert "fallback names" in result.said
        assert hint in result.said
        assert models_of(second) == []
        doctor = marvin.run("doctor")
        assert doctor.code == 1
        assert name in doctor.text


def test_the_doctor_says_of_each_of_the_chain_whether_it_can_be_used(
    tmp_path: Path, warm_cache: Path, second: ModelServer
) -> None:
    with second:
        marvin = Marvin(tmp_path, None, warm_cache)
        marvin.config(chain(second, second, fallback="[p2, bare]"))
        shown = marvin.run("doctor").text
        assert "fallback: p2/m2" in shown
        assert "fallback: bare cannot be used" in shown
        assert "BARE_KEY" in shown


def test_a_default_model_that_is_listed_and_refused_ends_the_run(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    """I22: services say "does not exist or you do not have access to it" of models that they list."""
    gone = error(404, {"error": {"message": "The model does not exist or you do not have access to it."}})
    marvin_model_server.models[:] = ["qwen/qwen3-32b"]
    marvin_model_server.script(*[gone] * 50)
    result = marvin.ask()
    assert result.code == 1
    assert posts(marvin_model_server) == 1


def test_without_a_word_in_the_configuration_nothing_else_is_asked(
    marvin: Marvin, marvin_model_server: ModelServer, second: ModelServer
) -> None:
    marvin_model_server.script(error(401, "bad key"))
    with second:
        marvin.config(spare(second, fallback=False))
        assert marvin.ask().code == 1
        assert second.requests == []


def test_a_conversation_that_does_not_fit_goes_to_the_larger_model(tmp_path: Path, warm_cache: Path) -> None:
    overflow = error(400, {"error": {"message": "too long", "code": "context_length_exceeded"}})
    with ModelServer(overflow, text("It fits."), text("Still.")) as server:
        marvin = Marvin(tmp_path, None, warm_cache)
        marvin.config(
            f"provider: mine\nproviders: {{mine: {{base_url: '{server.url}', models: [small, large], "
            "windows: {small: 8000, large: 200000}}}\n"
        )
        result = marvin.ask("--output-format", "stream-json")
        assert result.code == 0
        cycle = next(event for event in result.events() if event["type"] == "model_cycle")
        assert (cycle["previous"], cycle["model"]) == ("mine/small", "mine/large")
        assert marvin.ask("--continue").text == "Still.\n"
        assert models_of(server) == ["small", "large", "large"], "and stays there"


def test_a_default_model_that_is_gone_is_replaced_with_one_notice(
    marvin: Marvin, marvin_model_server: ModelServer
) -> None:
    """A name that the user gave is an error instead, with the nearest that there are."""
    gone = error(404, {"error": {"message": "The model does not exist", "code": "model_not_found"}})
    marvin_model_server.models[:] = ["openai/gpt-oss-121b", "other"]
    marvin_model_server.script(gone, text("Here."), gone)
    groq = {"GROQ_API_KEY": KEY, "GROQ_BASE_URL": marvin_model_server.url, "LLM_PROVIDER": "groq"}
    result = marvin.ask(env=groq)
    assert (result.code, result.text) == (0, "Here.\n")
    assert "openai/gpt-oss-120b is no longer served; groq/openai/gpt-oss-121b replaces it" in result.said
    named = marvin.ask("--model", "openai/gpt-oss-200b", env=groq)
    assert named.code == 1
    assert "openai/gpt-oss-121b" in named.said


def test_a_name_that_the_server_only_spells_otherwise_is_taken_as_it_is_meant(tmp_path: Path, warm_cache: Path) -> None:
    """Nobody asks for the list of a model that was named, so the refusal tells it."""
    with StrictServer(text("Here."), text("Still."), models=["Qwen/Qwen3-32B", "Qwen/Qwen3-32B-AWQ"]) as server:
        marvin = Marvin(tmp_path, None, warm_cache)
        marvin.config(f"provider: mine\nproviders: {{mine: {{base_url: '{server.url}'}}}}\n")
        result = marvin.ask("--model", "qwen3-32b")
        assert (result.code, result.text) == (0, "Here.\n")
        assert "mine/qwen3-32b is called mine/Qwen/Qwen3-32B" in result.said
        assert marvin.ask("--continue").text == "Still.\n"
        assert models_of(server) == ["qwen3-32b", "Qwen/Qwen3-32B", "Qwen/Qwen3-32B"]
        wrong = marvin.ask("--model", "qwen3-30b")
        assert (wrong.code, "It serves Qwen/Qwen3-32B" in wrong.said) == (1, True)


def test_tools_that_a_service_does_not_take_are_named_once(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin.config(
        f"provider: mine\nproviders: {{mine: {{base_url: '{marvin_model_server.url}', models: [m], max_tools: 2}}}}\n"
    )
    marvin_model_server.script(*[text("Fine.")] * 4)
    result = marvin.ask("--tools", "get_usage,compact_history,search_history_backups")
    assert len(marvin_model_server.requests[-1].body["tools"]) == 2
    assert "mine takes 2 tools. Left out: " in result.said
    chat = marvin.run("--plain", "--tools", "get_usage,compact_history,search_history_backups", stdin=b"one\ntwo\n")
    assert f"{chat.text}{chat.said}".count("mine takes 2 tools") == 1
    assert "mine takes" not in marvin.ask("--tools", "get_usage,compact_history").said


# --- by name --------------------------------------------------------------------------------------------------------


def test_a_model_of_another_service_by_name(
    marvin: Marvin, marvin_model_server: ModelServer, second: ModelServer
) -> None:
    with second:
        marvin.config(spare(second))
        assert marvin.ask("--model", "spare/s2").text == "From the spare.\n"
        assert marvin.ask("--model", "s2").text == "Again.\n", "and where its name says enough"
        assert models_of(second) == ["s2", "s2"]
    assert posts(marvin_model_server) == 0


def test_switching_in_the_middle_of_a_chat(
    marvin: Marvin, marvin_model_server: ModelServer, second: ModelServer
) -> None:
    marvin_model_server.script(text("From the first."))
    with second:
        marvin.config(spare(second))
        lines = ["Begin.", "!model spare/s2", "Go on.", "/model", "!pro Think.", "!model nonsense"]
        shown = marvin.run("--plain", stdin="\n".join(lines).encode()).text
        assert "Now using spare/s2" in shown
        assert "* spare/s2" in shown
        assert "Error: " in shown
        assert [m["content"] for m in conversation(second, 0)] == ["Begin.", "From the first.", "Go on."]
        assert posts(second) == 2


# --- none -----------------------------------------------------------------------------------------------------------


def test_a_chat_without_a_model(unconfigured: Marvin) -> None:
    lines = [
        "convert 5 miles to km",
        "create the file a.txt",
        "what is love",
        "/read_file path=a.txt",
        "usage",
        "/model",
        "/play 1",
        "!model nothing",
        "/no_such_tool",
        "/",
    ]
    result = unconfigured.run("--plain", stdin="\n".join(lines).encode())
    assert result.code == 0
    shown = result.text
    assert shown.startswith("No model is set up yet, so only tools work. /login NAME sets a key")
    assert "5 mile = 8.0467 kilometer" in shown
    assert "/create_file path=a.txt" in shown
    assert not (unconfigured.project / "a.txt").exists(), "what changes something waits for the user"
    assert "No model is configured" in shown
    assert "  - Anthropic: run `marvin login anthropic`, or set ANTHROPIC_API_KEY" in shown, "/model says what to do"
    assert "0 model requests" in shown
    assert shown.count("This needs a model, and none is configured.") == 1
    assert "No provider is set up, so Marvin cannot use 'nothing'." in shown
    assert "Unknown command or tool 'no_such_tool'." in shown
    assert "Keys: Enter sends" in shown
    assert shown.count("No model is configured. Without one only requests") == 1, "later it is said in a few words"
    assert shown.count("5 mile = 8.0467 kilometer") == 1, "shown once"


def test_a_run_without_a_model_is_never_offline_by_itself(unconfigured: Marvin) -> None:
    result = unconfigured.ask(prompt="convert 5 miles to km")
    assert (result.code, result.text) == (1, "")
    assert "No model is configured. To set a provider, do one of these" in result.said


def test_offline_by_name(unconfigured: Marvin) -> None:
    done = unconfigured.ask("--provider", "offline", prompt="convert 5 miles to km")
    assert (done.code, done.text) == (0, "  🔧 convert_units\n5 mile = 8.0467 kilometer\n")
    assert done.cost()["session_cost"] == 0.0
    (unconfigured.project / "a.txt").write_text("x")
    timeouts = unconfigured.ask("--provider", "offline", prompt="delete the file a.txt")
    assert (timeouts.code, timeouts.text) == (1, "")
    assert "a.txt" in timeouts.said
    assert (unconfigured.project / "a.txt").exists()


# --- marvin providers -----------------------------------------------------------------------------------------------


def test_the_list_of_services(marvin: Marvin, marvin_model_server: ModelServer, second: ModelServer) -> None:
    with second:
        marvin.config(spare(second))
        shown = marvin.run("providers", env={"GROQ_BASE_URL": "http://127.0.0.1:1/v1", "GROQ_API_KEY": KEY}).text
    lines = shown.splitlines()
    assert any(line.startswith("* groq") and line.endswith("GROQ_API_KEY is set") for line in lines)
    assert "does not work: groq cannot be reached" in shown
    assert "    answers, 1 model\n" in shown
    assert "Anthropic: run `marvin login anthropic`, or set ANTHROPIC_API_KEY" in shown
    assert lines[-1] == "groq with openai/gpt-oss-120b is used, because GROQ_API_KEY is set."
    assert KEY not in shown


def test_no_services_at_all(unconfigured: Marvin) -> None:
    result = unconfigured.run("providers", "list", "--no-check")
    assert result.code == 0
    assert result.text.splitlines()[-1].startswith("No model is configured. ")
