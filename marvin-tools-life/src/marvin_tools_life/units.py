"""The tool convert_units: units and currencies."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from marvin_core import ToolContext, ToolError, did_you_mean, in_thread, near_names, one_line, tool

from . import currencies

if TYPE_CHECKING:
    import pint

Registry: TypeAlias = "pint.UnitRegistry[Any]"

_LONGEST = 60
_SHOWN = 60
"""Characters of a unit in an error: the input may be any text."""
_LIKE_ENOUGH = 0.7
_SYMBOLS = {
    "Cal": "kilocalorie",
    "Gb": "gigabit",
    "KB": "kilobyte",
    "Kb": "kilobit",
    "Mb": "megabit",
    "Tb": "terabit",
    "kb": "kilobit",
    "'": "foot",
    "′": "foot",
    '"': "inch",
    "″": "inch",
}
"""Case-sensitive symbols: in another case, or to pint, they mean something else, such as barn instead of bit."""
_ALIASES = {
    "centigrade": "degC",
    "fl oz": "fluid_ounce",
    "kmh": "km/h",
    "kmph": "km/h",
    "l/100km": "liter_per_100_km",
    "l/100 km": "liter_per_100_km",
    "liters per 100 km": "liter_per_100_km",
    "litres per 100 km": "liter_per_100_km",
    "mpg": "mile/gallon",
    "sqft": "square_foot",
    "sqm": "square_meter",
    "st": "stone",
    "°": "degree",
}
_TEMPERATURES = {
    "c": "degC",
    "celsius": "degC",
    "centigrade": "degC",
    "f": "degF",
    "fahrenheit": "degF",
    "k": "kelvin",
    "kelvin": "kelvin",
    "r": "degR",
    "rankine": "degR",
}
_DEGREES = re.compile(r"(?:degrees?|deg)?[ _.]*([a-z]+)")
_TEMPERATURE_PLACES = 9
"""Decimals of a temperature; further ones are rounding errors of the conversion through kelvin."""
# Gallons, cups, pints and so on without a country are US units.
_AMERICAN = re.compile(r"(?:us|u\.s\.?|american)[ _]+", re.IGNORECASE)
# The power of a name, as in m^2 or s**-1. No other power is allowed: 9^9^9 would never finish.
_POWER = re.compile(r"(?<=[^\W\d_])(?:\^|\*\*)-?\d{1,2}(?![\d^*.(])")
_RAISED = re.compile("[⁻⁰¹²³⁴-⁹]+")
_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_TIMES = str.maketrans("·⋅×", "***")
# pint parses units as Python: unbalanced quotes and brackets would be syntax errors.
_NO_UNIT = re.compile(r"[^\w\s°%*/.-]|\*\*")
_AMOUNT = re.compile(r"[-+]?(?:\d[\d.,]*|\.\d+)(?: |[^\W\d_])")
_AND = re.compile(r" and | & | \+ |, ?", re.IGNORECASE)
_SHORTENED = re.compile(r"(?<=[a-z])\.(?= |$)")
"""The dots of `sq. ft.`"""
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
"""As in kilowatt-hour: pint would subtract."""
_NOT_READ = (AssertionError, AttributeError, TypeError, ValueError, SyntaxError, ArithmeticError)
"""What pint raises in addition to its own errors: it parses units as Python, and asserts."""
_PARTS = 4
_PART_PLACES = 4


@tool(access=["read", "net"])
async def convert_units(
    value: Annotated[float, "The number to convert"],
    from_unit: Annotated[str, "Its unit or currency, such as km/h, °F, cups, EUR"],
    to_unit: Annotated[str, "The unit or currency to convert to"],
    *,
    context: ToolContext,
) -> str:
    """Convert a number from one unit to another, or from one currency to another at today's rate."""
    if not math.isfinite(value):
        raise ToolError(f"{value} is not an amount. Give an ordinary number.")
    money = currencies.recognized(from_unit, to_unit)
    if money is not None:
        return await currencies.convert(value, *money, context)
    registry, in_turn = await context.resource(_registry)

    def convert() -> str:
        with in_turn:  # pint is not thread-safe
            return _converted(registry, value, from_unit, to_unit)

    return await in_thread(convert)


def _converted(registry: Registry, value: float, from_unit: str, to_unit: str) -> str:
    """The answer. Blocks: pint is slow for units that are new to it."""
    temperatures = _temperatures(from_unit, to_unit)
    source = temperatures[0] if temperatures else _parsed(registry, from_unit)
    parts = [] if temperatures else _parts(to_unit)
    targets = [temperatures[1]] if temperatures else [_parsed(registry, part) for part in parts or [to_unit]]
    import pint

    try:
        quantity = registry.Quantity(value, source)
        result = _in(registry, quantity, targets[-1])
        numbers = _shares(registry, result, targets) if parts else [_rounded(result)]
    except pint.DimensionalityError as error:
        raise ToolError(_mismatch(registry, (from_unit, to_unit), error)) from error
    except (pint.PintError, ArithmeticError, ValueError) as error:
        shown = [one_line(unit, _SHOWN) for unit in (from_unit, to_unit)]
        raise ToolError(f"{shown[0]} cannot be converted to {shown[1]}: {error}. Use simpler units.") from error
    if not all(map(math.isfinite, numbers)):
        raise ToolError(f"{value:g} {from_unit} is too large a number of {to_unit}. Convert to a larger unit.")
    names = [f"{registry.Unit(unit):P}".replace("_", " ") for unit in (source, *targets)]
    told = " ".join(f"{_number(number)} {name}" for number, name in zip(numbers, names[1:], strict=True))
    return f"{_number(value)} {names[0]} = {told}"


def _in(registry: Registry, quantity: Any, target: str) -> Any:
    """A quantity in another unit; its reciprocal for an inverse unit, as with km/L and L/100km."""
    unit = registry.Unit(target)
    dimensions = quantity.dimensionality, (1 / quantity.units).dimensionality  # the same for angles and bytes
    is_reverse = unit.dimensionality == dimensions[1] != dimensions[0]
    return (1 / quantity).to(unit) if is_reverse else quantity.to(unit)


def _parts(to_unit: str) -> list[str]:
    """The units of a mixed result such as feet and inches; nothing for a single unit."""
    found = _AND.split(to_unit.strip())
    return found if 1 < len(found) <= _PARTS and all(map(str.strip, found)) else []


def _shares(registry: Registry, smallest: Any, targets: Sequence[str]) -> list[float]:
    """The count of each unit in an amount, which is given in the last and smallest one."""
    sizes = [float(registry.Quantity(1, target).to(targets[-1]).magnitude) for target in targets]
    if sizes != sorted(sizes, reverse=True):
        raise ToolError("Give the larger unit first, as in 'feet and inches'. Swap them.")
    left = round(abs(float(smallest.magnitude)), _PART_PLACES)
    shares: list[float] = []
    for size in sizes[:-1]:
        shares.append(float(math.floor(left / size + 1e-12)))
        left = round(max(0.0, left - shares[-1] * size), _PART_PLACES)
    shares.append(left)
    first = next((place for place, share in enumerate(shares) if share), 0)
    shares[first] = math.copysign(shares[first], float(smallest.magnitude))
    return shares


def _rounded(result: Any) -> float:
    number = float(result.magnitude)
    return round(number, _TEMPERATURE_PLACES) if result.check("[temperature]") else number


@asynccontextmanager
async def _registry() -> AsyncIterator[tuple[Registry, Lock]]:
    def make() -> Registry:
        import pint  # importing it takes almost a second, with its registry

        registry: Registry = pint.UnitRegistry()
        registry.define("liter_per_100_km = 0.01 * liter / kilometer")
        return registry

    yield await in_thread(make), Lock()


def _temperatures(from_unit: str, to_unit: str) -> tuple[str, str] | None:
    """Two temperature units in any spelling. F alone would be a farad, C a coulomb."""
    units = [unicodedata.normalize("NFKC", unit[:_LONGEST]) for unit in (from_unit, to_unit)]
    found = [_DEGREES.fullmatch(unit.replace("°", "").strip().lower()) for unit in units]
    names = [_TEMPERATURES.get(match[1]) if match else None for match in found]
    return (names[0], names[1]) if names[0] and names[1] else None


def _parsed(registry: Registry, text: str) -> str:
    """The unit in a spelling that pint knows."""
    if len(text) > _LONGEST:
        raise ToolError(_no_unit(text))
    written = _written(text)
    if not written or _NO_UNIT.search(_POWER.sub("", written)):
        raise ToolError(_no_unit(text))
    if _AMOUNT.match(written):
        raise ToolError(f"{text!r} contains a number. Give the number as value, and only the unit here.")
    from tokenize import TokenError

    import pint

    plain = _AMERICAN.sub("", written, count=1)
    american = [_lower(plain)] if plain != written else []  # pint would read U.S. as units of its own
    for spelling in dict.fromkeys((*american, written.replace(" ", "_"), written, _lower(written))):
        try:
            registry.parse_units(spelling)
        except (*_NOT_READ, pint.PintError, TokenError):
            continue
        return spelling
    raise ToolError(_unknown(registry, text))


def _written(text: str) -> str:
    """The unit in ASCII: superscripts as powers, and one character for several equivalent ones."""
    raised = _RAISED.sub(lambda found: "^" + found[0].translate(_SUPERSCRIPTS), text.translate(_TIMES))
    written = _SHORTENED.sub("", " ".join(unicodedata.normalize("NFKC", raised).split()))
    found = _SYMBOLS.get(written) or _ALIASES.get(written.lower())
    plain = _HYPHEN.sub(" ", re.sub(r"(?<=[a-z])([23])\b", r"^\1", written))
    return found or re.sub(r"^cu ", "cubic ", plain)


def _no_unit(text: str) -> str:
    shown = one_line(text, _SHOWN)
    return f"{shown!r} is not a unit. Use names or symbols such as km/h, m^2, kg, °F or cups."


def _lower(name: str) -> str:
    return name.lower().replace(" ", "_")


def _unknown(registry: Registry, text: str) -> str:
    near = did_you_mean(near_names(text.lower(), (name for name in registry if len(name) > 1), enough=_LIKE_ENOUGH))
    hint = near or "Use names or symbols such as km, lb, °F, cups, or USD, EUR."
    return f"The unit {text!r} is unknown. {hint}"


def _mismatch(registry: Registry, units: tuple[str, str], error: pint.DimensionalityError) -> str:
    source, target = (one_line(unit, _SHOWN) for unit in units)
    near = sorted(str(unit) for unit in registry.get_compatible_units(error.units1))[:8]
    hint = f" {source} converts to {', '.join(near)} and the like." if near else ""
    kinds = f"{_kind(error.dim1)} and {target} measures {_kind(error.dim2)}"
    fluid = " For a volume, use fl oz." if re.search(r"\b(?:oz|ounces?)\b", f"{source} {target}") else ""
    return f"{source} measures {kinds}, so they do not convert.{hint}{fluid}"


def _kind(dimensions: object) -> str:
    return str(dimensions).strip("() ") or "a plain number"


def _number(value: float) -> str:
    """Four decimals; six significant digits below one; powers of ten for very large or small numbers."""
    value += 0.0  # zero has no sign
    if abs(value) < 1 or abs(value) >= 1e15:
        return f"{value:.6g}"
    return f"{value:.4f}".rstrip("0").rstrip(".")
