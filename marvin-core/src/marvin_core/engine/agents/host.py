"""The parts of a session that its sub-agents use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...api.record import Record

if TYPE_CHECKING:
    from ...api.config import Config
    from ...config.secrets import Secrets
    from ...guard.files.workspace import Workspace
    from ...guard.processes.runner import ProcessRunner
    from ...guard.redaction import Redactor
    from ...tools.toolbox import Toolbox
    from ...usage.meter import UsageMeter
    from ..active_model import ActiveModel


class AgentHost(Record):
    """The parts of a session that its sub-agents use. `environment` is that of its commands."""

    config: Config
    secrets: Secrets
    environment: Mapping[str, str]
    workspace: Workspace
    processes: ProcessRunner
    model: ActiveModel
    toolbox: Toolbox
    meter: UsageMeter
    redactor: Redactor
    packs: Mapping[str, str]
    """The folders of packs, by name; they may define agents."""
