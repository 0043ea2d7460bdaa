"""The commands of the pages about providers, each against a server that speaks the provider's format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from marvin_core.testing import Answer, ModelServer, text
from tests.e2e.test_docs import DOCS, blocks, environment, shell
from tests.support import answers_ollama, answers_responses

__all__ = ["environment"]  # a fixture

SAYS = "There are two files."


def page(name: str) -> Path:
    return DOCS / "how-to" / f"provider-{name}.md"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "variable", "path", "key", "answer"),
    [
        ("gemini", "GEMINI_BASE_URL", "/v1beta/openai", "GEMINI_API_KEY", text),
        ("groq", "GROQ_BASE_URL", "/openai/v1", "GROQ_API_KEY", text),
        ("mistral", "MISTRAL_BASE_URL", "/v1", "MISTRAL_API_KEY", text),
        ("deepseek", "DEEPSEEK_BASE_URL", "", "DEEPSEEK_API_KEY", text),
        ("xai", "XAI_BASE_URL", "/v1", "XAI_API_KEY", text),
        ("openai", "OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY", answers_responses.text),
        ("openai-compat", "OPENAI_COMPAT_URL", "/api/v1", "OPENAI_COMPAT_API_KEY", text),
        ("llama-server", "LLAMA_SERVER_URL", "/v1", "", text),
        ("ollama", "OLLAMA_URL", "", "", answers_ollama.text),
    ],
)
def test_the_command_of_the_page_gets_an_answer(
    name: str,
    variable: str,
    path: str,
    key: str,
    answer: Callable[[str], Answer],
    tmp_path: Path,
    environment: dict[str, str],
) -> None:
    (command,) = blocks(page(name), "sh")
    with ModelServer(answer(SAYS)) as server:
        address = f"http://127.0.0.1:{server.port}{path}"
        keys = {key: "sk-0123456789"} if key else {}
        done = shell(command, tmp_path, {**environment, variable: address, **keys})
        (asked,) = [request for request in server.requests if request.method == "POST" and request.path != "/api/show"]
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{SAYS}\n"
    assert asked.path.startswith(path)


def test_the_window_of_the_page_is_asked_for(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = Path(environment["HOME"]) / ".config" / "marvin"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(blocks(page("ollama"), "yaml")[0])
    with ModelServer(answers_ollama.text(SAYS)) as server:
        variables = {**environment, "OLLAMA_URL": f"http://127.0.0.1:{server.port}"}
        done = shell(blocks(page("ollama"), "sh")[0], tmp_path, variables)
        assert done.returncode == 0, done.stderr
        assert server.requests[-1].body["options"]["num_ctx"] == 65_536
