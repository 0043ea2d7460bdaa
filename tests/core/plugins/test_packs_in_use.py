"""A pack that is configured, in the real program: runs, tools, sub-commands, `config` and `doctor`."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, calls, text
from tests.support.installing import Place

pytestmark = pytest.mark.xdist_group("crowd")

GARDEN = Path(__file__).parents[2] / "packs" / "marvin-garden" / "marvin_garden"
KEY = "the-key-on-the-back"
OTHER_CLI = """
from marvin_core import hookimpl

@hookimpl
def marvin_extend_cli(app):
    import sys

    @app.command()
    def other():
        sys.stdout.write("other\\n")

    @app.command()
    def another():
        sys.stdout.write("another\\n")
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """The garden, installed."""
    made = Place(tmp_path)
    shutil.copytree(GARDEN, made.packages / "marvin_garden", ignore=shutil.ignore_patterns("__pycache__"))
    info = made.packages / "marvin_garden-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: marvin-garden\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[marvin]\ngarden = marvin_garden.plugin\n")
    (made.home / "marvin").mkdir()
    return made


def configure(place: Place, yaml: str) -> Path:
    path = place.home / "marvin" / "config.yaml"
    path.write_text(yaml)
    return path


class Pump(BaseHTTPRequestHandler):
    """Says that it is on."""

    def do_GET(self) -> None:  # the library's name
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"on")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is to be said."""


@contextmanager
def pump() -> Iterator[str]:
    """The address of a pump."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Pump) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_a_run_with_settings_a_secret_and_state(place: Place) -> None:
    """I24: the secret is in no message, no session file, no event and no line of standard error."""
    with ModelServer(calls(("water", {"plant": "rose"})), text("Watered.")) as server, pump() as address:
        configure(place, f"packs: {{garden: {{plants: [rose], pump: {{address: '{address}'}}}}}}\n")
        ended = place.marvin(
            "--non-interactive",
            "--prompt",
            "Water it",
            "--output-format",
            "stream-json",
            OPENAI_COMPAT_URL=server.url,
            OPENAI_COMPAT_MODEL="scripted",
            GARDEN_KEY=KEY,
            MARVIN_PACKS="garden",
        )
        first, last = (json.dumps(request.body) for request in server.requests if request.method == "POST")
    assert ended.code == 0, ended.err
    assert "Water it (in spring)" in first
    assert "Plants: rose." in first
    assert "rose got 5 litres with [redacted]: on" in last, "tools reach an address that the user set"
    assert "marvin: garden: water is done with [redacted]\n" in ended.err
    (session,) = (place.home / "marvin/data/sessions").glob("*.jsonl")
    records = [json.loads(line) for line in session.read_text().splitlines()]
    assert [record["state"]["marvin-garden"]["requests"] for record in records if record["type"] == "state"][-1] == 2
    assert KEY not in ended.out + ended.err + first + last + session.read_text()
    notices = [json.loads(line) for line in ended.out.splitlines() if '"notice"' in line]
    assert {notice["pack"] for notice in notices if notice["text"].startswith("garden: ")} == {"garden"}


@pytest.mark.slow
def test_a_wrong_section_refuses_the_start_and_not_what_mends_it(place: Place) -> None:
    path = configure(place, "packs:\n  garden:\n    litrs: 3\n")
    refused = f"marvin: {path}, line 3: unknown key 'packs.garden.litrs'. Did you mean 'litres'?\n"
    tools = place.marvin("tools", "list")
    assert (tools.code, tools.err) == (1, refused)
    run = place.marvin("--non-interactive", "--prompt", "x", OPENAI_COMPAT_URL="http://127.0.0.1:1")
    assert run.code == 1
    assert run.err.startswith(refused)
    assert run.err.splitlines()[-1].startswith("MARVIN_COST:")
    doctor = place.marvin("doctor")
    assert "BROKEN " in doctor.out
    assert "Did you mean 'litres'?" in doctor.out
    assert place.marvin("tools", "list", MARVIN_PACKS="coding").code == 0, "without the pack nobody asks"
    configure(place, "packs:\n  garden:\n    litres: 3\n")
    assert place.marvin("tools", "list").code == 0


@pytest.mark.slow
def test_config_shows_and_sets_what_packs_are_configured_with(place: Place) -> None:
    path = configure(place, "# mine\npacks:\n  garden:\n    season: spring  # soon\n  gone: {a: 1}\n")
    assert place.marvin("config", "set", "packs.garden.season", "summer").code == 0
    assert place.marvin("config", "set", "packs.garden.pump.hours", "[7, 8]").code == 0
    assert place.marvin("config", "set", "packs.garden.pump.address", "http://pump.example").code == 0
    misspelled = place.marvin("config", "set", "packs.gardn.season", "summer")
    assert misspelled.code == 1
    assert "No pack with settings is called 'gardn'. Did you mean 'garden'?" in misspelled.err
    shown = place.marvin("config", "show", GARDEN_LITRES="9", GARDEN_KEY=KEY)
    assert shown.code == 0
    for line in (
        "packs.garden.litres: 9 (from GARDEN_LITRES)",
        'packs.garden.season: "summer" (from config.yaml)',
        "packs.garden.plants: [] (from default)",
        'packs.garden.pump.address: "http://pump.example" (from config.yaml)',
        "packs.garden.pump.hours: [7, 8] (from config.yaml)",
        "packs.garden, secret GARDEN_KEY: set (the key of the pump, which is on its back)",
        'packs.gone: {"a": 1} (no pack in use reads them)',
    ):
        assert f"{line}\n" in shown.out, line
    assert KEY not in shown.out
    before = path.read_text()
    assert "season: summer  # soon" in before
    for key, value, said in (
        ("packs.garden.litres", "1000", "line 7: packs.garden.litres: must be an integer from 1 to 100; found 1000."),
        ("packs.gardn.litres", "1", "Did you mean 'garden'?"),
        ("packs.garden", "3", "packs.gardenmust be a mapping of strings, as in"),
    ):
        wrong = place.marvin("config", "set", key, value)
        assert wrong.code == 1
        assert said.partition(": ")[2] in wrong.err or said in wrong.err
        assert path.read_text() == before


@pytest.mark.slow
def test_a_sub_command_loads_the_pack_that_brings_it_alone(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "imported"
    other = place.install("acme-other", OTHER_CLI)
    other.write_text(f"open({str(log)!r}, 'a').write(__name__ + '\\n')\n{other.read_text()}")
    place.tools()
    log.write_text("")
    ended = place.marvin("garden", "--loud", GARDEN_KEY=KEY, GARDEN_LITRES="3")
    assert (ended.code, ended.err) == (0, "without [redacted]\n")
    assert ended.out == f"3 LITRES IN HOME\n{place.home / 'marvin/data/packs/garden'}\n"
    assert place.marvin("tools", "list").code == 0
    assert log.read_text() == "", "neither another pack's sub-command nor one of the core needs it"
    assert place.marvin("another").out == "another\n"
    assert log.read_text() == "acme_other\n"


@pytest.mark.slow
def test_doctor_says_what_is_missing_and_where_the_folders_are(place: Place) -> None:
    assert "\n  none   garden has no GARDEN_KEY\n" in place.marvin("doctor").out
    place.marvin("garden", GARDEN_KEY=KEY)
    said = place.marvin("doctor", GARDEN_KEY=KEY).out
    assert "GARDEN_KEY" not in said
    assert f"  ok     data of garden: {place.home / 'marvin/data/packs/garden'}\n" in said


FAILING = """
from marvin_core import ProviderSpec, hookimpl

class Broken:
    name, model, context_window, max_tools = "breaks", "one", None, None

    def __init__(self, endpoint=None, http=None):
        pass

    async def stream(self, request):
        raise ZeroDivisionError
        yield

    async def aclose(self):
        pass

def create(endpoint, *args):
    return Broken()

@hookimpl
def marvin_register_providers():
    made = ProviderSpec(
        name="breaks", factory="acme_models:create", base_url="", default_model="one", in_process=True
    )
    return [made]
"""


@pytest.mark.slow
def test_a_provider_that_fails_is_named_with_its_pack(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("acme-models", FAILING)
    ended = place.marvin("--provider", "breaks", "--prompt", "Hi")
    assert ended.code == 1
    assert "The provider breaks of the pack acme_models failed: ZeroDivisionError" in ended.err
