"""What a filterQuery may name of the catalog's entries, and how it is found in one."""

from __future__ import annotations

from typing import Any, Final

from mlcore.catalog.entry import Entry, id_of
from mlcore.search.filter_query import BOOL, INT, TEXT, TEXTS, Parts, Source

_OF_ALL: Final = {
    "id": INT,
    "name": TEXT,
    "description": TEXT,
    "externalId": TEXT,
    "createTimeSinceEpoch": INT,
    "lastUpdateTimeSinceEpoch": INT,
}
_SHOWN: Final = {
    **_OF_ALL,
    "source_id": TEXT,
    "provider": TEXT,
    "license": TEXT,
    "licenseLink": TEXT,
    "logo": TEXT,
    "readme": TEXT,
}
_ARTIFACT: Final = {**_OF_ALL, "uri": TEXT, "artifactType": TEXT, "metricsType": TEXT}
_MODEL: Final = {
    **_SHOWN,
    "maturity": TEXT,
    "libraryName": TEXT,
    "language": TEXTS,
    "tasks": TEXTS,
}
MODEL_NAMES: Final = tuple(_MODEL)
ARTIFACT_NAMES: Final = tuple(_ARTIFACT)

_TOOL: Final = {**_OF_ALL, "accessType": TEXT}
_INDICATORS: Final = ("verifiedSource", "secureEndpoint", "sast", "readOnlyTools")
_SERVER: Final = {
    **_SHOWN,
    "version": TEXT,
    "deploymentMode": TEXT,
    "tags": TEXTS,
    "transports": TEXTS,
    **dict.fromkeys(_INDICATORS, BOOL),
}

FORMER: Final = {
    "library_name": "libraryName",
    "license_link": "licenseLink",
    "deployment_mode": "deploymentMode",
    "sourceId": "source_id",
    "access_type": "accessType",
}
"""Other spellings of names."""

_ARTIFACTS: Final = "artifacts."


def _with_former(known: dict[str, str]) -> dict[str, str]:
    return {**known, **{old: known[new] for old, new in FORMER.items() if new in known}}


def attribute(entry: Entry, name: str) -> Any:
    """What an entry has of a name that its kind knows; None where it has nothing."""
    match name:
        case "id":
            return entry.id
        case "name":
            return entry.name
        case "createTimeSinceEpoch":
            return entry.create_time
        case "lastUpdateTimeSinceEpoch":
            return entry.update_time
    name = FORMER.get(name, name)
    if name == "source_id":
        return id_of(entry.source)
    if name in _INDICATORS:
        return entry.fields.get("securityIndicators", {}).get(name)
    return entry.fields.get(name)


ARTIFACTS: Final = Source(_with_former(_ARTIFACT), attribute, Entry.property)
MODELS: Final = Source(
    _with_former(_MODEL),
    attribute,
    Entry.property,
    Parts(_ARTIFACTS, lambda entry: entry.children, ARTIFACTS),
)
SERVERS: Final = Source(_with_former(_SERVER), attribute, Entry.property)
TOOLS: Final = Source(_with_former(_TOOL), attribute, Entry.property)
