"""Servers with model names of their own, as people run them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marvin_core.testing import Answer, ModelServer, RecordedRequest, document, error, text


class StrictServer(ModelServer):
    """Answers only to the models that it lists, as vLLM does; `key`, where given, must be sent along.

    `entries` are what it says of each model beside its name.
    """

    def __init__(
        self, *script: Answer, models: Sequence[str], key: str = "", entries: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.entries = entries
        self.key = key
        super().__init__(*(script or (text("Here."),)), models=models, repeat=True)

    def answer_to(self, request: RecordedRequest) -> Answer:
        """What is answered to a request."""
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return error(401, {"error": {"message": "Unauthorized"}})
        if request.method == "GET":
            said = [*self.entries, *({} for _ in self.models[len(self.entries) :])]
            data = [{"id": name, "object": "model", **more} for name, more in zip(self.models, said, strict=True)]
            return document({"object": "list", "data": data})
        if request.body.get("model") in self.models:
            return self.next_answer()
        message = f"The model `{request.body.get('model')}` does not exist."
        return error(404, {"error": {"message": message, "type": "NotFoundError", "code": 404}})

    def asked_for(self) -> list[str]:
        """The models of the requests."""
        return [request.body["model"] for request in self.requests if request.method == "POST"]
