"""Every part of a pack that is configured, tried with the kit: settings, secrets, folders, state, and their users."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

import pytest

from marvin_core import (
    Call,
    ClientFactory,
    ConfigError,
    Delta,
    Deny,
    Endpoint,
    Event,
    Field,
    Hook,
    HookContext,
    Message,
    PackSettings,
    ProviderSpec,
    Request,
    Settings,
    Stop,
    TextDelta,
    ToolContext,
    ToolError,
    ToolResult,
    ToolSpec,
    Verdict,
    hookimpl,
    tool,
)
from marvin_core.plugins.model import Pack
from marvin_core.plugins.pack_access import PackAccess, folder_name
from marvin_core.testing import HttpReplay, PackRunner, ToolRunner
from marvin_core.testing.owners import Owners

ROOT = Path(__file__).parents[3]
GARDEN = ROOT / "tests" / "packs" / "marvin-garden"
KEY = "the-key-on-the-back"


class Loose(Settings):
    """The settings of this module, which is a pack of its own to the kit."""

    place: str
    """Where it is."""
    count: Annotated[int, Field(ge=0)] = 0


@hookimpl
def marvin_register_settings() -> PackSettings:
    """As a plugin module does."""
    return PackSettings(model=f"{__name__}:Loose", secrets={"LOOSE_KEY": "its key."})


@tool(access=["read"])
async def place(context: ToolContext) -> str:
    """Tell the place."""
    return context.settings(Loose).place


class Garden:
    """The pack, imported from where it lies: it is not installed."""

    def __init__(self) -> None:
        self.plugin = import_module("marvin_garden.plugin")
        self.water = import_module("marvin_garden.tools").water
        self.gardener: Hook = import_module("marvin_garden.hooks").Gardener()
        self.settings = import_module("marvin_garden.settings").GardenSettings
        self.fence = import_module("marvin_garden.fence").Fence


@pytest.fixture
def garden(monkeypatch: pytest.MonkeyPatch) -> Garden:
    monkeypatch.syspath_prepend(str(GARDEN))
    return Garden()


@pytest.fixture
def pump(marvin_http: HttpReplay) -> HttpReplay:
    marvin_http.on("GET", "https://pump.example/on", text="on")
    return marvin_http


def state_of(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


# Tools


def test_a_tool_reaches_settings_secret_and_folders(garden: Garden, marvin_pack: PackRunner, pump: HttpReplay) -> None:
    """I24: the secret goes to the service, and is redacted in what the tool says."""
    runner = marvin_pack.session(settings={"garden": {"litres": 7}}, env={"GARDEN_KEY": KEY})
    outcome = runner.call(garden.water, plant="rose")
    assert outcome.text == "rose got 7 litres with [redacted]: on"
    assert pump.requests[0].headers["key"] == KEY
    log = marvin_pack.home / ".local/state/marvin/packs/garden/log"
    assert log.read_text() == "rose\n"
    assert state_of(log.parent) == 0o700


def test_state_is_kept_under_the_distribution_as_in_a_session(
    garden: Garden, marvin_pack: PackRunner, pump: HttpReplay
) -> None:
    """The name that pyproject.toml gives it, though the pack is not installed."""
    runner = marvin_pack.session(env={"GARDEN_KEY": KEY}, hooks=[garden.gardener])
    runner.call(garden.water, plant="rose")
    assert runner.state == {"marvin-garden": {"watered": ["rose"]}}
    assert "it was watered already" in runner.call(garden.water, plant="rose").text, "the hook has the same state"
    folder = next((marvin_pack.home / ".cache/marvin/packs").iterdir())
    assert folder.name == "garden"


def test_a_variable_counts_more_than_config_yaml(garden: Garden, marvin_pack: PackRunner, pump: HttpReplay) -> None:
    folder = marvin_pack.home / ".config/marvin"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("packs:\n  garden:\n    litres: 3\n")
    by_file = marvin_pack.session(env={"GARDEN_KEY": KEY})
    assert "got 3 litres" in by_file.call(garden.water, plant="rose").text
    both = marvin_pack.session(env={"GARDEN_KEY": KEY, "GARDEN_LITRES": "4"})
    assert "got 4 litres" in both.call(garden.water, plant="rose").text


@pytest.mark.parametrize(
    ("settings", "env", "said"),
    [
        ({}, {}, "The variable GARDEN_KEY is not set. Set it to the key of the pump, which is on its back, and"),
        ({"litrs": 1}, {}, "unknown key 'packs.garden.litrs'. Did you mean 'litres'?"),
        ({"litres": 0}, {}, "packs.garden.litres: must be an integer from 1 to 100; found 0."),
        (
            {"garden_key": "x"},
            {},
            "packs.garden.garden_key is a secret, which cannot be set in config.yaml. Set the variable",
        ),
        ({"pump": {"hours": [1, "x"]}}, {}, 'packs.garden.pump.hours[1]: must be an integer; found "x".'),
        ({}, {"GARDEN_HOURS": "6, x"}, 'GARDEN_HOURS: must be an integer; found "x".'),
    ],
)
def test_what_is_wrong_with_settings_is_told_in_the_call(
    garden: Garden, marvin_pack: PackRunner, settings: dict[str, Any], env: dict[str, str], said: str
) -> None:
    outcome = marvin_pack.session(settings={"garden": settings}, env=env).call(garden.water, plant="rose")
    assert outcome.is_error
    assert said in outcome.text


def test_a_list_in_a_variable_is_separated_by_commas(garden: Garden, marvin_pack: PackRunner) -> None:
    runner = marvin_pack.session(env={"GARDEN_HOURS": "6, 7,"})
    assert runner.pack_of("marvin_garden.tools").settings(garden.settings).pump.hours == (6, 7)


def test_a_setting_without_a_default_says_how_to_set_it(marvin_tools: ToolRunner) -> None:
    """And the module of a test is a pack, where it says what that is configured with."""
    said = marvin_tools.call(place).text
    name = __name__.partition(".")[0]
    assert said.startswith(f"Error: packs.{name}.place is not set; it takes text. Set it: `")
    assert marvin_tools.session(settings={name: {"place": "here"}}).call(place).text == "here"


def test_settings_are_not_changed_by_who_gets_them(garden: Garden, marvin_pack: PackRunner) -> None:
    settings = marvin_pack.pack_of("marvin_garden").settings(garden.settings)
    with pytest.raises(ValueError, match="frozen"):
        settings.litres = 9


def test_other_settings_and_secrets_than_declared_are_refused(garden: Garden, marvin_pack: PackRunner) -> None:
    pack = marvin_pack.pack_of("marvin_garden.tools")
    with pytest.raises(ConfigError, match=r"asked for Loose, but its settings are declared as marvin_garden\.settings"):
        pack.settings(Loose)
    with pytest.raises(ConfigError, match=r"asked for OTHER, which it does not declare. Add it to PackSettings"):
        pack.secret("OTHER", None)
    assert pack.secret("GARDEN_KEY", None) is None
    bare = marvin_pack.pack_of("tests.support.engine")
    with pytest.raises(ConfigError, match="declares no settings"):
        bare.settings(Loose)


def access(kit: PackRunner, module: str) -> PackAccess:
    """What a pack has, with what only Marvin itself looks at."""
    return cast("PackAccess", kit.pack_of(module))


def test_each_folder_is_made_for_the_user_alone_when_it_is_asked_for(garden: Garden, marvin_pack: PackRunner) -> None:
    pack = access(marvin_pack, "marvin_garden")
    assert pack.folders.there() == {}
    home = marvin_pack.home
    assert pack.folders.data == home / ".local/share/marvin/packs/garden"
    assert pack.folders.cache == home / ".cache/marvin/packs/garden"
    assert pack.folders.state == home / ".local/state/marvin/packs/garden"
    assert pack.folders.profile == home / ".config/marvin/profiles/main/packs/garden"
    assert {state_of(folder) for folder in pack.folders.there().values()} == {0o700}
    assert set(pack.folders.there()) == {"data", "cache", "state", "profile"}


def test_a_folder_that_cannot_be_made_is_explained(garden: Garden, marvin_pack: PackRunner) -> None:
    (marvin_pack.home / ".cache").write_text("a file")
    with pytest.raises(ConfigError, match=r"The folder .*/packs/garden cannot be created: "):
        _ = marvin_pack.pack_of("marvin_garden").folders.cache


def test_the_pack_of_the_documentation_works(
    tmp_path: Path, marvin_pack: PackRunner, marvin_http: HttpReplay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As its page has it: the files, the section of config.yaml, and the secret."""
    page = (ROOT / "docs/how-to/configure-a-pack.md").read_text(encoding="utf-8")
    files: dict[str, str] = {"__init__.py": ""}
    for name, code in re.findall(r'```python title="marvin_garden/(\w+\.py)"\n(.*?)```', page, re.DOTALL):
        files[name] = f"{files.get(name, '')}\n\n{code}"
    for name, code in files.items():
        (tmp_path / "documented_garden" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "documented_garden" / name).write_text(code)
    entry = '[project.entry-points.marvin]\ngarden = "documented_garden.plugin"\n'
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "marvin-garden"\n{entry}')
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = marvin_pack.home / ".config/marvin"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("".join(re.findall(r"```yaml.*?\n(.*?)```", page, re.DOTALL)))
    marvin_http.on("GET", "http://192.168.0.7", text="on")
    runner = marvin_pack.session(env={"GARDEN_KEY": KEY})
    water = import_module("documented_garden.tools").water
    assert runner.call(water, plant="rose").text == "rose got 7 litres."
    assert marvin_http.requests[0].headers["key"] == KEY
    plugin = import_module("documented_garden.plugin")
    assert runner.cli(plugin, "garden").out == f"7 litres in {runner.working_dir}\n"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("../../../etc", "_._.._.._etc"),
        ("..", "_."),
        (".hidden", "_hidden"),
        ("a/b c\0d", "a_b_c_d"),
        ("größe-1.0_x", "größe-1.0_x"),
        ("x" * 500, "x" * 100),
        ("", "_"),
    ],
)
def test_no_name_of_a_pack_leads_out_of_its_folders(name: str, folder: str) -> None:
    """I4: an entry point may be called anything."""
    pack = Pack(name=name, distribution="d", version="", module="json")
    assert folder_name(pack, Owners()) == folder


def test_two_packs_of_one_name_have_folders_of_their_own(
    tmp_path: Path, marvin_pack: PackRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        package = tmp_path / str(number) / f"same_{number}"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        entry = f'[project.entry-points.marvin]\nsame = "same_{number}"\n'
        (package.parent / "pyproject.toml").write_text(f'[project]\nname = "acme-{number}"\n{entry}')
        monkeypatch.syspath_prepend(str(package.parent))
    first, second = (access(marvin_pack, f"same_{number}") for number in (1, 2))
    assert (first.name, first.distribution, second.distribution) == ("same", "acme-1", "acme-2")
    assert [pack.folders.data.name for pack in (first, second)] == ["same", "same@acme-2"]


# Details


@tool(access=["read"])
async def pairs() -> ToolResult:
    """Return tuples in details."""
    return ToolResult(content="done", details={"table": ((1, 2), (3, 4)), "one": {"two": ("a",)}})


def test_tuples_in_details_are_lists_to_whoever_gets_them(marvin_tools: ToolRunner) -> None:
    """As `ToolResult.details` says: what interfaces, hooks and session files get is JSON."""
    assert marvin_tools.call(pairs).details == {"table": [[1, 2], [3, 4]], "one": {"two": ["a"]}}


# Hooks


def test_a_prompt_goes_through_every_method_of_a_hook(
    garden: Garden, marvin_pack: PackRunner, pump: HttpReplay
) -> None:
    runner = marvin_pack.session(
        hooks=[garden.gardener], env={"GARDEN_KEY": KEY}, settings={"garden": {"plants": ["rose", "oak"]}}
    )
    runner.offer(garden.water)
    outcome = runner.prompt("Water the rose", Call(name="water", arguments={"plant": "rose"}), "It was watered.")
    assert (outcome.text, outcome.error) == ("It was watered.", None)
    first = outcome.requests[0]
    assert first.messages[-1].text == "Water the rose (in spring)"
    assert "Plants: rose, oak." in first.system
    assert runner.state["marvin-garden"]["requests"] == 2
    assert "garden: begun in work" in runner.notices
    assert "garden: water is done with [redacted]" in runner.notices
    runner.run(no_op())
    log = (marvin_pack.home / ".cache/marvin/packs/garden/events").read_text()
    assert "agent_start True True 0\n" in log


async def no_op() -> None:
    """Nothing, awaited."""


def test_state_of_a_hook_is_saved_with_the_session(garden: Garden, marvin_pack: PackRunner, pump: HttpReplay) -> None:
    marvin_pack.session(hooks=[garden.gardener]).prompt("Hello", "Good day.")
    (file,) = (marvin_pack.home / ".local/share/marvin/sessions").glob("*.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [record["state"] for record in records if record["type"] == "state"] == [{"marvin-garden": {"requests": 1}}]


def test_a_single_method_of_a_hook_is_called_with_its_context(garden: Garden, marvin_pack: PackRunner) -> None:
    context = marvin_pack.hook_context(garden.gardener)
    assert marvin_pack.run(garden.gardener.on_prompt(context, "Hello")) == "Hello (in spring)"
    assert (context.interactive, context.depth, context.mode) == (True, 0, "chat")
    assert context.profile_folder == marvin_pack.home / ".config/marvin/profiles/main"
    alone = marvin_pack.session(interactive=False, env={"MARVIN_DEPTH": "2"}).hook_context(garden.gardener)
    assert (alone.interactive, alone.depth) == (False, 2)


def test_a_guard_whose_settings_are_wrong_denies(garden: Garden, marvin_pack: PackRunner) -> None:
    """Fails closed: it cannot decide without them."""

    class Guard(Hook):
        async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
            return None if context.settings(Loose).count else Deny(reason="count is 0")

    name = __name__.partition(".")[0]
    runner = marvin_pack.session(hooks=[Guard()], settings={name: {"place": "x", "count": -1}})
    said = runner.call(pairs).text
    assert "pairs was not run" in said
    assert f"packs.{name}.count: must be an integer of at least 0; found -1." in said


def test_a_hook_reaches_the_network_and_addresses_of_its_settings(marvin_pack: PackRunner, pump: HttpReplay) -> None:
    class Fetches(Hook):
        async def on_prompt(self, context: HookContext, text: str) -> str | None:
            return (await context.http.get("https://pump.example/on")).text

    assert marvin_pack.session(hooks=[Fetches()]).prompt("x", "y").requests[0].messages[-1].text == "on"


def test_a_secret_is_in_nothing_that_a_hook_says(marvin_pack: PackRunner) -> None:
    """I24: neither the model, nor the person, nor the session file gets it, whatever a hook does with it."""

    class Leaks(Hook):
        async def on_prompt(self, context: HookContext, text: str) -> str | None:
            context.send(f"sent {context.secret('LOOSE_KEY')}")
            context.state["key"] = "kept by the hook itself"
            return f"{text} {context.secret('LOOSE_KEY')}"

        async def system_prompt(self, context: HookContext) -> str | None:
            return f"The key is {context.secret('LOOSE_KEY')}."

        async def before_request(self, context: HookContext, messages: Sequence[Message]) -> None:
            context.notify(f"told {context.secret('LOOSE_KEY')}" + "x" * 5_000)
            raise ValueError(f"no answer for https://x.example/?key={context.secret('LOOSE_KEY')}")

    runner = marvin_pack.session(hooks=[Leaks()], env={"LOOSE_KEY": KEY})
    outcome = runner.prompt("Hello", "Good day.")
    said = repr(outcome.requests) + repr(outcome.events) + "".join(runner.notices)
    for file in (marvin_pack.home / ".local/share/marvin/sessions").glob("*.jsonl"):
        said += file.read_text()
    assert KEY not in said
    for part in ("Hello [redacted]", "The key is [redacted].", "sent [redacted]", "told [redacted]", "?key=[redacted]"):
        assert part in said, part


def test_telling_of_each_event_comes_to_an_end(marvin_pack: PackRunner) -> None:
    """A notice of a hook is an event too; hooks that heard of it would tell of it, and so on."""
    heard: list[str] = []

    class Tells(Hook):
        async def on_event(self, context: HookContext, event: Event) -> None:
            heard.append(event.type)
            context.notify(f"heard of {event.type} " + "x" * 10_000)

    runner = marvin_pack.session(hooks=[Tells()])
    runner.prompt("Hello", "Good day.")
    runner.run(no_op())
    assert "agent_start" in heard
    assert "notice" not in heard
    told = [text for text in runner.notices if text.startswith(f"{__name__.partition('.')[0]}: heard of agent_start")]
    assert len(told) == 1
    assert len(told[0]) < 3_000


# Commands, interfaces, sub-commands, configuring


def test_a_command_reaches_its_pack_by_the_session(garden: Garden, marvin_pack: PackRunner) -> None:
    (command,) = garden.plugin.marvin_register_commands()
    runner = marvin_pack.session(settings={"garden": {"plants": ["oak"]}})
    runner.offer(garden.water)
    assert runner.command(command, " grow here ") == "oak grow here None"


def test_a_pack_that_is_not_there_is_named(marvin_pack: PackRunner, garden: Garden) -> None:
    (command,) = garden.plugin.marvin_register_commands()
    with pytest.raises(ConfigError, match=r"No pack is called 'garden'. Available: .*coding"):
        marvin_pack.command(command)


def test_an_interface_shows_a_session(garden: Garden, marvin_pack: PackRunner) -> None:
    marvin_pack.offer(garden.water)
    fence = garden.fence()
    assert marvin_pack.ui(fence, "Hello", "Good day.") == 5
    assert fence.shown == "Good day."


def test_a_sub_command_gets_config_settings_secrets_and_folders(garden: Garden, marvin_pack: PackRunner) -> None:
    runner = marvin_pack.session(settings={"garden": {"litres": 8}}, env={"GARDEN_KEY": KEY})
    ended = runner.cli(garden.plugin, "garden", "--loud")
    data = marvin_pack.home / ".local/share/marvin/packs/garden"
    assert (ended.code, ended.err) == (0, "without [redacted]\n")
    assert ended.out == f"8 LITRES IN WORK\n{data}\n"
    assert data.is_dir()


def test_a_sub_command_that_fails_ends_as_it_does_in_a_shell(garden: Garden, marvin_pack: PackRunner) -> None:
    without = marvin_pack.cli(garden.plugin, "garden")
    assert without.code == 1
    assert without.err.startswith("marvin: The variable GARDEN_KEY is not set.")
    fire = marvin_pack.working_dir / "fire"
    fire.mkdir()
    with PackRunner(marvin_pack.home, fire, env={"GARDEN_KEY": KEY}) as burning:
        failed = burning.cli(garden.plugin, "garden")
        assert (failed.code, failed.err) == (1, "marvin: nobody waters it with [redacted]\n")
    wrong = marvin_pack.cli(garden.plugin, "garden", "--laud")
    assert wrong.code == 2
    assert "--laud" in wrong.err


def test_configuring_is_called_with_the_configuration(
    garden: Garden, marvin_pack: PackRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    marvin_pack.configure(garden.plugin)
    fire = marvin_pack.working_dir / "fire"
    fire.mkdir()
    with PackRunner(marvin_pack.home, fire) as burning, pytest.raises(OSError, match="the garden is on fire"):
        burning.configure(garden.plugin)


# Providers


def test_a_provider_answers_with_the_settings_of_its_pack(
    garden: Garden, marvin_pack: PackRunner, marvin_http: HttpReplay
) -> None:
    (spec,) = garden.plugin.marvin_register_providers()
    marvin_http.on("GET", "https://scarecrow.example/v1/say", text="caw")
    answer = marvin_pack.session(settings={"garden": {"season": "summer"}}).answer(spec, "hello")
    assert (answer.text, answer.stop_reason) == ("caw hello in summer", "stop")
    assert (answer.thinking, answer.calls, answer.usage) == ("", (), None)
    marvin_http.on("GET", "http://elsewhere.example/say", text="moo")
    elsewhere = marvin_pack.endpoint(spec, "http://elsewhere.example", model="hay")
    assert marvin_pack.answer(spec, "x", elsewhere).text == "moo x in spring"


class Broken:
    """Answers as its model says."""

    name = "broken"
    context_window = None
    max_tools = None

    def __init__(self, endpoint: Endpoint, client: ClientFactory) -> None:
        self.model = endpoint.model

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        yield TextDelta(text="x")
        if self.model == "text":
            yield "y"  # type: ignore[misc]
        if self.model == "twice":
            yield Stop(reason="stop")
        if self.model != "endless":
            yield Stop(reason="stop")

    async def aclose(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize(
    ("model", "said"),
    [("text", "yielded 'y', which is not a Delta"), ("twice", "after Stop"), ("endless", "ended without Stop")],
)
def test_a_provider_that_breaks_its_promise_fails_the_test(marvin_pack: PackRunner, model: str, said: str) -> None:
    spec = ProviderSpec(name="broken", factory=f"{__name__}:Broken", base_url="http://x.example", default_model=model)
    with pytest.raises(AssertionError, match=said):
        marvin_pack.answer(spec, "x")


# Scripts


def test_scripts_hold_errors_and_deltas_too(marvin_pack: PackRunner) -> None:
    broken: list[Delta | BaseException] = [TextDelta(text="so "), ToolError("it broke")]
    failed = marvin_pack.prompt("x", broken)
    assert str(failed.error) == "it broke"
    whole: list[Delta] = [TextDelta(text="so "), TextDelta(text="what"), Stop(reason="stop")]
    again = marvin_pack.prompt("y", whole)
    assert again.text == "so what"
    assert [request.messages[-1].text for request in again.requests] == ["y"]
