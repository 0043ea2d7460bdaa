"""The sub-command `marvin permissions`: the rules in force, and their decision about a call."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ...api.config import Config
from ...api.errors import UsageError
from ...api.hooks import Ask, Deny
from ...api.tools import ToolSpec
from ...guard.permissions.policy import Policy
from ...guard.permissions.rules import Rule
from ...guard.permissions.verdicts import Allow, Judgement
from ...util.terminal_text import exact_line
from ...util.text import hint_at, unknown_name
from ..run import CommandContext, group

if TYPE_CHECKING:
    from ...app import App

_WORDS = {"allow": "allowed", "ask": "asked", "deny": "denied", "": "-"}


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    permissions = group("The rules of config.yaml, and what they decide about a call.", list_rules)
    permissions.command("list")(list_rules)
    permissions.command("test")(explain)
    permissions.command("history")(history)
    app.add_typer(permissions, name="permissions")


def list_rules(context: typer.Context) -> None:
    """List the rules that are in force."""
    run: CommandContext = context.obj
    rules = run.config.permissions
    if not (rules.deny or rules.ask or rules.allow):
        run.write(
            "There are no rules. Add them to permissions.allow, permissions.ask or permissions.deny in config.yaml.\n"
        )
    for name, texts in (("deny", rules.deny), ("ask", rules.ask), ("allow", rules.allow)):
        for text in texts:
            run.write(f"{name:5}  {text}\n")
    for line in strange_rules(run.config, run.app()):
        run.write(f"\n{line}\n")


def explain(
    context: typer.Context,
    value: Annotated[str, typer.Argument(help="A command, or for another tool its first argument.")],
    tool: Annotated[str, typer.Option(help="The tool to check; default: the one that runs commands.")] = "",
    unattended: Annotated[bool, typer.Option("--unattended", help="Check as in a non-interactive run.")] = False,
    sandbox: Annotated[bool | None, typer.Option(help="Check as with a working sandbox, or as without one.")] = None,
) -> None:
    """Show what the rules decide about a call, part by part. Nothing is run."""
    run: CommandContext = context.obj
    app = run.app()
    spec = _spec(app.plugins.tools, tool)
    config = run.config.replace(non_interactive=True) if unattended else run.config
    confined = bool(spec.command) and _holds(run, unattended=unattended) if sandbox is None else sandbox
    arguments = {_parameter(spec): value}
    judgement = Policy(config).judge(spec, arguments, config.working_dir, confined=confined)
    run.write("\n".join(explanation(judgement)) + "\n")
    for line in strange_rules(config, app):
        run.write(f"\n{line}\n")


def history(
    context: typer.Context,
    add: Annotated[
        bool, typer.Option("--add", help="Ask about each rule, and store each one that you accept.")
    ] = False,
    most: Annotated[int, typer.Option("--sessions", min=1, help="How many sessions to examine, newest first.")] = 200,
    sandbox: Annotated[bool | None, typer.Option(help="Check as with a working sandbox, or as without one.")] = None,
) -> None:
    """Show which calls of past sessions would need approval today, and propose rules. Nothing is changed without your
    consent."""
    from ...config.program import command_name
    from ...config.stored.settings import store_allow_rule
    from .permission_history import DryRun, past_calls

    run: CommandContext = context.obj
    holds = _holds(run, unattended=False) if sandbox is None else sandbox
    calls = list(past_calls(run.config.data_folder / "sessions", most))
    dry = DryRun(run.config, run.app().plugins.tools, calls, holds=holds)
    run.write("\n".join(dry.report()) + "\n")
    if dry.proposals and not add:
        run.write(f"\nNothing was changed. `{command_name()} permissions history --add` asks about each rule.\n")
    for proposal in dry.proposals if add else ():
        if typer.confirm(f"Allow {exact_line(proposal.rule)} from now on?", default=False):
            run.write(f"Stored in {store_allow_rule(run.config, proposal.rule)}: allow {proposal.rule}\n")


def _holds(run: CommandContext, *, unattended: bool) -> bool:
    """Whether the sandbox confines commands here, tested with a real command."""
    if run.config.sandbox == "off" or sys.platform != "linux":  # only Linux has a sandbox that counts here
        return False
    from ...engine.network import policy_of
    from ...guard.sandbox.trial import Trial

    search = run.secrets.child_environment().get("PATH", os.defpath)
    trial = Trial(run.config.cache_folder / "sandbox-trial", search, run.config.working_dir, run.config.timeouts)
    return asyncio.run(trial.find()).state(policy_of(run.config, unattended=unattended).kind).holds


def _spec(tools: Sequence[ToolSpec], name: str) -> ToolSpec:
    found = next((spec for spec in tools if spec.name == name or (not name and spec.typed == "!")), None)
    if found is None and not name:
        raise UsageError("No tool that runs commands is installed. Name another one with --tool.")
    if found is None:
        raise UsageError(unknown_name("tool", name, [spec.name for spec in tools]))
    return found


def _parameter(spec: ToolSpec) -> str:
    required: Sequence[str] = spec.parameters.get("required") or list(spec.parameters.get("properties", {}))
    if spec.command:
        return spec.command
    if not required:
        raise UsageError(f"{spec.name} takes no argument, so a rule for it has no pattern.")
    return required[0]


def explanation(judgement: Judgement) -> Iterator[str]:
    """The lines that explain a verdict: the finding about each part, then the decision."""
    for finding in judgement.findings:
        yield f"{_WORDS[finding.says]:8} {finding.text!r}"
        yield f"{'':8}   {finding.why}"
    if judgement.findings:
        yield ""
    verdict = judgement.verdict
    if isinstance(verdict, Deny):
        yield f"Denied: {verdict.reason}."
    elif isinstance(verdict, Ask):
        yield f"Asked about: {verdict.reason}."
    elif isinstance(verdict, Allow):
        yield f"Allowed by {verdict.rule}."
    else:
        yield "No rule matches: the mode decides."
    if judgement.remember:
        yield f"This rule would allow calls of this kind: {judgement.remember}"


def strange_rules(config: Config, app: App) -> Iterator[str]:
    """A line for each rule that matches no installed tool."""
    names = [spec.name for spec in app.plugins.tools]
    rules = config.permissions
    for rule in map(Rule, (*rules.deny, *rules.ask, *rules.allow)):
        if not any(map(rule.names, names)):
            yield f"The rule {rule.text} matches no installed tool. {hint_at(rule.tool, names)}".rstrip()
