"""The sub-command `marvin doctor`: what is installed, configured, reachable and missing, and what to do about each."""

from __future__ import annotations

import asyncio
import os
import platform
from typing import TYPE_CHECKING

import typer

from ...api.errors import ConfigError, MarvinError
from ...config.load import check_settings
from ...config.program import command_name
from ...config.settings import read_settings
from ...util.text import FAINTLY_LIKE, near_names
from ...version import __version__
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
    """Say what is installed, configured, reachable and missing, and what to do; 1 where something is broken."""
    run: CommandContext = context.obj
    report = DoctorReport(run)
    report.configuration()
    try:
        app = run.app()
    except MarvinError as error:
        report.broken(str(error), f"Correct it: {command_name()} config edit")
    else:
        report.installed(app)
        report.settings_of_packs(app)
        report.provider(app)
        asyncio.run(report.reachable(app))
        report.tools(app)
    run.write(f"\n{report.verdict()}\n")
    if report.problems:
        raise typer.Exit(1)


class DoctorReport:
    """Prints what it finds; `problems` counts what is broken."""

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
        """Print something that is broken and what to do about it, unless the text says that."""
        self.problems += 1
        self._line("BROKEN", text, advice)

    def verdict(self) -> str:
        """The last line."""
        if not self.problems:
            return "Nothing is broken."
        return f"{self.problems} {'thing is' if self.problems == 1 else 'things are'} broken; see the lines above."

    def configuration(self) -> None:
        """The folders and config.yaml."""
        config = self._run.config
        self._run.write(f"Marvin {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
        self._heading("Configuration")
        path = config.config_folder / "config.yaml"
        try:
            check_settings(read_settings(path, config.cache_folder / "config.json"))
            self._line("ok", f"{path}{'' if path.exists() else ' is not there; defaults are used'}")
        except ConfigError as error:
            self.broken(str(error), f"Run {command_name()} config edit.")
        for folder in (config.config_folder, config.data_folder, config.cache_folder, config.state_folder):
            if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
                self.broken(f"{folder} cannot be written.", "Make it yours, or set MARVIN_HOME to another folder.")

    def installed(self, app: App) -> None:
        """The packs and their problems."""
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
        """What packs cannot do without and nobody has set, and where their folders are."""
        from .pack_settings import folders, missing

        lacking, there = list(missing(self._run, app)), list(folders(app))
        if lacking or there:
            self._heading("Settings and folders of packs")
        for text, advice in lacking:
            self._line("none", text, advice)
        for text in there:
            self._line("ok", text)

    def provider(self, app: App) -> None:
        """The model service that is used, and which keys there are, by name only."""
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
        """Whether a model of `fallback:` can be used."""
        try:
            provider = app.models.named(name, None).provider
        except MarvinError as error:
            self._line("none", f"fallback: {name} cannot be used, so it is passed over", str(error))
        else:
            self._line("ok", f"fallback: {provider.name}/{provider.model}")

    def _key(self, spec: ProviderSpec) -> None:
        variables = (*spec.key_variables, *spec.home_key_variables)
        present = [name for name in variables if self._run.secrets.get(name, spec.key_file)]
        if present:
            self._line("ok", f"a key of {spec.name}: {', '.join(present)}")

    async def reachable(self, app: App) -> None:
        """Whether the chosen service answers."""
        endpoint = app.choice.endpoint
        if endpoint is None:
            return
        try:
            served = await app.models.served(endpoint.provider)
        except MarvinError as error:
            self.broken(str(error))  # which says what to do, too
        else:
            self._served(endpoint, [model.name for model in served])
        finally:
            await app.models.aclose()

    def _served(self, endpoint: Endpoint, served: list[str]) -> None:
        from ...providers.selection.service_lists import is_listed

        where = endpoint.base_url or endpoint.provider
        if not served or not endpoint.model or is_listed(endpoint.model, served):
            self._line("ok", f"{where} answers{', and serves the model' if served else ''}")
            return
        near = near_names(endpoint.model, served, _SHOWN, enough=FAINTLY_LIKE) or served[:_SHOWN]
        self.broken(
            f"{where} answers, but does not list the model {endpoint.model}.",
            f"Choose one that it lists, with --model or `{command_name()} config set model NAME`: {', '.join(near)}.",
        )

    def tools(self, app: App) -> None:
        """The tools that are not offered, by what they lack."""
        toolbox = app.session(asker=None, interactive=False).toolbox
        missing = toolbox.missing
        self._heading(f"Tools: {len(app.plugins.tools) - len(missing)} of {len(app.plugins.tools)} are offered")
        by_reason: dict[str, list[str]] = {}
        for name, reason in missing.items():
            by_reason.setdefault(reason, []).append(name)
        for reason, names in by_reason.items():
            waiting = all(map(toolbox.is_held, names))
            self._line("ok" if waiting else "none", f"{', '.join(names)}: {'offered ' if waiting else ''}{reason}")
