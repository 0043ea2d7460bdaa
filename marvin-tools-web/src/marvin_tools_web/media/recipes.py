"""Recipes of TheMealDB.

Source: themealdb.com/api.php
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from marvin_core import Link, ToolContext, ToolError, ToolResult, plain_text, tool

from ..services import values
from ..services.backends import source_line
from ..services.catalog import THEMEALDB
from ..services.client import ServiceClient
from ..services.queries import checked
from ..services.visible_text import seen
from .facts import given, joined, labelled, lines, listed

_QUERY = 100
_INGREDIENTS = 20
_HOW = 6_000
_SHOWN = 15


@tool(access=["net"], labels=["TheMealDB"], probe={"query": "soup"})
async def recipe_search(
    query: Annotated[str, "A dish, or one ingredient"],
    search_type: Annotated[Literal["name", "ingredient"], "The kind of query"] = "name",
    *,
    context: ToolContext,
) -> ToolResult:
    """Find recipes by their names or by an ingredient."""
    asked = checked(query, "query", _QUERY, "Give a dish, or one ingredient.")
    path, params = ("search.php", {"s": asked})
    if search_type == "ingredient":
        path, params = ("filter.php", {"i": asked.lower().replace(" ", "_")})
    meals = await ServiceClient(context, THEMEALDB).get_json(path, meals_in, params=params)
    if not meals:
        other = "ingredient" if search_type == "name" else "name"
        return ToolResult(
            content=f"No recipe has the {search_type} {asked!r}. Try search_type {other!r}, or another word."
        )
    shown = meals[:_SHOWN]
    links = [Link(url=_page(one), text=given(one, "strMeal")) for one in shown if _page(one)]
    source = f"[For the whole recipe, use recipe_lookup.] {source_line([THEMEALDB])}"
    return listed(map(_in_short, shown), source, links, len(meals))


@tool(access=["net"], labels=["TheMealDB"], probe={"meal_id": "52772"})
async def recipe_lookup(meal_id: Annotated[str, "From recipe_search"], *, context: ToolContext) -> ToolResult:
    """Tell a whole recipe: ingredients, amounts, how it is made."""
    number = meal_id.strip()
    if not number.isascii() or not number.isdecimal() or len(number) > 12:
        raise ToolError(f"{meal_id[:40]!r} is not a recipe id. Give a number from recipe_search.")
    meals = await ServiceClient(context, THEMEALDB).get_json("lookup.php", meals_in, params={"i": number})
    if not meals:
        raise ToolError(f"The recipe {number} does not exist. Find one with recipe_search.")
    meal = meals[0]
    page = _page(meal)
    links = [Link(url=page, text=given(meal, "strMeal"))] if page else []
    return ToolResult(content=f"{recipe_in(meal)}\n{source_line([THEMEALDB])}", show=links)


def meals_in(answer: Any) -> list[Mapping[str, Any]]:
    meals = answer["meals"]
    if meals is None or isinstance(meals, str):  # its way of saying that there are none
        return []
    found = values.objects(values.required(meals))
    if any(not given(meal, "strMeal") for meal in found):
        raise ValueError("a meal without a name")
    return found


def _page(meal: Mapping[str, Any]) -> str:
    number = values.whole(meal, "idMeal")
    return f"https://www.themealdb.com/meal/{number}" if number else ""


def _in_short(meal: Mapping[str, Any]) -> str:
    kind = joined(given(meal, "strArea", 40), given(meal, "strCategory", 40))
    return lines(joined(given(meal, "strMeal", 120), kind, f"id {values.whole(meal, 'idMeal') or 0}"), _page(meal))


def _ingredients(meal: Mapping[str, Any]) -> Iterator[str]:
    for number in range(1, _INGREDIENTS + 1):
        name = given(meal, f"strIngredient{number}", 80)
        if name:
            yield f"- {given(meal, f'strMeasure{number}', 60)} {name}".replace("-  ", "- ")


def recipe_in(meal: Mapping[str, Any]) -> str:
    steps = meal.get("strInstructions")
    how = seen(plain_text(re.sub(r"\r?\n", "<br>", steps[:_HOW]))) if isinstance(steps, str) else ""
    return lines(
        given(meal, "strMeal", 120),
        joined(given(meal, "strArea", 40), given(meal, "strCategory", 40), given(meal, "strTags", 120)),
        "Ingredients:",
        *_ingredients(meal),
        "Instructions:",
        how or "(The recipe has no instructions.)",
        labelled("From", values.address(meal, "strSource")),
        labelled("Video", values.address(meal, "strYoutube")),
        _page(meal),
    )
