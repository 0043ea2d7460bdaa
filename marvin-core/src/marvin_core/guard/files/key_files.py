"""Files with keys and passwords, which reading tools do not show unless a rule allows it."""

from __future__ import annotations

from collections.abc import Sequence

KEY_FILES: Sequence[str] = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".vault-token",
    "application_default_credentials.json",
    ".ssh/*",
    ".gnupg/*",
    ".aws/credentials",
    ".azure/*",
    ".config/gcloud/*",
    ".config/gh/hosts.yml",
    ".kube/config",
    ".docker/config.json",
    ".password-store/*",
)
"""Matches names, or the last parts of paths. Case does not count."""

EXAMPLES: Sequence[str] = (
    ".env.example",
    ".env.sample",
    ".env.template",
    ".env.dist",
    ".env.test",
    "example.env",
    "sample.env",
    "*.pub",
    ".ssh/config",
    ".ssh/known_hosts",
)
"""Files with such names that hold no secrets."""


class _Kinds:
    """Patterns of names and of the last parts of paths. A `*` begins a name, ends it, or is a name of its own. Regular
    expressions would take milliseconds to compile before the first tool runs.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        names = [pattern for pattern in patterns if "/" not in pattern]
        self._names = frozenset(names)
        self._beginnings = tuple(name[:-1] for name in names if name.endswith("*"))
        self._endings = tuple(name[1:] for name in names if name.startswith("*"))
        self._paths = [pattern.split("/") for pattern in patterns if "/" in pattern]
        self._folders = frozenset(path[0] for path in self._paths)

    def may_fit(self, parts: Sequence[str]) -> bool:
        """Whether a pattern may match some part of a path: a fast check that nearly always says no."""
        names, beginnings, endings = self._names, self._beginnings, self._endings
        for part in parts:
            if part in names or part.startswith(beginnings) or part.endswith(endings):
                return True
        return not self._folders.isdisjoint(parts)

    def fit(self, parts: Sequence[str]) -> bool:
        """Whether a pattern matches the end of a path."""
        name = parts[-1]
        if name in self._names or name.startswith(self._beginnings) or name.endswith(self._endings):
            return True
        return not self._folders.isdisjoint(parts) and any(
            len(path) <= len(parts) and all(map(_fits, path, parts[-len(path) :])) for path in self._paths
        )


def _fits(pattern: str, name: str) -> bool:
    return pattern in ("*", name)


_KEYS, _HARMLESS = _Kinds(KEY_FILES), _Kinds(EXAMPLES)
_DEEPEST = 1 + max(pattern.count("/") for pattern in (*KEY_FILES, *EXAMPLES))


def is_key_file(path: str) -> bool:
    """Whether a path, with `/` between its parts, is a file with keys or passwords, or lies below one."""
    parts = [part for part in path.casefold().split("/") if part not in ("", ".")]
    return _KEYS.may_fit(parts) and any(
        _KEYS.fit(above) and not _HARMLESS.fit(above)
        for above in (parts[max(0, end - _DEEPEST) : end] for end in range(len(parts), 0, -1))
    )
