"""The values that `Config` leaves out: keys, tokens, and the environment that children get."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

from ..api.errors import ConfigError
from ..api.providers import Secret
from .secret_files import Reader, WatchedFile, github_files, tokens, whole
from .stored.keys import StoredKeys

GIT_LOCAL_VARIABLES = frozenset(
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_OBJECT_DIRECTORY GIT_DIR"
    " GIT_WORK_TREE GIT_IMPLICIT_WORK_TREE GIT_GRAFT_FILE GIT_INDEX_FILE GIT_NO_REPLACE_OBJECTS"
    " GIT_REPLACE_REF_BASE GIT_PREFIX GIT_SHALLOW_FILE GIT_COMMON_DIR GIT_INTERNAL_SUPER_PREFIX".split()
)
"""What `git rev-parse --local-env-vars` names: variables that tie git to another repository."""


_SHORTEST_SECRET = 8
"""Characters; what is shorter stands in too many texts by chance to be redacted."""
REQUIRED: Any = object()
"""In the place of a default: there is none."""

D = TypeVar("D")


class SecretAccess:
    """What the code of packs asks for its secrets; where they come from is up to `_secret`."""

    @overload
    def secret(self, name: str) -> str: ...
    @overload
    def secret(self, name: str, default: None) -> str | None: ...
    @overload
    def secret(self, name: str, default: D) -> str | D: ...
    def secret(self, name: str, default: Any = REQUIRED) -> Any:
        """The value of a declared secret, else the default. Raises as `PackContext.secret` says."""
        return self._secret(name, default)

    def _secret(self, name: str, default: Any) -> Any:
        raise NotImplementedError


class Secrets:
    """The values that Config leaves out, and the environment that children get."""

    def __init__(
        self, env: Mapping[str, str], home: Path, passed_on: Iterable[str] = (), stored: StoredKeys | None = None
    ) -> None:
        self._env = dict(env)
        self._given = dict(env)
        self._home = home
        self._passed_on = frozenset(passed_on)
        self.stored = stored
        """The keys that the user gave to Marvin to keep."""
        self.of_agents: tuple[str, ...] = ()
        """The variables that agents get beside the keys of their models, whatever is secret in them."""
        self._declared: set[str] = set()
        self._are_all_declared = False
        self._learned: set[str] = set()
        self._watched: dict[Path, WatchedFile] = {}
        self._known: tuple[str, ...] | None = None
        for path in github_files(env, home):
            self.watch(path, tokens)
        if stored is not None:
            self.watch(stored.path, stored.values_in)

    def declare(self, names: Iterable[str]) -> None:
        """Count these variables among the secrets, too."""
        new = set(names) - self._declared
        if new:
            self._declared |= new
            self._known = None

    def declare_all(self, names: Iterable[str]) -> None:
        """As `declare`, by who knows the variables of all services; before, they are read from their table."""
        self._are_all_declared = True
        self.declare(names)

    @property
    def _names(self) -> set[str]:
        """The variables whose values reach no child, log or message unless they are handed over by name."""
        if not self._are_all_declared:
            from .services import key_variables

            self.declare_all(key_variables())
        return self._declared

    def watch(self, path: Path, read: Reader = whole) -> None:
        """Count what stands in a file among what to redact, now and whenever it changes; it need not be there."""
        if path not in self._watched:
            self._watched[path] = WatchedFile(path, read)

    def watch_key_file(self, key_file: str) -> None:
        """As `watch`, for a key file below the home folder, whoever needs that key."""
        if key_file:
            self.watch(self._home / key_file)

    def get(self, name: str, key_file: str = "") -> Secret:
        """The value of a variable, else what the user had Marvin keep, else the content of a key file, else empty.

        `key_file` is below the home folder. Blocks where the key is in the system's keyring.

        Raises:
            ConfigError: where the keyring does not give the key that is in there.
        """
        value = self._env.get(name, "").strip()
        if not value and self.stored is not None:
            value = self.stored.get(name)
            if value:
                self.use_key(name, Secret(value))
        if not value and key_file:
            try:
                value = (self._home / key_file).read_text(encoding="utf-8").strip()
                self.use_key(name, Secret(value))
            except (OSError, UnicodeDecodeError):
                value = ""
        return Secret(value)

    def has(self, name: str, key_file: str = "") -> bool:
        """Whether there is a value for a variable, without asking the system's keyring for it."""
        return bool(self._env.get(name, "").strip()) or self.stores(name) or bool(key_file and self.get(name, key_file))

    def stores(self, name: str) -> bool:
        """Whether the user had Marvin keep this key."""
        return self.stored is not None and name in self.stored.names()

    @property
    def in_keyring(self) -> bool:
        """Whether the user had Marvin keep any key in the system's keyring."""
        return self.stored is not None and self.stored.in_keyring

    def awaited(self, names: Iterable[str]) -> list[str]:
        """Those of these variables whose keys the system's keyring has to be asked for; see `fetch`."""
        stored = self.stored
        return [name for name in names if stored is not None and stored.awaits(name) and not self.given(name)]

    def fetch(self, names: Iterable[str]) -> None:
        """Ask the system's keyring for keys, so that `get` need not wait for it. Blocks; `get` raises what it meets."""
        if self.stored is not None:
            for name in self.awaited(names):
                self.stored.fetch(name)

    def given(self, name: str) -> Secret:
        """The value that a variable has in this run, wherever it is from; empty without one."""
        return Secret(self._env.get(name, "").strip())

    def use_key(self, name: str, value: Secret | None) -> None:
        """Use this value from now on; None for what the variable had at the start. What was known stays secret."""
        self._learned.add(self._env.get(name, "").strip())
        used = value.reveal() if value is not None else self._given.get(name, "")
        self._env = {**self._env, name: used}  # others may be going through it meanwhile
        self._known = None

    def value(self, name: str, meaning: str = "", default: Any = REQUIRED) -> Any:
        """What a variable holds that the code of a pack takes as a secret, else the default; redacted from now on.

        Args:
            meaning: what it is, for people.

        Raises:
            ConfigError: where it is not set and there is no default; the text says what to set.
        """
        self.declare([name])
        value = self.get(name).reveal()
        if not value and default is REQUIRED:
            what = f" to {meaning.rstrip('.')}" if meaning else ""
            raise ConfigError(f"The variable {name} is not set. Set it{what}, and restart Marvin.")
        return value or default

    def in_environment(self, name: str) -> bool:
        """Whether a variable has a value there, and not only a key file."""
        return bool(self._given.get(name, "").strip())

    def setting(self, name: str) -> str | None:
        """The value of a variable that is no secret, or None."""
        return self._env.get(name)

    def holds_key(self, name: str) -> bool:
        """Whether a variable is among the secrets, or its value holds that of one."""
        if name in self._names or self.stores(name):
            return True
        value = self._env.get(name, "")
        own = {self._env.get(one, "").strip() for one in self._names}
        return any(len(one) >= _SHORTEST_SECRET and one in value for one in own)

    def learn(self, secret: Secret) -> None:
        """Count a value that no variable holds among those to redact, such as a token of a login."""
        value = secret.reveal().strip()
        if value not in self._learned:
            self._learned.add(value)
            self._known = None

    def known(self) -> tuple[str, ...]:
        """The values to redact, longest first. As long as they stay the same, the same object is returned."""
        is_there = os.access  # most are not there, and this is asked for many times a round
        for watched in [one for one in self._watched.values() if is_there(one.path, os.F_OK)]:
            for value in watched.changed():
                self.learn(Secret(value))
        if self._known is None:
            values = self._learned | {self._env[name].strip() for name in self._names if name in self._env}
            long = (value for value in values if len(value) >= _SHORTEST_SECRET)
            self._known = tuple(sorted(long, key=lambda value: (-len(value), value)))
        return self._known

    def child_environment(self, handed_on: Iterable[str] = ()) -> dict[str, str]:
        """The environment of child processes: ours, less secrets and what ties git to another repository.

        Of the secrets, those named in `handed_on` stay in it. Other variables that hold a secret go, too, a part of
        their value though it may be.
        """
        kept = (self._passed_on | set(handed_on)) - GIT_LOCAL_VARIABLES
        dropped = (self._names | GIT_LOCAL_VARIABLES) - kept
        own = {self._env[name].strip() for name in self._names - kept if name in self._env}
        handed = {self._env.get(name, "").strip() for name in kept}
        secret = [value for value in (own | self._learned) - handed if len(value) >= _SHORTEST_SECRET]
        return {
            name: value
            for name, value in self._env.items()
            # Programs need the proxy, its password included.
            if name in kept
            or (name not in dropped and (name.lower().endswith("_proxy") or not any(one in value for one in secret)))
        }
