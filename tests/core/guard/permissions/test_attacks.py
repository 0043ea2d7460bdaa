"""Commands that are hidden in layers of shell never slip past the judge: a real bash tells what they start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from marvin_core.api.hooks import Deny
from tests.core.guard.permissions import attacks
from tests.support.examples import examples
from tests.support.judging import judge
from tests.support.recorded import PROJECT, Recorder
from tests.support.shell_attacks import each

_MANY = 600
_BATCH = 50

Attack = Callable[[Random, int], str]
Slips = Callable[[Path, list[str], Recorder], list[str]]


def _texts(attack: Attack) -> st.SearchStrategy[list[str]]:
    """A few attacks at once: one sandbox for them all. A failure names those that slipped, so that none is shrunk."""
    one = st.builds(attack, st.randoms(use_true_random=False), st.integers(0, 3))
    return st.lists(one, min_size=1, max_size=6, unique=True)


def _open_harm(random: Random, depth: int) -> str:
    return attacks.harm(random, depth, plain=True)


def _past_the_list(folder: Path, texts: list[str], programs: Recorder) -> list[str]:
    return attacks.slips_past_the_list(folder, texts, programs, confined=False)


def _past_the_list_in_a_sandbox(folder: Path, texts: list[str], programs: Recorder) -> list[str]:
    return attacks.slips_past_the_list(folder, texts, programs, confined=True)


KINDS: dict[str, tuple[Attack, Slips]] = {
    "denied": (attacks.denied_program, attacks.slips_past_a_denial),
    "mutated": (attacks.mutated, attacks.slips_past_a_denial),
    "arguments": (attacks.denied_arguments, attacks.slips_past_a_denial_of_arguments),
    "allowed": (attacks.beside_git, attacks.slips_through_a_permission),
    "list": (attacks.harm, _past_the_list),
    "list in a sandbox": (_open_harm, _past_the_list_in_a_sandbox),
    "harmless in a sandbox": (
        attacks.no_harm,
        lambda folder, texts, programs: attacks.denied_without_need(folder, texts),
    ),
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    return attacks.recorder(tmp_path_factory.mktemp("programs"))


@pytest.mark.parametrize("kind", KINDS)
@examples(12, phases=[Phase.generate], suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_nothing_slips_past(
    kind: str, tmp_path_factory: pytest.TempPathFactory, programs: Recorder, data: st.DataObject
) -> None:
    attack, slips = KINDS[kind]
    texts = data.draw(_texts(attack))
    assert slips(tmp_path_factory.mktemp("run"), texts, programs) == []


@pytest.mark.slow
def test_no_layer_hides_a_command(tmp_path: Path, programs: Recorder) -> None:
    texts = list(dict.fromkeys(each("touch p")))
    assert len(texts) > 700
    assert attacks.slips_past_a_denial(tmp_path, texts, programs) == []


@pytest.mark.real
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_many_slips_past(kind: str, tmp_path: Path, programs: Recorder) -> None:
    attack, slips = KINDS[kind]
    found: list[str] = []
    for start in range(0, _MANY, _BATCH):
        texts = [attack(Random(seed), seed % 4) for seed in range(start, start + _BATCH)]
        found += slips(tmp_path, texts, programs)
    assert sorted(found, key=len)[:20] == []


@pytest.mark.parametrize(
    "text",
    [
        "# " + "x" * 300_000 + "\ntouch p",
        ": " + "a " * 40_000 + "; touch p",
        "eval " * 3_000 + "touch p",
        "env " * 20_000 + "touch p",
        "$(" * 5_000 + "touch p" + ")" * 5_000,
        "(" * 20_000 + "touch p" + "\n)" * 20_000,
        ": | " * 20_000 + "touch p",
        "{ " * 10_000 + "touch p" + "; }" * 10_000,
        "'" * 60_000 + "touch p",
        "cat <<E\n" * 9_000 + "touch p",
        ": ${x:-" * 8_000 + "$(touch p)" + "}" * 8_000,
        "\\\n" * 30_000 + "touch p",
    ],
    ids=lambda text: f"{text[:8]!r}",
)
def test_what_is_too_long_or_too_deep_is_denied(text: str, tmp_path: Path) -> None:
    assert isinstance(judge(tmp_path, PROJECT, deny=["run_command(touch *)"])(text), Deny)


@pytest.mark.slow
def test_most_of_the_attacks_work(programs: Recorder) -> None:
    texts = [attacks.denied_program(Random(seed), seed % 3) for seed in range(40)]
    harmful = [attacks.harm(Random(seed), seed % 3) for seed in range(40)]
    runs = programs.run(texts + harmful)
    assert sum("touch" in run.names() for run in runs[:40]) > 20
    assert sum(map(attacks.does_harm, runs[40:])) > 20
