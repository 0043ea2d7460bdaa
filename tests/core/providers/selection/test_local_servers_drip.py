"""A server on this machine that sends a byte now and then does not hold up the start."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

from marvin_core.api.providers import ProviderSpec
from marvin_core.api.timeouts import Timeouts
from marvin_core.providers.selection.local_servers import listed

SPEC = ProviderSpec(name="llama-server", factory="", base_url="", default_model="")


def test_single_bytes_are_waited_for_no_longer_than_a_list_of_models_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    while True:
                        connection.sendall(b"x")
                        time.sleep(0.02)

        threading.Thread(target=drip, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        begun = time.monotonic()
        assert listed(SPEC, url, Timeouts(probe=30.0, model_list=0.3)) == []
        assert time.monotonic() - begun < 25
