"""Warning packs of what goes away: the one place where that is done."""

from __future__ import annotations

import sys
import warnings

_OURS = __name__.partition(".")[0]


def warn_deprecated(name: str, *, since: int, gone: int, instead: str) -> None:
    """Warn whoever called into Marvin, once for each place, that something goes away.

    Args:
        name: what goes away, as a pack writes it.
        since: the API from which on it is deprecated.
        gone: the API that does not have it any more.
        instead: what to use, as in `use Table`.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _OURS:
        frame, level = frame.f_back, level + 1
    told = f"{name} is deprecated since API {since} of marvin-core and will be removed with API {gone}; {instead}."
    warnings.warn(told, DeprecationWarning, stacklevel=level)
