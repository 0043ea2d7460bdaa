"""The configuration of the everyday tools."""

from __future__ import annotations

from typing import Annotated, Literal

from marvin_core import Field, Settings


class LifeSettings(Settings):
    """The section `life` below `packs:` in config.yaml."""

    exchange_rates: str = "https://api.frankfurter.dev/v1"
    """Where exchange rates come from: a service with the interface of Frankfurter."""
    scheduler: Literal["auto", "systemd", "launchd", "cron", "at"] = "auto"
    """What starts alarms and reminders at their times: the user's systemd, launchd, cron or at; auto takes the first of
    them that works."""
    ntfy: str = "https://ntfy.sh"
    """The server for notifications on the phone, with the interface of ntfy."""
    alarm_topic: str = ""
    """The topic of ntfy that alarms and reminders are published to. Default: the subscribed topic, if there is only
    one."""
    blender_host: str = "127.0.0.1"
    """Where the add-on of Blender listens."""
    blender_port: Annotated[int, Field(ge=1, le=65535)] = 9876
    """The port of the add-on of Blender."""
