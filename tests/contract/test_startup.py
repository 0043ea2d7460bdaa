"""What a start does not import. Each of these modules was measured to cost more than the rest of a start."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from marvin_core.testing import Answer, ModelServer, calls, text

IMPORT_TIMES = "import time:"
# Not needed before, while or after a plain answer over http:// comes in. (asyncio itself imports ssl and subprocess.)
FORBIDDEN = {
    "pydantic",
    "typer",
    "rich",
    "click",
    "pygments",
    "ruamel",
    "importlib.metadata",
    "ctypes",
    "genai_prices",
    "jsonschema",
    "tomllib",
    "marvin_core.plugins.discovery",
    "marvin_core.plugins.entry_points",
    "marvin_core.plugins.guards",
    "marvin_core.plugins.left_out",
    "marvin_core.plugins.trials",
    "marvin_core.tools.schema",
    "marvin_core.util.schemas.normal_form",
    "marvin_core.cli.commands",
    "marvin_core.conversation.plan",
    "marvin_core.conversation.digest",
    "marvin_core.conversation.documents",
    "marvin_core.engine.calls",
    "marvin_core.engine.requests.remaining",
    "marvin_core.config.thinking",
    "marvin_core.config.services",
    "marvin_core.config.file.checks",
    "marvin_core.config.file.model",
    "marvin_core.config.file.problems",
    "marvin_core.config.file.rules",
    "marvin_core.config.file.shell_hooks",
    "marvin_core.http.decoding",
    "marvin_core.providers.http.turns",
    "marvin_core.engine.resumption",
    "marvin_core.guard.files.errors",
    "marvin_core.guard.files.folder_descriptors",
    "marvin_core.guard.processes.child",
    "marvin_core.guard.processes.jobs",
    "marvin_core.guard.processes.program",
    "marvin_core.guard.processes.table",
    "marvin_core.guard.processes.tree",
    "marvin_core.guard.sandbox.leaving",
    "marvin_core.guard.sandbox.session",
    "marvin_core.providers.chat_completions.gemini_schema",
    "marvin_core.providers.http.efforts",
    "marvin_core.providers.http.schemas",
    "marvin_core.config.output_schema",
    "marvin_core.engine.output_form",
    "marvin_core.providers.selection.lifetimes",
    "marvin_core.usage.price_updates",
    "marvin_core.providers.chat_completions.reasoning_details",
    "marvin_core.sessions.reader",
    "marvin_core.sessions.search",
    "marvin_core.util.yaml.edit",
    "marvin_core.ui.plain",
    "prompt_toolkit",
    "opentelemetry",
    "marvin_core.telemetry",
    "marvin_tools_coding",
}


class Start:
    """A home folder in which Marvin was started before, so that its caches are warm."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def imported(self, *argv: str, url: str = "", model: str = "scripted") -> set[str]:
        """The modules that a run imports."""
        more = {"OPENAI_COMPAT_MODEL": model} if model else {}
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "OPENAI_COMPAT_URL": url, **more}
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-P", "-m", "marvin_core", *argv],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=150,
            check=True,
            cwd=self.home,
        )
        lines = [line for line in done.stderr.splitlines() if line.startswith(IMPORT_TIMES)]
        return {line.rpartition("|")[2].strip() for line in lines}

    def run(self, *script: Answer) -> set[str]:
        """The modules that a non-interactive run imports."""
        with ModelServer(*script) as server:
            found = self.imported("--non-interactive", "--prompt", "hello", url=server.url)
            assert len(server.requests) == len(script)
        return found


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Start:
    place = Start(tmp_path_factory.mktemp("home"))
    folder = place.home / ".config" / "marvin"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(
        "tools: coding\ntimeouts: {tool: 50}\nui: {thinking: on}\nlabels: {web: [send]}\n"
        "permissions: {deny: [nothing]}\nprices: {scripted: {input: 1, output: 1}}\nallow_addresses: [127.0.0.1]\n"
    )
    place.run(text("Warm."))
    return place


def loaded(found: set[str], *names: str) -> set[str]:
    """Which of the names, or of what is below them, are among those."""
    return {module for module in found for name in names if module == name or module.startswith(f"{name}.")}


@pytest.mark.slow
def test_a_run_without_tool_calls_imports_nothing_heavy(start: Start) -> None:
    found = start.run(text("Hello."))
    assert {"asyncio", "httpx"} <= found, "the list is that of a real run"
    assert loaded(found, *FORBIDDEN) == set()


@pytest.mark.slow
def test_a_section_of_a_pack_that_was_found_right_is_not_checked_again(tmp_path: Path) -> None:
    """Checking takes pydantic and the pack's own module."""
    place = Start(tmp_path)
    (tmp_path / ".config" / "marvin").mkdir(parents=True)
    (tmp_path / ".config" / "marvin" / "config.yaml").write_text(
        "packs: {life: {exchange_rates: 'http://x.example'}}\n"
    )
    assert loaded(place.run(text("Warm.")), "pydantic")
    assert loaded(place.run(text("Hello.")), *FORBIDDEN, "marvin_tools_life") == set()


def test_asking_a_server_of_ones_own_for_its_model_imports_nothing_heavy(start: Start) -> None:
    """One question on this machine, before the first request."""
    with ModelServer(text("Hello.")) as server:
        found = start.imported("--non-interactive", "--prompt", "hello", url=server.url, model="")
        assert [request.method for request in server.requests] == ["GET", "POST"]
    assert "marvin_core.providers.http.model_lists" in found
    assert loaded(found, *FORBIDDEN) == set()


@pytest.mark.slow
def test_a_tool_is_imported_when_it_is_called(start: Start) -> None:
    found = start.run(calls(("get_working_dir", {})), text("Done."))
    assert {
        "marvin_core.kit.files.listing",
        "marvin_core.engine.calls.context",
        "pydantic",
    } <= found  # what is imported while it is imported is listed
    others = ("marvin_tools_coding.files.edit", "marvin_tools_coding.git", "typer", "rich", "ruamel")
    assert loaded(found, *others) == set()


@pytest.mark.slow
def test_version_imports_neither_argparse_nor_asyncio(start: Start) -> None:
    found = start.imported("--version")
    assert loaded(found, "argparse", "asyncio", "json", "httpx", "typing", *FORBIDDEN) <= {"typing"}
    assert {name for name in found if name.startswith("marvin_core.")} <= {
        "marvin_core.__main__",
        "marvin_core.version",
    }


def test_help_imports_argparse_and_nothing_heavy(start: Start) -> None:
    found = start.imported("--help")
    assert "argparse" in found
    assert loaded(found, "asyncio", "httpx", "pluggy", *FORBIDDEN) == set()


@pytest.mark.slow
def test_the_cheap_way_is_taken_only_where_the_caches_are_warm(tmp_path: Path) -> None:
    """A first start reads and checks config.yaml and looks for packs: what the tests above forbid is really used there.

    The packs themselves are loaded in another process, and so is what only they need.
    """
    place = Start(tmp_path)
    (tmp_path / ".config" / "marvin").mkdir(parents=True)
    (tmp_path / ".config" / "marvin" / "config.yaml").write_text("tools: coding\n")
    found = place.run(text("Hello."))
    checks = {"ruamel.yaml", "pydantic", "marvin_core.config.file.model"}
    assert {*checks, "importlib.metadata", "marvin_core.plugins.trials"} <= found
    assert loaded(found, "typer", "marvin_core.plugins.discovery", "marvin_tools_coding") == set()


def test_a_config_yaml_with_headers_is_parsed_and_checked_once(tmp_path: Path) -> None:
    """Headers may be keys, of which no copy is made: a start takes them from their places in the file."""
    place = Start(tmp_path)
    (tmp_path / ".config" / "marvin").mkdir(parents=True)
    (tmp_path / ".config" / "marvin" / "config.yaml").write_text(
        "providers: {other: {base_url: 'http://127.0.0.1:1/v1', headers: {X-Key: k}}}\n"
    )
    assert loaded(place.run(text("Warm.")), "pydantic")
    found = place.run(text("Hello."))
    assert loaded(found, "pydantic", "ruamel", "marvin_core.config.file.model") == set()


def test_a_chat_in_a_pipe_does_not_import_the_line_editor(start: Start) -> None:
    """It costs 195 ms, and only a terminal needs it."""
    with ModelServer() as server:
        found = start.imported("--plain", url=server.url)
    assert "marvin_core.ui.plain.simple_chat" in found
    assert loaded(found, "prompt_toolkit", "wcwidth", "marvin_core.ui.plain.terminal_chat", "rich", "pygments") == set()


@pytest.mark.slow
def test_instructions_and_skills_import_nothing_heavy_once_heads_are_kept(tmp_path: Path) -> None:
    place = Start(tmp_path)
    (tmp_path / "AGENTS.md").write_text("Use tabs. Grüße.")
    skill = tmp_path / ".agents" / "skills" / "pdf"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\ndescription: Read PDFs.\n---\nUse pdftotext.\n")
    assert loaded(place.run(text("Warm.")), "ruamel")
    found = place.run(text("Hello."))
    assert "marvin_core.engine.instructions.skills" in found
    heavy = (
        "pydantic",
        "ruamel",
        "charset_normalizer",
        "marvin_core.kit.files.old_encodings",
        "marvin_core.engine.calls",
    )
    assert loaded(found, *heavy) == set()


@pytest.mark.slow
@pytest.mark.parametrize("place", ["config.yaml", ".mcp.json"])
def test_servers_that_are_not_used_cost_a_start_next_to_nothing(tmp_path: Path, place: str) -> None:
    """Their tools are known, so the start reads their names from one file."""
    server = str(Path(__file__).parents[1] / "support" / "mcp_server.py")
    entry = {"command": sys.executable, "args": ["-S", "-P", server, "good", str(tmp_path / "started")]}
    servers = {f"server{number}": entry for number in range(5)}
    folder = tmp_path / ".config" / "marvin"
    folder.mkdir(parents=True)
    project = place == ".mcp.json"
    (folder / "config.yaml").write_text(json.dumps({"sandbox": "off", **({} if project else {"mcp_servers": servers})}))
    if project:
        (tmp_path / place).write_text(json.dumps({"mcpServers": servers}))
    trust = ["--trust-project", "--working-dir", str(tmp_path)] if project else []
    with ModelServer(text("Warm."), text("Hello.")) as model:
        start = partial(Start(tmp_path).imported, "--non-interactive", "--prompt", "hello", *trust, url=model.url)
        start()
        found = start()
    assert len((tmp_path / "started").read_text().split()) == 5, "each was asked once, and started no second time"
    assert loaded(found, "marvin_core.mcp") == {f"marvin_core.mcp{name}" for name in ("", ".cached", ".session")}
    assert loaded(found, *FORBIDDEN, "marvin_core.api.processes") == set()
    assert project or not loaded(found, "marvin_core.config.mcp_servers")
