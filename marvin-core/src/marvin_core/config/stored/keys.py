"""Stored keys of the user: in the system's keyring, or in a file that only this user can read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.errors import ConfigError
from ...api.timeouts import Timeouts

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...api.models import KeyPlace

_SERVICE = "marvin"
"""The service name of the keys in the keyring; their user names are the variables."""
_INSTALL = 'pip install "marvin-core[keyring]"'


class StoredKeys:
    """`keys.json` of the configuration folder: keys by variable, and the list of keys in the keyring.

    The keyring is opened only for a key that is needed and stored there: opening is slow, and may ask the user.
    """

    def __init__(self, folder: Path, timeouts: Timeouts) -> None:
        self.path = folder / "keys.json"
        self._timeouts = timeouts
        self._read: tuple[Mapping[str, str], frozenset[str]] | None = None
        self._said: dict[str, str | ConfigError] = {}
        """The keyring's result for each requested key, so that it is asked only once."""
        self._told: set[str] = set()
        """The keys with a reported failure, which the user may have fixed since."""

    def names(self) -> frozenset[str]:
        """The variables with stored keys."""
        keys, in_keyring = self._content()
        return in_keyring.union(keys)

    def place(self, name: str) -> str:
        """The place of a stored key, as shown to the user; empty if it is not stored."""
        keys, in_keyring = self._content()
        if name in keys:
            return str(self.path)
        return "the keyring" if name in in_keyring else ""

    def get(self, name: str) -> str:
        """The value of a key; empty if it is not stored.

        Raises:
            ConfigError: the keyring does not return it.
        """
        keys, in_keyring = self._content()
        if name in keys or name not in in_keyring:
            return keys.get(name, "")
        if name not in self._said:
            self.fetch(name)
        said = self._said[name]
        if isinstance(said, ConfigError):
            self._told.add(name)
            raise said
        return said

    @property
    def in_keyring(self) -> bool:
        """Whether any key is in the keyring."""
        return bool(self._content()[1])

    def awaits(self, name: str) -> bool:
        """Whether a key has to be fetched from the keyring: for the first time, or again after a reported failure."""
        keys, in_keyring = self._content()
        return name in in_keyring and name not in keys and (name not in self._said or name in self._told)

    def fetch(self, name: str) -> None:
        """Fetch a key from the keyring. Blocks. Errors are raised by `get`."""
        try:
            self._said[name] = self._asked(name)
        except ConfigError as error:
            self._said[name] = error
        self._told.discard(name)

    def _asked(self, name: str) -> str:
        found = self._in_time(lambda keyring: keyring.get_password(_SERVICE, name), f"the key {name}")
        if found is not None and not isinstance(found, str):
            from ..program import command_name

            raise ConfigError(
                f"The keyring returned the key {name} as {type(found).__name__} instead of text. Store it again with "
                f"`{command_name()} login`, or set the variable."
            )
        return (found or "").strip()

    def keep(self, name: str, value: str, place: KeyPlace) -> None:
        """Store a key.

        Raises:
            ConfigError: the keyring cannot be used.
            MarvinError, OSError: the file cannot be written.
        """
        if place == "keyring":
            self._in_time(lambda keyring: keyring.set_password(_SERVICE, name, value), f"the key {name}", value)
        elif name in self._content()[1]:
            self._remove_from_keyring(name)
        self._change(name, {name: value} if place == "file" else {}, frozenset({name} if place == "keyring" else ()))

    def remove(self, name: str) -> bool:
        """Delete a key; returns whether it was stored. Raises the same errors as `keep`."""
        keys, in_keyring = self._content()
        if name in in_keyring:
            self._remove_from_keyring(name)
        if name in keys or name in in_keyring:
            self._change(name, {}, frozenset())
            return True
        return False

    def keyring_problem(self) -> str:
        """The reason why the keyring cannot store keys; empty if it can."""
        try:
            # Backends that keyring does not recommend have a priority below 1 (its documentation): files, and the null
            # backend. A backend may have to connect to its service to find out its priority.
            works = self._in_time(lambda keyring: _is_recommended(keyring.get_keyring()), "a key")
        except ConfigError as error:
            return str(error)
        return "" if works else "This system has no working keyring. A key can be stored in a file instead."

    def values_in(self, text: str) -> Iterable[str]:
        """The keys in the text of the file."""
        return _parsed(text)[0].values()

    def _content(self) -> tuple[Mapping[str, str], frozenset[str]]:
        if self._read is None:
            try:
                self._read = _parsed(self.path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                self._read = {}, frozenset()
        return self._read

    def _change(self, name: str, keys: Mapping[str, str], in_keyring: frozenset[str]) -> None:
        from ...util.state_files import locked, replace_file, set_aside

        with locked(self.path, self._timeouts.lock, self._timeouts.lock_poll):
            try:
                there, listed = _parsed(self.path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                there, listed = {}, frozenset()
            except ValueError:
                set_aside(self.path)
                there, listed = {}, frozenset()
            kept = {**{other: value for other, value in there.items() if other != name}, **keys}
            data = {"keys": kept, "keyring": sorted((listed - {name}) | in_keyring)}
            replace_file(self.path, json.dumps(data, indent=1).encode(), keep_mode=False)
        self._read = None
        self._said.pop(name, None)

    def _remove_from_keyring(self, name: str) -> None:
        def remove(keyring: Any) -> None:
            if keyring.get_password(_SERVICE, name) is not None:
                keyring.delete_password(_SERVICE, name)

        self._in_time(remove, f"the key {name}")

    def _in_time(self, work: Callable[[Any], Any], what: str, secret: str = "") -> Any:
        """Run an operation of the keyring. It may wait for the user, or for a service that does not answer.

        `secret` is text that no error may show.
        """
        import threading

        from ...util.failures import told

        results: list[Any] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                import keyring

                results.append(work(keyring))
            except BaseException as error:  # a backend may raise anything
                errors.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(self._timeouts.keyring)
        if results:
            return results[0]
        if errors and isinstance(errors[0], ModuleNotFoundError):
            raise ConfigError(f"The keyring cannot be used: the package keyring is missing. Run {_INSTALL}.")
        why = told(errors[0]) if errors else f"no answer in {self._timeouts.keyring:g} s"
        if secret:
            why = why.replace(secret, "[the key]")
        raise ConfigError(
            f"The keyring could not store or return {what}: {why}. Unlock it and try again, or set the variable."
        )


def _parsed(text: str) -> tuple[Mapping[str, str], frozenset[str]]:
    """The content of the file. Raises `ValueError` if it is damaged."""
    from ...util.untrusted_json import parse_json

    data = parse_json(text)
    if not isinstance(data, dict):
        raise ValueError("no object")
    keys, listed = data.get("keys"), data.get("keyring")
    found = {name: value for name, value in keys.items() if isinstance(value, str)} if isinstance(keys, dict) else {}
    return found, frozenset(filter(_is_name, listed if isinstance(listed, list) else ()))


def _is_name(value: object) -> bool:
    return isinstance(value, str)


def _is_recommended(backend: Any) -> bool:
    """Whether the backend is recommended, or, for a chain of backends, one of them is."""
    return any(getattr(one, "priority", 1) >= 1 for one in getattr(backend, "backends", None) or (backend,))
