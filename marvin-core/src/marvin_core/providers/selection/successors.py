"""The replacement of a default model that is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .lifetimes import end_of, has_ended, heir_of
from .service_lists import chat_models

if TYPE_CHECKING:
    from ...api.providers import ProviderSpec
    from .catalog import Catalog


def heir(catalog: Catalog, spec: ProviderSpec, gone: str, left: Sequence[str]) -> str:
    """The best one of the remaining models as a replacement; empty if none is similar.

    That is the one that the service names, otherwise the service's default, otherwise the nearest name, otherwise the
    first of the models to choose from. If only the server knows its models, it is the first chat model.

    Args:
        left: the models that the service serves, without those that were tried.
    """
    from ...api.providers import ServedModel

    usable = [name for name in left if name != gone and not has_ended(end_of(spec.name, name))]
    for named in (heir_of(spec.name, gone), spec.default_model):
        if named in usable:
            return named
    if catalog.has_own_models(spec):
        answering = chat_models(ServedModel(name=name) for name in usable)
        return answering[0] if answering else ""
    # Nobody is asked about this one, so difflib's plain likeness decides, which is stricter than `near_names`: a
    # model with the same words in another order is another model.
    from difflib import get_close_matches

    near = get_close_matches(gone, usable, 1)
    return next(iter([*near, *(model for model in spec.models if model in usable)]), "")
