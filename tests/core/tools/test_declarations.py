"""What packs declare about their tools: checked when it is declared, kept in the index, and held to."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from marvin_core import Tool, ToolContext, ToolError, ToolGroup, ToolSpec, tool
from marvin_core.plugins.index import load_index
from marvin_core.tools.schema import describe
from marvin_core.ui.completion import candidates
from marvin_core.ui.manual_calls import help_text
from marvin_core.ui.typed_lines import Display, LineInterpreter
from tests.support.engine import make, run
from tests.support.installing import Place, index_data


async def look(what: str, times: int = 1) -> str:
    """Look at something."""
    return what * times


async def count(times: int) -> str:
    """Count."""
    return str(times)


async def weigh(left: str, right: str) -> str:
    """Compare."""
    return left + right


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"access": []}, "declares no access; use read, net, write, exec, state"),
        ({"access": ["raed"]}, "declares access ['raed']; use read, net, write, exec, state"),
        ({"access": "read"}, "declares access='read'; use a list, as in ['read']"),
        ({"sets": ["codnig"]}, "declares sets ['codnig']; use coding, surf, lockin"),
        ({"sets": ["readonly"]}, "declares sets ['readonly']; use coding, surf, lockin"),
        ({"sets": "coding"}, "declares sets='coding'; use a list, as in ['coding']"),
        ({"passes": ["all"]}, "declares passes ['all']; use readonly, writable-files, ticket"),
        ({"passes": ["writable-files"]}, "runs programs, so it cannot pass 'writable-files'"),
        ({"secrets": "A_KEY"}, "declares secrets='A_KEY'; use a list, as in ['A_KEY']"),
        ({"settings": "A_KEY"}, "declares settings='A_KEY'; use a list, as in ['A_KEY']"),
        ({"secrets": ["A", "B"], "settings": ["B"]}, "declares B as a secret and as a setting; choose one"),
        ({"typed": "?"}, "declares typed='?'; only '!' and '@' can be typed"),
        ({"probe": {"waht": "x"}}, "declares a probe with waht, which is not one of its parameters"),
        ({"requires": ["nothing"]}, "requires 'nothing'; use env:NAME, program:NAME or extra:NAME"),
    ],
)
def test_a_declaration_that_means_nothing_is_refused_where_it_is_made(declared: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolError) as caught:
        Tool(look, **declared)
    assert str(caught.value) == f"The tool look {problem}."


@pytest.mark.parametrize(
    ("function", "requires"), [(count, "it requires times"), (weigh, "it requires left, right")], ids=["count", "weigh"]
)
def test_a_tool_that_can_be_typed_takes_one_text(function: Any, requires: str) -> None:
    with pytest.raises(ToolError, match=f"must require exactly one string parameter; {requires}"):
        describe(Tool(function, typed="!"))
    assert describe(Tool(look, typed="!")).typed == "!"


def test_what_makes_calls_parallel_is_a_parameter() -> None:
    with pytest.raises(ToolError, match="declares parallel='kind', which is not one of its parameters"):
        describe(Tool(look, parallel="kind"))
    assert describe(Tool(weigh, parallel="left")).parallel == "left"


def test_a_group_declares_what_its_tools_do_not() -> None:
    group = ToolGroup(name="eyes", module="m", tools=(), sets=("coding",), too_long="Less.", guidance="Look twice.")
    plain = describe(Tool(look), group=group)
    assert (plain.group, plain.sets, plain.too_long, plain.guidance) == ("eyes", ("coding",), "Less.", "Look twice.")
    own = describe(Tool(look, group="own", sets=[], too_long="Much less."), group=group)
    assert (own.group, own.sets, own.too_long, own.guidance) == ("own", (), "Much less.", "Look twice.")


# --- packs ---------------------------------------------------------------------------------------------------------

TOOLS = """
from marvin_core import ToolContext, tool

@tool(
    access=["write"],
    secrets=["ACME_CODE"],
    settings=["ACME_KEY_PLACE"],
    passes=["readonly", "ticket"],
    interactive=True,
    too_long="Less.",
)
async def wave(context: ToolContext) -> str:
    "Wave."
    return f"{context.secret('ACME_CODE')} at {context.setting('ACME_KEY_PLACE')}"

@tool(access=["exec"], typed="!")
async def do(text: str) -> str:
    "Do."
    return text
"""
PLUGIN = """
from marvin_core import ToolGroup, hookimpl

@hookimpl
def marvin_register_tools():
    return [ToolGroup(name="hands", module=".inner.tools", tools=("wave", "do"), sets=("coding",), guidance="Wave.")]
"""
PHRASES = '[[phrase]]\nsay = "wave"\ntool = "wave"\n'


def acme(tmp_path: Path, *, plugin: str = PLUGIN, tools: str = TOOLS) -> Place:
    """A distribution with a package: its plugin, and its tools one folder deeper."""
    place = Place(tmp_path)
    place.install("acme", "", entry_points="[marvin]\nacme = acme_pack.plugin\n")
    inner = place.packages / "acme_pack" / "inner"
    inner.mkdir(parents=True)
    for file, text in {
        "plugin.py": plugin,
        "__init__.py": "",
        "inner/__init__.py": "",
        "inner/tools.py": tools,
    }.items():
        (inner.parent / file).write_text(dedent(text))
    return place


NAMED = ("acme_search", "acme_page")
SPEC = """
import json
from pathlib import Path
from marvin_core.plugins.index import load_index

for _ in range(2):  # built, and read from the cache
    index = load_index(Path.home() / "cache")
    spec = next(spec for _, spec in index.tools if spec.name == "wave")
    print(json.dumps({**spec.as_dict(), "access": sorted(spec.access)}))
"""


@pytest.mark.slow
def test_what_is_declared_is_the_same_in_an_index_that_is_built_and_in_one_that_is_read(tmp_path: Path) -> None:
    ended = acme(tmp_path).python(SPEC)
    assert ended.code == 0, ended.err
    built, read = map(json.loads, ended.out.splitlines())
    assert built == read
    expected = {
        "module": "acme_pack.inner.tools",
        "secrets": ["ACME_CODE"],
        "settings": ["ACME_KEY_PLACE"],
        "sets": ["coding"],
        "passes": ["readonly", "ticket"],
        "interactive": True,
        "too_long": "Less.",
        "guidance": "Wave.",
    }
    assert {name: built[name] for name in expected} == expected


@pytest.mark.slow
def test_the_pack_of_the_page_about_declarations_is_what_the_page_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "declare-tools.md").read_text(encoding="utf-8")
    search, *_, plugin = (block.partition("\n")[2].partition("```")[0] for block in page.split("```python")[1:])
    other = '@tool\nasync def acme_page(name: str) -> str:\n    "Show a page."\n    return name\n'
    place = Place(tmp_path)
    place.install("acme", "", entry_points="[marvin]\nacme = marvin_acme.plugin\n")
    manual = place.packages / "marvin_acme" / "manual"
    manual.mkdir(parents=True)
    (manual.parent / "plugin.py").write_text(plugin)
    (manual / "search.py").write_text(f"{search}\n\n{other}")
    listed = place.marvin("packs", "list")
    assert listed.code == 0, listed.out
    found = {name: json.loads(place.python(SPEC.replace('"wave"', repr(name))).out.splitlines()[-1]) for name in NAMED}
    assert [found[name]["sets"] for name in NAMED] == [["coding", "surf"], ["coding"]]
    assert found["acme_search"]["guidance"].startswith("Look things up with acme_search")
    assert found["acme_search"]["secrets"] == ["ACME_KEY"]


@pytest.mark.slow
def test_an_index_without_these_fields_is_built_anew(tmp_path: Path) -> None:
    load_index(tmp_path)
    (path,) = tmp_path.glob("index-*.json")
    kept = index_data(path)
    assert set(ToolSpec._defaults) <= set(json.loads(kept["key"])[1])


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["inner", "."])
def test_phrases_lie_beside_the_tools_or_beside_the_plugin_and_need_not_be_named(tmp_path: Path, folder: str) -> None:
    place = acme(tmp_path)
    code = SPEC.replace(
        'print(json.dumps({**spec.as_dict(), "access": sorted(spec.access)}))', "print(list(spec.phrases))"
    )
    assert place.python(code).out.splitlines()[-1] == "[]"
    (place.packages / "acme_pack" / folder / "phrases.toml").write_text(PHRASES)
    assert "'say': 'wave'" in place.python(code).out.splitlines()[-1]


@pytest.mark.slow
def test_only_declared_secrets_are_redacted_whatever_the_names_sound_like(tmp_path: Path) -> None:
    """I24: a variable is what its pack says it is."""
    place = acme(tmp_path, tools=TOOLS.replace("interactive=True,", ""))
    ended = place.marvin("tools", "call", "wave", ACME_CODE="opened-with-this", ACME_KEY_PLACE="https://keys.test")
    assert ended.out == "[redacted] at https://keys.test\n", ended.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "to", "problem"),
    [
        (
            'sets=("coding",)',
            'sets=("codnig",)',
            "ToolGroup 'hands', sets: Input should be 'coding', 'surf' or 'lockin'",
        ),
        ('sets=("coding",)', 'sets="coding"', "ToolGroup 'hands', sets: Input should be a valid tuple"),
        ('guidance="Wave."', "guidance=7", "ToolGroup 'hands', guidance: Input should be a valid string"),
        ('module=".inner.tools"', 'module="..inner"', "attempted relative import beyond top-level package"),
    ],
)
def test_a_group_that_declares_nonsense_is_a_problem_of_its_pack(
    tmp_path: Path, changed: str, to: str, problem: str
) -> None:
    ended = acme(tmp_path, plugin=PLUGIN.replace(changed, to)).marvin("packs", "list")
    assert ended.code == 1
    assert problem in ended.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "to", "problem"),
    [
        (
            '"ticket"]',
            '"tickets"]',
            "The tool wave declares passes ['readonly', 'tickets']; use readonly, writable-files",
        ),
        (
            "text: str",
            "text: str, more: str",
            "The tool do declares typed='!', so it must require exactly one string parameter; it requires",
        ),
        ('"Less."', "7", "ToolSpec 'wave', too_long: Input should be a valid string"),
    ],
)
def test_a_tool_that_declares_nonsense_is_a_problem_of_its_pack(
    tmp_path: Path, changed: str, to: str, problem: str
) -> None:
    ended = acme(tmp_path, tools=TOOLS.replace(changed, to)).marvin("packs", "list")
    assert ended.code == 1
    assert problem in ended.out


def test_a_relative_module_needs_a_package(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("acme", PLUGIN)
    assert (
        "ToolGroup 'hands': '.inner.tools' is relative, but acme is not in a package"
        in place.marvin("packs", "list").out
    )


# --- secrets and settings in a call --------------------------------------------------------------------------------


@tool(access=["read"], secrets=["A_SECRET"], settings=["A_SETTING"])
async def ask(context: ToolContext, name: str, method: str) -> str:
    """Ask for a variable, as a secret or as a setting."""
    value = context.secret(name) if method == "secret" else context.setting(name)
    return value or "unset"


@pytest.mark.parametrize(
    ("name", "method", "add"),
    [("A_SETTING", "secret", "secrets"), ("A_SECRET", "setting", "settings"), ("OTHER", "setting", "settings")],
)
def test_a_tool_that_asks_for_what_it_does_not_declare_is_told_what_to_declare(
    tmp_path: Path, name: str, method: str, add: str
) -> None:
    """I20."""
    made = make(tmp_path)
    made.session.toolbox.add(describe(ask), ask)
    output = made.call("ask", name=name, method=method)
    assert output.text == f"Error: ask asked for {name}, which it does not declare. Add it to @tool({add}=[...])."


# --- what is typed behind ! ----------------------------------------------------------------------------------------


@tool(access=["exec"], typed="!")
async def perform(script: str, loud: bool = False) -> str:
    """Perform a script."""
    return f"{script}{'!' if loud else ''} was performed"


def typed(tmp_path: Path, line: str, *tools: Tool) -> list[str]:
    """What a chat shows for a line, where these tools are on offer."""
    made = make(tmp_path, argv=(), specs=[])
    shown: list[str] = []

    async def go() -> None:
        for one in tools:
            made.session.toolbox.add(describe(one, source="tests"), one)
        to = Display(text=shown.append, output=shown.append, error=shown.append, suggestion=shown.append)
        await LineInterpreter(made.session, to).run(line)
        shown.append(help_text(made.session))
        shown.append(" ".join(candidate.text for candidate in candidates("!s", made.session)))
        await made.session.close()

    run(go())
    return shown


def test_without_such_a_tool_among_the_selected_ones_it_says_how_to_select_it(tmp_path: Path) -> None:
    made = make(tmp_path, argv=("--tools", "readonly"), specs=[describe(Tool(look), source="tests")])
    shown: list[str] = []

    async def go() -> None:
        to = Display(text=shown.append, output=shown.append, error=shown.append, suggestion=shown.append)
        await LineInterpreter(made.session, to).run("!ls")
        await made.session.close()

    run(go())
    assert shown == ["None of the selected tools (readonly) runs commands. !mode all selects all tools."]


def test_what_is_typed_behind_an_exclamation_mark_goes_to_the_tool_that_declares_it(tmp_path: Path) -> None:
    said, _, helped, completed = typed(tmp_path, "!to be", Tool(look), perform)
    assert said == "to be was performed"
    assert "!COMMAND" in helped
    assert "!shell" in completed


def test_without_such_a_tool_nothing_offers_it(tmp_path: Path) -> None:
    said, helped, completed = typed(tmp_path, "!to be", Tool(look))
    assert said.startswith("No available tool runs commands. Install a pack with one:")
    assert "!COMMAND" not in helped
    assert completed == ""
