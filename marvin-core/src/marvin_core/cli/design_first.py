"""`--design-first`: the flags that it needs, and the sub-command of a pack that implements it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ..api.config import Config
from ..api.errors import UsageError
from ..config.program import command_name

_PIPELINE = 'No installed pack provides the pipeline. Install it: pip install "marvin-core[pipeline]"'
_WORDS = ("pipeline", "run")


def pipeline_words(config: Config, argv: Sequence[str]) -> Sequence[str]:
    """The words of the sub-command.

    Raises:
        UsageError: a flag is missing (the text has the correct command line), a flag does not apply to the
            pipeline, or no pack provides the pipeline.
    """
    from ..plugins.manager import Plugins

    if _WORDS[0] not in Plugins(config, lambda text: None).cli_names():
        raise UsageError(_PIPELINE)
    missing = [] if config.non_interactive else ["--non-interactive"]
    missing += [] if config.rooted else ["--working-dir=."]
    if missing:
        right = shlex.join([*missing, *argv])
        raise UsageError(
            "--design-first runs unattended in a given folder: it needs --non-interactive and --working-dir. Run: "
            f"{command_name()} {right}"
        )
    unfit = {"--resume": config.resume, "--continue": config.continue_session, "--output-schema": config.output_schema}
    if flag := next((flag for flag, value in unfit.items() if value), ""):
        raise UsageError(f"{flag} applies to a prompt and its answer, not to the pipeline. Leave it out.")
    return _WORDS
