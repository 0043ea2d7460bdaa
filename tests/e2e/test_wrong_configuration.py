"""A start, `marvin doctor` and `marvin config set` say the same of the same config.yaml."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.e2e.support_e2e import LIMIT, Marvin

pytestmark = pytest.mark.slow

WRONG = {
    "no YAML": "provider: 'groq\n",
    "another encoding": "provider: gro\udce4\n",
    "no mapping": "- groq\n",
    "tabs": "ui:\n\tmarkdown: off\n",
    "a key twice": "provider: groq\nprovider: ollama\n",
    "an alias of nothing": "provider: *x\n",
    "a value that contains itself": "labels: &a\n  web: [*a]\n",
    "deep nesting": "tools: " + "[" * 300,
    "two documents": "provider: groq\n---\nseed: on\n",
    "a tag": "fallback: !!set {a, b}\n",
    "no date": "model: 2026-13-45\n",
    "no number": "timeouts: {tool: .nan}\n",
    "UTF-16": "\udcff\udcfep\0",
    "a byte order mark and a wrong key": "\ufeffprovidr: groq\n",
    "line ends of Windows": "seed: on\r\nthinking: hard\r\n",
    "an empty section": "timeouts:\n",
    "a merged key": "timeouts:\n  <<: {tool: soon}\n",
    "a key with a dot": "timeouts.tool: 5\n",
    "more than a person writes": "#" * 1_000_001,
    "unknown key": "providr: groq\n",
    "unknown key below": "ui: {mardown: off}\n",
    "another type": "timeouts:\n  tool: soon\n",
    "too small": "limits: {answer: 0}\n",
    "unknown word": "tools: coding\nsandbox: requird\n",
    "unknown word in a list": "labels: {web: [send, sent]}\n",
    "unknown mode": "permission_mode: none\n",
    "unknown level": "thinking: hard\n",
    "unknown tier": "models: {best: big}\n",
    "unknown transport": "transport: quick\n",
    "unknown lifetime": "cache: 2h\n",
    "a network that is none": "network: example.org\n",
    "an address that is none": "allow_addresses: ['http://intranet.example']\n",
    "a price that is none": "prices: {m: {input: -1}}\n",
    "a rule that is none": "permissions:\n  deny:\n    - 'x(git'\n",
    "an event that is none": "hooks: {before_tol: [x]}\n",
    "a key in place of its variable": "providers: {p: {base_url: 'https://x.example', key: sk-0123}}\n",
    "several at once": "seed: maybe\nthinking: hard\nunknown: 1\n",
    "a service without an address": "tools: coding\nproviders:\n  mine: {models: [m]}\n",
    "an address of another kind": "providers:\n  mine:\n    base_url: ftp://x.example/v1\n",
    "an unknown format": "providers:\n  mine:\n    base_url: https://x.example\n    wire: responces\n",
    "unknown provider": "tools: coding\nprovider: grok\n",
    "unknown model to fall back to": "fallback:\n  - groq\n  - nobody/m\n",
    "a key that a pack has not": "packs:\n  life:\n    blender_prt: 1\n",
    "keys of two packs": "packs:\n  pipeline: {zz: 1}\n  life:\n    zz: 1\n    blender_port: x\n",
    "a value that a pack does not take": "packs:\n  life:\n    blender_port: 0\n",
}
# Each in a copy of one process that has imported the program: a start for each would take minutes.
DRIVER = """
import asyncio, httpx, json, os, ruamel.yaml, sys, tempfile
import marvin_core.app, marvin_core.cli.commands.all, marvin_core.cli.unattended, marvin_core.plugins.pack_settings
from pathlib import Path
from marvin_core.config.file.model import file_schema
from marvin_core.cli.main import main
from marvin_core.util.streams import StandardStreams

home = Path(sys.argv[1])
path = home / ".config" / "marvin" / "config.yaml"
path.parent.mkdir(parents=True)
env = {"HOME": str(home), "PATH": os.environ["PATH"], "MARVIN_SANDBOX": "off"}
ways = (["--non-interactive", "--prompt", "hello"], ["doctor"], ["config", "set", "ca_file", "/ca.pem"])
def done(argv):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:  # a run without questions ends its process by itself
            os._exit(main(argv, env, StandardStreams(0, out.fileno(), err.fileno())))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = [os.pread(file.fileno(), 1_000_000, 0).decode() for file in (out, err)]
    return [code, *texts]
file_schema()
for name, content in json.load(sys.stdin).items():
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    before = path.read_bytes()
    print(json.dumps([name, [done(way) for way in ways], path.read_bytes() == before]), flush=True)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[tuple[int, str, str]], bool]]:
    """Of each file, the exit code and both outputs of the three ways, and whether the file is as it was."""
    home = tmp_path_factory.mktemp("home")
    done = subprocess.run(
        [sys.executable, "-P", "-c", DRIVER, str(home)],
        input=json.dumps(WRONG),
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    return {name: (ways, same) for name, ways, same in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", WRONG)
def test_the_same_is_said_of_the_same_file(told: dict[str, tuple[list[tuple[int, str, str]], bool]], name: str) -> None:
    (start, doctor, setting), same = told[name]
    assert same, "what was wrong is as it was"
    assert (start[0], doctor[0], setting[0]) == (1, 1, 1)
    said = setting[2].removeprefix("marvin: ").rstrip("\n")
    assert "config.yaml" in said
    assert ", line " in said or "bytes" in said
    refused = [line for line in start[2].splitlines() if not line.startswith("MARVIN_COST:")]
    assert "\n".join(refused).removeprefix("marvin: ") == said
    assert said.replace("\n", "\n" + " " * 9) in doctor[1]
    assert doctor[1].count("BROKEN") == 1, "once"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("seed: on\ntheme: drak\n", "line 2: There is no theme 'drak'. Did you mean 'dark'?"),
        ("seed: on\nui: {name: plian}\n", "line 2: Unknown interface 'plian'. Did you mean 'plain'?"),
    ],
)
def test_what_a_chat_would_replace_is_told_by_doctor_and_by_config_set(
    unconfigured: Marvin, content: str, said: str
) -> None:
    unconfigured.config(content)
    assert said in unconfigured.run("doctor").text
    assert said in unconfigured.run("config", "set", "ca_file", "/ca.pem").said
