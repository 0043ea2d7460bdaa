"""The documentation's examples work as they are written."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pexpect
import pytest

import marvin_core
from marvin_core import Hook, testing
from marvin_core.config.services import service_table
from marvin_core.testing import ModelServer, answers
from tests.e2e.support_e2e import LIMIT, PROGRAM, Marvin, put_away
from tests.support.folders import own_temproot

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def services_of(*wires: str) -> list[str]:
    """The model services with one of these wire formats; each has a page."""
    return [name for name, service in service_table().items() if service["wire"] in wires]


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def shell(script: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-euc", script], cwd=cwd, env=env, capture_output=True, text=True, timeout=150)


@pytest.fixture
def environment(tmp_path: Path, warm_cache_of_script: Path) -> dict[str, str]:
    home = tmp_path / "home"
    shutil.copytree(warm_cache_of_script, home / ".cache" / "marvin")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8"}


@pytest.mark.slow
def test_the_first_run_prints_what_the_tutorial_says(tmp_path: Path, environment: dict[str, str]) -> None:
    page = DOCS / "tutorial" / "first-run.md"
    project = tmp_path / "hello"
    prepare, serve, run, by_hand = (text.replace("/tmp/hello", str(project)) for text in blocks(page, "sh"))
    assert shell(prepare, tmp_path, environment).returncode == 0

    command = serve.replace("--port 8642", "--port 0").replace(".venv/bin/python", sys.executable).split()
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            done = shell(run.replace("http://127.0.0.1:8642/v1", address), tmp_path, environment)
        finally:
            server.terminate()
    printed = blocks(page, "text")[0]
    assert done.stdout == printed
    assert done.returncode == 0, done.stderr
    assert "Hello, Ada!" in shell("python3 hello.py", project, environment).stdout
    assert "Greet people by their name" in shell("git log -1", project, environment).stdout

    found = shell(by_hand, project, environment)
    assert found.returncode == 0, found.stderr
    assert "hello.py:1" in found.stdout


@pytest.mark.slow
def test_the_configuration_of_the_how_to_is_accepted(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = Path(environment["HOME"]) / ".config" / "marvin"
    folder.mkdir(parents=True)
    thinking, fallback, service = blocks(DOCS / "how-to" / "set-a-provider.md", "yaml")
    (folder / "config.yaml").write_text(thinking + fallback + service)
    done = shell("marvin --non-interactive --prompt hello", tmp_path, environment)
    assert done.returncode == 1
    assert "WORK_MODELS_KEY" in done.stderr


@pytest.mark.slow
def test_the_examples_of_the_kit_work(tmp_path: Path, environment: dict[str, str]) -> None:
    *_, careful, weather, conftest = blocks(DOCS / "how-to" / "test-a-pack.md", "python")
    for name in ("marvin_dice.py", "pyproject.toml"):
        shutil.copy(DOCS / "examples" / "marvin_dice" / name, tmp_path)
    (tmp_path / "test_careful.py").write_text(careful)
    (tmp_path / "test_weather.py").write_text(weather)
    (tmp_path / "conftest.py").write_text(conftest)
    environment |= own_temproot(tmp_path)
    done = shell(f"{sys.executable} -P -m pytest -q -p no:cacheprovider", tmp_path, environment)
    assert "2 passed" in done.stdout, done.stdout


def test_the_address_of_a_server_is_enough(tmp_path: Path, environment: dict[str, str]) -> None:
    (export,) = blocks(DOCS / "how-to" / "set-a-provider.md", "sh")
    done = shell(f"{export}marvin --plain </dev/null", tmp_path, environment)
    assert done.returncode == 0, done.stderr
    assert "No model is configured" not in done.stderr


@pytest.mark.slow
def test_the_commands_about_profiles_work(tmp_path: Path, environment: dict[str, str]) -> None:
    profiles, prompt = blocks(DOCS / "how-to" / "profiles.md", "sh")
    done = shell(profiles, tmp_path, environment)
    assert done.returncode == 0, done.stderr
    done = shell(prompt, tmp_path, environment)
    assert done.returncode == 0, done.stderr
    assert "Active profile: work" in done.stdout


@pytest.mark.slow
def test_a_session_is_recorded_and_replayed_as_the_page_says(tmp_path: Path, environment: dict[str, str]) -> None:
    demo, record, replay, real, as_test = blocks(DOCS / "how-to" / "record-and-replay.md", "sh")
    done = shell(demo.splitlines()[0], tmp_path, environment)
    assert "This was a script" in done.stdout, done.stderr
    with ModelServer(answers.text("Done.")) as server:
        done = shell(record, tmp_path, {**environment, "OPENAI_COMPAT_URL": server.url})
    assert done.stdout == "Done.\n", done.stderr
    for command in (replay, real):
        done = shell(command, tmp_path, environment)
        assert "nothing differs" in done.stdout, done.stdout + done.stderr
    (tmp_path / "tests").mkdir()
    assert "tests/bad-day.cassette.jsonl is a test now" in shell(as_test, tmp_path, environment).stdout


@pytest.mark.slow
def test_the_commands_about_sessions_work(tmp_path: Path, environment: dict[str, str]) -> None:
    config = 'providers: {none: {base_url: "http://127.0.0.1:1/v1"}}\ntimeouts: {retry_backoff: []}\n'
    (Path(environment["HOME"]) / ".config" / "marvin").mkdir(parents=True)
    (Path(environment["HOME"]) / ".config" / "marvin" / "config.yaml").write_text(config)
    ask = "marvin --provider none --non-interactive --prompt retry"
    assert shell(ask, tmp_path, environment).returncode == 1  # nobody answers, but the question is kept
    (kept,) = (Path(environment["HOME"]) / ".local" / "share" / "marvin" / "sessions").glob("*.jsonl")
    go_on, look, export, mend = blocks(DOCS / "how-to" / "sessions.md", "sh")
    for line in go_on.splitlines():
        line = line.replace("20261122", kept.stem)
        done = shell(line.replace("marvin", "marvin --plain --provider none", 1) + " </dev/null", tmp_path, environment)
        assert done.returncode == 0, done.stderr
    for number, line in enumerate((look + export + mend).replace(" ID", f" {kept.stem}").splitlines()):
        folder = tmp_path / str(number)  # since no export replaces a file
        folder.mkdir()
        done = shell(line, folder, environment)
        assert done.returncode == 0, done.stderr
    exports = list(tmp_path.glob("*/talk.*"))
    assert len(exports) == len(export.splitlines())
    assert all("retry" in path.read_text() for path in exports)


@pytest.mark.slow
def test_what_an_older_marvin_kept_is_taken_over_as_the_page_says(tmp_path: Path, environment: dict[str, str]) -> None:
    home = Path(environment["HOME"])
    for folder, name in ((home / ".config" / "local-finder", "a"), (home / "backup" / "local-finder", "b")):
        folder.mkdir(parents=True)
        kept = [{"url": f"https://example.org/{name}", "title": name, "tags": "food"}]
        (folder / "bookmarks.json").write_text(json.dumps(kept))
    (script,) = blocks(DOCS / "how-to" / "import.md", "sh")
    done = shell(script, tmp_path, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split() for line in done.stdout.splitlines() if line.startswith("bookmarks")] == [
        ["bookmarks", "1", "to", "import"],
        ["bookmarks", "1", "imported"],
        ["bookmarks", "1", "imported"],
    ]


@pytest.mark.slow
def test_what_works_without_a_model_prints_what_the_page_says(tmp_path: Path, environment: dict[str, str]) -> None:
    page = DOCS / "how-to" / "without-a-model.md"
    (script,) = blocks(page, "sh")
    asked, show, call = script.splitlines()
    done = shell(asked, tmp_path, environment)
    assert (done.returncode, done.stdout) == (0, blocks(page, "text")[0]), done.stderr
    assert "5 miles" not in shell(show, tmp_path, environment).stderr
    assert shell(call, tmp_path, environment).stdout == blocks(page, "text")[0].splitlines(True)[1]


@pytest.mark.slow
def test_the_plain_chat_works_in_a_pipe(tmp_path: Path, environment: dict[str, str]) -> None:
    dumb, pipe, _ = blocks(DOCS / "how-to" / "screen-readers-and-pipes.md", "sh")
    done = shell(pipe, tmp_path, environment)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"done in \d\.\d s\n{re.escape(str(tmp_path.resolve()))}\n", done.stdout)
    assert "/read_file path=" in done.stdout
    # Without a terminal it needs --plain; on one, test_chat_terminal.py has the rest.
    assert shell(f"{dumb.strip()} --plain </dev/null", tmp_path, environment).returncode == 0


@pytest.mark.slow
def test_an_answer_for_a_program_is_the_value_alone(tmp_path: Path, environment: dict[str, str]) -> None:
    page = DOCS / "how-to" / "screen-readers-and-pipes.md"
    (tmp_path / "files.json").write_text(blocks(page, "json")[0])
    *_, command = blocks(page, "sh")
    with ModelServer(answers.text('```json\n{"count": 1}\n```')) as server:
        done = shell(command, tmp_path, {**environment, "OPENAI_COMPAT_URL": server.url})
    assert (done.returncode, done.stdout) == (0, '{"count": 1}\n'), done.stderr


@pytest.mark.slow
def test_packs_are_switched_off_and_preferred(tmp_path: Path, environment: dict[str, str]) -> None:
    for command in blocks(DOCS / "explanation" / "packs.md", "sh"):
        done = shell(command.replace("NAME", "web"), tmp_path, environment)
        assert done.returncode == 0, done.stderr
    done = shell("marvin packs list", tmp_path, environment)
    assert "web  marvin-tools-web 0.1.0, disabled (packs.off in config.yaml)\n" in done.stdout


@pytest.mark.slow
def test_the_rules_and_the_answers_of_the_permissions_page_hold(tmp_path: Path, environment: dict[str, str]) -> None:
    page = DOCS / "how-to" / "permissions.md"
    folder = Path(environment["HOME"]) / ".config" / "marvin"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(blocks(page, "yaml")[0])
    commands = [("run_command", {"command": command}) for command in ("git status", "git push x", "touch made")]
    with ModelServer(answers.calls(*commands), answers.text("Done.")) as server:
        done = shell(blocks(page, "sh")[0], tmp_path, {**environment, "OPENAI_COMPAT_URL": server.url})
        outputs = [message["content"] for message in server.requests[-1].body["messages"] if message["role"] == "tool"]
    assert done.returncode == 0, done.stderr
    assert "exit code" in outputs[0]
    assert "deny: run_command(git push *)" in outputs[1]
    assert "was not run" in outputs[2]
    assert not (tmp_path / "made").exists()


# A new block is added here together with the test that runs it. The others are output, or of pages that code writes.
RUN = {
    **{  # tests/e2e/test_provider_docs.py
        f"how-to/provider-{name}.md": {"sh": 1} for name in services_of("chat-completions", "responses")
    },
    "tutorial/first-run.md": {"sh": 4},
    # tests/packs/test_tutorial.py, and tests/core/engine/test_blocking_code.py
    "tutorial/your-first-pack.md": {"sh": 4, "python": 3, "toml": 1},
    "how-to/set-a-provider.md": {"sh": 1, "yaml": 3},
    "how-to/import.md": {"sh": 1},
    "how-to/provider-local.md": {"sh": 1, "yaml": 1},  # tests/real/test_local_model.py
    "how-to/provider-copilot.md": {"sh": 1, "yaml": 1},  # tests/real/test_copilot_runtime.py
    "how-to/provider-ollama.md": {"sh": 1, "yaml": 1},
    "how-to/keys.md": {"yaml": 1},  # tests/core/config/test_secrets.py
    "how-to/limit-cost.md": {"sh": 1, "yaml": 1},  # tests/e2e/test_max_cost.py
    "how-to/permissions.md": {"sh": 1, "yaml": 3},
    "how-to/shell-hooks.md": {"yaml": 1},  # tests/core/engine/hooks/test_shell_hooks.py
    "how-to/without-a-model.md": {"sh": 1},
    "how-to/declare-tools.md": {"python": 6},  # tests/core/tools/test_declarations.py, test_examples_of_pages.py
    "explanation/stability.md": {"python": 1},  # tests/core/testing/test_examples_of_pages.py
    "how-to/use-the-kit.md": {"python": 4},  # tests/core/kit/test_how_to.py
    "how-to/write-phrases.md": {"python": 1, "toml": 1},  # tests/core/tools/routing/test_phrases.py
    "explanation/packs.md": {"sh": 2},
    "how-to/profiles.md": {"sh": 2},
    "how-to/instructions.md": {"sh": 1},  # tests/e2e/test_config_command.py
    "how-to/skills.md": {"markdown": 1},  # tests/core/engine/instructions/test_skills.py
    "how-to/tickets.md": {"python": 1},  # tests/core/tickets/test_commands.py
    "how-to/sessions.md": {"sh": 4},
    "how-to/record-and-replay.md": {"sh": 5},
    "reference/session-file.md": {"json": 4},  # tests/core/sessions/test_records.py
    "how-to/screen-readers-and-pipes.md": {"sh": 3, "json": 1},
    "how-to/chat.md": {"yaml": 1},  # tests/core/config/test_chat_settings.py
    "how-to/themes.md": {"yaml": 1},  # tests/core/ui/test_themes.py
    "how-to/configure-a-pack.md": {"python": 4, "yaml": 1},  # tests/core/testing/test_pack_kit.py
    "how-to/test-a-pack.md": {"sh": 1, "python": 5, "toml": 1},  # and tests/core/testing/test_kit.py
    "index.md": {"sh": 1},  # tests/e2e/test_wrapper.py makes the environment
    "how-to/install-packs.md": {"sh": 5},  # tests/packs/test_install_page.py runs that of uv; pipx is not here
    "how-to/agents-in-worktrees.md": {"sh": 1},  # tests/core/engine/agents/test_worktrees.py
    "how-to/define-agents.md": {"markdown": 1},  # tests/core/engine/agents/test_definitions.py
    "extend/new-pack.md": {"sh": 2},  # tests/packs/test_new_pack_works.py
    "extend/check-a-pack.md": {"sh": 1},  # the same, and tests/e2e/test_packs_check.py
    "extend/hooks.md": {"python": 1, "toml": 1},  # tests/packs/test_third_party_packs.py, as the four below
    "extend/providers.md": {"python": 1, "toml": 1, "sh": 1},
    "extend/interfaces.md": {"python": 1, "toml": 1},
    "extend/commands.md": {"python": 1, "toml": 1},
    "extend/sub-commands.md": {"python": 2, "toml": 1, "sh": 1},
    "how-to/run-the-pipeline.md": {"sh": 6, "yaml": 1},  # tests/pipeline: test_pipeline_command.py, test_whole_run.py
    "how-to/run-many-tasks.md": {"json": 1, "sh": 3},  # tests/pipeline/test_batch*.py, tests/real/test_batch_on_dask.py
    "how-to/evidence-in-ci.md": {"yaml": 4},  # tests/pipeline/evidence/test_ci_page.py
    "how-to/review-a-code-base.md": {"console": 2, "yaml": 1},  # tests/pipeline/test_review_jobs.py
    "how-to/mcp-servers.md": {"sh": 2, "yaml": 1, "json": 1},  # tests/e2e/test_mcp_servers.py
    # tests/core/acp/test_page.py, and in tests/real test_acp_in_marimo.py and test_acp_client_in_a_shell.py
    "how-to/editors.md": {"sh": 3, "json": 2},
    "how-to/tracing.md": {"sh": 1, "yaml": 2},  # tests/core/config/test_telemetry_settings.py
    "how-to/language-servers.md": {"yaml": 1},  # tests/tools_coding/test_lsp_commands.py
    "how-to/web.md": {"yaml": 1},  # tests/tools_web/test_services.py
    "extend/single-files.md": {"python": 2, "markdown": 1},
}


def test_every_example_is_run_by_a_test() -> None:
    found: dict[str, dict[str, int]] = {}
    for page in DOCS.rglob("*.md"):
        for language in re.findall(r"^```(\w+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            if language != "text":
                counts = found.setdefault(str(page.relative_to(DOCS)), {})
                counts[language] = counts.get(language, 0) + 1
    assert found == RUN


PACKS = {"hooks": "careful", "providers": "echo", "interfaces": "shout", "commands": "greet", "sub-commands": "stats"}


@pytest.mark.parametrize("page", PACKS)
def test_the_packs_of_the_how_tos_are_the_tested_ones(page: str) -> None:
    """tests/packs/test_third_party_packs.py builds, installs and uses them."""
    text = (DOCS / "extend" / f"{page}.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r'```\w+ title="(.+?)"\n(.*?)```', text, re.DOTALL))
    folder = ROOT / "tests" / "packs" / f"marvin-{PACKS[page]}"
    assert shown == {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.is_file()}


@pytest.mark.slow
def test_the_single_files_of_the_how_to_work(tmp_path: Path, environment: dict[str, str]) -> None:
    text = (DOCS / "extend" / "single-files.md").read_text(encoding="utf-8")
    files = dict(re.findall(r'```\w+ title="(.+?)"\n(.*?)```', text, re.DOTALL))
    assert set(files) == {"tools/coin.py", "hooks/no_push.py", "commands/explain.md"}
    for name, content in files.items():
        path = Path(environment["HOME"]) / ".config" / "marvin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    tossed = shell("marvin tools call toss_coin", tmp_path, environment)
    assert tossed.stdout.strip() in ("heads", "tails"), tossed.stderr
    pushed = shell("marvin tools call run_command command='git push' || true", tmp_path, environment)
    assert "pushing is left to the user" in pushed.stdout, pushed.stderr
    helped = shell("echo /help | marvin --plain", tmp_path, environment)
    assert "/explain" in helped.stdout
    assert "Explain a file" in helped.stdout


def test_every_public_name_is_documented() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("api-*.md"))
    documented = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    expected = {f"marvin_core.{name}" for name in marvin_core.__all__} - {
        "marvin_core.API",  # docs/explanation/stability.md
        "marvin_core.Field",
        "marvin_core.__version__",
    }
    expected |= {f"marvin_core.testing.{name}" for name in testing.__all__}
    assert expected <= set(documented)
    assert len(documented) == len(set(documented))


def test_the_picture_shows_the_chat_of_the_page() -> None:
    """scripts/picture.py makes it from a real run."""
    picture = (DOCS / "assets" / "chat.svg").read_text(encoding="utf-8")
    words = " ".join("".join(ElementTree.fromstring(picture).itertext()).split())
    script = json.loads((DOCS / "examples/chat.json").read_text(encoding="utf-8"))
    for step in script:
        assert step["text"].strip().replace("`", "") in words.replace("`", "")
    assert not re.search(r"(?:href|url)\W+https?:", picture)  # nothing is loaded from elsewhere


def played(marvin: Marvin, chat: str) -> list[str]:
    """What a terminal shows where the lines of a chat are typed, as a page shows it."""
    env = {**marvin.env, "TERM": "dumb"}
    terminal: Any = pexpect.spawn(
        PROGRAM[0], list(PROGRAM[1:]), env=env, cwd=str(marvin.project), encoding="utf-8", timeout=LIMIT
    )
    terminal.setwinsize(40, 200)
    shown = ""
    for sign, line in re.findall(r"^(> |\[[a-z/]+\] )(.+)$", chat, re.MULTILINE):
        terminal.expect_exact(f"\r\n{sign}")
        shown += f"{terminal.before}\n{sign}"
        terminal.sendline(line)
    terminal.expect_exact("\r\n> ")
    shown += str(terminal.before)
    put_away(terminal)
    return re.sub(r"\d+\.\d s", "0.0 s", shown.replace("\r", "")).splitlines()


@pytest.mark.slow
def test_the_chats_of_the_pages_are_real(
    marvin: Marvin, marvin_model_server: ModelServer, unconfigured: Marvin
) -> None:
    pages = (DOCS / "how-to" / name for name in ("chat.md", "without-a-model.md"))
    texts = (page.read_text(encoding="utf-8") for page in pages)
    chats = [chat for text in texts for chat in re.findall(r"```text\n((?:Marvin, |No model ).*?)```", text, re.DOTALL)]
    script = json.loads((DOCS / "examples/chat.json").read_text(encoding="utf-8"))
    marvin_model_server.script(*(answers.from_json(item) for item in script))
    for program, chat in zip((marvin, unconfigured), chats, strict=True):
        assert played(program, chat) == re.sub(r"\d+\.\d s", "0.0 s", chat).splitlines()


def test_every_page_can_be_found() -> None:
    """From the first page, and in the contents of the site."""
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"index.md"}
    first = set(re.findall(r"\]\(([^)#:]+\.md)\)", (DOCS / "index.md").read_text(encoding="utf-8")))
    site = re.findall(r"^ +- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert first == pages
    assert sorted(site) == sorted({"index.md", *pages})


@pytest.mark.slow
def test_the_site_says_what_has_to_be_awaited(tmp_path: Path) -> None:
    for name in ("docs", "scripts/site", "marvin-core/src"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    zensical = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    subprocess.run(zensical, cwd=tmp_path, check=True, capture_output=True, timeout=170)
    page = (tmp_path / "site/reference/api-hooks/index.html").read_text(encoding="utf-8")
    headings = re.findall(r'<h3 id="marvin_core\.(\w+\.\w+)".*?</h3>', page, re.DOTALL)
    marked = re.findall(r'<h3 id="marvin_core\.(\w+\.\w+)"(?:(?!</h3>).)*?<code>async</code>', page, re.DOTALL)
    methods = {f"Hook.{name}" for name, member in vars(Hook).items() if inspect.iscoroutinefunction(member)}
    assert set(marked) == {*methods, "HookContext.run"}
    assert {"HookContext.notify", "Hook.tryfirst", *methods} <= set(headings)


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
