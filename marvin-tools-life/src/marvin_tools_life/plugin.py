"""The entry point that Marvin loads: the groups of everyday tools, their modules imported on first use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from marvin_core import Hook, hookimpl

if TYPE_CHECKING:
    import typer

    from marvin_core import Command, Event, HookContext, PackSettings, SessionControl, ToolGroup, ToolSet

    from .notify.polling import Polling


class _NewMessages(Hook):
    """Requests new ntfy messages at each prompt of a chat, in parallel to it."""

    chats_only = True

    def __init__(self) -> None:
        self.polling: Polling | None = None
        """None before the first request."""

    async def on_prompt(self, context: HookContext, text: str) -> None:
        # Most people have no subscriptions, and a run or a sub-agent has nobody to show messages to.
        if not context.interactive or context.depth or not (context.profile_folder / _SUBSCRIPTIONS).exists():
            return
        if self.polling is None:
            from .notify.polling import Polling

            self.polling = Polling()
        self.polling.begin(context)

    async def on_event(self, context: HookContext, event: Event) -> None:
        if self.polling is not None:
            self.polling.see(event)


_SUBSCRIPTIONS = "ntfy_subscriptions.json"
_GROUPS: tuple[tuple[str, str, tuple[ToolSet, ...], str], ...] = (
    ("utilities", ".units", ("surf",), "convert_units"),
    ("utilities", ".machine", ("surf",), "system_info"),
    ("notes", ".notes.writing", ("surf", "lockin"), "notes_mkdir"),
    ("notes", ".notes.writing", ("coding", "surf", "lockin"), "write_note"),
    ("notes", ".notes.reading", ("coding", "surf", "lockin"), "read_note"),
    ("notes", ".notes.reading", ("surf", "lockin"), "file_read_lines notes_ls"),
    ("notes", ".notes.searching", ("surf", "lockin"), "search_notes"),
    ("notes", ".notes.patching", ("surf", "lockin"), "file_apply_patch"),
    ("calendar", ".calendar.changing", ("surf", "lockin"), "calendar_add_event calendar_delete_event"),
    ("calendar", ".calendar.viewing", ("surf", "lockin"), "calendar_view calendar_list_upcoming"),
    ("bookmarks", ".bookmarks.saving", ("surf",), "bookmark_save"),
    ("bookmarks", ".bookmarks.finding", ("surf",), "bookmark_list bookmark_search"),
    ("profile", ".profile.switching", ("surf",), "switch_profile"),
    ("profile", ".profile.preferences", ("surf",), "update_preferences"),
    ("profile", ".profile.places", ("surf",), "save_place remove_place list_places"),
    ("timers", ".timers", ("surf", "lockin"), "timer_start timer_check timer_stop"),
    ("alarms", ".alarms.alarms", ("surf", "lockin"), "set_alarm list_alarms cancel_alarm"),
    ("notify", ".notify.topics", ("surf", "lockin"), "generate_ntfy_topic ntfy_publish ntfy_list"),
    ("notify", ".notify.topics", ("surf", "lockin"), "ntfy_subscribe ntfy_unsubscribe"),
    ("tickets", ".tickets.tickets", ("surf",), "create_ticket ticket_start ticket_close ticket_add_note"),
    ("tickets", ".tickets.tickets", ("surf",), "ticket_add_dep ticket_show ticket_list ticket_dep_tree"),
    ("blender", ".blender.objects", ("lockin",), "blender_get_scene blender_get_object blender_create_object"),
    ("blender", ".blender.objects", ("lockin",), "blender_modify_object blender_delete_object"),
    ("blender", ".blender.objects", ("lockin",), "blender_set_material"),
    ("blender", ".blender.work", ("lockin",), "blender_execute_code blender_screenshot"),
)
"""The groups: name, module, the sets that they join, and their tools."""
_IN_CHAT = ("write_note", "update_preferences", "calendar_view", "calendar_add_event", "search_notes", "set_alarm")
"""Offered directly in a chat in which most tools are deferred.

Preferences are among them: the tool's description has the model offer to save what the user states as lasting, and
nobody would search for that."""
_GUIDANCE = {
    "write_note": """
With write_note, note what a later agent needs and the code does not say: findings, decisions and their reasons, \
failed attempts. Such notes are in .marvin/notes of the project. Read those about your work with read_note first.
"""
}
"""Guidance for models that work on code, by tool."""


async def _blender(session: SessionControl, text: str) -> str:
    from .blender.status import status

    return await status(session.pack("life"), session.processes)


@hookimpl
def marvin_register_settings() -> PackSettings:
    """The section `life` of the configuration: exchange rates, notifications, the scheduler of alarms, and Blender."""
    from marvin_core import PackSettings

    return PackSettings(
        model=".settings:LifeSettings",
        variables={
            "exchange_rates": "MARVIN_URL_FRANKFURTER",
            "ntfy": "MARVIN_URL_NTFY",
            "blender_host": "BLENDER_MCP_HOST",
            "blender_port": "BLENDER_MCP_PORT",
        },
        secrets={"NTFY_TOKEN": "the access token of the ntfy server, if it needs one"},
    )


@hookimpl
def marvin_register_hooks() -> Iterable[Hook]:
    """Shows new ntfy messages in chats."""
    return (_NewMessages(),)


@hookimpl
def marvin_register_commands() -> Iterable[Command]:
    """The command `blender`."""
    from marvin_core import Command

    return (Command(name="blender", help="show whether Blender answers, and how to start it", run=_blender),)


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """The groups of the pack."""
    from marvin_core import ToolGroup

    return [
        ToolGroup(
            name=name,
            module=module,
            tools=tuple(tools.split()),
            sets=sets,
            guidance=_GUIDANCE.get(tools, ""),
            in_chat=_IN_CHAT,
        )
        for name, module, sets, tools in _GROUPS
    ]


@hookimpl
def marvin_extend_cli(app: typer.Typer) -> None:
    """Add `marvin import`."""
    from .importing.cli import take_over

    app.command("import")(take_over)
