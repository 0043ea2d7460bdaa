"""Every hook that a pack can implement is documented, typed and tested."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marvin_core import API, Hook
from marvin_core.api import hookspecs

TESTS = Path(__file__).parents[1]
SPECS: dict[str, Callable[..., Any]] = {
    name: spec for name, spec in vars(hookspecs).items() if name.startswith("marvin_") and inspect.isfunction(spec)
}
HOOK_METHODS: dict[str, Callable[..., Any]] = {
    name: method for name, method in vars(Hook).items() if inspect.isfunction(method) and not name.startswith("_")
}


def test_the_hooks_are_these() -> None:
    """Part of the contract with packs: one more is a new feature, one less breaks them."""
    assert set(SPECS) == {
        "marvin_configure",
        "marvin_register_settings",
        "marvin_register_tools",
        "marvin_register_providers",
        "marvin_register_hooks",
        "marvin_register_uis",
        "marvin_register_commands",
        "marvin_extend_cli",
    }
    assert set(HOOK_METHODS) == {
        "on_prompt",
        "system_prompt",
        "before_request",
        "before_tool",
        "after_tool",
        "on_stop",
        "on_event",
    }


@pytest.mark.parametrize("name", [*SPECS, *HOOK_METHODS])
def test_a_hook_is_documented_and_typed(name: str) -> None:
    hook = {**SPECS, **HOOK_METHODS}[name]
    documentation = inspect.getdoc(hook) or ""
    assert documentation.split("\n")[0].rstrip().endswith((".", ":")), "a first sentence that stands alone"
    parameters = [one for one in inspect.signature(hook).parameters.values() if one.name != "self"]
    assert all(one.annotation is not inspect.Parameter.empty for one in parameters)
    assert inspect.signature(hook).return_annotation is not inspect.Signature.empty


def test_each_hook_says_since_when_it_is_there() -> None:
    assert set(hookspecs.SINCE) == {*SPECS, *(f"Hook.{name}" for name in HOOK_METHODS)}
    assert all(1 <= since <= API for since in hookspecs.SINCE.values())


@pytest.mark.parametrize("name", [*SPECS, *HOOK_METHODS])
def test_a_hook_is_exercised_by_a_test(name: str) -> None:
    implementations = (f"def {name}(", f'"{name}"')
    files = [path for path in TESTS.rglob("*.py") if path != Path(__file__)]
    assert any(text in path.read_text(encoding="utf-8") for path in files for text in implementations)
