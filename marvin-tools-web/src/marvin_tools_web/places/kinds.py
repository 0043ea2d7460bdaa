"""Place types of Google as tags of OpenStreetMap.

Source: developers.google.com/maps/documentation/places/web-service/place-types and
wiki.openstreetmap.org/wiki/Map_features
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TAGS = {
    "airport": "aeroway=aerodrome",
    "amusement_park": "tourism=theme_park",
    "aquarium": "tourism=aquarium",
    "art_gallery": "tourism=gallery",
    "bakery": "shop=bakery",
    "beach": "natural=beach",
    "beauty_salon": "shop=beauty",
    "bed_and_breakfast": "tourism=guest_house",
    "bicycle_store": "shop=bicycle",
    "book_store": "shop=books",
    "bowling_alley": "leisure=bowling_alley",
    "bus_station": "amenity=bus_station",
    "bus_stop": "highway=bus_stop",
    "butcher_shop": "shop=butcher",
    "campground": "tourism=camp_site",
    "car_dealer": "shop=car",
    "car_repair": "shop=car_repair",
    "church": "amenity=place_of_worship;religion=christian",
    "city_hall": "amenity=townhall",
    "clothing_store": "shop=clothes",
    "coffee_shop": "amenity=cafe",
    "convenience_store": "shop=convenience",
    "department_store": "shop=department_store",
    "doctor": "amenity=doctors",
    "dog_park": "leisure=dog_park",
    "drugstore": "shop=chemist",
    "electric_vehicle_charging_station": "amenity=charging_station",
    "electronics_store": "shop=electronics",
    "embassy": "office=diplomatic",
    "fast_food_restaurant": "amenity=fast_food",
    "fire_station": "amenity=fire_station",
    "florist": "shop=florist",
    "furniture_store": "shop=furniture",
    "garden": "leisure=garden",
    "gas_station": "amenity=fuel",
    "golf_course": "leisure=golf_course",
    "grocery_store": "shop=supermarket",
    "guest_house": "tourism=guest_house",
    "gym": "leisure=fitness_centre",
    "hair_care": "shop=hairdresser",
    "hair_salon": "shop=hairdresser",
    "hardware_store": "shop=doityourself",
    "hindu_temple": "amenity=place_of_worship;religion=hindu",
    "hostel": "tourism=hostel",
    "hotel": "tourism=hotel",
    "ice_cream_shop": "amenity=ice_cream",
    "jewelry_store": "shop=jewelry",
    "laundry": "shop=laundry",
    "liquor_store": "shop=alcohol",
    "lodging": "tourism=hotel",
    "market": "amenity=marketplace",
    "mosque": "amenity=place_of_worship;religion=muslim",
    "motel": "tourism=motel",
    "movie_theater": "amenity=cinema",
    "museum": "tourism=museum",
    "national_park": "boundary=national_park",
    "night_club": "amenity=nightclub",
    "park": "leisure=park",
    "performing_arts_theater": "amenity=theatre",
    "pet_store": "shop=pet",
    "petrol_station": "amenity=fuel",
    "playground": "leisure=playground",
    "post_office": "amenity=post_office",
    "public_bathroom": "amenity=toilets",
    "shoe_store": "shop=shoes",
    "shopping_mall": "shop=mall",
    "spa": "leisure=spa",
    "sports_complex": "leisure=sports_centre",
    "stadium": "leisure=stadium",
    "subway_station": "station=subway",
    "supermarket": "shop=supermarket",
    "swimming_pool": "leisure=swimming_pool",
    "synagogue": "amenity=place_of_worship;religion=jewish",
    "taxi_stand": "amenity=taxi",
    "theater": "amenity=theatre",
    "toilet": "amenity=toilets",
    "tourist_attraction": "tourism=attraction",
    "train_station": "railway=station",
    "tram_stop": "railway=tram_stop",
    "transit_station": "public_transport=station",
    "veterinary_care": "amenity=veterinary",
    "viewpoint": "tourism=viewpoint",
    "zoo": "tourism=zoo",
}
_ALIKE = frozenset(
    "atm bank bar biergarten cafe car_rental car_wash casino cinema clinic college community_centre courthouse dentist"
    " drinking_water fast_food ferry_terminal food_court fountain fuel hospital ice_cream kindergarten library"
    " marketplace nightclub parking pharmacy place_of_worship police post_box prison pub recycling restaurant school"
    " shelter taxi theatre toilets townhall university veterinary".split()
)
"""Types that are OpenStreetMap amenities of the same name."""
_CUISINE = re.compile(r"([a-z]{3,30}(?:_[a-z]{3,30})?)_restaurant")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,40}")
_TAG = re.compile(r"[a-z][a-z0-9_:]{0,40}=[a-z0-9][a-z0-9_]{0,40}")


def normal(kind: str) -> str:
    """A type in Google's spelling: `Coffee shops` becomes `coffee_shop`."""
    name = re.sub(r"[\s-]+", "_", kind.strip().lower())
    return next((one for one in _singulars(name) if _is_known(one)), name)


def tags(kind: str) -> tuple[str, ...]:
    """The OpenStreetMap tags of a type, all of which a place must have; empty if the text cannot be a type."""
    name = normal(kind)
    if _TAG.fullmatch(name):
        return (name,)
    if name in _TAGS:
        return tuple(_TAGS[name].split(";"))
    cuisine = _CUISINE.fullmatch(name)
    if cuisine:
        return "amenity=restaurant", f"cuisine={cuisine[1]}"
    # Most other types have the same name.
    return (f"amenity={name}",) if _WORD.fullmatch(name) else ()


def known(words: str) -> tuple[str, ...]:
    """The tags of a known type in plain words, such as `coffee shops`; empty for unknown ones."""
    name = normal(words)
    return tags(name) if _is_known(name) else ()


def _is_known(name: str) -> bool:
    return name in _TAGS or name in _ALIKE or _CUISINE.fullmatch(name) is not None


def _singulars(name: str) -> Iterator[str]:
    """A type as it is, and its possible singulars, as of churches, libraries, places_of_worship."""
    yield name
    for plural, single in (("ies", "y"), ("es", ""), ("s", "")):
        if name.endswith(plural):
            yield name[: -len(plural)] + single
    first, underscore, rest = name.partition("_")
    if underscore and first.endswith("s"):
        yield f"{first[:-1]}_{rest}"
