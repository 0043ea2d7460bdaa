"""GitHub on this machine: its API on a socket that the real gh is told to use, and repositories for the real git."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from tempfile import mkdtemp
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

needs_gh = pytest.mark.skipif(shutil.which("gh") is None, reason="needs gh (GitHub CLI)")
TOKEN = "gho_0123456789abcdef"


class Asked:
    """A request as it came in."""

    def __init__(self, path: str, headers: Mapping[str, str]) -> None:
        self.path = urlsplit(path).path
        self.query = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        self.headers = {name.lower(): value for name, value in headers.items()}


class GitHub:
    """What is served: an answer for a path of the API, and repositories in a folder.

    `asked` are the requests so far. An answer is a status, what becomes JSON (bytes stay as they are), and headers.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mirror = folder / "mirror"
        self.mirror.mkdir()
        self.socket = folder / "api.sock"
        self.asked: list[Asked] = []
        self.answers: dict[str, tuple[int, Any, Mapping[str, str]]] = {}
        self.held: dict[str, threading.Event] = {}

    def answers_with(self, path: str, content: Any, status: int = 200, **headers: str) -> None:
        """What a path of the API gives from now on; `_` in names of headers stands for `-`."""
        self.answers[path] = (status, content, {name.replace("_", "-"): value for name, value in headers.items()})

    def found(self, kind: str, *items: Mapping[str, Any], total: int | None = None, partly: bool = False) -> None:
        """What a search gives from now on."""
        total = len(items) if total is None else total
        self.answers_with(f"/search/{kind}", {"total_count": total, "incomplete_results": partly, "items": items})

    def repository(self, name: str, files: Mapping[str, str | bytes] | None = None, **facts: Any) -> Path:
        """Serve a repository with these files in one commit, or without any commit; gives its working tree."""
        tree = self.mirror / f"{name}.git"
        tree.mkdir(parents=True)
        self.git(tree, "init", "--quiet", "--initial-branch=main")
        if files is not None:
            self.commit(tree, files)
        self.answers_with(f"/repos/{name}", {"full_name": name, "size": 12, **facts})
        return tree

    def commit(self, tree: Path, files: Mapping[str, str | bytes], message: str = "Begin") -> None:
        """Commit files of a served repository."""
        for path, content in files.items():
            target = tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git(tree, "add", "--all", "--force")
        self.git(tree, "commit", "--quiet", "--message", message)

    def git(self, tree: Path, *arguments: str, given: str = "") -> str:
        """Run git in a served repository, as nobody in particular."""
        who = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgSign=false"]
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        argv = ["git", *who, *arguments]
        return subprocess.run(argv, cwd=tree, env=env, input=given, capture_output=True, check=True, text=True).stdout

    def furnish(self, home: Path, *, logged_in: bool = True) -> None:
        """Configure gh and git of a home folder to use this instead of the real one."""
        folder = home / ".config" / "gh"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yml").write_text(f"http_unix_socket: {self.socket}\n")
        if logged_in:
            (folder / "hosts.yml").write_text(f"github.com:\n    user: t\n    oauth_token: {TOKEN}\n")
        (home / ".gitconfig").write_text(f'[url "file://{self.mirror}/"]\n\tinsteadOf = https://github.com/\n')

    def paths(self) -> Sequence[str]:
        """The paths that were asked for."""
        return [asked.path for asked in self.asked]


@contextmanager
def github() -> Iterator[GitHub]:
    """An API that is served as long as the context lasts. Its folder has a short name, as sockets need it."""
    folder = Path(mkdtemp(prefix="gh-"))
    served = GitHub(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = Asked(self.path, dict(self.headers.items()))
            served.asked.append(asked)
            if asked.path in served.held:
                served.held[asked.path].wait(60)
            status, content, headers = served.answers.get(asked.path, (404, {"message": "Not Found"}, {}))
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingMixIn, UnixStreamServer):
        daemon_threads = True

        def get_request(self) -> tuple[socket.socket, Any]:
            return self.socket.accept()[0], ("socket", 0)

        def handle_error(self, request: Any, client_address: Any) -> None:
            """The client went away."""

    try:
        with Server(str(served.socket), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
            thread.start()
            try:
                yield served
            finally:
                for event in served.held.values():
                    event.set()
                server.shutdown()
                thread.join()
    finally:
        shutil.rmtree(folder)
