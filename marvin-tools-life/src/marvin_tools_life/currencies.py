"""Currency conversion at the reference rates of the European Central Bank, which Frankfurter serves without a key."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from marvin_core import (
    MarvinError,
    Record,
    RequestFailed,
    ToolContext,
    ToolError,
    fetch_json,
    in_thread,
    one_line,
    update_file,
)

from .settings import LifeSettings

_DAY = 24 * 60 * 60
_BASE = "EUR"
_LARGEST = 100_000
"""Bytes of the rates, which usually have about 600."""
_CODE = re.compile("[A-Z]{3}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SHOWN = 60
"""Characters of a unit that an error shows."""
_FULL = 0.1
"""The amount from which on two decimals are enough."""
_LATER = "Try later, or convert with a rate from the user."
_CODES = frozenset(
    "AUD BGN BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF IDR ILS INR ISK JPY KRW MXN MYR NOK NZD PHP PLN RON SEK SGD THB"
    " TRY USD ZAR".split()
)
_NAMES = {
    "$": "USD",
    "us$": "USD",
    "dollar": "USD",
    "dollars": "USD",
    "€": "EUR",
    "euro": "EUR",
    "euros": "EUR",
    "£": "GBP",
    "pound sterling": "GBP",
    "¥": "JPY",
    "yen": "JPY",
    "yuan": "CNY",
    "₹": "INR",
    "rupee": "INR",
    "rupees": "INR",
    "₩": "KRW",
    "swiss franc": "CHF",
    "swiss francs": "CHF",
}
_POUNDS = frozenset({"pound", "pounds"})
"""Currencies only next to another currency."""


class Rates(Record):
    """The price of a euro in each currency on a date; `fetched` is in seconds since the epoch."""

    date: str
    fetched: float
    rates: dict[str, float]


def recognized(from_unit: str, to_unit: str) -> tuple[str, str] | None:
    """The codes of two currencies, or None if neither unit is a currency.

    Raises:
        ToolError: only one of them is.
    """
    codes = [_code(from_unit), _code(to_unit)]
    if codes == [None, None]:
        return None
    codes = [
        "GBP" if code is None and unit.strip().lower() in _POUNDS else code
        for code, unit in zip(codes, (from_unit, to_unit), strict=True)
    ]
    for code, unit in zip(codes, (from_unit, to_unit), strict=True):
        if code is None and not (len(unit.strip()) == 3 and unit.strip().isupper()):
            other = one_line(from_unit if unit is to_unit else to_unit, _SHOWN)
            shown = one_line(unit, _SHOWN)
            raise ToolError(f"{other} is a currency and {shown} is not. Give two currencies, or two units.")
    return codes[0] or from_unit.strip(), codes[1] or to_unit.strip()


def _code(unit: str) -> str | None:
    written = unit.strip()
    return written.upper() if written.upper() in _CODES else _NAMES.get(written.lower())


async def convert(value: float, source: str, target: str, context: ToolContext) -> str:
    """An amount in another currency, with the date of the rate.

    Raises:
        ToolError: there is no rate, or the rates are not available.
    """
    rates = await _rates(context)
    known = {**rates.rates, _BASE: 1.0}
    for code in (source, target):
        if code not in known:
            raise ToolError(f"There is no rate for {code}. Rates are available for {', '.join(sorted(known))}.")
    result = value / known[source] * known[target]
    if not math.isfinite(result):
        raise ToolError(f"{value:g} {source} is too large to convert. Give a smaller amount.")
    stale = context.clock.now() - rates.fetched >= _DAY
    note = "; newer rates are not available at the moment" if stale else ""
    told = f"{_amount(value)} {source} = {_amount(result)} {target}"
    return f"{told} (European Central Bank's rates of {rates.date}{note})"


def _amount(value: float) -> str:
    """An amount with two decimals; a small one with three significant digits."""
    if value == 0 or abs(value) >= _FULL:
        return f"{value + 0.0:,.2f}"
    places = 2 - math.floor(math.log10(abs(value)))
    return f"{value:.{places}f}" if places <= 10 else f"{value:.3g}"


async def _rates(context: ToolContext) -> Rates:
    """Today's rates: fetched once a day; older ones if that fails."""
    path = context.profile_folder / "rates.json"
    kept = await in_thread(lambda: _read(path))
    if kept is not None and 0 <= context.clock.now() - kept.fetched < _DAY:
        return kept
    try:
        rates = await _fetch(context)
    except ToolError:
        if kept is None:
            raise
        return kept
    try:
        await in_thread(lambda: update_file(path, lambda _: json.dumps(rates.as_dict()).encode()))
    except (OSError, MarvinError):
        pass  # they are fetched again next time
    return rates


async def _fetch(context: ToolContext) -> Rates:
    url = context.settings(LifeSettings).exchange_rates.rstrip("/") + "/latest"
    try:
        answer = await fetch_json(context.http, url, params={"base": _BASE}, largest=_LARGEST)
    except RequestFailed as error:
        raise ToolError(f"The exchange rates are not available: {error} {_LATER}") from error
    rates = _rates_in({**answer, "fetched": context.clock.now()}) if isinstance(answer, dict) else None
    if rates is None:
        raise ToolError(f"The exchange rates are not available: {url} sent no rates. {_LATER}")
    return rates


def _read(path: Path) -> Rates | None:
    """The rates in a file; None if it has no valid ones."""
    try:
        return _rates_in(json.loads(path.read_bytes())) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None


def _rates_in(data: Any) -> Rates | None:
    """The rates in a service's answer or the cache; None if there are no rates of the euro."""
    try:
        found = {code: float(rate) for code, rate in data["rates"].items() if _CODE.fullmatch(code)}
        rates = {code: rate for code, rate in found.items() if 0 < rate < math.inf}
        usable = rates and data.get("base", _BASE) == _BASE and _DATE.fullmatch(data["date"])
        return Rates(date=data["date"], fetched=float(data["fetched"]), rates=rates) if usable else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None
