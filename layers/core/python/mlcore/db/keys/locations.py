"""Keys of the list of *locations*: paths in the artifact store with the files of a *holder*, which
is an experiment with files outside its default folder, a model version, or a run that was moved.

The list is sorted by path, so all locations below a path are one range, and the locations above a
path are one prefix for each of its segments. A key holds only the first segments of a path, at most
:data:`STEM_BYTES`; the item holds the whole path.
"""

from __future__ import annotations

from typing import Final

from mlcore.db.keys.pattern import Key, Pattern

STEM_BYTES: Final = 150
"""Maximum bytes of a path in a key: less than a third of the bytes that the key has for it, because
an escaped character takes three."""

LOCATION = Pattern(
    "location",
    "LOCATIONS",
    "LOCATION#<location>#<holder>",
    "the experiment, model version or moved run that owns the files below a path",
)
LOCATION_LIST = Pattern(
    "location_list", "LOCATIONS", "LISTED", "the ARTIFACT_ROOT for which the list is complete"
)

LOCATION_PATTERNS = (LOCATION, LOCATION_LIST)


def location(path: str, holder: str) -> Key:
    return Key(LOCATION.pk.text, LOCATION.sk.build(stem(path), holder))


def location_list() -> Key:
    return Key(LOCATION_LIST.pk.text, LOCATION_LIST.sk.text)


def locations_above(path: str) -> list[str]:
    """Returns prefixes of sort keys in the list of artifact locations: one for the path itself and
    one for each path above it, the root first."""
    segments = [segment for segment in stem(path).split("/") if segment]
    return [LOCATION.sk.prefix("/".join(segments[:count])) for count in range(len(segments) + 1)]


def locations_below(path: str) -> str | None:
    """Returns the prefix of the sort keys, in the list of artifact locations, of all paths below a
    path. Returns None if the path is longer than STEM_BYTES: then keys do not hold enough of a path
    to tell which ones are below it."""
    if stem(path) != path:
        return None
    return LOCATION.sk.prefix(path).removesuffix("#") + "/" if path else LOCATION.sk.prefix()


def stem(path: str) -> str:
    """Returns the first segments of an artifact path, as many as fit into STEM_BYTES bytes."""
    if len(path.encode()) <= STEM_BYTES:
        return path
    return path.encode()[: STEM_BYTES + 1].decode(errors="ignore").rpartition("/")[0]
