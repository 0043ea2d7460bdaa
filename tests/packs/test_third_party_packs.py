"""Third-party packs: each kind of extension, built as a wheel and installed into a fresh environment."""

from __future__ import annotations

import json
from pathlib import Path

import pexpect
import pytest

from tests.packs.support_packs import ROOT, Installed, build_wheels

HERE = Path(__file__).resolve().parent
DICE = ROOT / "docs" / "examples" / "marvin_dice"
PACKS = ("marvin-echo", "marvin-careful", "marvin-greet", "marvin-stats", "marvin-shout")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("packs"),  # on one worker, so that the wheels are built once
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Installed:
    """The core and all third-party packs."""
    folder = tmp_path_factory.mktemp("third-party")
    for source in (DICE, *(HERE / name for name in PACKS)):
        build_wheels(source, folder / "wheels")
    return Installed(folder / "place", [wheels, folder / "wheels"], "marvin-core", "marvin-dice", *PACKS)


def test_the_dice_pack_is_under_forty_lines_in_all() -> None:
    lines = [line for name in ("marvin_dice.py", "pyproject.toml") for line in (DICE / name).read_text().splitlines()]
    assert len(lines) < 40


def test_all_packs_are_there_without_a_problem(installed: Installed) -> None:
    listed = installed.run("packs", "list")
    assert listed.returncode == 0, listed.stdout
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    assert names == ["core", "careful", "dice", "echo", "greet", "shout", "stats"]


def test_tools_of_a_pack_are_called(installed: Installed) -> None:
    """marvin_register_tools."""
    rolled = installed.run("tools", "call", "roll_dice", "sides=2", "count=3")
    assert rolled.returncode == 0, rolled.stderr
    assert all(face in ("1", "2") for face in rolled.stdout.strip().split(", "))


def test_a_hook_of_a_pack_denies_and_asks(installed: Installed) -> None:
    """marvin_register_hooks."""
    refused = installed.run("tools", "call", "roll_dice", "count=4")
    assert refused.returncode == 1
    assert "more than three dice are gambling" in refused.stdout
    chat = pexpect.spawn(
        str(installed.folder / "venv" / "bin" / "marvin"),
        ["--plain"],
        env={"HOME": str(installed.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"},
        encoding="utf-8",
        timeout=150,
    )
    chat.expect_exact("> ")
    chat.sendline("/roll_dice count=2")
    chat.expect_exact("dice are a serious matter")
    chat.sendline("no")
    chat.expect_exact("the user said no")
    chat.sendline("/exit")
    chat.expect(pexpect.EOF)
    chat.close()


def test_a_provider_of_a_pack_answers(installed: Installed) -> None:
    """marvin_register_providers."""
    answer = installed.run("--non-interactive", "--provider", "echo", "--prompt", "Hello there")
    assert (answer.returncode, answer.stdout) == (0, "parrot heard: Hello there\n"), answer.stderr
    assert json.loads(answer.stderr.splitlines()[-1].removeprefix("MARVIN_COST:"))["session_cost"] == 0.0


def test_a_slash_command_of_a_pack_runs(installed: Installed) -> None:
    """marvin_register_commands."""
    import subprocess

    marvin = installed.folder / "venv" / "bin" / "marvin"
    chat = subprocess.run(
        [marvin, "--plain"],
        input="/greet Ada\n",
        env={"HOME": str(installed.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert "Good day, Ada. There are 7 tools." in chat.stdout


def test_a_sub_command_of_a_pack_runs_and_others_do_not_pay_for_it(installed: Installed) -> None:
    """marvin_extend_cli."""
    counted = installed.run("stats", "four", "words", "are", "here")
    assert (counted.returncode, counted.stdout) == (0, "16\n"), counted.stderr


def test_an_interface_of_a_pack_is_chosen_by_the_configuration(installed: Installed) -> None:
    """marvin_register_uis."""
    folder = installed.home / ".config" / "marvin"
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.yaml"
    config.write_text("ui: shout\nprovider: echo\n")
    try:
        marvin = str(installed.folder / "venv" / "bin" / "marvin")
        environment = {"HOME": str(installed.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        chat = pexpect.spawn(marvin, ["hello"], env=environment, timeout=150, encoding="utf-8")
        chat.expect(pexpect.EOF)
        chat.wait()  # `close` alone sends signals to one that is slow to go
        chat.close()
    finally:
        config.unlink()
    assert (chat.exitstatus, (chat.before or "").strip()) == (0, "PARROT HEARD: HELLO")


def test_packs_come_and_go(installed: Installed, tmp_path: Path) -> None:
    installed.uninstall("marvin-stats")
    assert "stats" not in installed.run("packs", "list").stdout
    installed.install("marvin-stats")
    assert "stats" in installed.run("packs", "list").stdout
