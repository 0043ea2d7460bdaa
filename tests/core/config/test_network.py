"""The setting of the network: by flag, by variable, by config.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.api.config import NetworkPolicy
from marvin_core.api.errors import ConfigError, UsageError
from marvin_core.config.load import load


def policy(home: Path, *flags: str, setting: str = "", **env: str) -> NetworkPolicy | None:
    folder = home / ".config" / "marvin"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(f"network: {setting}\n" if setting else "")
    return load(flags, {"HOME": str(home), **env}, cwd=home)[0].network


def hosts(*names: str) -> NetworkPolicy:
    return NetworkPolicy(kind="hosts", hosts=names)


@pytest.mark.parametrize("kind", ["none", "loopback", "all"])
def test_a_word(tmp_path: Path, kind: str) -> None:
    found = [
        policy(tmp_path, "--network", kind),
        policy(tmp_path, MARVIN_NETWORK=kind),
        policy(tmp_path, setting=kind),
    ]
    assert [(one.kind, one.hosts, one.as_text()) for one in found if one] == [(kind, (), kind)] * 3


def test_nobody_said_anything(tmp_path: Path) -> None:
    assert policy(tmp_path) is None
    assert policy(tmp_path, MARVIN_NETWORK="") is None


def test_hosts_as_text_and_back(tmp_path: Path) -> None:
    expected = hosts("example.org", "*.example.com:443")
    found = policy(tmp_path, "--network", "example.org, *.example.com:443")
    assert found == expected
    assert policy(tmp_path, MARVIN_NETWORK=expected.as_text()) == expected
    assert hosts().as_text() == "loopback"
    assert policy(tmp_path, "--network", "localhost") == hosts("localhost")


def test_a_flag_beats_the_variable_and_that_beats_the_file(tmp_path: Path) -> None:
    assert policy(tmp_path, "--network", "none", setting="all", MARVIN_NETWORK="loopback") == NetworkPolicy(kind="none")
    assert policy(tmp_path, setting="all", MARVIN_NETWORK="a.example") == hosts("a.example")
    assert policy(tmp_path, setting="{hosts: [b.example]}") == hosts("b.example")


@pytest.mark.parametrize("text", ["non", "everything", ",", "https://example.org", "example.org,*", "a.example:0"])
def test_what_is_no_policy_is_refused_and_says_what_is(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"^--network is .*(use none|not a host|no valid port|address of a page)"):
        policy(tmp_path, "--network", text)
    with pytest.raises(
        ConfigError, match=r"^MARVIN_NETWORK is .*(use none|not a host|no valid port|address of a page)"
    ):
        policy(tmp_path, MARVIN_NETWORK=text)


def test_an_empty_flag_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="use none, loopback, all, or hosts, as in example"):
        policy(tmp_path, "--network", "")
