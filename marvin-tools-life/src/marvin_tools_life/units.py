"""Converting units, and currencies."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from marvin_core import ToolContext, ToolError, did_you_mean, in_thread, near_names, tool

from . import currencies

if TYPE_CHECKING:
    import pint

Registry: TypeAlias = "pint.UnitRegistry[Any]"

_LONGEST = 60
_LIKE_ENOUGH = 0.7
_ALIASES = {
    "cal.": "cal",
    "fl oz": "fluid_ounce",
    "fl. oz.": "fluid_ounce",
    "kmh": "km/h",
    "kmph": "km/h",
    "mpg": "mile/gallon",
    "sqft": "square_foot",
    "sqm": "square_meter",
    "st": "stone",
    "°": "degree",
}
_TEMPERATURES = {"c": "degC", "celsius": "degC", "f": "degF", "fahrenheit": "degF", "k": "kelvin", "kelvin": "kelvin"}
_DEGREES = re.compile(r"(?:degrees?|deg)?[ _.]*([a-z]+)")
# Gallons, cups, pints and so on without a country are those of the United States.
_AMERICAN = re.compile(r"(?:us|u\.s\.|american)[ _]+", re.IGNORECASE)
# A power of a name, as in m^2 or s**-1. Nothing else may be raised: 9^9^9 would never end.
_POWER = re.compile(r"(?<=[^\W\d_])(?:\^|\*\*)-?\d{1,2}(?![\d^*.(])")
_SUPERSCRIPTS = str.maketrans({"²": "^2", "³": "^3"})


@tool(access=["read", "net"])
async def convert_units(
    value: Annotated[float, "The number to convert"],
    from_unit: Annotated[str, "Its unit or currency, as in km/h, °F, cups, EUR"],
    to_unit: Annotated[str, "The unit or currency wanted"],
    *,
    context: ToolContext,
) -> str:
    """Convert a number from one unit to another, or from one currency to another at today's rate."""
    if not math.isfinite(value):
        raise ToolError(f"{value} is no amount. Give an ordinary number.")
    money = currencies.recognized(from_unit, to_unit)
    if money is not None:
        return await currencies.convert(value, *money, context)
    registry = await context.resource(_registry)
    temperatures = _temperatures(from_unit, to_unit)
    source, target = temperatures or (_parsed(registry, from_unit), _parsed(registry, to_unit))
    import pint

    try:
        result = registry.Quantity(value, source).to(target)
    except pint.DimensionalityError as error:
        raise ToolError(_mismatch(registry, from_unit, to_unit, error)) from error
    except (pint.PintError, ArithmeticError, ValueError) as error:
        raise ToolError(f"{from_unit} cannot be converted to {to_unit}: {error}. Use simpler units.") from error
    if not math.isfinite(result.magnitude):
        raise ToolError(f"{value:g} {from_unit} are too many {to_unit} to be counted. Convert to a larger unit.")
    names = [f"{unit:P}".replace("_", " ") for unit in (registry.Unit(source), result.units)]
    return f"{_number(value)} {names[0]} = {_number(float(result.magnitude))} {names[1]}"


@asynccontextmanager
async def _registry() -> AsyncIterator[Registry]:
    def make() -> Registry:
        import pint  # it takes almost a second, with its registry

        return pint.UnitRegistry()

    yield await in_thread(make)


def _temperatures(from_unit: str, to_unit: str) -> tuple[str, str] | None:
    """Two temperatures, however they are written. F alone would be a farad, C a coulomb."""
    found = [_DEGREES.fullmatch(unit.replace("°", "").strip().lower()) for unit in (from_unit, to_unit)]
    names = [_TEMPERATURES.get(match[1]) if match else None for match in found]
    return (names[0], names[1]) if names[0] and names[1] else None


def _parsed(registry: Registry, text: str) -> str:
    """The unit in a spelling that pint knows."""
    written = " ".join(text.translate(_SUPERSCRIPTS).split())
    written = _ALIASES.get(written.lower(), re.sub(r"(?<=[a-z])([23])\b", r"^\1", written))
    rest = _POWER.sub("", written)
    if not written or len(written) > _LONGEST or re.search(r"[\^()]|\*\*|[¹⁰-⁹]", rest):
        raise ToolError(f"{text!r} is no unit. Use names or symbols such as km/h, m^2, kg, °F or cups.")
    import pint

    plain = _AMERICAN.sub("", written, count=1)
    american = [_lower(plain)] if plain != written else []  # pint would read U.S. as units of its own
    for spelling in dict.fromkeys((*american, written.replace(" ", "_"), written, _lower(written))):
        try:
            registry.parse_units(spelling)
        # pint's own parser asserts, too: of what it made of `http://host:9/`, for one.
        except (pint.PintError, AssertionError, AttributeError, TypeError, ValueError, SyntaxError, ArithmeticError):
            continue
        return spelling
    raise ToolError(_unknown(registry, text))


def _lower(name: str) -> str:
    return name.lower().replace(" ", "_")


def _unknown(registry: Registry, text: str) -> str:
    near = did_you_mean(near_names(text.lower(), (name for name in registry if len(name) > 1), enough=_LIKE_ENOUGH))
    hint = near or "Use names or symbols such as km, lb, °F, cups, or USD, EUR."
    return f"The unit {text!r} is not known. {hint}"


def _mismatch(registry: Registry, from_unit: str, to_unit: str, error: pint.DimensionalityError) -> str:
    near = sorted(str(unit) for unit in registry.get_compatible_units(error.units1))[:8]
    hint = f" {from_unit} converts to {', '.join(near)} and the like." if near else ""
    kinds = f"{_kind(error.dim1)} and {to_unit} measures {_kind(error.dim2)}"
    return f"{from_unit} measures {kinds}, so they do not convert.{hint}"


def _kind(dimensions: object) -> str:
    return str(dimensions).strip("() ") or "a plain number"


def _number(value: float) -> str:
    """Four digits behind the point; six that count below one; powers of ten where it is very large or small."""
    if abs(value) < 1 or abs(value) >= 1e15:
        return f"{value:.6g}"
    return f"{value:.4f}".rstrip("0").rstrip(".")
