"""Keys of the list of locations: where files are kept for those who do not keep them in a place of
their own name.

The list is in the order of the paths, so what lies below a path is one range of it and what a path
lies below is one item collection for each segment. A path is listed by its first segments, as many
as fit :data:`STEM_BYTES`; the item tells the whole one.
"""

from __future__ import annotations

from typing import Final

from mlcore.db.keys.pattern import Key, Pattern

STEM_BYTES: Final = 150
"""Three times as much fits the key, for each character may be an escape of three."""

LOCATION = Pattern(
    "location",
    "LOCATIONS",
    "LOCATION#<location>#<holder>",
    "files below a path are an experiment's or a model version's to name",
)
LOCATION_LIST = Pattern(
    "location_list", "LOCATIONS", "LISTED", "locations of earlier versions are in the list"
)

LOCATION_PATTERNS = (LOCATION, LOCATION_LIST)


def location(path: str, holder: str) -> Key:
    return Key(LOCATION.pk.text, LOCATION.sk.build(stem(path), holder))


def location_list() -> Key:
    return Key(LOCATION_LIST.pk.text, LOCATION_LIST.sk.text)


def locations_above(path: str) -> list[str]:
    """What the sort keys begin with of a path and of all that it lies below, the root first."""
    segments = [segment for segment in stem(path).split("/") if segment]
    return [LOCATION.sk.prefix("/".join(segments[:count])) for count in range(len(segments) + 1)]


def locations_below(path: str) -> str | None:
    """What the sort keys begin with of all below a path; None if its own stem has them all."""
    if stem(path) != path:
        return None
    return LOCATION.sk.prefix(path).removesuffix("#") + "/" if path else LOCATION.sk.prefix()


def stem(path: str) -> str:
    """The first segments of a path."""
    if len(path.encode()) <= STEM_BYTES:
        return path
    return path.encode()[: STEM_BYTES + 1].decode(errors="ignore").rpartition("/")[0]
