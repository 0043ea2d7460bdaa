"""The base class of pack settings. It imports pydantic, so import it only in modules that define settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """The base class of pack settings: a pydantic model whose fields are the keys below `packs.NAME:` in config.yaml.

    A string below a field describes it, as `description` of `Field` does. A field without a default must be set before
    the settings can be read. Unknown keys are errors, and instances are immutable.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
