"""The provider `local` with a small real model in Marvin's own process."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.e2e.support_e2e import Marvin
from tests.real.components import ROOT, required
from tests.real.llama_server import model_file

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("llama"), pytest.mark.timeout(900)]


@pytest.fixture
def model() -> Path:
    required(Path(sys.prefix) / "npm")
    return model_file()


def test_a_file_is_enough(tmp_path: Path, model: Path) -> None:
    marvin = Marvin(tmp_path, None)
    page = (ROOT / "docs/how-to/provider-local.md").read_text(encoding="utf-8")
    command = re.findall(r"^marvin (--model local/\S+)$", page, re.MULTILINE)
    assert command == ["--model local/models/qwen3-4b.gguf"], "what follows does as the page says"
    marvin.config(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0].replace("32768", "2048"))
    (marvin.project / "models").mkdir()
    (marvin.project / "models/qwen3-4b.gguf").symlink_to(model)
    result = marvin.ask("--tools", "get_usage", *command[0].split(), prompt="Say hello.", limit=800)
    assert result.code == 0, result.err.decode()
    assert result.text.strip()
    foreign = [line for line in result.said.splitlines() if not line.startswith("marvin: ")]
    assert foreign == [], "llama.cpp keeps quiet; Marvin may say that so small a model found no end"
    assert result.cost()["session_cost"] == 0.0


def test_a_file_that_is_no_model(tmp_path: Path, model: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF nonsense")
    result = Marvin(tmp_path, None).ask("--model", f"local/{tmp_path}/broken.gguf", limit=600)
    assert result.code == 1
    assert "cannot be loaded" in result.said
