"""Environment variables with which programs in the sandbox use the proxy."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_THIS_MACHINE = "localhost,127.0.0.1,::1"
_HTTP = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
"""Read by curl, wget, pip, uv, go, cargo, git and most libraries, some in capitals only and some in lower case only."""
# Programs that do not read those: npm's own settings take precedence, yarn 2 has others, and node's fetch needs an
# option. https://nodejs.org/api/cli.html, https://doc.rust-lang.org/cargo/reference/config.html
_OTHERS = ("npm_config_proxy", "npm_config_https_proxy", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "CARGO_HTTP_PROXY")


def proxy_environment(port: int, given: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """The variables for programs that reach the proxy at this port of their loopback interface.

    A user's own proxy settings are overridden: that proxy could not be reached from inside.

    Args:
        given: the environment of the programs. Its git settings stay in force.
    """
    url = f"http://127.0.0.1:{port}"
    variables = dict.fromkeys((*_HTTP, *map(str.lower, _HTTP), *_OTHERS), url)
    variables.update(dict.fromkeys(("NO_PROXY", "no_proxy", "npm_config_noproxy"), _THIS_MACHINE))
    # The command line's git settings come last and take precedence; a repository's own settings cannot bypass the
    # proxy.
    said = given.get("GIT_CONFIG_COUNT", "")
    count = int(said) if said.isascii() and said.isdigit() else 0
    git = {f"GIT_CONFIG_KEY_{count}": "http.proxy", f"GIT_CONFIG_VALUE_{count}": url}
    git["GIT_CONFIG_COUNT"] = str(count + 1)
    return {**variables, **git, "NODE_USE_ENV_PROXY": "1"}
