"""The signals that ask the program to exit."""

from __future__ import annotations

import signal


def ending() -> list[signal.Signals]:
    """Ctrl+C, SIGTERM, and the end of the terminal unless the parent process ignores that, as nohup does."""
    hangup = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGINT, signal.SIGTERM, *hangup]


def end_like_ctrl_c() -> None:
    """Treat each of them like Ctrl+C: running work is cancelled and cleans up before the program exits."""
    for number in ending():
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.signal(signal.SIGINT, signal.default_int_handler)
