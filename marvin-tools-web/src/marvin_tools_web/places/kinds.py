"""Types of places as Google names them, in the tags of OpenStreetMap.

Source: developers.google.com/maps/documentation/places/web-service/place-types and
wiki.openstreetmap.org/wiki/Map_features
"""

from __future__ import annotations

import re

_TAGS = {
    "airport": "aeroway=aerodrome",
    "art_gallery": "tourism=gallery",
    "bakery": "shop=bakery",
    "beauty_salon": "shop=beauty",
    "bicycle_store": "shop=bicycle",
    "book_store": "shop=books",
    "bus_station": "amenity=bus_station",
    "bus_stop": "highway=bus_stop",
    "campground": "tourism=camp_site",
    "car_repair": "shop=car_repair",
    "clothing_store": "shop=clothes",
    "coffee_shop": "amenity=cafe",
    "convenience_store": "shop=convenience",
    "department_store": "shop=department_store",
    "drugstore": "shop=chemist",
    "electric_vehicle_charging_station": "amenity=charging_station",
    "electronics_store": "shop=electronics",
    "fast_food_restaurant": "amenity=fast_food",
    "fire_station": "amenity=fire_station",
    "florist": "shop=florist",
    "furniture_store": "shop=furniture",
    "gas_station": "amenity=fuel",
    "grocery_store": "shop=supermarket",
    "gym": "leisure=fitness_centre",
    "hair_care": "shop=hairdresser",
    "hair_salon": "shop=hairdresser",
    "hardware_store": "shop=doityourself",
    "hostel": "tourism=hostel",
    "hotel": "tourism=hotel",
    "ice_cream_shop": "amenity=ice_cream",
    "jewelry_store": "shop=jewelry",
    "laundry": "shop=laundry",
    "liquor_store": "shop=alcohol",
    "lodging": "tourism=hotel",
    "movie_theater": "amenity=cinema",
    "museum": "tourism=museum",
    "night_club": "amenity=nightclub",
    "park": "leisure=park",
    "performing_arts_theater": "amenity=theatre",
    "pet_store": "shop=pet",
    "playground": "leisure=playground",
    "post_office": "amenity=post_office",
    "shoe_store": "shop=shoes",
    "shopping_mall": "shop=mall",
    "stadium": "leisure=stadium",
    "subway_station": "station=subway",
    "supermarket": "shop=supermarket",
    "swimming_pool": "leisure=swimming_pool",
    "tourist_attraction": "tourism=attraction",
    "train_station": "railway=station",
    "tram_stop": "railway=tram_stop",
    "veterinary_care": "amenity=veterinary",
    "zoo": "tourism=zoo",
}
_WORD = re.compile(r"[a-z][a-z0-9_]{0,40}")
_TAG = re.compile(r"[a-z][a-z0-9_:]{0,40}=[a-z0-9][a-z0-9_]{0,40}")


def normal(kind: str) -> str:
    """A type as Google writes it: `Coffee shops` is `coffee_shop`."""
    return re.sub(r"[\s-]+", "_", kind.strip().lower())


def tag(kind: str) -> str:
    """The tag of OpenStreetMap for a type; empty where the text can be none."""
    name = normal(kind)
    if _TAG.fullmatch(name):
        return name
    for known in (name, name.removesuffix("s"), name.removesuffix("es")):
        if known in _TAGS:
            return _TAGS[known]
    # Most other types are named alike: restaurant, bank, school, pharmacy, parking.
    return f"amenity={name.removesuffix('s')}" if _WORD.fullmatch(name) else ""
