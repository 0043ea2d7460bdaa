"""The sub-command `marvin doctor`: checks the installation, the configuration and the model service."""

from __future__ import annotations

import asyncio
import os
import platform
from typing import TYPE_CHECKING

import typer

from ...api.errors import ConfigError, MarvinError
from ...config.program import command_name
from ...config.settings import read_settings
from ...util.failures import told
from ...util.text import FAINTLY_LIKE, near_names
from ...version import __version__
from ..watched import run_watched
from .packs import contents, label, slowness

if TYPE_CHECKING:
    from ...api.providers import Endpoint, ProviderSpec
    from ...app import App
    from ..run import CommandContext

_SHOWN = 5


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    app.command("doctor")(doctor)


def doctor(context: typer.Context) -> None:
    """Report what is installed, configured, reachable and missing, and what to do. Exits with 1 if something is
    broken."""
    run: CommandContext = context.obj
    report = DoctorReport(run)
    report.configuration()
    asyncio.run(report.sandbox())
    try:
        app = run.app()
    except MarvinError as error:
        report.broken(str(error), f"Correct it: {command_name()} config edit")
    else:
        report.installed(app)
        report.chat(app)
        report.settings_of_packs(app)
        report.provider(app)
        run_watched(run, report.reachable(app), close=app.models.aclose)
        report.services(app)
        report.tools(app)
        report.permissions(app)
    run.write(f"\n{report.verdict()}\n")
    if report.problems:
        raise typer.Exit(1)


class DoctorReport:
    """Prints the findings. `problems` is the number of broken things."""

    def __init__(self, run: CommandContext) -> None:
        self._run = run
        self.problems = 0

    def _line(self, mark: str, text: str, advice: str = "") -> None:
        out = self._run.say
        out(f"  {mark:6} {text}".replace("\n", "\n         ") + "\n")
        if advice:
            out(f"         -> {advice}".replace("\n", "\n            ") + "\n")

    def _heading(self, text: str) -> None:
        self._run.write(f"\n{text}\n")

    def broken(self, text: str, advice: str = "") -> None:
        """Print and count a problem. `advice` says what to do, unless the text already does."""
        self.problems += 1
        self._line("BROKEN", text, advice)

    def verdict(self) -> str:
        """The last line of the report."""
        if not self.problems:
            return "No problems were found."
        return f"{self.problems} {'thing is' if self.problems == 1 else 'things are'} broken; see the lines above."

    def configuration(self) -> None:
        """Report on config.yaml and the folders."""
        config = self._run.config
        self._run.write(f"Marvin {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
        self._heading("Configuration")
        path = config.config_folder / "config.yaml"
        try:
            read_settings(path, config.cache_folder / "config.json")
            self._line("ok", f"{path}{'' if path.exists() else ' is not there; defaults are used'}")
        except ConfigError as error:
            self.broken(str(error), f"Run {command_name()} config edit.")
        for folder in (config.config_folder, config.data_folder, config.cache_folder, config.state_folder):
            if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
                self.broken(
                    f"{folder} cannot be written.", "Change its permissions, or set MARVIN_HOME to another folder."
                )

    def chat(self, app: App) -> None:
        """Report what a chat replaces because it cannot be used: the interface, the theme."""
        from ...app import unknown_choices

        for text in unknown_choices(app.config, app.plugins):
            self._line("none", text, f"Correct it: {command_name()} config edit")

    async def sandbox(self) -> None:
        """Report on the sandbox, which is tested with real commands."""
        from ...guard.sandbox.doctor import examined

        self._heading("Sandbox for commands")
        use = self._run.config.sandbox
        if use == "off":
            self._line(
                "off",
                "commands run with all of your rights",
                "To turn it on, remove --sandbox off, MARVIN_SANDBOX=off or `sandbox: off`.",
            )
            return
        search = self._run.secrets.child_environment().get("PATH", os.defpath)
        findings = await examined(self._run.config, search)
        for finding in findings:
            if finding.ok:
                self._line("ok", finding.text)
            elif use == "required" and finding.needed:
                self.broken(finding.text, finding.advice)
            else:
                self._line("none", finding.text, finding.advice)

    def installed(self, app: App) -> None:
        """Report on the packs and their problems."""
        self._heading("Installed")
        for entry in app.plugins.census():
            told = f"{label(entry.pack)}, {contents(entry)}"
            if entry.pack.problems:
                advice = f"See {command_name()} packs list; reinstall {entry.pack.distribution}."
                self.broken(f"{told}\n{entry.pack.problems[0]}", advice)
            else:
                self._line("ok", "; ".join(filter(None, (told, slowness(entry)))))
        for pack in app.plugins.switched_off:
            self._line("off", f"{label(pack)}: packs.off in config.yaml")

    def settings_of_packs(self, app: App) -> None:
        """Report required settings of packs that are not set, and the folders of packs."""
        from .pack_settings import folders, missing

        lacking, there = list(missing(self._run, app)), list(folders(app))
        if lacking or there:
            self._heading("Settings and folders of packs")
        for text, advice in lacking:
            self._line("none", text, advice)
        for text in there:
            self._line("ok", text)

    def provider(self, app: App) -> None:
        """Report the model service in use, and the names of the keys that are set."""
        self._heading("Model")
        choice = app.choice
        if choice.endpoint is not None:
            self._line("ok", f"{choice.endpoint.provider}, because {choice.reason}; model {choice.endpoint.model}")
        elif app.config.provider:
            self.broken(f"{app.config.provider} cannot be used.", choice.how_to)
        else:
            self._line("none", choice.how_to)
        for name in app.config.fallback:
            self._fallback(app, name)
        for spec in app.plugins.providers:
            self._key(spec)

    def _fallback(self, app: App, name: str) -> None:
        """Report whether a model of `fallback:` can be used."""
        try:
            provider = app.models.named(name, None).provider
        except MarvinError as error:
            self._line("none", f"fallback: {name} cannot be used, so it is skipped", str(error))
        else:
            self._line("ok", f"fallback: {provider.name}/{provider.model}")

    def _key(self, spec: ProviderSpec) -> None:
        variables = (*spec.key_variables, *spec.home_key_variables)
        present = [name for name in variables if self._run.secrets.has(name, spec.key_file)]
        if present:
            self._line("ok", f"a key of {spec.name}: {', '.join(present)}")

    async def reachable(self, app: App) -> None:
        """Report whether the chosen service answers."""
        endpoint = app.choice.endpoint
        if endpoint is None:
            return
        try:
            served = await app.models.served(endpoint.provider)
        except MarvinError as error:
            self.broken(str(error))  # the message also says what to do
        except Exception as error:  # a provider of a pack may raise anything
            self.broken(
                f"The provider {endpoint.provider} failed: {told(error)}", "Choose another one, or repair its pack."
            )
        else:
            self._served(endpoint, [model.name for model in served])

    def _served(self, endpoint: Endpoint, served: list[str]) -> None:
        from ...providers.selection.service_lists import is_listed

        where = endpoint.base_url or endpoint.provider
        if not served or not endpoint.model or is_listed(endpoint.model, served):
            self._line("ok", f"{where} answers{' and serves the model' if served else ''}")
            return
        near = near_names(endpoint.model, served, _SHOWN, enough=FAINTLY_LIKE) or served[:_SHOWN]
        self.broken(
            f"{where} answers but does not list the model {endpoint.model}.",
            f"Choose one from its list, with --model or `{command_name()} config set model NAME`: {', '.join(near)}.",
        )

    def services(self, app: App) -> None:
        """Report the last known state of the web services that tools use."""
        from .services import service_lines

        found = list(service_lines(app))
        if found:
            self._heading("Services that tools use")
        for mark, text, failure in found:
            self._line(mark, text, failure)
        if any(mark != "ok" for mark, _, _ in found):
            self._line("", "", f"Test them now: {command_name()} tools health")

    def tools(self, app: App) -> None:
        """Report the tools that are not offered, grouped by reason."""
        toolbox = app.session(asker=None, interactive=False).toolbox
        missing = toolbox.missing
        self._heading(f"Tools: {len(toolbox.offered)} of {len(app.plugins.tools)} are offered")
        by_reason: dict[str, list[str]] = {}
        for name, reason in missing.items():
            by_reason.setdefault(reason, []).append(name)
        for reason, names in by_reason.items():
            waiting = all(map(toolbox.is_held, names))
            self._line("ok" if waiting else "none", f"{', '.join(names)}: {'offered ' if waiting else ''}{reason}")

    def permissions(self, app: App) -> None:
        """Report whether commands can be parsed, and the rules that match no tool."""
        from ...guard.permissions.shell_parser import program
        from .permissions import strange_rules

        self._heading("Permissions")
        if program():
            self._line("ok", f"commands are parsed by {program()}")
        else:
            self._line(
                "none",
                "shfmt is missing: only simple commands can be checked against the rules",
                "Install it: pip install shfmt-py",
            )
        for line in strange_rules(self._run.config, app):
            self._line("none", line, f"Correct it: {command_name()} config edit")
