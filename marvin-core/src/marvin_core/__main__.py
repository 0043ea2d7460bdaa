"""The launcher. What can be answered without importing anything is answered here."""

from __future__ import annotations

import sys


def main() -> None:
    """Run Marvin as a program; never returns but for --version."""
    if sys.argv[1:] == ["--version"]:
        from . import __version__

        print(f"marvin {__version__}")
        return
    import gc
    import os

    gc.disable()  # the heap only grows until the first request is out; the interface enables it again
    from .cli import main as run
    from .streams import Streams

    try:
        code = run(sys.argv[1:], os.environ, Streams())
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):  # a standard stream is closed: there is nobody left to tell
        code = 1
    os._exit(code)  # daemon threads and libraries' exit handlers must not hold the end up


if __name__ == "__main__":
    main()
