"""Converting units without a network, and currencies at the rates of a day."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marvin_core.testing import HttpReplay, Outcome, ToolRunner

RATES = {"amount": 1.0, "base": "EUR", "date": "2026-11-20", "rates": {"USD": 1.25, "GBP": 0.8, "JPY": 160.0}}
SERVICE = "https://api.frankfurter.dev/v1/latest"


def convert(tools: ToolRunner, value: float, from_unit: str, to_unit: str) -> Outcome:
    return tools.call("convert_units", value=value, from_unit=from_unit, to_unit=to_unit)


# One session for a whole table: the first call reads the definitions of all units.
CONVERSIONS: list[tuple[float, str, str, str]] = [
    (100, "°F", "°C", "37.7778"),
    (100, "F", "C", "37.7778"),
    (212, "fahrenheit", "Celsius", "100"),
    (-40, "degrees C", "deg F", "-40"),
    (0, "celsius", "K", "273.15"),
    (2, "lbs", "kg", "0.907185"),
    (2, "cups", "mL", "473.1765"),
    (1, "gal", "L", "3.7854"),
    (8, "fl oz", "ml", "236.5882"),
    (1, "US gallon", "L", "3.7854"),
    (2, "U.S. gallons", "litres", "7.5708"),
    (1, "imperial gallon", "L", "4.5461"),
    (1, "US cup", "ml", "236.5882"),
    (1, "US fluid ounce", "ml", "29.5735"),
    (1, "UK pint", "l", "0.568261"),
    (30, "mpg", "km/L", "12.7543"),
    (5, "delta_degC", "delta_degF", "9"),
    (60, "mph", "km/h", "96.5606"),
    (100, "kmh", "meters per second", "27.7778"),
    (6, "feet", "cm", "182.88"),
    (1, "KM", "Miles", "0.621371"),
    (1, "nautical mile", "m", "1852"),
    (50, "m2", "sq ft", "538.1955"),
    (50, "m²", "sqft", "538.1955"),
    (1, "kg*m^2/s^2", "J", "1"),
    (1, "light year", "km", "9460730472580.8008"),
    (3, "h", "minutes", "180"),
    (1, "GiB", "MB", "1073.7418"),
    (32, "°F", "°C", "0"),
    (100, "℃", "℉", "212"),
    (20, "centigrade", "F", "68"),
    (68, "F", "rankine", "527.67"),
    (5, "KB", "byte", "5000"),
    (8, "Mb", "MB", "1"),
    (250, "Cal", "kJ", "1046"),
    (1, "kilowatt-hour", "MJ", "3.6"),
    (9.81, "m·s⁻²", "m/s²", "9.81"),
    (1, "㎡", "cm²", "10000"),
    (1, "μm", "nm", "1000"),
    (1, "µm", "nm", "1000"),
    (6, "'", "cm", "182.88"),
    (27, '"', "mm", "685.8"),
    (30, "mpg", "L/100km", "7.8405"),
    (5, "L/100 km", "mpg", "47.0429"),
    (50, "Hz", "ms", "20"),
    (180, "degrees", "rad", "3.1416"),
    (50, "%", "ppm", "500000"),
    (1, "sq. ft.", "sq. in.", "144"),
    (1, "cu m", "cu. ft.", "35.3147"),
    (2, "fl. oz.", "ml", "59.1471"),
    (1, "u.s. gallon", "L", "3.7854"),
    (1, "ft-lb", "ft lb", "1"),
    (1, "°C/m", "°F/m", "1.8"),
]
PARTS = [
    (180, "cm", "feet and inches", "5 foot 10.8661 inch"),
    (-180, "cm", "ft, in", "-5 foot 10.8661 inch"),
    (2.54, "cm", "feet and inches", "0 foot 1 inch"),
    (182.87999, "cm", "feet and inches", "6 foot 0 inch"),
    (70, "kg", "stone & pounds", "11 stone 0.3236 pound"),
    (3_725, "s", "h, min, s", "1 hour 2 minute 5 second"),
    (0, "m", "feet and inches", "0 foot 0 inch"),
]
REFUSED = [
    ("kg", "m", "kg measures [mass] and m measures [length]"),
    ("kilogrm", "g", "Did you mean 'kilogram'"),
    ("qqqqq", "g", "is unknown. Use"),
    ("http://127.0.0.1:9/", "g", "is not a unit"),
    ("5'11\"", "cm", "is not a unit"),
    ("[m", "m", "is not a unit"),
    ("{m", "m", "is not a unit"),
    ("m\\", "m", "is not a unit"),
    ('"""m', "m", "is not a unit"),
    ("m.__class__", "m", "is unknown"),
    ("m if 1 else s", "m", "is unknown"),
    ("m^99999", "m", "is not a unit"),
    ("m⁹⁹⁹⁹⁹", "m", "is not a unit"),
    ("10 km", "m", "Give the number as value"),
    ("10km", "m", "Give the number as value"),
    ("½", "m", "is n"),
    ("m", "inches and feet", "Give the larger unit first, as in"),
    ("m", "feet and kg", "[mass]"),
    ("oz", "ml", "For a volume, use fl oz"),
    ("°C", "m", "°C measures [temperature]"),
    ("x" * 1_000_000, "USD", "is not. Give two"),
    ("kg", "m" * 1_000_000, "is not a unit"),
    ("", "g", "'' is not a unit"),
    ("9^9^9^9", "m", "is not a unit"),
    ("m^9^9^9", "m", "is not a unit"),
    ("(9)**99*m", "m", "is not a unit"),
    ("9⁹⁹⁹⁹⁹⁹m", "m", "is not a unit"),
    ("m" * 1000, "m", "is not a unit"),
    ("__import__('os')", "m", "is not a unit"),
    ("USD", "kg", "USD is a currency and kg is not"),
    ("km", "euros", "euros is a currency and km is not"),
]


@pytest.mark.slow
def test_units(marvin_tools: ToolRunner) -> None:
    for value, from_unit, to_unit, result in CONVERSIONS:
        outcome = convert(marvin_tools, value, from_unit, to_unit)
        assert not outcome.is_error, outcome.text
        assert outcome.text.partition(" = ")[2].split()[0] == result, outcome.text


def test_an_amount_can_be_wanted_in_several_units(marvin_tools: ToolRunner) -> None:
    for value, from_unit, to_unit, result in PARTS:
        outcome = convert(marvin_tools, value, from_unit, to_unit)
        assert outcome.text.partition(" = ")[2] == result, outcome.text


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(-1e6, 1e6), st.sampled_from(["feet and inches", "mile, yard, foot, inch", "km and m"]))
def test_the_shares_of_several_units_are_the_whole(marvin_tools: ToolRunner, value: float, to_unit: str) -> None:
    told = convert(marvin_tools, value, "m", to_unit).text.partition(" = ")[2].split()
    shares = [(abs(float(number)), unit) for number, unit in zip(told[::2], told[1::2], strict=True)]
    sizes = {"mile": 1_609.344, "yard": 0.9144, "foot": 0.3048, "inch": 0.0254, "kilometer": 1_000.0, "meter": 1.0}
    assert sum(number * sizes[unit] for number, unit in shares) == pytest.approx(abs(value), abs=1e-4)
    for (_, larger), (number, unit) in pairwise(shares):
        assert number * sizes[unit] < sizes[larger] + 1e-4


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=80), st.text(max_size=80) | st.just("m"))
def test_no_text_is_an_unexpected_failure(marvin_tools: ToolRunner, from_unit: str, to_unit: str) -> None:
    outcome = convert(marvin_tools, 1, from_unit, to_unit)
    assert "failed unexpectedly" not in outcome.text
    assert outcome.elapsed < 30


BACK_AND_FORTH = [
    ("mi", "km"),
    ("°F", "°C"),
    ("K", "fahrenheit"),
    ("lb", "kg"),
    ("US gallon", "mL"),
    ("mph", "m/s"),
    ("psi", "bar"),
    ("kWh", "J"),
    ("acre", "m^2"),
    ("GiB", "bit"),
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(BACK_AND_FORTH), st.floats(1, 1e6))
def test_what_is_converted_there_and_back_is_what_it_was(
    marvin_tools: ToolRunner, units: tuple[str, str], value: float
) -> None:
    there = convert(marvin_tools, value, *units).text.partition(" = ")[2].split()[0]
    back = convert(marvin_tools, float(there), *reversed(units)).text.partition(" = ")[2].split()[0]
    assert float(back) == pytest.approx(value, rel=2e-4, abs=2e-3)


def test_the_answer_names_the_units_that_were_understood(marvin_tools: ToolRunner) -> None:
    assert convert(marvin_tools, 2, "t", "lb").text == "2 metric ton = 4409.2452 pound"
    assert convert(marvin_tools, 1e-9, "m", "angstrom").text == "1e-09 meter = 10 angstrom"


@pytest.mark.slow
def test_what_cannot_be_converted_is_explained(marvin_tools: ToolRunner) -> None:
    """I10: the error says what is wrong and what to do."""
    for from_unit, to_unit, says in REFUSED:
        outcome = convert(marvin_tools, 1, from_unit, to_unit)
        assert outcome.is_error, outcome.text
        assert says in outcome.text
        assert outcome.elapsed < 30, outcome.text
        assert len(outcome.text) < 500


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (100, "USD", "EUR", "100.00 USD = 80.00 EUR"),
        (100, "eur", "usd", "100.00 EUR = 125.00 USD"),
        (10, "£", "$", "10.00 GBP = 15.62 USD"),
        (10, "pounds", "dollars", "10.00 GBP = 15.62 USD"),
        (1000, "yen", "euros", "1,000.00 JPY = 6.25 EUR"),
        (1, "JPY", "GBP", "1.00 JPY = 0.00500 GBP"),
        (-0.0, "JPY", "GBP", "0.00 JPY = 0.00 GBP"),
        (0.00001, "EUR", "USD", "0.0000100 EUR = 0.0000125 USD"),
    ],
)
def test_currencies(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, value: float, source: str, target: str, result: str
) -> None:
    marvin_http.on("GET", SERVICE, json=RATES)
    outcome = convert(marvin_tools, value, source, target)
    assert outcome.text == f"{result} (European Central Bank's rates of 2026-11-20)"


def test_rates_are_fetched_once_a_day_for_all_sessions(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", SERVICE, json=RATES, times=1)
    for tools in (marvin_tools, marvin_tools, marvin_tools.session()):
        assert "125.00 USD" in convert(tools, 100, "EUR", "USD").text
    assert len(marvin_http.requests) == 1


def kept(tools: ToolRunner, **changes: Any) -> None:
    path = tools.home / ".config/marvin/profiles/main/rates.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_old_rates_are_replaced_or_marked_as_old(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", SERVICE, json=RATES, times=1)
    marvin_http.on("GET", SERVICE, status=503, times=1)
    marvin_http.on("GET", SERVICE, json={**RATES, "date": "2026-11-21"}, times=1)
    convert(marvin_tools, 100, "EUR", "USD")
    kept(marvin_tools, fetched=1_000_000_000)
    assert "rates of 2026-11-20; newer rates are not available" in convert(marvin_tools, 100, "EUR", "USD").text
    assert "rates of 2026-11-21)" in convert(marvin_tools, 100, "EUR", "USD").text


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 503},
        {"text": "<html>"},
        {"json": {"rates": {}}},
        {"json": {"rates": {"USD": "x"}}},
        {"json": {**RATES, "base": "USD"}},
        {"json": {**RATES, "date": "\x1b[31m" * 9}},
        {"json": {**RATES, "rates": {"USD": 1e999, "GBP": -1, "x": 1}}},
        {"json": {**RATES, "rates": [1]}},
        {"text": "x" * 200_000},
        {"status": 429, "headers": {"retry-after": "3600"}},
    ],
)
def test_without_rates_it_says_so(marvin_tools: ToolRunner, marvin_http: HttpReplay, answer: dict[str, Any]) -> None:
    marvin_http.on("GET", SERVICE, **answer)
    outcome = convert(marvin_tools, 1, "EUR", "USD")
    assert outcome.is_error
    assert "exchange rates are not available" in outcome.text
    assert "Try later" in outcome.text


def test_an_unknown_currency_names_the_known_ones(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", SERVICE, json=RATES)
    assert "no rate for KES. Rates are available for EUR, GBP, JPY, USD" in convert(marvin_tools, 1, "USD", "KES").text


@pytest.mark.parametrize("content", ["", "{", "[" * 9_999, '{"rates": 3}', '{"fetched": 1e999}', None])
def test_rates_that_were_kept_badly_are_fetched_again(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, content: str | None
) -> None:
    marvin_http.on("GET", SERVICE, json=RATES)
    path = marvin_tools.home / ".config/marvin/profiles/main/rates.json"
    path.parent.mkdir(parents=True)
    if content is None:
        path.mkdir()
    else:
        path.write_text(content)
    assert "125.00 USD" in convert(marvin_tools, 100, "EUR", "USD").text


def test_an_amount_that_is_too_large_is_no_answer(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", SERVICE, json=RATES)
    assert "is too large to convert. Give a smaller amount" in convert(marvin_tools, 1.7e308, "EUR", "JPY").text


def test_the_service_can_be_another_one(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", "http://rates.example/api/latest?base=EUR", json=RATES)
    tools = marvin_tools.session(env={"MARVIN_URL_FRANKFURTER": "http://rates.example/api/"})
    assert "125.00 USD" in convert(tools, 100, "EUR", "USD").text


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e308"])
def test_a_number_without_an_end_is_no_answer(marvin_tools: ToolRunner, value: str) -> None:
    arguments = f'{{"value": {value}, "from_unit": "km", "to_unit": "nm"}}'
    outcome = marvin_tools.call_raw("convert_units", arguments)
    assert outcome.is_error
    assert " = " not in outcome.text
