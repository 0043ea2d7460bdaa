"""What the settings of a pack are made of. It imports pydantic, so only a module that holds such settings needs it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """The base of a pack's settings: a pydantic model, whose fields are the keys below `packs.NAME:` in config.yaml.

    A string below a field describes it, as `description` of `Field` does. A field without a default has to be set
    before what asks for the settings works. Unknown keys are errors, and a made object cannot be changed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
