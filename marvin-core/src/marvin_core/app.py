"""Puts a run together: the configuration, the packs, the provider, the session, the interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from .api.config import Config
from .config.secrets import Secrets
from .config.settings import WrongSetting
from .engine.parts import SessionSetup, build
from .engine.session import Session
from .http.clients import Clients
from .plugins.manager import Plugins
from .providers.selection.catalog import Catalog
from .providers.selection.choose import Choice, choose
from .providers.selection.models import Models
from .usage.budgets import BudgetFactory
from .usage.meter import UsageMeter
from .usage.prices import Prices
from .util.garbage import collect_again
from .util.imports import imported
from .util.state_files import close_to_others

if TYPE_CHECKING:
    from .api.providers import ProviderSpec
    from .api.tool_context import PackContext
    from .api.ui import UI
    from .engine.parts import SessionParts
    from .engine.ports import Asker, Permitter, TextAsker
    from .mcp.session import SessionServers
    from .plugins.pack_access import Packs
    from .profiles.session_profile import SessionProfile
    from .providers.selection.keys import ServiceKeys
    from .providers.selection.local_servers import LocalServer
    from .recording.watch import SessionWatch
    from .telemetry.session import Telemetry


_PERSONAL = ("sessions", "profiles", "logs", "memories")
"""The contents of a folder that Marvin has used; without them, there is nothing to read in it."""


class App:
    """One run of the program. `warn` gets one line about each problem that does not end the run.

    A `chat` also looks for local servers, and continues without a model if there is none.
    """

    def __init__(self, config: Config, secrets: Secrets, warn: Callable[[str], None], *, chat: bool = False) -> None:
        self.config = config
        self.secrets = secrets
        self._warn = self._warn_in_session = warn
        self.plugins = Plugins(config, warn)
        secrets.declare_all(self.plugins.secrets)
        self._check_settings()
        self._profile: SessionProfile | None = None
        self.telemetry: Telemetry | None = None
        """Sends traces and metrics of the session, if config.yaml enables that."""
        self.watch: SessionWatch | None = None
        """Records the session, or replays one; it can replace parts of the session."""
        self.catalog = _catalog(config, secrets, self.plugins, self._pack_of)
        self._clients = Clients(config)
        self.choice: Choice = choose(config, self.catalog, self._probe if chat else None)
        if self.choice.notice:
            warn(self.choice.notice)
        if self.choice.endpoint is not None:
            self._clients.expect(self.choice.endpoint.base_url)
            ending = self.catalog.ending(self.choice.endpoint.provider, self.choice.endpoint.model)
            if ending:
                warn(ending)
        self._prices = Prices(
            config.prices, config.cache_folder / "prices.json", self.catalog.listed, long_writes=config.cache == "1h"
        )
        self.meter = UsageMeter(self._prices.cost, self._prices.is_known)
        self._budgets = BudgetFactory(config, self._prices, self.catalog, warn)
        self.budget = self._budgets.of_run()
        self.models = Models(
            self.catalog, self.choice, config, self._clients, self._prices.add, self.budget, self._notice
        )

    def _check_settings(self) -> None:
        """Refuse a section of config.yaml that its pack cannot use; a start without any setting reads none."""
        settings, sections = self.plugins.settings, self.config.pack_sections
        if sections or any(self.secrets.setting(name) for one in settings for name in one.variables.values()):
            from .plugins.settings_check import check_settings

            check_settings(self.plugins, self.config, self.secrets, self._warn)

    @cached_property
    def packs(self) -> Packs:
        """The settings, secrets and folders of each pack."""
        from .plugins.pack_access import Packs
        from .profiles.store import Profiles

        profiles = Profiles(self.config.config_folder, self.config.timeouts)
        return Packs(
            self.plugins,
            self.config,
            self.secrets,
            lambda: self._profile.folder if self._profile is not None else profiles.folder(profiles.active),
        )

    def _pack_of(self, spec: ProviderSpec) -> PackContext | None:
        pack = self.plugins.pack_of_provider(spec.name)
        return None if pack is None else self.packs.of(pack)

    def _probe(self) -> Sequence[LocalServer]:
        from .providers.selection.local_servers import probe

        return probe(self.catalog.local(), self.config.timeouts)

    def _notice(self, text: str) -> None:
        """Tell the loader that a session is shown: a chat draws its screen itself."""
        self._warn_in_session(text)

    def keys(self, ui: UI | None = None) -> ServiceKeys:
        """The keys of the services of this run."""
        from .providers.selection.keys import ServiceKeys

        return ServiceKeys(self.catalog, self.secrets, self.models, ui)

    def session(self, *, asker: Asker | None, interactive: bool, ui: UI | None = None) -> Session:
        """The session of this run, with its interface if there is one.

        Raises:
            UsageError: --on-ask names an unknown tool.
        """
        if self.config.on_ask_tools:
            self._check_tools(self.config.on_ask_tools)
        self._close_folders()
        hooks = self.plugins.hooks(attended=asker is not None)
        commands = self.plugins.commands() if interactive else ()
        self.plugins.report(attended=asker is not None)
        if self.config.sandbox == "off":
            self._warn("The sandbox is off: commands run as you, and reach all that you reach.")
        servers = self._servers()
        self._trace()
        setup = SessionSetup(
            config=self.config,
            secrets=self.secrets,
            tools=self.plugins.tools if servers is None else (*self.plugins.tools, *servers.specs),
            lost_tools=self.plugins.lost_tools,
            foreign_tools=self.plugins.foreign_tools | {spec.name for spec in servers.specs}
            if servers is not None
            else self.plugins.foreign_tools,
            hooks=hooks,
            commands=commands,
            models=self.models,
            clients=self._clients,
            packs=lambda: self.packs,
            data_folders=self.plugins.data_folders,
            meter=self.meter,
            budgets=self._budgets,
            asker=asker,
            permit=None if ui is None else _permitter(ui),
            text_asker=None if ui is None else _text_asker(ui),
            ui=ui,
            keys=lambda: self.keys(ui),
            budget=self.budget,
            tool_source=servers,
        )
        parts = self._built(setup)
        if servers is not None:
            servers.attach(parts)
        if self.telemetry is not None:
            self.telemetry.attach(parts)
        self._warn_in_session = parts.bus.warn
        self._profile = parts.profile
        return Session(parts)

    def _built(self, setup: SessionSetup) -> SessionParts:
        if self.config.record is not None and self.watch is None:
            from .recording.recorder import Recorder

            self.watch = Recorder(self.config.record, self._notice, depth=self.config.depth)
        if self.watch is None:
            return build(setup)
        parts = build(self.watch.arranged(setup))
        self.watch.attach(parts)
        return parts

    def _servers(self) -> SessionServers | None:
        """The MCP servers of the user and of a trusted project; most runs have none, and import nothing."""
        if not self.config.mcp_servers:
            return None
        from .mcp.session import session_servers

        return session_servers(self.config, self.secrets)

    def _trace(self) -> None:
        """Trace the session; most runs are not traced, and import nothing."""
        if not self.config.telemetry.enabled:
            return
        from .telemetry.session import telemetry_of

        self.telemetry = telemetry_of(self.config, self.secrets, self._warn)
        if self.telemetry is not None:
            self.models.watched = self.telemetry.traced

    def _check_tools(self, names: Iterable[str]) -> None:
        from .api.errors import UsageError
        from .util.text import unknown_name

        known = [spec.name for spec in self.plugins.tools]
        for name in names:
            if name not in known:
                raise UsageError(f"--on-ask {name}=...: {unknown_name('tool', name, known)}")

    def _close_folders(self) -> None:
        """Restrict Marvin's folders to this user. A folder that contains the home folder is not Marvin's own."""
        config = self.config
        own = dict.fromkeys((config.config_folder, config.data_folder, config.cache_folder, config.state_folder))
        for folder in own:
            inside = config.home.is_relative_to(folder) or config.working_dir.is_relative_to(folder)
            if not inside and close_to_others(folder) and any((folder / name).exists() for name in _PERSONAL):
                self._warn(
                    f"Other users of this machine could read {folder}. Its permissions were changed: only you "
                    "can read it now."
                )

    def ui(self) -> UI:
        """The requested interface; by default the plain chat."""
        wanted = "plain" if self.config.plain else self.config.ui or "plain"
        if self.config.curses:
            self._warn("--curses opens the ordinary chat, because there is no separate full-screen chat any more.")
        specs = {spec.name: spec for spec in self.plugins.uis}
        if wanted not in specs:
            self._warn(f"There is no interface {wanted!r} (ui: in config.yaml); there are: {', '.join(specs)}.")
            wanted = "plain"
        made: UI = imported("interface", specs[wanted].factory)()
        if wanted != "plain":  # which does it later, when all of its own is imported
            collect_again()
        return made

    def save_usage(self) -> None:
        """Add this session to the lifetime totals. If that fails, only the totals are affected."""
        try:
            self.meter.save_lifetime(self.config.config_folder / "usage.json", self.config.timeouts)
        except Exception as error:  # the run is over and its result must not depend on this
            self._warn(f"The lifetime usage totals could not be saved: {error}")


def check_configuration(
    config: Config, secrets: Secrets, warn: Callable[[str], None], content: bytes | None = None
) -> None:
    """Check what config.yaml says about packs, services and models, as a start does.

    Args:
        config: the configuration with the values of the file.
        warn: gets warnings about settings without effect.
        content: the new content of the file, if it is not written yet.

    Raises:
        ConfigError: a start would be refused; the text names the line.
    """
    from .plugins.settings_check import check_settings

    plugins = Plugins(config, lambda text: None)
    check_settings(plugins, config, secrets, warn, content)
    for text in unknown_choices(config, plugins, content):
        warn(text)
    _catalog(config, secrets, plugins, lambda spec: None, content)


def unknown_choices(config: Config, plugins: Plugins, content: bytes | None = None) -> Iterator[str]:
    """Say if config.yaml names an interface or a theme that cannot be used; a chat says so, too, and uses another one.

    `content` as in `check_configuration`.
    """
    from .api.errors import ConfigError
    from .ui import themes
    from .util.text import unknown_name

    path = config.config_folder / "config.yaml"
    interfaces = [spec.name for spec in plugins.uis]
    if config.ui and config.ui not in interfaces:
        yield str(WrongSetting(unknown_name("interface", config.ui, interfaces), "ui", "name").placed(path, content))
    try:
        themes.load(config.theme, config.config_folder)
    except ConfigError as error:
        yield str(WrongSetting(str(error), "theme").placed(path, content))


def _catalog(
    config: Config,
    secrets: Secrets,
    plugins: Plugins,
    pack_of: Callable[[ProviderSpec], PackContext | None],
    content: bytes | None = None,
) -> Catalog:
    """The services, if config.yaml names no others."""
    try:
        made = Catalog(config, secrets, plugins.providers, pack_of)
        if config.fallback or (config.provider_from == "file" and config.provider not in made.known):
            from .providers.selection.fallback_chain import check_names

            check_names(config, made)
    except WrongSetting as error:
        raise error.placed(config.config_folder / "config.yaml", content) from None
    return made


def _text_asker(ui: UI) -> TextAsker | None:
    """How an interface asks for a text, if it can."""
    from .api.ui import AsksText

    return ui.ask_text if isinstance(ui, AsksText) else None


def _permitter(ui: UI) -> Permitter | None:
    """How an interface asks for approval of calls, if it has a form of its own for that."""
    from .api.permissions import PermissionUI

    return ui.permit if isinstance(ui, PermissionUI) else None
