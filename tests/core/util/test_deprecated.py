"""A pack is warned where it uses what goes away, and nobody else is."""

from __future__ import annotations

import types
import warnings

from marvin_core.util.deprecated import warn_deprecated


def test_the_warning_names_the_line_of_the_caller_outside_of_marvin() -> None:
    inside = types.ModuleType("marvin_core.made_up")
    inside.__dict__["warn_deprecated"] = warn_deprecated
    code = "def old():\n    inner()\ndef inner():\n    warn_deprecated('old()', since=2, gone=4, instead='use new()')"
    exec(compile(code, "made_up.py", "exec"), inside.__dict__)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inside.old()
    (warning,) = caught
    assert str(warning.message) == (
        "old() is deprecated since API 2 of marvin-core and will be removed with API 4; use new()."
    )
    assert (warning.category, warning.filename) == (DeprecationWarning, __file__)
