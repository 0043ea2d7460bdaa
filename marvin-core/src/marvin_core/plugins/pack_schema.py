"""Validates and describes the declared settings of a pack when the pack is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import resolve_name
from types import ModuleType
from typing import Any

from ..api.config import PackSettings
from ..api.errors import PluginError
from ..api.settings import Settings
from ..config.settings import is_own_of_packs
from ..util.schemas.normal_form import normal_form
from ..util.text import unknown_name
from .hook_calls import expect
from .model import DeclaredSettings, Pack

_SHORTEST_VARIABLE = 3
"""The minimum length in characters; a shorter name is nearly always a mistake."""


def declared_settings(answer: object, plugin: ModuleType, pack: Pack) -> DeclaredSettings:
    """The result of `marvin_register_settings`, with the schema of its model.

    Raises:
        PluginError: it contradicts itself, or names something that does not exist; the text says what to change.
    """
    given = expect(answer, PackSettings)
    if is_own_of_packs(pack.name):
        raise PluginError(f"packs.{pack.name} in config.yaml is Marvin's own; give the entry point another name")
    variables, secrets = _texts(given, "variables"), _texts(given, "secrets")
    name, schema, file = "", {"type": "object", "properties": {}}, ""
    if given.model:
        name = _full_name(str(given.model), plugin)
        model = model_of(name)
        schema, file = _schema(model, name), str(getattr(import_module(model.__module__), "__file__", "") or "")
    known = dict(leaves(schema))
    for key in variables:
        if key not in known:
            raise PluginError(f"PackSettings.variables: {unknown_name('key', key, known)}")
        if known[key].get("type") == "object":
            raise PluginError(f"PackSettings.variables: {key} is a mapping, which a variable cannot contain")
    both = sorted(set(variables.values()) & set(secrets))
    if both:
        raise PluginError(f"PackSettings declares {both[0]} as a secret and as a setting; choose one")
    return DeclaredSettings(
        name=pack.name,
        source=pack.distribution,
        schema=schema,
        variables=variables,
        secrets=secrets,
        model=name,
        file=file,
    )


def model_of(name: str) -> type[Settings]:
    """Import the class of a pack's settings.

    Raises:
        PluginError: the name does not exist, or is not such a class.
    """
    module, _, attribute = name.partition(":")
    found = getattr(import_module(module), attribute, None)
    if not (isinstance(found, type) and issubclass(found, Settings)):
        raise PluginError(f"PackSettings.model: {name} is not a class derived from marvin_core.Settings")
    return found


def _full_name(name: str, plugin: ModuleType) -> str:
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise PluginError(f"PackSettings.model is {name!r}; write module:class, as in .settings:GardenSettings")
    if not module.startswith("."):
        return name
    if not plugin.__package__:
        raise PluginError(f"PackSettings.model: {module!r} is relative, but {plugin.__name__} is not in a package")
    return f"{resolve_name(module, plugin.__package__)}:{attribute}"


def _schema(model: type[Settings], name: str) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError

    try:
        return normal_form(model.model_json_schema())
    except (PydanticUserError, ValueError) as error:
        raise PluginError(f"PackSettings.model: {name} has a field that JSON cannot describe: {error}") from error


def leaves(schema: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every key with its schema; nested keys are joined with dots."""
    for key, inner in schema.get("properties", {}).items():
        yield f"{before}{key}", inner
        yield from leaves(inner, f"{before}{key}.")


def _texts(given: PackSettings, field: str) -> dict[str, str]:
    """A mapping of strings to strings."""
    found = getattr(given, field)
    if found is None:
        return {}
    if not isinstance(found, Mapping) or not all(isinstance(text, str) for pair in found.items() for text in pair):
        raise PluginError(f"PackSettings.{field} must be a mapping of strings, as in {{'ACME_KEY': 'the key of Acme'}}")
    for name in found if field == "secrets" else found.values():
        if not _is_variable(name):
            raise PluginError(
                f"PackSettings.{field}: {name!r} is not a valid variable name; use capitals, as in ACME_KEY"
            )
    return dict(found)


def _is_variable(name: str) -> bool:
    return len(name) >= _SHORTEST_VARIABLE and name.replace("_", "").isalnum() and name.isupper() and name.isascii()
