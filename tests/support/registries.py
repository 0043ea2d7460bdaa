"""A package registry on the loopback, for Python's installers and for npm, with packages that are made on the way."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@cache
def wheel(name: str, version: str) -> bytes:
    """A wheel with one module of the package's name."""
    made = io.BytesIO()
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return made.getvalue()


@cache
def npm_archive(name: str, version: str) -> bytes:
    """A package of npm with one module."""
    made = io.BytesIO()
    files = {
        "package.json": json.dumps({"name": name, "version": version, "main": "index.js"}),
        "index.js": f"module.exports = {version!r}\n",
    }
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for file, text in files.items():
            entry = tarfile.TarInfo(f"package/{file}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


class Registry:
    """What is served: `tiny`, in the versions 1.0 and 2.0 (of npm 1.0.0 and 2.0.0), and nothing else."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.port = 0

    @property
    def url(self) -> str:
        """The address of the registry of npm."""
        return f"http://{self.address}:{self.port}/"

    @property
    def simple(self) -> str:
        """The address of the index of Python's packages."""
        return f"{self.url}simple/"

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """The type and content of what is at a path; None where nothing is."""
        if path == "/simple/tiny/":
            links = "".join(
                f'<a href="/wheels/{name}#sha256={hashlib.sha256(wheel("tiny", version)).hexdigest()}">{name}</a>'
                for version in ("1.0", "2.0")
                for name in [f"tiny-{version}-py3-none-any.whl"]
            )
            return "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
        if path.startswith("/wheels/tiny-"):
            return "application/octet-stream", wheel("tiny", path.split("-")[1])
        if path == "/tiny":
            versions = {version: self._npm(version) for version in ("1.0.0", "2.0.0")}
            packument = {"name": "tiny", "dist-tags": {"latest": "2.0.0"}, "versions": versions}
            return "application/json", json.dumps(packument).encode()
        if path.startswith("/tiny/-/tiny-"):
            return "application/octet-stream", npm_archive("tiny", path.removesuffix(".tgz").rpartition("-")[2])
        return None

    def _npm(self, version: str) -> dict[str, object]:
        archive = npm_archive("tiny", version)
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
        dist = {"tarball": f"{self.url}tiny/-/tiny-{version}.tgz", "integrity": integrity}
        return {"name": "tiny", "version": version, "dist": dist}


@contextmanager
def registry(address: str = "127.0.0.1") -> Iterator[Registry]:
    """A registry that is served as long as the context lasts."""
    served = Registry(address)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = served.answer(self.path.partition("?")[0])
            kind, content = found or ("application/json", b'{"error": "Not found"}')
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer((address, 0), Handler) as server:
        served.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
