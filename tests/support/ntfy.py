"""A service that takes notices, as ntfy does."""

from __future__ import annotations

import json
from typing import Any

from marvin_core.testing import Answer, RecordedRequest
from marvin_core.testing.model_server import LoopbackServer


class NtfyService(LoopbackServer):
    """Takes notices. `answer` is given in place of the usual one."""

    answer: Answer | None = None

    @property
    def notices(self) -> list[dict[str, Any]]:
        """What was published."""
        return [request.body for request in self.requests]

    def answer_to(self, request: RecordedRequest) -> Answer:
        """That it was published."""
        body = json.dumps({"id": "n1", "topic": request.body["topic"]}).encode()
        headers = (("content-type", "application/json"),)
        return self.answer or Answer(headers=headers, steps=(body,), framing="length")
