"""Environment variables with which programs in the sandbox use the proxy."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_THIS_MACHINE = "localhost,127.0.0.1,::1"
_HTTP = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
"""Read by curl, wget, pip, uv, go, cargo, git and most libraries, in capitals or not: each reads only one way."""
# What does not read those: npm's own settings come before them, yarn 2 has others, and node's fetch has to be told.
# https://nodejs.org/api/cli.html, https://doc.rust-lang.org/cargo/reference/config.html
_OTHERS = ("npm_config_proxy", "npm_config_https_proxy", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "CARGO_HTTP_PROXY")


def proxy_environment(port: int, given: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """The variables for programs to which the proxy is at this port of their loopback.

    What a user set of a proxy for themselves is overridden: from inside it could not be reached.

    Args:
        given: the environment that they are for. Settings of git that it has stay in force.
    """
    url = f"http://127.0.0.1:{port}"
    variables = dict.fromkeys((*_HTTP, *map(str.lower, _HTTP), *_OTHERS), url)
    variables.update(dict.fromkeys(("NO_PROXY", "no_proxy", "npm_config_noproxy"), _THIS_MACHINE))
    # The command line's settings of git come last and so count most; a repository's own cannot lead around the proxy.
    said = given.get("GIT_CONFIG_COUNT", "")
    count = int(said) if said.isascii() and said.isdigit() else 0
    git = {f"GIT_CONFIG_KEY_{count}": "http.proxy", f"GIT_CONFIG_VALUE_{count}": url}
    git["GIT_CONFIG_COUNT"] = str(count + 1)
    return {**variables, **git, "NODE_USE_ENV_PROXY": "1"}
