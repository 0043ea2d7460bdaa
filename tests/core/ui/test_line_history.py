"""The lines that were typed, as they are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.ui.plain.line_history import LineHistory

KEY = "Zq8kV3tYw71xLpR9mNcDZq8kV3tYw71x"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (f"/login mistral {KEY}", "/login mistral"),
        (f"/login mistral\n{KEY}", "/login mistral"),
        (f"/login {KEY}", "/login"),
        (f"/login\t{KEY} mistral", "/login"),
        (f"/logout openai-compat  {KEY}", "/logout openai-compat"),
        ("/login groq", "/login groq"),
        ("/login", "/login"),
        ("/logins are many here", "/logins are many here"),
        ("what does /login groq do?", "what does /login groq do?"),
    ],
)
def test_a_key_behind_login_is_not_kept(tmp_path: Path, line: str, kept: str) -> None:
    """People type it there; what Marvin does not know yet and looks like nothing, it can tell by the place alone."""
    history = LineHistory(lambda: tmp_path / "history")
    history.store_string(line)
    assert list(history.load_history_strings()) == [kept]
