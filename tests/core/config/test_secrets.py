"""Where secrets come from: files that change, headers, addresses, and the keys that the user had Marvin keep."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from marvin_core.api.timeouts import Timeouts
from marvin_core.config.load import load
from marvin_core.config.secret_files import secrets_of_address, secrets_of_headers
from marvin_core.config.secrets import Secrets
from marvin_core.config.stored.keys import StoredKeys
from marvin_core.plugins.manager import Plugins

KEY = "key-0123456789"


def secrets_in(home: Path, **env: str) -> Secrets:
    (home / ".config" / "marvin").mkdir(parents=True, exist_ok=True)
    return load([], {"HOME": str(home), **env}, cwd=home)[1]


def test_a_file_with_secrets_is_read_again_where_it_changes(tmp_path: Path) -> None:
    secrets = Secrets({}, tmp_path)
    file = tmp_path / "key"
    secrets.watch(file)
    assert secrets.known() == ()
    file.write_text(f" {KEY}\n")
    assert secrets.known() == (KEY,)
    assert secrets.known() is secrets.known(), "what was made of them counts as long as they stay the same"
    file.write_text("another-0123456789")
    assert set(secrets.known()) == {KEY, "another-0123456789"}, "what was one stays one"
    file.unlink()
    assert len(secrets.known()) == 2


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (".config/gh/hosts.yml", f"github.com:\n    user: ada\n    oauth_token: {KEY}\n    git_protocol: https\n"),
        (".config/github-copilot/hosts.json", json.dumps({"github.com": {"oauth_token": KEY}})),
        (".config/github-copilot/apps.json", json.dumps({"github.com:x": {"user": "ada", "oauth_token": KEY}})),
    ],
)
def test_tokens_of_githubs_programs_are_secrets(tmp_path: Path, path: str, content: str) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(content)
    assert Secrets({}, tmp_path).known() == (KEY,)


def test_headers_and_addresses_of_the_configuration_are_secrets(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "marvin"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(
        "providers: {mine: {base_url: 'https://me:pass%2Fword-1@x.example/v1?key=query-key-1',"
        " headers: {X-Api-Key: header-key-1, User-Agent: a-name-of-mine}}}\n"
    )
    known = secrets_in(tmp_path, HTTPS_PROXY="http://u:proxy-password@p.example:1").known()
    assert set(known) == {"pass%2Fword-1", "pass/word-1", "query-key-1", "header-key-1", "proxy-password"}
    kept = (tmp_path / ".cache" / "marvin" / "config.json").read_text()
    assert not any(secret in kept for secret in ("pass", "query-key-1", "header-key-1")), "no copy of them is made"
    assert set(secrets_in(tmp_path, HTTPS_PROXY="http://u:proxy-password@p.example:1").known()) == set(known)


def test_what_headers_hold() -> None:
    headers = {
        "Authorization": "Bearer abc-0123456789",
        "Proxy-Authorization": "Basic dXNlcjpwYXNzLTAxMjM0NTY3ODk=",
        "Cookie": "session=cookie-012345; theme=dark",
        "anthropic-version": "2023-06-01",
    }
    found = set(secrets_of_headers(headers))
    assert {"Bearer abc-0123456789", "abc-0123456789", "pass-0123456789", "cookie-012345"} <= found
    assert "2023-06-01" not in found
    assert list(secrets_of_address("https://x.example/v1")) == []


@pytest.mark.slow
def test_every_key_of_a_service_is_a_secret_before_the_services_are_known(tmp_path: Path) -> None:
    config, _ = load([], {"HOME": str(tmp_path)}, cwd=tmp_path)
    names = {
        name
        for spec in Plugins(config, print).providers
        for name in (*spec.key_variables, *spec.home_key_variables, *spec.handed_on)
    }
    assert {"GROQ_API_KEY", "OPENROUTER_API_KEY", "GH_TOKEN"} <= names
    secrets = Secrets({**dict.fromkeys(names, KEY), "PATH": "/bin"}, tmp_path)
    assert secrets.child_environment() == {"PATH": "/bin"}
    assert secrets.known() == (KEY,)


def test_children_get_no_variable_that_holds_a_secret_somewhere(tmp_path: Path) -> None:
    env = {
        "GROQ_API_KEY": KEY,
        "URL": f"https://u:{KEY}@x",
        "GH_TOKEN": "gh-0123456789",
        "GITHUB_TOKEN": "gh-0123456789",
    }
    secrets = Secrets({**env, "PATH": "/bin"}, tmp_path)
    assert secrets.child_environment() == {"PATH": "/bin"}
    assert secrets.child_environment(["GH_TOKEN"]) == {"PATH": "/bin", "GH_TOKEN": "gh-0123456789"}


# Keys that Marvin keeps.


def test_a_kept_key_is_used_where_no_variable_is_set(tmp_path: Path) -> None:
    stored = StoredKeys(tmp_path, Timeouts())
    stored.keep("GROQ_API_KEY", KEY, "file")
    assert stored.path.stat().st_mode & 0o777 == 0o600
    assert stored.place("GROQ_API_KEY") == str(stored.path)
    secrets = Secrets({}, tmp_path, (), StoredKeys(tmp_path, Timeouts()))
    assert secrets.known() == (KEY,), "it is redacted before anybody needs it"
    assert secrets.has("GROQ_API_KEY")
    assert secrets.get("GROQ_API_KEY").reveal() == KEY
    assert KEY not in secrets.child_environment().values()
    other = Secrets({"GROQ_API_KEY": "variable-012345"}, tmp_path, (), stored)
    assert other.get("GROQ_API_KEY").reveal() == "variable-012345"
    assert stored.remove("GROQ_API_KEY")
    assert not stored.remove("GROQ_API_KEY")
    assert KEY not in stored.path.read_text()


def test_a_damaged_file_of_keys_is_moved_aside(tmp_path: Path) -> None:
    stored = StoredKeys(tmp_path, Timeouts())
    for content in ("{", "[]", '{"keys": [], "keyring": {}}', '{"keys": {"A": 1}, "keyring": [1]}'):
        stored.path.write_text(content)
        fresh = StoredKeys(tmp_path, Timeouts())
        assert fresh.names() == frozenset()
        fresh.keep("A", KEY, "file")
        assert StoredKeys(tmp_path, Timeouts()).get("A") == KEY


def keyring_run(tmp_path: Path, code: str, backend: str) -> str:
    """What Python prints with a keyring of its own: the library chooses one for a whole process."""
    start = (
        "import sys; from pathlib import Path; from marvin_core.api.timeouts import Timeouts\n"
        "from marvin_core.config.stored.keys import StoredKeys\n"
        f"folder = Path({str(tmp_path)!r}); stored = StoredKeys(folder, Timeouts(keyring=30))\n"
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON_KEYRING_BACKEND": backend}
    command = [sys.executable, "-P", "-c", start + code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_keys_are_kept_in_a_keyring(tmp_path: Path) -> None:
    code = (
        "assert 'no working keyring' in stored.keyring_problem(), 'it is a file, which nobody is offered'\n"
        f"stored.keep('GROQ_API_KEY', '{KEY}', 'keyring')\n"
        "again = StoredKeys(folder, Timeouts())\n"
        f"print(again.place('GROQ_API_KEY'), again.get('GROQ_API_KEY'), '{KEY}' in again.path.read_text())\n"
        "again.keep('GROQ_API_KEY', 'other-0123456789', 'file')\n"
        "import keyring; print(keyring.get_password('marvin', 'GROQ_API_KEY'), again.get('GROQ_API_KEY'))\n"
        "again.keep('GROQ_API_KEY', 'third-0123456789', 'keyring')\n"
        "print(again.remove('GROQ_API_KEY'), again.names())\n"
    )
    shown = keyring_run(tmp_path, code, "keyrings.alt.file.PlaintextKeyring")
    assert shown == f"the keyring {KEY} False\nNone other-0123456789\nTrue frozenset()\n"


def test_a_keyring_that_does_not_work_is_told(tmp_path: Path) -> None:
    code = (
        "print(stored.keyring_problem())\n"
        "try: stored.keep('A', 'x', 'keyring')\n"
        "except Exception as error: print(error)\n"
        "print(stored.names(), 'keyring' in sys.modules)\n"
    )
    shown = keyring_run(tmp_path, code, "keyring.backends.fail.Keyring")
    assert "This system has no working keyring. A key can be stored in a file instead." in shown
    assert "The keyring could not store or return the key A: NoKeyringError" in shown
    assert "frozenset()" in shown


def test_a_keyring_that_does_not_answer_holds_up_nothing(tmp_path: Path) -> None:
    (tmp_path / "slow_keyring.py").write_text(
        "import threading\nfrom keyring.backend import KeyringBackend\n"
        "class Slow(KeyringBackend):\n    priority = 1\n"
        "    def get_password(self, service, name): threading.Event().wait()\n"
        "    def set_password(self, service, name, value): threading.Event().wait()\n"
        "    def delete_password(self, service, name): threading.Event().wait()\n"
    )
    code = (
        "stored = StoredKeys(folder, Timeouts(keyring=0.5)); sys.path.insert(0, str(folder))\n"
        "try: stored.keep('A', 'x', 'keyring')\n"
        "except Exception as error: print(error)\n"
    )
    assert "no answer in 0.5 s" in keyring_run(tmp_path, code, "slow_keyring.Slow")


ODD_KEYRING = """
from keyring.backend import KeyringBackend

class Silent(Exception):
    def __str__(self): raise RuntimeError("no text")

class Odd(KeyringBackend):
    @property
    def priority(self): raise RuntimeError("the service is not there")
    def get_password(self, service, name):
        return {"BYTES": b"sk-0123456789", "NUMBER": 7, "LINES": " sk-0123456789\\n"}.get(name)
    def set_password(self, service, name, value):
        raise Silent() if name == "SILENT" else ValueError(f"cannot keep {name}={value}")
    def delete_password(self, service, name): pass
"""


def test_a_keyring_that_is_not_as_others_is_told_and_shows_no_key(tmp_path: Path) -> None:
    """It gives what is no text, has no priority that can be asked for, and puts the key into its errors."""
    (tmp_path / "odd_keyring.py").write_text(ODD_KEYRING)
    (tmp_path / "keys.json").write_text('{"keys": {}, "keyring": ["BYTES", "NUMBER", "LINES"]}')
    code = (
        "sys.path.insert(0, str(folder))\n"
        "from marvin_core.api.errors import ConfigError\n"
        "print(stored.keyring_problem())\n"
        f"for work in (lambda: stored.get('BYTES'), lambda: stored.get('NUMBER'), lambda: stored.get('LINES'),\n"
        f"    lambda: stored.keep('A', '{KEY}', 'keyring'), lambda: stored.keep('SILENT', '{KEY}', 'keyring')):\n"
        "    try: print(repr(work()))\n"
        "    except ConfigError as error: print(error)\n"
    )
    problem, as_bytes, number, lines, kept, silent = keyring_run(tmp_path, code, "odd_keyring.Odd").splitlines()
    assert "the service is not there" in problem
    assert "The keyring returned the key BYTES as bytes" in as_bytes
    assert "The keyring returned the key NUMBER as int" in number
    assert lines == "'sk-0123456789'"
    assert "cannot keep A=[the key]" in kept
    assert "Silent (its text cannot be shown)" in silent


def test_a_start_with_a_variable_imports_no_keyring(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text('{"keys": {}, "keyring": ["GROQ_API_KEY"]}')
    code = (
        "from marvin_core.config.secrets import Secrets\n"
        "secrets = Secrets({'GROQ_API_KEY': 'variable-012345'}, folder, (), stored)\n"
        "print(secrets.get('GROQ_API_KEY').reveal(), secrets.has('GROQ_API_KEY'), len(secrets.known()))\n"
        "print(Secrets({}, folder, (), stored).has('GROQ_API_KEY'), 'keyring' in sys.modules)\n"
    )
    assert keyring_run(tmp_path, code, "keyring.backends.fail.Keyring") == "variable-012345 True 1\nTrue False\n"


def test_a_key_that_the_keyring_lost_is_none(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text('{"keys": {}, "keyring": ["GROQ_API_KEY"]}')
    shown = keyring_run(tmp_path, "print(repr(stored.get('GROQ_API_KEY')))\n", "keyrings.alt.file.PlaintextKeyring")
    assert shown == "''\n"
    assert "ConfigError" in keyring_run(tmp_path, "stored.get('GROQ_API_KEY')\n", "keyring.backends.fail.Keyring")


@pytest.mark.slow
def test_the_keyring_is_never_waited_for_in_the_event_loop(tmp_path: Path) -> None:
    """A keyring may wait for the user to unlock it. This one gives a key once the event loop has run meanwhile."""
    (tmp_path / "waiting_keyring.py").write_text(
        "import threading\nfrom keyring.backend import KeyringBackend\n"
        "asked = threading.Event(); unlocked = threading.Event(); names = []\n"
        "class Waiting(KeyringBackend):\n    priority = 1\n"
        "    def get_password(self, service, name):\n"
        "        names.append(name); unlocked.clear(); asked.set(); unlocked.wait(); return 'gsk-0123456789abcdef'\n"
        "    def set_password(self, service, name, value): pass\n    def delete_password(self, service, name): pass\n"
    )
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/own.py").write_text(
        "from marvin_core import ToolContext, tool\n"
        "@tool(access=['read'], secrets=['GROQ_API_KEY'])\nasync def use_key(context: ToolContext) -> str:\n"
        '    """Use the key."""\n    return str(len(context.secret("GROQ_API_KEY")))\n'
    )
    (tmp_path / "config.yaml").write_text("timeouts:\n  keyring: 5\nfallback: [groq]\n")
    (tmp_path / "keys.json").write_text('{"keys": {}, "keyring": ["GROQ_API_KEY"]}')
    header = {"type": "session", "id": "earlier", "title": "", "time": 0, "working_dir": "", "thinking": "off"}
    (tmp_path / "data/sessions").mkdir(parents=True)
    (tmp_path / "data/sessions/earlier.jsonl").write_text(
        json.dumps({**header, "provider": "groq", "model": "any"}) + "\n"
    )
    code = (
        "sys.path.insert(0, str(folder)); import asyncio\n"
        "from waiting_keyring import asked, names, unlocked\n"
        "from marvin_core.app import App\nfrom marvin_core.config.load import load as configured\n"
        "from marvin_core.ui.commands.core import core_commands\n"
        "env = {'HOME': str(folder), 'MARVIN_HOME': str(folder), 'MARVIN_PACKS': 'core'}\n"
        "env['OPENAI_API_KEY'] = 'sk-0123456789'\n"
        "run = {command.name: command.run for command in core_commands()}\n"
        "def named(session): return session.models.provider_name\n"
        "async def unlock():\n"
        "    while True:\n"
        "        if asked.is_set(): asked.clear(); unlocked.set()\n"
        "        await asyncio.sleep(0.01)\n"
        "async def model(session): await run['model'](session, 'groq/any'); return named(session)\n"
        "async def pro(session):\n"
        "    await asyncio.to_thread(session.models.know, None)\n"
        "    with session.models.pro(): return named(session)\n"
        "async def resume(session): await run['resume'](session, 'earlier'); return named(session)\n"
        "async def fallback(session):\n"
        "    source = session.parts.model.source\n"
        "    return [other.name async for other in source.fallbacks(source.first().provider)]\n"
        "async def tool(session): return (await session.call_tool('use_key', {})).text\n"
        "async def go(work):\n"
        "    config, secrets = configured(['--model', 'opus=groq/any'], env, cwd=folder); names.clear()\n"
        "    session = App(config, secrets, lambda text: None).session(asker=None, interactive=True)\n"
        "    unlocking = asyncio.create_task(unlock())\n"
        "    try: print(work.__name__, await work(session), names)\n"
        "    finally: unlocking.cancel(); await session.close()\n"
        "for work in (model, pro, resume, fallback, tool): asyncio.run(go(work))\n"
    )
    shown = keyring_run(tmp_path, code, "waiting_keyring.Waiting")
    names = "['GROQ_API_KEY']\n"
    assert shown == f"model groq {names}pro groq {names}resume groq {names}fallback ['groq'] {names}tool 20 {names}"


def test_a_key_that_was_fetched_in_vain_is_asked_for_again_only_beside_the_event_loop(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text('{"keys": {}, "keyring": ["A", "LOST"]}')
    (tmp_path / "locked_keyring.py").write_text(
        "from keyring.backend import KeyringBackend\nasked = []\n"
        "class Locked(KeyringBackend):\n    priority = 1\n"
        "    def get_password(self, service, name):\n"
        "        asked.append(name)\n        if name == 'LOST': return None\n"
        "        if len(asked) < 3: raise OSError('locked')\n        return 'a-key-0123456789'\n"
        "    def set_password(self, service, name, value): pass\n    def delete_password(self, service, name): pass\n"
    )
    code = (
        "sys.path.insert(0, str(folder))\n"
        "from locked_keyring import asked\nfrom marvin_core.config.secrets import Secrets\n"
        "secrets = Secrets({}, folder, (), stored)\n"
        "def used(name):\n"
        "    try: return secrets.get(name).reveal()\n"
        "    except Exception as error: return 'locked' in str(error)\n"
        "secrets.fetch(['LOST', 'A', 'B']); print(asked, secrets.awaited(['LOST', 'A', 'B']))\n"
        "print(used('A'), used('A'), repr(used('LOST')), asked, secrets.awaited(['LOST', 'A']))\n"
        "secrets.fetch(['A']); print(used('A'), asked, secrets.awaited(['LOST', 'A']))\n"
    )
    assert keyring_run(tmp_path, code, "locked_keyring.Locked").splitlines() == [
        "['LOST', 'A'] []",
        "True True '' ['LOST', 'A'] ['A']",
        "a-key-0123456789 ['LOST', 'A', 'A'] []",
    ]


@pytest.mark.slow
def test_a_model_is_taken_without_waiting_for_the_keyring_in_the_event_loop(tmp_path: Path) -> None:
    """A keyring may wait for the user to unlock it; the chat asks it beside the event loop, and once."""
    (tmp_path / "keys.json").write_text('{"keys": {}, "keyring": ["GROQ_API_KEY"]}')
    (tmp_path / "counting_keyring.py").write_text(
        "from keyring.backend import KeyringBackend\nasked = []\n"
        "class Counting(KeyringBackend):\n    priority = 1\n"
        "    def get_password(self, service, name):\n"
        "        asked.append(name)\n        return 'gsk-0123456789abcdef'\n"
        "    def set_password(self, service, name, value): pass\n    def delete_password(self, service, name): pass\n"
    )
    code = (
        "sys.path.insert(0, str(folder)); import asyncio\n"
        "from marvin_core.app import App\nfrom marvin_core.config.load import load\n"
        "env = {'HOME': str(folder), 'MARVIN_HOME': str(folder), 'MARVIN_PACKS': 'core'}\n"
        "env['OPENAI_API_KEY'] = 'sk-0123456789'\n"
        "config, secrets = load(['--provider', 'openai'], env, cwd=folder)\n"
        "models = App(config, secrets, print).models\n"
        "async def take(name):\n"
        "    await asyncio.to_thread(models.know, name, None)\n"
        "    from counting_keyring import asked\n"
        "    before = len(asked)\n"
        "    print(before, models.named(name, None).provider.name, len(asked))\n"
        "asyncio.run(take('groq/any'))\nasyncio.run(take('groq'))\n"
    )
    assert keyring_run(tmp_path, code, "counting_keyring.Counting") == "1 groq 1\n1 groq 1\n"
