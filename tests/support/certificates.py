"""A certificate of this machine's own, as servers on it have one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_OPTIONS = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"


def self_signed(folder: Path) -> Path:
    """A PEM file with a key and a certificate for 127.0.0.1 that signs itself; without openssl the test is skipped."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([program, *_OPTIONS.split(), *names], cwd=folder, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return both
