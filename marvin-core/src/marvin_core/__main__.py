"""The launcher. It answers what it can without importing anything."""

from __future__ import annotations

import sys

_WRITE = frozenset({"__main__", "marvin_core.__main__", "marvin_core.util.streams", "marvin_core.ui.plain.simple_chat"})
"""The modules that write to standard output."""


def main() -> None:
    """Run Marvin as a program; returns only for --version."""
    if sys.argv[1:] == ["--version"]:
        from .version import __version__

        print(f"marvin {__version__}")
        return
    if sys.argv[1:] == ["--help"]:
        from .config.flags import parser

        parser().print_help()
        return
    _prepare()
    if sys.argv[1:2] == ["tk"]:
        _run_tickets(sys.argv[2:])
    import gc
    import os

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
        import errno
        from contextlib import suppress

        if not _is_of_a_stream(error):
            sys.excepthook(type(error), error, error.__traceback__)
        elif error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            with suppress(OSError):
                os.write(2, f"marvin: standard output cannot be written to: {error.strerror}.\n".encode())
        code = 1
    except KeyboardInterrupt:  # before there was anything to interrupt
        from .api.errors import EXIT_INTERRUPTED

        code = EXIT_INTERRUPTED
    os._exit(code)  # daemon threads and libraries' exit handlers must not delay the exit


def tickets() -> None:
    """Run the ticket program as a program of its own: the scripts `marvin-tk` and `marvin-ticket`. Never returns."""
    import os

    _prepare()
    _run_tickets(sys.argv[1:], os.path.basename(sys.argv[0]))


def _run_tickets(words: list[str], name: str = "") -> None:
    """Run the ticket program, which needs nothing else of Marvin; never returns."""
    import os

    from .tickets.program import TicketProgram

    os._exit(TicketProgram(dict(os.environ), sys.argv[0], name).run(words))


def _prepare() -> None:
    """Set up the process before anything is read or written."""
    import os

    _occupy_closed_streams()
    if sys.getfilesystemencoding() != "utf-8":
        # A prompt, a file's name and a command are UTF-8 whatever the locale; only a new start can change that.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _is_of_a_stream(error: OSError) -> bool:
    """Whether a standard stream is closed or full. Code of packs may fail with the same error numbers, which is
    reported."""
    import errno

    unwritable = (errno.EPIPE, errno.EBADF, errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if error.filename is not None or error.errno not in unwritable:
        return False
    module, trace = "", error.__traceback__
    while trace is not None:
        module, trace = str(trace.tb_frame.f_globals.get("__name__")), trace.tb_next
    return module in _WRITE or module.partition(".")[0] in ("click", "typer", "rich") or _is_unread()


def _is_unread() -> bool:
    """Whether the reader of this process's output is gone, in whichever function the error occurred."""
    import fcntl
    import os
    import select

    waiting = select.poll()
    for descriptor in (1, 2):
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:  # it took the place of a closed one
            return True
        waiting.register(descriptor, 0)
    return bool(waiting.poll(0))


def _occupy_closed_streams() -> None:
    """Open a replacement for each closed stream: the next opened file would take its number, and get its output."""
    import os

    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:  # the replacement refuses reads and writes, as a closed stream does
            os.open(os.devnull, os.O_RDONLY if descriptor else os.O_WRONLY)


if __name__ == "__main__":
    main()
