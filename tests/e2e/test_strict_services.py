"""Whole runs with tools against services that refuse what the real ones refuse, in their own words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from marvin_core.testing import Answer, events, text
from tests.e2e.support_e2e import Marvin
from tests.support import strict_services as strict
from tests.support.chatting import chunk

KEY = "sk-0123456789abcdef"
THINKS = "Let me see."


def round_of(number: int, thought: object, field: str) -> Answer:
    """Thinking, and a call of a tool that there is."""
    function = {"name": "create_file", "arguments": f'{{"path": "{number}.txt", "content": "x"}}'}
    call = {"index": 0, "id": f"fileCal{number:02}", "type": "function", "function": function}
    return events(chunk({field: thought}), chunk({"tool_calls": [call]}), chunk({}, "tool_calls"))


SERVICES: dict[str, tuple[str, object, tuple[strict.Rule, ...]]] = {
    "deepseek": ("reasoning_content", THINKS, (strict.wants_reasoning,)),
    "mistral": (
        "content",
        [{"type": "thinking", "thinking": [{"type": "text", "text": THINKS}]}],
        (strict.wants_nine, strict.wants_no_reasoning, strict.wants_turns_or_outputs, strict.wants_the_user_last),
    ),
    "xai": ("reasoning_content", THINKS, ()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("level", ["off", "high"])
def test_a_run_and_its_continuation(marvin: Marvin, name: str, level: str) -> None:
    """Two rounds of calls, the end, and a second prompt out of the session file: nothing is refused."""
    field, thought, rules = SERVICES[name]
    script: Sequence[Answer] = [round_of(1, thought, field), round_of(2, thought, field), text("Done.")]
    with strict.StrictServer(*script, text("Again."), rules=rules) as server:
        env = {f"{name.upper()}_BASE_URL": server.url, f"{name.upper()}_API_KEY": KEY, "MARVIN_THINKING": level}
        first = marvin.ask("--provider", name, env=env)
        assert (first.code, first.text.splitlines()[-1]) == (0, "Done."), first.said
        second = marvin.ask("--provider", name, "--continue", env=env)
        assert (second.code, second.text) == (0, "Again.\n"), second.said
    assert server.refused == []
    answers = [message for message in server.taken[-1]["messages"] if message["role"] == "assistant"]
    assert [THINKS in str(message) for message in answers] == [True, True, False]
    assert all(KEY not in path.read_text() for path in marvin.session_files())
