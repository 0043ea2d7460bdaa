"""The settings of a pack from config.yaml and variables, validated by the pack's own model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..api.errors import ConfigError, PluginError
from ..api.settings import Settings
from ..config.file.parsing import Place, parsed_config, place_of, read_config
from ..config.file.problems import Location, Source, told
from ..config.program import command_name
from ..config.secrets import Secrets
from ..guard.redaction import Redactor
from ..util.failures import is_failure
from ..util.schemas.texts import reason_text, schema_at, type_text
from .model import DeclaredSettings
from .pack_schema import model_of

_PROBLEMS_SHOWN = 10

_Keys: TypeAlias = tuple[str, ...]


class NotSet(ConfigError):
    """A setting without a default has no value yet; the text says how to set it."""


class PackSection:
    """The values for the settings of one pack.

    Args:
        section: the value of `packs.NAME` in config.yaml.
        path: the path of config.yaml, for errors.
        content: its content, if it differs from the file.
    """

    def __init__(
        self,
        declared: DeclaredSettings,
        section: Mapping[str, Any],
        secrets: Secrets,
        path: Path,
        content: bytes | None = None,
    ) -> None:
        self._declared = declared
        self._secrets = secrets
        self._path = path
        self._content = content
        self._by_variable = {
            tuple(key.split(".")): (name, value)
            for key, name in declared.variables.items()
            if (value := secrets.setting(name))
        }
        self.values = _copied(section)
        for keys, (_, value) in self._by_variable.items():
            self._put(keys, value)

    def _put(self, keys: _Keys, value: str) -> None:
        inner = self.values
        for key in keys[:-1]:
            if not isinstance(inner.get(key), dict):
                inner[key] = {}
            inner = inner[key]
        entries = [entry.strip() for entry in value.split(",") if entry.strip()]
        inner[keys[-1]] = entries if self._schema(keys).get("type") == "array" else value

    def origin(self, keys: Sequence[str | int]) -> str:
        """The source of the value at this path: a variable, config.yaml, or empty for the default."""
        for given, (name, _) in self._by_variable.items():
            if given == tuple(keys[: len(given)]):
                return name
        found: Any = self.values
        for key in keys:
            if isinstance(found, Mapping) and key in found:
                found = found[key]
            elif not (isinstance(found, list) and isinstance(key, int) and key < len(found)):
                return ""
        return "config.yaml"

    def checked(self) -> Settings:
        """The settings.

        Raises:
            NotSet: the only problem is that something has no value.
            ConfigError: a given value is wrong.
            PluginError: the pack's own model cannot be used.
        """
        name = self._declared.name
        try:
            model = model_of(self._declared.model) if self._declared.model else Settings  # a pack may have secrets only
            return model.model_validate(self.values)
        except ValidationError as error:
            raise self._refusal(error.errors(include_url=False)) from None
        except PluginError:
            raise
        except BaseException as error:  # third-party code: the model and its validators
            if not is_failure(error):
                raise
            why = f"{type(error).__name__}: {error}"
            raise PluginError(f"The settings of the pack {name} cannot be checked: {why}. Correct the pack.") from error

    def _refusal(self, errors: list[ErrorDetails]) -> ConfigError:
        missing = [error for error in errors if error["type"] == "missing"]
        wrong = [error for error in errors if error["type"] != "missing" and (error["loc"] or self.values)]
        if not wrong:
            lines = [self._unset(_keys(error["loc"])) for error in missing] or [self._whole(error) for error in errors]
            return NotSet("\n".join(lines[:_PROBLEMS_SHOWN]))
        return ConfigError(told(wrong, self._source))

    @property
    def _source(self) -> Source:
        return Source(
            schema=self._declared.schema,
            path=self._path,
            place=self._place,
            prefix=f"packs.{self._declared.name}",
            variable=lambda location: self.origin(location).replace("config.yaml", ""),
            unknown=self._of_secret,
            clean=Redactor(self._secrets.known).text,
        )

    def _unset(self, keys: _Keys) -> str:
        variable = self._declared.variables.get(".".join(keys))
        also = f", or the variable {variable}" if variable else ""
        name = self._source.name(keys)
        kind = type_text(self._schema(keys))
        return f"{name} is not set; it takes {kind}. Set it: `{command_name()} config set {name} VALUE`{also}."

    def _whole(self, error: ErrorDetails) -> str:
        """The errors of the whole model if nothing was set."""
        return f"packs.{self._declared.name} in config.yaml: {reason_text(error, {})}."

    def _secret_of(self, key: str) -> str | None:
        """The secret with the name of a key; secrets are never in config.yaml."""
        return {secret.casefold(): secret for secret in self._declared.secrets}.get(key.casefold())

    def _of_secret(self, location: Location) -> str:
        """The error for a key with the name of a secret; empty for any other."""
        meant = self._secret_of(str(location[-1]))
        if meant is None:
            return ""
        name = self._source.name(location)
        return f"{name} is a secret, which cannot be set in config.yaml. Set the variable {meant} instead."

    def _place(self, location: Location) -> Place | None:
        return None if self._written is None else place_of(self._written, ("packs", self._declared.name, *location))

    @cached_property
    def _written(self) -> Any:
        """The file as the YAML library returns it; None if it is being changed: the name of a key is enough then."""
        try:
            return parsed_config(read_config(self._path) if self._content is None else self._content, self._path)
        except ConfigError:
            return None

    def _schema(self, location: Sequence[str | int]) -> Mapping[str, Any]:
        return schema_at(self._declared.schema, location)

    def leaves(self) -> Iterator[tuple[_Keys, Any, str]]:
        """Each key with its value and source; invalid values are returned as they are.

        If a secret was written into config.yaml, it is redacted.
        """
        try:
            shown = self.checked().model_dump(mode="json", by_alias=True)
        except (ConfigError, PluginError):
            shown = self.values
        yield from self._leaves((), shown)

    def _leaves(self, before: _Keys, values: Mapping[str, Any]) -> Iterator[tuple[_Keys, Any, str]]:
        for key, value in values.items():
            keys = (*before, key)
            if isinstance(value, Mapping) and self._schema(keys).get("properties"):
                yield from self._leaves(keys, value)
            else:
                shown = value if self._secret_of(key) is None else "[redacted]"
                yield keys, shown, self.origin(keys) or "default"


def _copied(section: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copied(value) if isinstance(value, Mapping) else value for key, value in section.items()}


def _keys(location: Sequence[str | int]) -> _Keys:
    return tuple(str(part) for part in location)
