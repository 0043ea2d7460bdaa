"""The signals that ask the program to end."""

from __future__ import annotations

import signal


def ending() -> list[signal.Signals]:
    """Ctrl+C, SIGTERM, and the end of the terminal unless whoever started us wants that ignored, as nohup does."""
    hangup = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGINT, signal.SIGTERM, *hangup]


def end_like_ctrl_c() -> None:
    """Have each of them do what Ctrl+C does: what runs is cancelled, and cleans up, before the program leaves."""
    for number in ending():
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.signal(signal.SIGINT, signal.default_int_handler)
