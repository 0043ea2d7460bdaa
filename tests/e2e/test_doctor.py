"""`marvin doctor`: what it finds, and that it says what to do."""

from __future__ import annotations

import socket

import pytest

from marvin_core.testing import ModelServer
from tests.e2e.support_e2e import Marvin

pytestmark = pytest.mark.slow


def test_a_sound_installation(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.models[:] = ["qwen/qwen3-32b"]
    keys = {"GROQ_API_KEY": "gsk-very-secret", "OPENAI_COMPAT_API_KEY": "sk-very-secret"}
    result = marvin.run("doctor", env={**keys, "LLM_PROVIDER": "openai-compat"})
    assert (result.code, result.said) == (0, "")
    for expected in ("marvin-tools-coding", "openai-compat, because", f"{marvin_model_server.url} answers"):
        assert expected in result.text
    assert "a key of groq: GROQ_API_KEY" in result.text
    assert "very-secret" not in result.text  # I24: keys are told by name only


def test_a_key_in_a_wrong_place_is_not_told(unconfigured: Marvin) -> None:
    unconfigured.config("provider: gsk-very-secret\n")
    result = unconfigured.run("doctor", env={"GROQ_API_KEY": "gsk-very-secret"})
    assert "very-secret" not in result.text


def test_without_a_model_it_says_how_to_get_one(unconfigured: Marvin) -> None:
    result = unconfigured.run("doctor")
    assert result.code == 0
    assert "No model is configured" in result.text
    assert "OPENAI_COMPAT_API_KEY" in result.text


def test_a_provider_without_its_key_is_broken(unconfigured: Marvin) -> None:
    unconfigured.config("provider: groq\n")
    result = unconfigured.run("doctor")
    assert result.code == 1
    assert "GROQ_API_KEY" in result.text


def test_a_server_that_is_not_there_is_broken(unconfigured: Marvin) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        result = unconfigured.run("doctor", env={"OPENAI_COMPAT_URL": url})
    assert result.code == 1
    assert f"cannot be reached at {url}" in result.text
    assert result.text.count("Start it") == 1, "the advice is given once"


def test_a_server_that_never_answers_does_not_hold_it_up(unconfigured: Marvin) -> None:
    unconfigured.config("timeouts: {model_list: 0.2}\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        result = unconfigured.run("doctor", env={"OPENAI_COMPAT_URL": url})
    assert result.code == 1
    assert "sent nothing for 0.2 s" in result.text


@pytest.mark.parametrize("content", ["modell: x\n", "a: [\n", "provider: nobody\n", "timeouts: {tool: -1}\n"])
def test_a_config_that_no_run_can_start_with_is_named(unconfigured: Marvin, content: str) -> None:
    unconfigured.config(content)
    result = unconfigured.run("doctor")
    assert result.code == 1
    assert "BROKEN" in result.text
    assert "marvin config edit" in result.text
    assert "Traceback" not in result.said


def test_a_secret_that_a_pack_lacks_is_named_with_what_to_do(unconfigured: Marvin) -> None:
    told = unconfigured.run("doctor").text
    assert "-> If you need it, set the variable to the access token of the ntfy server, if it needs one.\n" in told


def test_a_tool_that_waits_for_its_mode_is_no_fault(unconfigured: Marvin) -> None:
    lines = unconfigured.run("doctor").text.splitlines()
    (line,) = [line for line in lines if "end_elaborate" in line]
    assert line.split() == ["ok", *"end_elaborate: offered only while /auto is on".split()]


def test_tools_that_lack_something_are_named_with_what_they_lack(unconfigured: Marvin) -> None:
    result = unconfigured.run("doctor", env={"MARVIN_READONLY": "1"})
    (line,) = [line for line in result.text.splitlines() if "run_command" in line]
    assert "MARVIN_READONLY" in line
