"""The tool setup_google_auth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from marvin_core import Link, ToolContext, ToolError, ToolResult, call_of, output_text, tool

from ..services.oauth import Login
from .google_access import CLIENT_ID, KEY, LOGIN, GcloudLogin

_API = "places.googleapis.com"
_PROJECT = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_TIME = 120.0
_SHOWN = 500
_INSTALL = (
    "Ask the user to install it from cloud.google.com/sdk, to set GOOGLE_PLACES_API_KEY to a key, or to set "
    "GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET to the client id and secret of a desktop application."
)
_USED = "The places tools use Google Places"


@tool(
    access=["exec", "net", "write"],
    labels=["Google Cloud"],
    settings=[CLIENT_ID],
    confirm=True,
    timeout=5 * _TIME,
    unlisted=["auth_code", "taken_back"],
)
async def setup_google_auth(
    auth_code: Annotated[str, "The browser's last address, if it could not reach Marvin"] = "",
    taken_back: Annotated[bool, "For /undo"] = False,
    *,
    context: ToolContext,
) -> ToolResult:
    """Set up Google Places with gcloud: look at its login, enable the API, set the quota project."""
    if taken_back:
        if context.origin != "undo":
            raise ToolError("taken_back is for /undo only. Leave it out.")
        await Login(context, LOGIN).forget()
        await GcloudLogin(context).forget()
        return ToolResult(
            content="Marvin no longer uses the Google login. APIs that were enabled at Google stay enabled."
        )
    if context.setting(CLIENT_ID):
        return await _by_own_application(context, auth_code)
    return await _by_gcloud(context)


async def _by_own_application(context: ToolContext, auth_code: str) -> ToolResult:
    login, undo = Login(context, LOGIN), call_of(setup_google_auth, taken_back=True)
    if auth_code.strip():
        await login.finish(auth_code)
    elif not await login.answered():
        url = await login.begin()
        return ToolResult(
            content=(
                f"Ask the user to open this address and log in:\n{url}\nThen use the places tools. If the browser is "
                "on another machine, it shows an error on the last page: call setup_google_auth with the address of "
                f"that page as auth_code. {_API} must be enabled in the project of the application."
            ),
            show=[Link(url=url, text="Log in to Google")],
            undo=undo,
        )
    return ToolResult(content=f"The user is logged in to Google. {_USED}.", undo=undo)


async def _by_gcloud(context: ToolContext) -> ToolResult:
    has_key = bool(context.secret(KEY, None))
    program = context.processes.which("gcloud", outside=True)
    if program is None:
        raise ToolError(f"gcloud is not installed. {f'{KEY} is set, which is enough.' if has_key else _INSTALL}")
    account = await _gcloud(context, program, "auth", "list", "--filter=status:ACTIVE", "--format=value(account)")
    if not account:
        raise ToolError("gcloud has no login. Ask the user to run `gcloud auth login`, then call this again.")
    project = await _gcloud(context, program, "config", "get-value", "project")
    if not _PROJECT.fullmatch(project):
        raise ToolError("gcloud has no project. Ask the user to run `gcloud config set project NAME`, then call again.")
    context.progress(f"Enabling {_API} in {project}")
    await _gcloud(context, program, "services", "enable", _API, f"--project={project}", "--quiet")
    if not has_key:
        folder = await _gcloud(context, program, "info", "--format=value(config.paths.global_config_dir)")
        await GcloudLogin(context).use(Path(folder), project)
    context.progress("Setting the quota project")
    await _gcloud(context, program, "auth", "application-default", "set-quota-project", project, "--quiet")
    done = f"Login: {account}\nProject: {project}\n{_API} is enabled, and {project} pays for the quota."
    if has_key:
        return ToolResult(content=f"{done}\n{KEY} is set: the places tools use Google Places.")
    return ToolResult(
        content=f"{done}\n{_USED} with the login of gcloud.", undo=call_of(setup_google_auth, taken_back=True)
    )


async def _gcloud(context: ToolContext, program: str, *arguments: str) -> str:
    """gcloud's output. It runs outside of the sandbox, where its login is; no model controls its arguments.

    Raises:
        ToolError: it failed; the text has its message.
    """
    result = await context.processes.run([program, *arguments], timeout=_TIME, output_limit=20_000, outside=True)
    if result.exit_code != 0:
        why = " ".join(output_text(result.stderr or result.output).split())[:_SHOWN]
        what = "did not end in time" if result.timed_out else "failed"
        raise ToolError(f"`gcloud {' '.join(arguments[:3])}` {what}: {why or 'it printed nothing'}. Tell the user.")
    lines = output_text(result.output).strip().splitlines()
    return lines[0].strip() if lines else ""
