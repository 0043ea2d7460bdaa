"""A key in every place that Marvin knows of, handed around in every way: it is found nowhere afterwards."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, RecordedRequest, calls, error, text
from tests.e2e.support_e2e import Marvin, Result

pytestmark = pytest.mark.slow

TAIL = "q8ZkV3tYw71xLpR9mNcD"
CANARIES = {
    place: f"canary-{place}-{TAIL}"
    for place in ("env", "file", "header", "bearer", "pack", "login", "github", "stored", "address", "proxy", "prompt")
}
KEY_OF_A_STRANGER = "ghp_" + "Ab3" * 12
TOOL = """
from marvin_core import Image, Text, ToolContext, ToolResult, tool


@tool(access=["read"], secrets=["ACME_PIN"])
async def leak(context: ToolContext) -> ToolResult:
    \"\"\"Show the secret in every place of a result.\"\"\"
    pin = context.secret("ACME_PIN")
    context.progress(f"working with {pin}")
    blocks = (Text(text=pin[:9]), Text(text=pin[9:]), Image(media_type=f"image/{pin}", data="QUJD"))
    return ToolResult(content=blocks, details={"pin": pin, pin: [pin]})


@tool(access=["read"], secrets=["ACME_PIN"])
async def fail(context: ToolContext) -> str:
    \"\"\"Raise an error that tells the secret.\"\"\"
    raise RuntimeError("it does not like " + context.secret("ACME_PIN"))
"""
COMMANDS = (
    "cat ~/.ssh/GROQ_API_KEY; env; cat {config}/config.yaml {config}/keys.json {config}/profiles/*/tokens.json",
    "base64 -w0 ~/.ssh/GROQ_API_KEY; (echo -n u; cat ~/.ssh/GROQ_API_KEY) | base64; xxd -p -c 999 ~/.ssh/GROQ_API_KEY",
    "tr '\\0' '\\n' < /proc/self/environ; cat ~/.config/gh/hosts.yml",
)


@pytest.fixture
def prepared(marvin: Marvin) -> tuple[Marvin, set[Path]]:
    """Marvin with a key in each place; and the files that hold them because the user put them there."""
    marvin.env |= {
        "LLM_PROVIDER": "openai-compat",
        "ANTHROPIC_API_KEY": CANARIES["env"],
        "MY_COPY": f"token={CANARIES['env']}",
        "ACME_PIN": CANARIES["pack"],
        "GROQ_BASE_URL": f"https://me:{CANARIES['address']}@groq.example/v1",
        "HTTPS_PROXY": f"http://me:{CANARIES['proxy']}@127.0.0.1:9",
    }
    config = marvin.config(
        "providers:\n"
        "  openai-compat:\n"
        "    headers:\n"
        f"      X-Api-Key: {CANARIES['header']}\n"
        f"      Authorization: 'Bearer {CANARIES['bearer']}'\n"
        "      X-Title: a chat\n"
        "timeouts: {retry_backoff: [0.05]}\n"
    )
    tokens = json.dumps({"codex": {"access_token": CANARIES["login"], "refresh_token": CANARIES["login"] + "-2"}})
    keys = json.dumps({"keys": {"MISTRAL_API_KEY": CANARIES["stored"]}, "keyring": []})
    files = {
        marvin.home / ".ssh" / "GROQ_API_KEY": CANARIES["file"],
        marvin.home / ".config" / "gh" / "hosts.yml": f"github.com:\n    oauth_token: {CANARIES['github']}\n",
        marvin.config_folder / "profiles" / "other" / "tokens.json": tokens,
        marvin.config_folder / "keys.json": keys,
        marvin.config_folder / "tools" / "acme.py": TOOL,
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return marvin, {config, *files}


def leaks(where: str, text: str) -> list[str]:
    """The canaries in a text, in whichever of their spellings."""
    found = []
    flat = text.replace("\n", "")
    for place, key in CANARIES.items():
        if place == "prompt":
            continue
        data = key.encode()
        parts = [key, data.hex(), *(base64.b64encode(b"x" * at + data).decode()[at + 2 : -6] for at in range(3))]
        found += [f"{place} in {where}" for part in parts if part in flat]
    return found


def left(marvin: Marvin, own: set[Path]) -> list[str]:
    """The canaries in what Marvin wrote."""
    files = [path for folder in (marvin.home, marvin.project) for path in folder.rglob("*") if path.is_file()]
    found = [
        leak for path in files if path not in own for leak in leaks(str(path), path.read_bytes().decode("latin-1"))
    ]
    return found + [f"a name: {path}" for path in files if TAIL.lower() in path.name.lower()]


def seen(request: RecordedRequest, number: int) -> list[str]:
    """The canaries in what a model was sent."""
    return leaks(f"request {number}", request.content.decode())


def assert_nothing_leaked(marvin: Marvin, server: ModelServer, own: set[Path], result: Result) -> None:
    found = left(marvin, own) + leaks("stdout", result.text) + leaks("stderr", result.err.decode())
    found += [leak for number, request in enumerate(server.requests) for leak in seen(request, number)]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("kind", ["text", "json", "stream-json"])
def test_no_secret_is_shown_kept_or_sent(
    prepared: tuple[Marvin, set[Path]], marvin_model_server: ModelServer, kind: str
) -> None:
    """I24: neither what tools put out, nor what people type, nor what a model repeats."""
    marvin, own = prepared
    everything = " ".join(CANARIES.values())
    said = [everything[at : at + 7] for at in range(0, len(everything), 7)]
    commands = [("run_command", {"command": one.format(config=marvin.config_folder)}) for one in COMMANDS]
    marvin_model_server.script(
        calls(*commands, ("leak", {}), ("fail", {}), text=everything, chunks=9),
        calls(
            ("write_note", {"title": "keys", "content": everything}), ("no_such_tool", {"key": everything}), chunks=20
        ),
        text(everything, chunks=said, thinking=everything),
    )
    result = marvin.ask("--output-format", kind, prompt=f"{CANARIES['env']} is my key, also {everything}")
    assert result.code == 0, result.err.decode()
    assert "[redacted]" in result.text
    assert_nothing_leaked(marvin, marvin_model_server, own, result)
    (path,) = marvin.session_files()
    for words in (("list",), ("show", path.stem), ("export", path.stem), ("export", path.stem, "--format", "json")):
        assert leaks(" ".join(words), marvin.run("sessions", *words).text) == []


@pytest.mark.parametrize("kind", ["text", "stream-json"])
def test_a_key_of_several_lines_is_nowhere_either(
    prepared: tuple[Marvin, set[Path]], marvin_model_server: ModelServer, kind: str
) -> None:
    """I24: also while a model repeats it, line by line and in pieces."""
    marvin, _ = prepared
    lines = [f"MIIE{TAIL}{number:04}+/AB" for number in range(4)]
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    marvin.env["ACME_PIN"] = key
    marvin_model_server.script(
        calls(("leak", {}), ("write_note", {"title": "key", "content": key}), text=f"It is {key}.", chunks=9),
        text(f"Again: {key}", chunks=[*f"Again: {key}"], thinking=key),
    )
    result = marvin.ask("--output-format", kind, prompt=f"Is it {key}?")
    assert result.code == 0, result.said
    sent = "".join(request.content.decode() for request in marvin_model_server.requests)
    kept = "".join(path.read_bytes().decode("latin-1") for path in marvin.home.rglob("*") if path.is_file())
    for where, content in {"shown": result.text + result.said, "kept": kept, "sent": sent}.items():
        assert "MIIE" not in content, where


def test_no_error_of_a_service_shows_a_secret(
    prepared: tuple[Marvin, set[Path]], marvin_model_server: ModelServer
) -> None:
    marvin, own = prepared
    marvin_model_server.script(error(400, f"what is {CANARIES['file']} and {CANARIES['header']}?"))
    result = marvin.ask("--output-format", "stream-json")
    assert result.code == 1
    assert "what is [redacted] and " in result.text
    assert_nothing_leaked(marvin, marvin_model_server, own, result)


def test_no_child_of_marvin_gets_a_secret(prepared: tuple[Marvin, set[Path]], marvin_model_server: ModelServer) -> None:
    """Neither in its environment nor in its arguments; a variable that only holds one somewhere is kept back, too."""
    marvin, _ = prepared
    command = "env | sed 's/a/_/g' > env.txt; ps -eo args | sed 's/a/_/g' > ps.txt"
    marvin_model_server.script(calls(("run_command", {"command": command})), text("Done."))
    assert marvin.ask().code == 0
    written = (marvin.project / "env.txt").read_text() + (marvin.project / "ps.txt").read_text()
    assert "P_TH=" not in written
    assert "HOME=" in written
    places = [place for place, key in CANARIES.items() if key.replace("a", "_") in written]
    assert places == ["proxy"], "programs need the proxy's password; what they print of it is redacted"


def test_a_key_of_somebody_else_reaches_the_model_and_no_file(
    prepared: tuple[Marvin, set[Path]], marvin_model_server: ModelServer
) -> None:
    marvin, _ = prepared
    marvin_model_server.script(text(f"I use {KEY_OF_A_STRANGER} then."), text("Still there."))
    result = marvin.ask(prompt=f"{KEY_OF_A_STRANGER} is for the deployment.")
    assert KEY_OF_A_STRANGER in result.text
    assert KEY_OF_A_STRANGER in marvin_model_server.requests[0].content.decode()
    assert KEY_OF_A_STRANGER not in marvin.kept()
    assert result.said.count("looks like a GitHub token") == 1
    assert "ghp" not in marvin.session_files()[0].name
