"""The values that are not in `Config`: keys, tokens, and the environment of child processes."""

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
"""Variables that bind git to a repository, from `git rev-parse --local-env-vars`."""


_SHORTEST_SECRET = 8
"""In characters. Shorter values are not redacted, since they are in too many texts by chance."""
REQUIRED: Any = object()
"""Means that there is no default."""

D = TypeVar("D")


class SecretAccess:
    """The interface through which code of packs gets its secrets. Subclasses implement `_secret`."""

    @overload
    def secret(self, name: str) -> str: ...
    @overload
    def secret(self, name: str, default: None) -> str | None: ...
    @overload
    def secret(self, name: str, default: D) -> str | D: ...
    def secret(self, name: str, default: Any = REQUIRED) -> Any:
        """The value of a declared secret, else the default. Raises the same errors as `PackContext.secret`."""
        return self._secret(name, default)

    def _secret(self, name: str, default: Any) -> Any:
        raise NotImplementedError


class Secrets:
    """The secrets of a run, and the environment of child processes."""

    def __init__(
        self, env: Mapping[str, str], home: Path, passed_on: Iterable[str] = (), stored: StoredKeys | None = None
    ) -> None:
        self._env = dict(env)
        self._given = dict(env)
        self._home = home
        self._passed_on = frozenset(passed_on)
        self.stored = stored
        """The keys that the user has stored with `marvin login`."""
        self.of_agents: tuple[str, ...] = ()
        """Variables that sub-agents get in addition to the keys of their models, even if they are secret."""
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
        """Add variables to the secrets."""
        new = set(names) - self._declared
        if new:
            self._declared |= new
            self._known = None

    def declare_all(self, names: Iterable[str]) -> None:
        """Add the variables of all services to the secrets. Until this is called, the service table is used."""
        self._are_all_declared = True
        self.declare(names)

    @property
    def _names(self) -> set[str]:
        """The secret variables. Their values reach child processes, logs and messages only if passed by name."""
        if not self._are_all_declared:
            from .services import key_variables

            self.declare_all(key_variables())
        return self._declared

    def watch(self, path: Path, read: Reader = whole) -> None:
        """Redact the secrets in a file, now and after each change. The file need not exist."""
        if path not in self._watched:
            self._watched[path] = WatchedFile(path, read)

    def watch_key_file(self, key_file: str) -> None:
        """Watch a key file in the home folder; see `watch`."""
        if key_file:
            self.watch(self._home / key_file)

    def get(self, name: str, key_file: str = "") -> Secret:
        """The value of a variable, else the stored key, else the content of a key file, else empty.

        `key_file` is relative to the home folder. Blocks if the key is in the system's keyring.

        Raises:
            ConfigError: the keyring does not return the stored key.
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
        """Whether this key is stored."""
        return self.stored is not None and name in self.stored.names()

    @property
    def in_keyring(self) -> bool:
        """Whether any key is stored in the system's keyring."""
        return self.stored is not None and self.stored.in_keyring

    def awaited(self, names: Iterable[str]) -> list[str]:
        """The variables among `names` whose keys have to be fetched from the system's keyring; see `fetch`."""
        stored = self.stored
        return [name for name in names if stored is not None and stored.awaits(name) and not self.given(name)]

    def fetch(self, names: Iterable[str]) -> None:
        """Fetch keys from the system's keyring in advance. Blocks. Errors are raised by `get`."""
        if self.stored is not None:
            for name in self.awaited(names):
                self.stored.fetch(name)

    def given(self, name: str) -> Secret:
        """The value that a variable has in this run, from any source; empty if it has none."""
        return Secret(self._env.get(name, "").strip())

    def use_key(self, name: str, value: Secret | None) -> None:
        """Set the value of a variable; None restores the one from the start. Earlier values stay secret."""
        self._learned.add(self._env.get(name, "").strip())
        used = value.reveal() if value is not None else self._given.get(name, "")
        self._env = {**self._env, name: used}  # another thread may iterate over it meanwhile
        self._known = None

    def value(self, name: str, meaning: str = "", default: Any = REQUIRED) -> Any:
        """The value of a variable that a pack uses as a secret, else the default. It is redacted from now on.

        Args:
            meaning: a description of the secret for the error message.

        Raises:
            ConfigError: the variable is not set and there is no default; the text says what to set.
        """
        self.declare([name])
        value = self.get(name).reveal()
        if not value and default is REQUIRED:
            what = f" to {meaning.rstrip('.')}" if meaning else ""
            raise ConfigError(f"The variable {name} is not set. Set it{what}, and restart Marvin.")
        return value or default

    def in_environment(self, name: str) -> bool:
        """Whether a variable had a value in the environment at the start."""
        return bool(self._given.get(name, "").strip())

    def setting(self, name: str) -> str | None:
        """The value of a variable that is not a secret, or None."""
        return self._env.get(name)

    def holds_key(self, name: str) -> bool:
        """Whether a variable is a secret, or its value contains the value of one."""
        if name in self._names or self.stores(name):
            return True
        value = self._env.get(name, "")
        own = {self._env.get(one, "").strip() for one in self._names}
        return any(len(one) >= _SHORTEST_SECRET and one in value for one in own)

    def learn(self, secret: Secret) -> None:
        """Redact a value that is not from a variable, such as a token of a login."""
        value = secret.reveal().strip()
        if value not in self._learned:
            self._learned.add(value)
            self._known = None

    def known(self) -> tuple[str, ...]:
        """The values to redact, longest first. The same object is returned until they change."""
        is_there = os.access  # most files do not exist, and this is called many times per round
        for watched in [one for one in self._watched.values() if is_there(one.path, os.F_OK)]:
            for value in watched.changed():
                self.learn(Secret(value))
        return self.learnt()

    def learnt(self) -> tuple[str, ...]:
        """The same without a look at the files that hold secrets: what was known of them at the last `known`."""
        if self._known is None:
            values = self._learned | {self._env[name].strip() for name in self._names if name in self._env}
            long = (value for value in values if len(value) >= _SHORTEST_SECRET)
            self._known = tuple(sorted(long, key=lambda value: (-len(value), value)))
        return self._known

    def child_environment(self, handed_on: Iterable[str] = ()) -> dict[str, str]:
        """The environment of child processes: ours without secrets and variables that bind git to a repository.

        The secrets in `handed_on` stay in it. A variable whose value contains another secret is removed.
        """
        kept = (self._passed_on | set(handed_on)) - GIT_LOCAL_VARIABLES
        dropped = (self._names | GIT_LOCAL_VARIABLES) - kept
        own = {self._env[name].strip() for name in self._names - kept if name in self._env}
        handed = {self._env.get(name, "").strip() for name in kept}
        secret = [value for value in (own | self._learned) - handed if len(value) >= _SHORTEST_SECRET]
        return {
            name: value
            for name, value in self._env.items()
            # Programs need the proxy, including its password.
            if name in kept
            or (name not in dropped and (name.lower().endswith("_proxy") or not any(one in value for one in secret)))
        }
