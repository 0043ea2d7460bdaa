"""The values that `Config` leaves out: keys, tokens, and the environment that children get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..api.errors import ConfigError
from ..api.providers import Secret

SECRETS = frozenset(
    "OPENAI_API_KEY ANTHROPIC_API_KEY GEMINI_API_KEY GROQ_API_KEY OPENAI_COMPAT_API_KEY OPENROUTER_API_KEY"
    " MISTRAL_API_KEY DEEPSEEK_API_KEY XAI_API_KEY GOOGLE_PLACES_API_KEY"
    " GNEWS_API_KEY NEWSAPI_KEY STEAM_API_KEY OMDB_API_KEY RAWG_API_KEY"
    " GH_TOKEN GITHUB_TOKEN COPILOT_GITHUB_TOKEN".split()
)
"""Variables whose values reach no child, log or message unless they are handed over by name."""


GIT_LOCAL_VARIABLES = frozenset(
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_OBJECT_DIRECTORY GIT_DIR"
    " GIT_WORK_TREE GIT_IMPLICIT_WORK_TREE GIT_GRAFT_FILE GIT_INDEX_FILE GIT_NO_REPLACE_OBJECTS"
    " GIT_REPLACE_REF_BASE GIT_PREFIX GIT_SHALLOW_FILE GIT_COMMON_DIR GIT_INTERNAL_SUPER_PREFIX".split()
)
"""What `git rev-parse --local-env-vars` names: variables that tie git to another repository."""


_SHORTEST_SECRET = 8
_ESCAPED = frozenset(map(chr, range(33))) | frozenset("!\"#$%&'()*+,/:;<=>?@[\\]^`{|}\x7f")
"""Characters that addresses or JSON write in another way."""
REQUIRED: Any = object()
"""In the place of a default: there is none."""


class Secrets:
    """The values that Config leaves out, and the environment that children get."""

    def __init__(self, env: Mapping[str, str], home: Path, passed_on: Iterable[str] = ()) -> None:
        self._env = dict(env)
        self._given = frozenset(env)
        self._home = home
        self._passed_on = frozenset(passed_on)
        self._names = set(SECRETS)
        self._learned: set[str] = set()

    def declare(self, names: Iterable[str]) -> None:
        """Count these variables among the secrets, too."""
        self._names.update(names)

    def get(self, name: str, key_file: str = "") -> Secret:
        """The value of a variable, else the content of a key file below the home folder, else empty."""
        value = self._env.get(name, "").strip()
        if not value and key_file:
            try:
                value = (self._home / key_file).read_text(encoding="utf-8").strip()
                self._env[name] = value
            except (OSError, UnicodeDecodeError):
                value = ""
        return Secret(value)

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
            raise ConfigError(f"The variable {name} is not set. Set it{what}, and start Marvin again.")
        return value or default

    def in_environment(self, name: str) -> bool:
        """Whether a variable has a value there, and not only a key file."""
        return name in self._given and bool(self._env.get(name, "").strip())

    def setting(self, name: str) -> str | None:
        """The value of a variable that is no secret, or None."""
        return self._env.get(name)

    def learn(self, secret: Secret) -> None:
        """Count a value that no variable holds among those to redact, such as a token of a login."""
        self._learned.add(secret.reveal())

    def known(self) -> tuple[str, ...]:
        """The texts to redact, longest first: the values, and how they stand in addresses and in JSON."""
        values = self._learned | {self._env[name].strip() for name in self._names if name in self._env}
        texts = {text for value in values if len(value) >= _SHORTEST_SECRET for text in _spellings(value)}
        return tuple(sorted(texts, key=len, reverse=True))

    def child_environment(self, handed_on: Iterable[str] = ()) -> dict[str, str]:
        """The environment of child processes: ours, less secrets and what ties git to another repository.

        Of the secrets, those named in `handed_on` stay in it.
        """
        secret = self._names - self._passed_on - set(handed_on)
        dropped = secret | GIT_LOCAL_VARIABLES
        secret_values = {self._env[name] for name in secret if self._env.get(name)}
        return {
            name: value
            for name, value in self._env.items()
            if name not in dropped and not (len(value) >= _SHORTEST_SECRET and value in secret_values)
        }


def _spellings(value: str) -> Iterable[str]:
    """A value, and what becomes of it in an address and in JSON; of most keys that is the same."""
    if _ESCAPED.isdisjoint(value) and value.isascii():
        return (value,)
    import json
    from urllib.parse import quote, quote_plus

    in_json = (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    sent = value.encode("utf-8", "surrogateescape")  # a variable may hold any bytes
    return (value, *in_json, quote(sent), quote(sent, safe=""), quote_plus(sent))
