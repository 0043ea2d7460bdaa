"""When Python's garbage collector looks at objects, and at which: a look holds the event loop up."""

import gc


def collect_again() -> None:
    """Enable the collector that the launcher disabled for the start. What is alive now is exempt from collections."""
    gc.freeze()
    gc.enable()


def exempt_from_collection() -> None:
    """Exempt what is alive now, mostly imported modules, from later collections.

    A collection holds the interpreter for 50 to 100 ms where many tools were imported. Without a collector, as during
    the start, nothing is done.
    """
    if gc.isenabled():
        gc.collect()  # garbage would be exempt, too, and so be kept for ever
        gc.freeze()


def end_exemptions() -> None:
    """Let later collections find what was exempt and became garbage since, such as the objects of a closed session."""
    gc.unfreeze()
