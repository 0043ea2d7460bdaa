"""The launcher. What can be answered without importing anything is answered here."""

from __future__ import annotations

import sys


def main() -> None:
    """Run Marvin as a program; never returns but for --version."""
    if sys.argv[1:] == ["--version"]:
        from .version import __version__

        print(f"marvin {__version__}")
        return
    if sys.argv[1:] == ["--help"]:
        from .config.flags import parser

        parser().print_help()
        return
    import gc
    import os

    _occupy_closed_streams()
    if sys.getfilesystemencoding() != "utf-8":
        # A prompt, a file's name and a command are UTF-8 whatever the locale; only a new start can change that.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    gc.disable()  # the heap only grows until the first answer is in; the interface enables it again
    env = dict(os.environ)
    # At the first tool call pydantic would look for plugins in every installed package. Not in `env`: children may.
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    try:
        from .cli.main import main as run
        from .util.streams import StandardStreams

        code = run(sys.argv[1:], env, StandardStreams())
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError as error:
        if not _is_of_a_stream(error):
            sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    except KeyboardInterrupt:  # before there was anything to interrupt
        from .api.errors import EXIT_INTERRUPTED

        code = EXIT_INTERRUPTED
    os._exit(code)  # daemon threads and libraries' exit handlers must not hold the end up


def _is_of_a_stream(error: OSError) -> bool:
    """Whether a standard stream is closed or full: there is nobody left to tell. Code of packs may fail otherwise."""
    import errno

    unwritable = (errno.EPIPE, errno.EBADF, errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return error.filename is None and error.errno in unwritable


def _occupy_closed_streams() -> None:
    """A closed one would become the next file that is opened, and what is for it be written there."""
    import os

    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:  # what takes its place refuses every read and write, as a closed one does
            os.open(os.devnull, os.O_RDONLY if descriptor else os.O_WRONLY)


if __name__ == "__main__":
    main()
