"""Looking for local servers before a chat that has no model: who is found, who is not, and how long it takes."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from marvin_core.api.timeouts import Timeouts
from marvin_core.builtin import marvin_register_providers
from marvin_core.config.load import load
from marvin_core.providers.selection.catalog import Catalog
from marvin_core.providers.selection.choose import choose
from marvin_core.providers.selection.local_servers import LocalServer, probe
from marvin_core.testing import Answer, document, error, hang, html, raw
from marvin_core.testing.model_server import LoopbackServer, RecordedRequest


class Fixed(LoopbackServer):
    """Answers every request in one way."""

    def __init__(self, answer: Answer) -> None:
        self._fixed = answer
        super().__init__()

    def answer_to(self, request: RecordedRequest) -> Answer:
        return self._fixed


def catalog(home: Path, *, ollama: int, llama: int) -> Catalog:
    """The built-in services, with Ollama and llama-server at these ports."""
    bases = {"ollama": f"http://127.0.0.1:{ollama}", "llama-server": f"http://127.0.0.1:{llama}/v1"}
    specs = [spec.replace(base_url=bases.get(spec.name, spec.base_url)) for spec in marvin_register_providers()]
    config, secrets = load((), {"HOME": str(home)}, cwd=home)
    return Catalog(config.replace(timeouts=Timeouts(probe=50.0)), secrets, specs)


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def found(home: Path, *, ollama: int, llama: int) -> Sequence[LocalServer]:
    return probe(catalog(home, ollama=ollama, llama=llama).local(), Timeouts(probe=50.0))


TAGS = document({"models": [{"name": "llama3:8b"}, {"name": "qwen3-coder:30b"}]})
MODELS = document({"object": "list", "data": [{"id": "smollm2"}]})


def test_servers_are_found_in_the_order_of_preference(tmp_path: Path) -> None:
    with Fixed(TAGS) as ollama, Fixed(MODELS) as llama:
        seen = found(tmp_path, ollama=ollama.port, llama=llama.port)
        assert [(one.provider, one.model) for one in seen] == [
            ("ollama", "qwen3-coder:30b"),
            ("llama-server", "smollm2"),
        ]
        assert seen[0].reason == f"it answers at http://127.0.0.1:{ollama.port}"
        asked = [request.method + request.path for request in (*ollama.requests, *llama.requests)]
        assert asked == ["GET/api/tags", "GET/v1/models"], "only lists are asked for, no prompt is sent"


def test_without_the_default_model_the_first_that_is_there_is_taken(tmp_path: Path, closed_port: int) -> None:
    with Fixed(document({"models": [{"name": "tiny"}]})) as ollama:
        assert [one.model for one in found(tmp_path, ollama=ollama.port, llama=closed_port)] == ["tiny"]


@pytest.mark.parametrize(
    "answer",
    [html(), error(404), error(500), raw(b"not HTTP at all"), document({"models": []}), document([1]), document({})],
    ids=["page", "404", "500", "text", "no models", "a list", "nothing"],
)
def test_a_port_that_belongs_to_something_else_is_nothing(tmp_path: Path, closed_port: int, answer: Answer) -> None:
    with Fixed(answer) as other:
        assert found(tmp_path, ollama=other.port, llama=closed_port) == []
        assert found(tmp_path, ollama=closed_port, llama=other.port) == []


def test_nobody_there(tmp_path: Path, closed_port: int) -> None:
    assert found(tmp_path, ollama=closed_port, llama=closed_port) == []


def test_a_silent_server_holds_up_nothing(tmp_path: Path) -> None:
    with Fixed(hang()) as silent:
        here = catalog(tmp_path, ollama=silent.port, llama=silent.port)
        assert probe(here.local(), Timeouts(probe=0.15)) == []


def test_all_are_asked_at_the_same_time(tmp_path: Path) -> None:
    """So that all together take the time of one."""
    with ThreadPoolExecutor(1) as thread:
        with Fixed(hang()) as silent:
            here = catalog(tmp_path, ollama=silent.port, llama=silent.port)
            looking = thread.submit(probe, here.local(), Timeouts(probe=300.0))
            silent.wait_for(2)
            assert not looking.done()
        assert looking.result() == []


def test_a_chat_takes_what_is_found_and_a_run_without_a_chat_does_not_look(tmp_path: Path, closed_port: int) -> None:
    config, _ = load((), {"HOME": str(tmp_path)}, cwd=tmp_path)
    with Fixed(MODELS) as llama:
        here = catalog(tmp_path, ollama=closed_port, llama=llama.port)
        chosen = choose(config, here, lambda: probe(here.local(), Timeouts(probe=50.0)))
        assert chosen.endpoint is not None
        assert (chosen.endpoint.provider, chosen.endpoint.model, chosen.local) == ("llama-server", "smollm2", True)
        asked = len(llama.requests)
        assert choose(config, here).endpoint is None
        assert len(llama.requests) == asked
    offline = choose(config, here, lambda: probe(here.local(), Timeouts(probe=50.0)))
    assert offline.endpoint is not None
    assert (offline.endpoint.provider, offline.reason, offline.local) == ("offline", "no model is configured", True)


def test_a_server_that_is_asked_for_by_name_tells_its_model(tmp_path: Path, closed_port: int) -> None:
    """So that costs, sessions and messages name a model, and servers with several are told which."""
    config, _ = load(("--provider", "llama-server"), {"HOME": str(tmp_path)}, cwd=tmp_path)
    with Fixed(MODELS) as llama:
        here = catalog(tmp_path, ollama=closed_port, llama=llama.port)
        for _ in range(2):
            chosen = choose(config, here).endpoint
            assert chosen is not None
            assert chosen.model == "smollm2"
        assert [request.path for request in llama.requests] == ["/v1/models"], "asked once"
    gone = choose(config, catalog(tmp_path, ollama=closed_port, llama=closed_port)).endpoint
    assert gone is not None
    assert gone.model == "", "the first request says that it is not there"


def test_a_server_of_the_configuration_tells_its_model(tmp_path: Path) -> None:
    with Fixed(MODELS) as box:
        (tmp_path / "config.yaml").write_text(f"providers: {{box: {{base_url: 'http://127.0.0.1:{box.port}/v1'}}}}\n")
        config, secrets = load((), {"HOME": str(tmp_path), "MARVIN_HOME": str(tmp_path)}, cwd=tmp_path)
        config = config.replace(timeouts=Timeouts(probe=50.0))
        chosen = choose(config, Catalog(config, secrets, ())).endpoint
        assert chosen is not None
        assert (chosen.provider, chosen.model) == ("box", "smollm2")
