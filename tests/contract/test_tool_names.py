"""The core knows no tool of another distribution, and tools are in the sets that the design gives them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools.sets import SETS

CORE = Path(__file__).resolve().parents[2] / "marvin-core" / "src" / "marvin_core"
CONTRACT = json.loads(Path(__file__).with_name("tools.json").read_text(encoding="utf-8"))["tools"]
FOREIGN = sorted({tool["name"] for tool in CONTRACT if tool["distribution"] != "marvin-core"})
NO_TOOLS = {
    ("acp/updates.py", "plan"),
    ("config/tiers.py", "plan"),
    ("tools/routing/slots.py", "glob"),
    ("tools/routing/intent.py", "glob"),
    ("guard/permissions/wrapper_names.py", "jobs"),
    ("guard/permissions/wrappers.py", "jobs"),
    ("guard/permissions/outputs.py", "tree"),
    ("ui/arguments.py", "jobs"),
    ("__main__.py", "tk"),
    ("cli/main.py", "tk"),
    ("tickets/commands.py", "tk"),
    ("tickets/commands.py", "tree"),
}
"""Words that are something else there: a kind of update, a tier of models, a kind of slot, a builtin of shells, a
program, a command."""


def named_tools(source: str, names: Collection[str]) -> Iterator[tuple[int, str]]:
    """The line and the name of each tool that a text or a docstring of the source names.

    A name with an underscore counts wherever it stands as a word. One without is a word of everyday language, too, so
    it counts where it is quoted or is the whole text.
    """
    words = "|".join(re.escape(name) for name in names if "_" in name)
    quoted = "|".join(re.escape(name) for name in names if "_" not in name)
    pattern = re.compile(rf"\b({words or '(?!)'})\b|(?<=[`'\"])({quoted or '(?!)'})(?=[`'\"])|\A({quoted or '(?!)'})\Z")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for found in pattern.finditer(node.value):
                yield node.lineno + node.value.count("\n", 0, found.start()), found[0]


@pytest.mark.slow
def test_the_core_names_no_tool_that_it_does_not_bring() -> None:
    assert {"create_file", "run_command", "tk", "weather_forecast"} <= set(FOREIGN)
    found = [
        f"{path.relative_to(CORE)}:{line} names {name}"
        for path in sorted(CORE.rglob("*.py"))
        for line, name in named_tools(path.read_text(encoding="utf-8"), FOREIGN)
        if (str(path.relative_to(CORE)), name) not in NO_TOOLS
    ]
    assert found == [], "declare it on @tool or ToolGroup in the pack instead"


@pytest.mark.parametrize(
    "source",
    [
        '"Use create_file for that."',
        '"call create_file({})"',
        'def f():\n    """What `create_file` does."""',
        'x = f"{y}: create_file"',
        'if spec.name == "tk": pass',
        '"Look with `tk` first."',
        "\"Look with 'tk' first.\"",
    ],
)
def test_a_name_is_found_wherever_it_can_stand(source: str) -> None:
    assert [name for _, name in named_tools(source, ["create_file", "tk"])] in (["create_file"], ["tk"])


@pytest.mark.parametrize("source", ["def create_file(): pass", '"recreate_files"', '"tk is a word here"', "tk = 1"])
def test_what_is_no_name_of_a_tool_is_not_found(source: str) -> None:
    assert list(named_tools(source, ["create_file", "tk"])) == []


NOTES = set("file_apply_patch file_read_lines notes_ls notes_mkdir read_note search_notes write_note".split())
CALENDAR = set("calendar_add_event calendar_delete_event calendar_list_upcoming calendar_view".split())
READING = set("code_grep get_working_dir git_blame git_branch git_diff git_log git_show git_status glob".split()) | {
    "plan",
    "read_file",
    "read_note",
    "set_working_dir",
    "tree",
}
CODING = READING | set(
    "append_file apply_patch create_file git_checkout git_commit install_packages jobs launch_agent "
    "launch_research_agent run_command tk write_file write_note".split()
)
GITHUB = set("github_clone github_grep github_read_file github_search".split())
SESSION = {"ask_user", "compact_history", "get_usage", "read_skill", "search_history_backups", "tool_search"}
LOOKING_UP = set("wiki_grep wiki_search wiki_summary stack_answers stack_search".split())
KNOWLEDGE = LOOKING_UP | set("wiki_full dictionary_lookup search_arxiv search_papers translate_text".split())
PAGES = {"browse_web", "read_rss", "scrape_page"}
MEDIA = (
    set("get_game_details get_movie_details search_games search_movies recipe_lookup recipe_search".split())
    | set("steam_app_details steam_featured steam_player_stats steam_search steam_user_games".split())
    | set("steam_user_summary music_lookup music_search spotify_add_tracks spotify_auth".split())
    | {"spotify_create_playlist", "spotify_search"}
)
TIMERS = {"timer_check", "timer_start", "timer_stop"}
SEARCH = {"web_search"}
PLACES = set("get_my_location osm_search overpass_query places_nearby_search places_text_search".split())
TRAVEL = set("estimate_traffic_adjusted_time estimate_travel_time get_directions weather_forecast".split())
ALARMS = {"cancel_alarm", "list_alarms", "set_alarm"}
NOTIFY = set("generate_ntfy_topic ntfy_list ntfy_publish ntfy_subscribe ntfy_unsubscribe".split())
BLENDER = {
    f"blender_{name}"
    for name in "create_object delete_object execute_code get_object get_scene modify_object screenshot "
    "set_material".split()
}
MEMBERS = {
    "coding": CODING | SESSION | SEARCH | LOOKING_UP | {"wiki_full"},
    "readonly": READING | SESSION | SEARCH | LOOKING_UP | {"tk"},
    "surf": SESSION
    | KNOWLEDGE
    | PAGES
    | MEDIA
    | TIMERS
    | ALARMS
    | NOTIFY
    | GITHUB
    | SEARCH
    | PLACES
    | TRAVEL
    | {"search_news", "setup_google_auth"}
    | set("create_ticket ticket_add_dep ticket_add_note ticket_close ticket_dep_tree ticket_list".split())
    | set("ticket_show ticket_start".split())
    | set("git_blame git_branch git_checkout git_commit git_diff git_log git_show git_status".split())
    | set("end_elaborate end_play_mode exit_app review_codebase review_status".split())
    | set("convert_units switch_profile system_info update_preferences".split())
    | set("bookmark_list bookmark_save bookmark_search list_places remove_place save_place".split())
    | NOTES
    | CALENDAR,
    "lockin": CODING
    | SESSION
    | TIMERS
    | ALARMS
    | NOTIFY
    | BLENDER
    | GITHUB
    | NOTES
    | CALENDAR
    | SEARCH
    | KNOWLEDGE
    | {"download_file", "yt_dlp_download"},
}
"""What the table of the design says of the tools that there are."""


@pytest.mark.parametrize("name", MEMBERS)
def test_a_set_holds_the_tools_that_the_design_gives_it(name: str) -> None:
    """A new tool goes into the table above; the groups of the design say where."""
    ours = [spec for spec in installed_tools() if spec.source.startswith("marvin-")]
    assert {spec.name for spec in ours if SETS[name](spec)} == MEMBERS[name]
    assert set(SETS) - {"all"} == set(MEMBERS)


def test_the_gates_let_through_what_the_design_names() -> None:
    passing = {spec.name: spec.passes for spec in installed_tools() if spec.passes}
    writers = ("create_file", "append_file", "write_file", "apply_patch")
    assert passing == {**dict.fromkeys(writers, ("writable-files",)), "tk": ("ticket", "readonly")}
    assert {spec.name for spec in installed_tools() if spec.interactive} == {"set_working_dir", "exit_app"}
    assert [spec.name for spec in installed_tools() if spec.typed == "!"] == ["run_command"]
