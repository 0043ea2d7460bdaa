"""Profiles: for each a folder with preferences, saved places, chat log and input history, shared by all Marvins."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..api.errors import ConfigError, MarvinError, UsageError
from ..api.timeouts import Timeouts
from ..config.program import command_name
from ..util.state_files import locked, make_private_folder, replace_file, set_aside
from ..util.text import cut, did_you_mean, near_names
from ..util.untrusted_json import parse_json
from .chat_log import ChatLog

DEFAULT = "main"
_DRAFT = "preferences.draft.yaml"
_AT_ONCE = 0.0
"""Reads for a prompt do not wait for locks."""
_NAME = re.compile(r"\w[\w.-]{0,63}")
_TEMPLATE = """\
# What Marvin should know about you. Every line is optional: remove the # to use it.

# distance_unit: kilometers
# dietary: [vegetarian]
# spice_tolerance: medium
# favorite_cuisines: [thai, italian]
# avoid_cuisines: []
# has_car: false
# max_distance_km: 5
# budget: moderate
# accessibility: []
# notes: Anything else.
"""


def check_name(name: str) -> str:
    """The name, if a profile can have it.

    Raises:
        UsageError: a profile cannot have it.
    """
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise UsageError(
            f"A profile cannot be called {cut(name, 80)!r}. Use letters, digits, `-`, `_` and `.`, "
            "up to 64 of them, beginning with a letter or a digit."
        )
    return name


class Profiles:
    """The profiles below the configuration folder. `warn` is called once for each damaged file."""

    def __init__(
        self, config_folder: Path, timeouts: Timeouts, warn: Callable[[str], None] = lambda text: None
    ) -> None:
        self._folder = config_folder / "profiles"
        self._last = config_folder / "last_profile"
        self._timeouts = timeouts
        self._warn = warn
        self._told: set[Path] = set()

    @property
    def active(self) -> str:
        """The profile that was used last; `main` if there was none, or if the file names none."""
        try:
            return check_name(self._last.read_bytes().decode("utf-8").strip())
        except FileNotFoundError:
            return DEFAULT
        except OSError as error:
            self._tell(self._last, f"{self._last} cannot be read: {error.strerror}. The profile {DEFAULT} is used.")
        except (UnicodeDecodeError, UsageError):
            self._tell(
                self._last,
                f"{self._last} contains no profile name. {DEFAULT} is used; choose one: {command_name()} profiles use",
            )
        return DEFAULT

    def names(self) -> list[str]:
        """Every profile, sorted; they always include `main` and the active one."""
        there = {path.name for path in self._folder.glob("*") if path.is_dir() and _NAME.fullmatch(path.name)}
        return sorted(there | {DEFAULT, self.active})

    def folder(self, name: str) -> Path:
        """The folder of a profile; it is created when something is first stored in it. Raises like `check_name`."""
        return self._folder / check_name(name)

    def create(self, name: str) -> Path:
        """Create a profile; returns its folder.

        Raises:
            UsageError: a profile with the name exists, or the name is invalid.
        """
        folder = self.folder(name)
        try:
            make_private_folder(folder.parent)
            folder.mkdir(mode=0o700)
        except FileExistsError:
            raise UsageError(
                f"The profile {name!r} already exists. Use it: {command_name()} profiles use {name}"
            ) from None
        self.preferences_file(name)
        return folder

    def misspelled(self, name: str) -> str:
        """The question whether a profile with a similar name is meant, if there is none with this name."""
        names = self.names()
        return "" if name in names else did_you_mean(near_names(name, names))

    def switch(self, name: str) -> Path:
        """Make a profile the active one, and create it if necessary; returns its folder.

        Raises:
            UsageError: the name is invalid.
            MarvinError: another process holds the file for too long.
        """
        folder = self.folder(name)
        if not folder.is_dir() and name != DEFAULT:
            self.create(name)
        with locked(self._last, self._timeouts.lock, self._timeouts.lock_poll):
            replace_file(self._last, f"{name}\n".encode())
        return folder

    def protect(self, name: str) -> None:
        """Make the tokens of a profile unreadable for other users."""
        tokens = self.folder(name) / "tokens.json"
        try:
            if stat.S_IMODE(tokens.stat().st_mode) & 0o077:
                tokens.chmod(0o600)
        except FileNotFoundError:
            return
        except OSError as error:
            self._tell(
                tokens,
                f"{tokens} may be readable by other users, and its permissions cannot be changed: {error.strerror}.",
            )

    def chat_log(self, name: str) -> ChatLog:
        """The chat log of a profile."""
        return ChatLog(self.folder(name) / "chat_log.json", self._timeouts, self._warn)

    def preferences_file(self, name: str) -> Path:
        """The file with the preferences; it is created with commented examples if necessary."""
        path = self.folder(name) / "preferences.yaml"
        if not path.exists():
            with locked(path, self._timeouts.lock, self._timeouts.lock_poll):
                if not path.exists():
                    replace_file(path, _TEMPLATE.encode())
        return path

    def preferences(self, name: str) -> Mapping[str, Any]:
        """The user's preferences, by name; empty if there are none."""
        path = self.folder(name) / "preferences.yaml"
        found: Mapping[str, Any] | None = self._read(path, _parsed_yaml)
        return found or {}

    def draft_preferences(self, name: str) -> tuple[Path, bytes]:
        """A copy of preferences.yaml for editing, and the current content of the file.

        If an earlier copy could not be saved, it is returned instead of a new one.
        """
        path = self.preferences_file(name)
        content = path.read_bytes()
        draft = path.with_name(_DRAFT)
        if not draft.exists():
            replace_file(draft, content)
        return draft, content

    def take_draft(self, name: str, before: bytes) -> bool:
        """Replace preferences.yaml by the draft; False if nothing changed.

        Raises:
            ConfigError: it is no YAML of keys and values, or preferences.yaml has changed since; the draft is kept.
            MarvinError: another process holds the file for too long.
        """
        from ..util.yaml.edit import load_mapping

        path = self.preferences_file(name)
        draft = path.with_name(_DRAFT)
        after = draft.read_bytes()
        if after != before:
            try:
                load_mapping(after.decode("utf-8"))
            except ValueError as error:
                raise ConfigError(
                    f"The preferences were left unchanged; your version is in {draft}: {error}"
                ) from error
            with locked(path, self._timeouts.lock, self._timeouts.lock_poll):
                if path.read_bytes() != before:
                    raise ConfigError(
                        f"{path} was changed by another program in the meantime. Your version is in {draft}."
                    )
                replace_file(path, after)
        draft.unlink()
        return after != before

    def change_preference(self, name: str, key: str, change: Callable[[Any], Any]) -> None:
        """Set a preference to the result of `change` for its value; comments and the order of the file are kept.

        None stands for a preference that is not set.

        Raises:
            MarvinError: another process holds the file for too long, or it was damaged and has been moved aside, or the
                value is an alias of another part of the file.
            ValueError: the file cannot hold the value.
            OSError: it cannot be written; the old content is unchanged.
        """
        from ..util.yaml.edit import load_mapping, with_value

        path = self.preferences_file(name)
        with locked(path, self._timeouts.lock, self._timeouts.lock_poll):
            text = path.read_bytes()
            try:
                before = load_mapping(text.decode("utf-8"))
            except ValueError as error:
                raise MarvinError(
                    f"{path} was damaged. It is kept as {set_aside(path).name}, and nothing was changed. Repair it "
                    "and move it back; otherwise the next change starts with an empty file."
                ) from error
            value = change((before or {}).get(key))
            after = with_value(text.decode("utf-8"), [key], value)
            if (load_mapping(after) or {}).get(key) != value:
                raise MarvinError(f"{key} is merged from another place in {path} (`<<`). Change it there by hand.")
            replace_file(path, after.encode())

    def saved_places(self, name: str) -> list[Mapping[str, Any]]:
        """The user's saved places: objects with label, name, address, lat, lng and notes."""
        path = self.folder(name) / "saved_places.json"
        found: list[Mapping[str, Any]] | None = self._read(path, _parsed_places)
        return found or []

    def _read(self, path: Path, parse: Callable[[bytes], Any]) -> Any:
        """The result of `parse` for a file; None if there is none, or if it was damaged and has been moved aside."""
        try:
            return parse(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            self._tell(path, f"{path} cannot be read: {error.strerror}. It was ignored.")
            return None
        except ValueError:
            pass
        with locked(path, _AT_ONCE, self._timeouts.lock_poll):  # whoever holds it is at work on it, or will move it
            try:
                return parse(path.read_bytes())  # another process may have mended it by now
            except FileNotFoundError:
                return None
            except ValueError:
                self._moved_aside(path)
        return None

    def _moved_aside(self, path: Path) -> None:
        self._warn(f"{path} was damaged. It is kept as {set_aside(path).name}; repair it and move it back.")

    def _tell(self, path: Path, text: str) -> None:
        if path not in self._told:
            self._told.add(path)
            self._warn(text)


def _parsed_yaml(content: bytes) -> Mapping[str, Any]:
    text = content.decode("utf-8")
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        return {}  # the template: not worth the import of a YAML library at every start
    from ..util.yaml.edit import load_mapping

    return {str(key): value for key, value in (load_mapping(text) or {}).items()}


def _parsed_places(content: bytes) -> list[Mapping[str, Any]]:
    places = parse_json(content)
    if not isinstance(places, list):
        raise ValueError("no array")
    return [place for place in places if isinstance(place, dict)]
