"""The one place that warns packs of deprecated names."""

from __future__ import annotations

import sys
import warnings

_OURS = __name__.partition(".")[0]


def warn_deprecated(name: str, *, since: int, gone: int, instead: str) -> None:
    """Warn the caller of Marvin, once for each place, that something is deprecated.

    Args:
        name: the deprecated name, as a pack writes it.
        since: the API in which it became deprecated.
        gone: the API that no longer has it.
        instead: what to use instead, as in `use Table`.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _OURS:
        frame, level = frame.f_back, level + 1
    told = f"{name} is deprecated since API {since} of marvin-core and will be removed with API {gone}; {instead}."
    warnings.warn(told, DeprecationWarning, stacklevel=level)
