"""`packs:` in config.yaml: checked with the line when something was set, kept out of every other start."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import ConfigError, PackSettings, Record, Settings, hookimpl
from marvin_core.api.errors import PluginError
from marvin_core.config.load import load
from marvin_core.config.secrets import Secrets
from marvin_core.config.settings import line_of, parse_settings
from marvin_core.plugins.model import DeclaredSettings, Pack
from marvin_core.plugins.pack_schema import declared_settings
from marvin_core.plugins.pack_settings import NotSet, PackSection
from marvin_core.plugins.settings_check import check_settings

checks: list[str] = []


class Bed(Settings):
    """A bed of the yard."""

    depth: float = 0.5
    colours: dict[str, int] = {}  # noqa: RUF012  # pydantic copies defaults
    """Colours by their names."""


class Yard(Settings):
    """What a yard is configured with."""

    owner: str
    """Whose it is."""
    beds: list[Bed] = []  # noqa: RUF012  # pydantic copies defaults
    bed: Bed = Bed()
    tags: list[str] = []  # noqa: RUF012  # pydantic copies defaults

    def model_post_init(self, context: Any) -> None:
        """Count the checks, and refuse what a stranger's code may refuse."""
        checks.append(self.owner)
        if self.owner == "crash":
            raise RuntimeError("no yard")
        if self.owner == "exit":
            sys.exit(3)


@hookimpl
def marvin_register_settings() -> PackSettings:
    """As a plugin does."""
    return OF_YARD


OF_YARD = PackSettings(
    model=f"{__name__}:Yard",
    variables={"owner": "YARD_OWNER", "bed.depth": "YARD_DEPTH", "tags": "YARD_TAGS"},
    secrets={"YARD_KEY": "the key of the gate"},
)
PACK = Pack(name="yard", distribution="acme-yard", version="1.0", module=__name__)


def declared(settings: PackSettings = OF_YARD) -> DeclaredSettings:
    plugin = ModuleType("acme_yard.plugin")
    plugin.__package__ = "acme_yard"
    return declared_settings(settings, plugin, PACK)


class Installed(Record):
    """What is installed: a yard, and a pack without settings."""

    settings: tuple[DeclaredSettings, ...]
    packs: tuple[Pack, ...] = (PACK, Pack(name="shed", distribution="acme-shed", version="1", module="acme_shed"))
    installed: tuple[str, ...] = ("yard", "shed", "left_out")


def checked(tmp_path: Path, yaml: str, **env: str) -> list[str]:
    """What a start with this config.yaml warns of; `ConfigError` where it is refused."""
    folder = tmp_path / "marvin"
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml)
    config, secrets = load((), {"HOME": str(tmp_path), "MARVIN_HOME": str(folder), **env}, cwd=tmp_path)
    warnings: list[str] = []
    check_settings(Installed(settings=(declared(),)), config, secrets, warnings.append)
    return warnings


def section(values: dict[str, Any], path: Path = Path("/nowhere/config.yaml"), **env: str) -> PackSection:
    return PackSection(declared(), values, Secrets(env, Path("/nowhere")), path)


# What a person wrote


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        (
            "packs:\n  yard:\n    owner: ann\n    ownr: bob\n",
            "line 4: unknown key 'packs.yard.ownr'. Did you mean 'owner'?",
        ),
        ("packs:\n  yard:\n    owner: [a]\n", 'line 3: packs.yard.owner: must be text; found ["a"].'),
        (
            "packs: {yard: {owner: a, bed: {depth: deep}}}\n",
            'line 1: packs.yard.bed.depth: must be a number; found "deep".',
        ),
        (
            "packs:\n  yard:\n    owner: ann\n    beds:\n      - depth: 1\n      - depth: x\n",
            'line 6: packs.yard.beds[1].depth: must be a number; found "x".',
        ),
        (
            "packs:\n  yard:\n    owner: ann\n    bed:\n      colours:\n        red: many\n",
            'line 6: packs.yard.bed.colours.red: must be an integer; found "many".',
        ),
        ("packs:\n  yard:\n    owner: ann\n    YARD_KEY: 12345678\n", "line 4: packs.yard.YARD_KEY is a secret"),
        (
            "packs:\n  yard:\n    bed: {zzz: 1}\n",
            "line 3: unknown key 'packs.yard.bed.zzz'. Known keys: colours, depth.",
        ),
    ],
)
def test_a_mistake_refuses_the_start_with_its_line(tmp_path: Path, yaml: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        checked(tmp_path, yaml)
    assert f"{tmp_path / 'marvin' / 'config.yaml'}, {said}" in str(refused.value)
    assert "12345678" not in str(refused.value)


def test_a_wrong_variable_refuses_the_start_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'^YARD_DEPTH: must be a number; found "deep"\.$'):
        checked(tmp_path, "", YARD_DEPTH="deep")


def test_several_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        checked(tmp_path, "packs:\n  yard:\n    a: 1\n    b: 2\n    bed: 3\n", YARD_DEPTH="1")
    assert len(str(refused.value).splitlines()) == 2, "the variable makes a mapping of `bed`"


def test_what_is_only_missing_refuses_no_start(tmp_path: Path) -> None:
    """Who installs a pack has set nothing yet."""
    assert checked(tmp_path, "packs: {yard: {tags: [a]}}\n") == []
    with pytest.raises(
        NotSet, match=r"^packs\.yard\.owner is not set; it takes text\. Set it: .*, or the variable YARD_"
    ):
        section({}).checked()


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("packs:\n  yrd: {owner: x}\n", "line 2: No pack is called 'yrd'. Did you mean 'yard'?"),
        ("packs:\n\n  quite_other: {}\n", "line 3: No pack is called 'quite_other'. See `"),
        ("packs: {shed: {owner: x}}\n", "line 1: The pack shed has no settings. Remove the section: `"),
    ],
)
def test_a_section_of_no_use_is_told_and_refuses_nothing(tmp_path: Path, yaml: str, said: str) -> None:
    (warning,) = checked(tmp_path, yaml)
    assert said in warning


def test_a_section_of_a_pack_that_is_left_out_is_passed_over(tmp_path: Path) -> None:
    assert checked(tmp_path, "packs: {left_out: {x: 1}}\n") == []


@pytest.mark.parametrize(("owner", "reason"), [("crash", "RuntimeError: no yard"), ("exit", "SystemExit: 3")])
def test_a_model_that_fails_is_the_packs_fault_and_ends_nothing(tmp_path: Path, owner: str, reason: str) -> None:
    (warning,) = checked(tmp_path, f"packs: {{yard: {{owner: {owner}}}}}\n")
    assert checked(tmp_path, f"packs: {{yard: {{owner: {owner}}}}}\n") == [warning], "it is told at each start"
    assert "The settings of the pack yard of acme-yard were not checked: " in warning
    assert reason in warning
    with pytest.raises(PluginError, match=reason):
        section({"owner": owner}).checked()


def test_what_was_found_right_is_not_checked_again_until_it_changes(tmp_path: Path) -> None:
    checks.clear()
    for _ in range(3):
        checked(tmp_path, "packs: {yard: {owner: ann}}\n")
    assert checks == ["ann"]
    checked(tmp_path, "packs: {yard: {owner: bob}}\n")
    checked(tmp_path, "packs: {yard: {owner: bob}}\n", YARD_OWNER="eve")
    checked(tmp_path, "packs: {yard: {owner: bob}}\n", YARD_OWNER="eve")
    assert checks == ["ann", "bob", "eve"]


def test_what_is_not_set_is_not_checked(tmp_path: Path) -> None:
    checks.clear()
    checked(tmp_path, "packs: {yard: {}}\n")
    checked(tmp_path, "")
    assert checks == []


# Where values come from


def test_values_come_from_variables_the_file_and_defaults() -> None:
    found = section({"owner": "ann", "bed": {"colours": {"red": 1}}}, YARD_DEPTH="2.5", YARD_TAGS="a, b,,")
    settings = found.checked()
    assert isinstance(settings, Yard)
    assert (settings.bed.depth, settings.bed.colours, settings.tags) == (2.5, {"red": 1}, ["a", "b"])
    assert [(".".join(keys), value, origin) for keys, value, origin in found.leaves()] == [
        ("owner", "ann", "config.yaml"),
        ("beds", [], "default"),
        ("bed.depth", 2.5, "YARD_DEPTH"),
        ("bed.colours", {"red": 1}, "config.yaml"),
        ("tags", ["a", "b"], "YARD_TAGS"),
    ]


def test_what_cannot_be_used_is_shown_as_it_was_given() -> None:
    assert [value for _, value, _ in section({"owner": 5}).leaves()] == [5]


def test_a_secret_in_the_place_of_a_setting_is_not_told() -> None:
    secrets = Secrets({"YARD_KEY": 's3cr3t/"value"'}, Path("/nowhere"))
    secrets.declare(["YARD_KEY"])
    found = PackSection(declared(), {"owner": ["x" * 60, 's3cr3t/"value"']}, secrets, Path("/nowhere/config.yaml"))
    with pytest.raises(ConfigError, match="must be text; found") as raised:
        found.checked()
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize("key", ["YARD_KEY", "yard_key"])
def test_a_secret_that_was_written_into_config_yaml_is_not_shown(key: str) -> None:
    found = section({"owner": "ann", key: "s3cr3t-value", "bed": {key: ["s3cr3t-value"]}})
    assert "s3cr3t-value" not in repr(list(found.leaves()))


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@pytest.mark.slow
@given(VALUES)
def test_any_section_is_settings_or_a_mistake_that_is_told(value: Any) -> None:
    for given_section in ({"owner": "ann", "bed": value}, {"owner": value}, {"beds": [value]}, {"x": value}):
        said = "packs.yard"
        with suppress(ConfigError):
            try:
                section(given_section).checked()
            except ConfigError as error:
                said = str(error)
                raise
        assert "packs.yard" in said


@given(st.text("abcäß日_", min_size=1, max_size=40))
def test_the_line_of_any_place_is_found_or_the_nearest(key: str) -> None:
    content = json.dumps({"packs": {"a": {"b": [1, {key: 2}]}}}, indent=1, ensure_ascii=False).encode()
    assert line_of(content, ["packs", "a", "b", 1, key]) == 7
    assert line_of(content, ["packs", "a", "c"]) == 3
    assert line_of(content, ["packs", "a", "b", 5]) == 4
    assert line_of(content, [key, key]) in (1, 2)


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ("bcde", r"line 2: packs\.yard cannot be used: it holds more than 100,000 values"),
        ("bcdefgh", "its aliases .* add more than 1,000,000 characters to it"),
    ],
)
def test_a_section_that_grows_is_refused(lists: str, said: str) -> None:
    """Seven lists of ten of the one before: ten million values in a few hundred bytes."""
    lines = [f"    {n}: &{n} [{', '.join([f'*{chr(ord(n) - 1)}'] * 10)}]" for n in lists]
    content = "\n".join(["packs:", "  yard:", "    a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]", *lines])
    with pytest.raises(ConfigError, match=said):
        parse_settings(content.encode(), Path("config.yaml"))


# What a pack declares


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (PackSettings(model="Yard"), "write module:class"),
        (PackSettings(model=f"{__name__}:NotThere"), "is not a class derived from marvin_core.Settings"),
        (PackSettings(model=f"{__name__}:Installed"), "is not a class derived from marvin_core.Settings"),
        (PackSettings(model=".nowhere:Yard"), "acme_yard"),
        (OF_YARD.replace(variables={"ownr": "YARD_OWNER"}), "Unknown key 'ownr'. Did you mean 'owner'?"),
        (OF_YARD.replace(variables={"bed": "YARD_BED"}), "bed is a mapping, which a variable cannot contain"),
        (
            OF_YARD.replace(variables={"owner": "yard owner"}),
            "'yard owner' is not a valid variable name; use capitals, as in ACME_KEY",
        ),
        (OF_YARD.replace(secrets={"YARD_OWNER": "x"}), "YARD_OWNER as a secret and as a setting"),
        (OF_YARD.replace(secrets=["YARD_KEY"]), "must be a mapping of strings, as in"),
        (OF_YARD.replace(secrets={"YARD_KEY": 1}), "must be a mapping of strings, as in"),
        ([OF_YARD], "where a PackSettings was expected"),
    ],
)
def test_a_declaration_that_means_nothing_is_refused_where_the_pack_is_found(settings: Any, said: str) -> None:
    with pytest.raises((PluginError, ImportError), match=said.replace("[", r"\[").replace("?", r"\?")):
        declared(settings)


def test_a_pack_with_secrets_only_takes_no_settings() -> None:
    found = PackSection(declared(PackSettings(secrets={"YARD_KEY": "x"})), {}, Secrets({}, Path("/")), Path("/c.yaml"))
    assert found.checked() == Settings()
    given_section = {"a": 1}
    wrong = PackSection(
        declared(PackSettings(secrets={"YARD_KEY": "x"})), given_section, Secrets({}, Path("/")), Path("/c.yaml")
    )
    with pytest.raises(ConfigError, match=r"unknown key 'packs\.yard\.a'. Known keys: none"):
        wrong.checked()


def test_a_declaration_is_described_without_importing_it_again() -> None:
    found = declared()
    assert found.file == __file__
    assert found.schema["properties"]["owner"] == {"type": "string", "description": "Whose it is."}
    assert found.secrets == {"YARD_KEY": "the key of the gate"}
    assert declared(PackSettings(secrets={"YARD_KEY": "x"})).schema == {"type": "object", "properties": {}}
