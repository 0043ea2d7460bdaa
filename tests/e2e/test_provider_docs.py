"""The commands of the pages about providers, each against a server that speaks the provider's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from marvin_core.config.services import service_table
from marvin_core.testing import Answer, ModelServer, text
from tests.e2e.test_docs import DOCS, blocks, environment, services_of, shell
from tests.support import answers_ollama, answers_responses

__all__ = ["environment"]  # a fixture

SAYS = "There are two files."
WIRES: Mapping[str, Callable[[str], Answer]] = {
    "chat-completions": text,
    "responses": answers_responses.text,
    "ollama": answers_ollama.text,
}
"""The wire formats of the services whose page has a command, and what answers in them."""


def page(name: str) -> Path:
    return DOCS / "how-to" / f"provider-{name}.md"


@pytest.mark.slow
@pytest.mark.parametrize("name", services_of(*WIRES))
def test_the_command_of_the_page_gets_an_answer(name: str, tmp_path: Path, environment: dict[str, str]) -> None:
    service = service_table()[name]
    (command,) = blocks(page(name), "sh")
    path = urlsplit(service["base_url"]).path
    with ModelServer(WIRES[service["wire"]](SAYS)) as server:
        address = f"http://127.0.0.1:{server.port}{path}"
        keys = dict.fromkeys(service.get("key_variables", ()), "sk-0123456789")
        done = shell(command, tmp_path, {**environment, service["url_variable"]: address, **keys})
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
