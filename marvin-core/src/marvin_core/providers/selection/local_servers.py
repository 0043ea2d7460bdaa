"""The models of servers on this machine, requested if no model is configured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...api.providers import ProviderSpec, Secret, ServedModel
from ...api.record import Record
from ...api.timeouts import Timeouts
from ...util.untrusted_json import parse_json

_MODELS = "/models"
_REQUESTS = "/chat/completions"
_PATHS = {"ollama": "/api/tags", "llama-server": _MODELS}
_ENDINGS = ("/api/chat", "/api", "/v1/chat/completions", "/v1")
_LARGEST = 1_000_000


class LocalServer(Record):
    """A server on this machine that lists models; `model` is the recommended one."""

    provider: str
    model: str
    reason: str


def probe(servers: Iterable[tuple[ProviderSpec, str]], timeouts: Timeouts) -> Sequence[LocalServer]:
    """The local servers that list a model, in the order of preference; all are asked at once.

    Only the list of models is requested: the port may belong to an unrelated program.

    Args:
        servers: the services on this machine, each with its address, without those that start only on request.
    """
    import threading
    import time

    asked = [(spec, base_url) for spec, base_url in servers if spec.name in _PATHS]
    answers: dict[str, LocalServer] = {}
    threads = [
        threading.Thread(target=_ask, args=(spec, base_url, timeouts, answers), daemon=True) for spec, base_url in asked
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + timeouts.probe
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    return [answers[spec.name] for spec, _ in asked if spec.name in answers]


def listed(spec: ProviderSpec, base_url: str, timeouts: Timeouts, key: Secret | None = None) -> list[ServedModel]:
    """The models that a server on this machine lists; empty if it gives no list. Blocks, at most for `model_list`."""
    import threading

    found: list[ServedModel] = []
    # In a thread: whoever sends a byte now and then is waited for no longer than the rest.
    asking = threading.Thread(target=lambda: found.extend(_listed(spec, base_url, timeouts, key)), daemon=True)
    asking.start()
    asking.join(timeouts.model_list)
    return list(found)


def _ask(spec: ProviderSpec, base_url: str, timeouts: Timeouts, answers: dict[str, LocalServer]) -> None:
    models = [model.name for model in _listed(spec, base_url, timeouts)]
    if models:
        model = spec.default_model if spec.default_model in models else models[0]
        answers[spec.name] = LocalServer(provider=spec.name, model=model, reason=f"it answers at {base_url}")


def _listed(spec: ProviderSpec, base_url: str, timeouts: Timeouts, key: Secret | None = None) -> list[ServedModel]:
    from contextlib import closing
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    from ..http.model_lists import models_in

    headers = {"authorization": f"Bearer {key.reveal()}"} if key else {}
    try:
        parts = urlsplit(base_url)
        connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeouts.probe)
        with closing(connection):
            connection.request("GET", _list_path(spec, parts.path), headers=headers)
            with connection.getresponse() as response:
                return models_in(parse_json(response.read(_LARGEST)))
    except (OSError, HTTPException, ValueError):  # nobody is there, or it is something else
        return []


def _list_path(spec: ProviderSpec, path: str) -> str:
    path = path.rstrip("/")
    if spec.name == "ollama":
        ending = next((ending for ending in _ENDINGS if path.endswith(ending)), "")
        return path.removesuffix(ending) + _PATHS[spec.name]
    return path.removesuffix(_REQUESTS) + _MODELS
