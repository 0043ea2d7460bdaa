"""The tool setup_google_auth."""

from __future__ import annotations

import re

from marvin_core import ToolContext, ToolError, output_text, tool

from .google import KEY

_API = "places.googleapis.com"
_PROJECT = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_TIME = 120.0
_SHOWN = 500
_INSTALL = "Have the user install it from cloud.google.com/sdk, or set a key as GOOGLE_PLACES_API_KEY."


@tool(access=["exec", "net", "write"], labels=["Google Cloud"], confirm=True, timeout=5 * _TIME)
async def setup_google_auth(*, context: ToolContext) -> str:
    """Set up Google Places with gcloud: look at its login, enable the API, set the quota project."""
    program = context.processes.which("gcloud", outside=True)
    if program is None:
        advice = f"{KEY} is set, which is enough." if context.secret(KEY, None) else _INSTALL
        raise ToolError(f"gcloud is not installed. {advice}")
    account = await _gcloud(context, program, "auth", "list", "--filter=status:ACTIVE", "--format=value(account)")
    if not account:
        raise ToolError("gcloud has no login. Have the user run `gcloud auth login`, then call this again.")
    project = await _gcloud(context, program, "config", "get-value", "project")
    if not _PROJECT.fullmatch(project):
        raise ToolError("gcloud has no project. Have the user run `gcloud config set project NAME`, then call again.")
    context.progress(f"Enabling {_API} in {project}")
    await _gcloud(context, program, "services", "enable", _API, f"--project={project}", "--quiet")
    context.progress("Setting the quota project")
    await _gcloud(context, program, "auth", "application-default", "set-quota-project", project, "--quiet")
    create = f"gcloud services api-keys create --project={project} --display-name=places --api-target=service={_API}"
    rest = (
        f"{KEY} is set: the places tools use Google Places."
        if context.secret(KEY, None)
        else f"One step is left to the user: make a key with `{create}` and set it as {KEY}."
    )
    return f"Login: {account}\nProject: {project}\n{_API} is enabled, and {project} pays for the quota.\n{rest}"


async def _gcloud(context: ToolContext, program: str, *arguments: str) -> str:
    """What gcloud prints. It runs outside of the sandbox, where its login is; nobody else has a say in it.

    Raises:
        ToolError: it failed; the text has what it says.
    """
    result = await context.processes.run([program, *arguments], timeout=_TIME, output_limit=20_000, outside=True)
    if result.exit_code != 0:
        why = " ".join(output_text(result.stderr or result.output).split())[:_SHOWN]
        what = "did not end in time" if result.timed_out else "failed"
        raise ToolError(f"`gcloud {' '.join(arguments[:3])}` {what}: {why or 'it printed nothing'}. Tell the user.")
    lines = output_text(result.output).strip().splitlines()
    return lines[0].strip() if lines else ""
