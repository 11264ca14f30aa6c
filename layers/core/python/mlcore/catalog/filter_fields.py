"""The names that a ``filterQuery`` (Kubeflow's filter language) may use for entries of the model
catalog (models and MCP servers), and how their values are read.
"""

from __future__ import annotations

from typing import Any, Final

from mlcore.catalog.entry import CatalogEntry, id_of
from mlcore.search.kubeflow_filter import BOOL, INT, TEXT, TEXTS, PartSource, PropertySource

_COMMON: Final = {
    "id": INT,
    "name": TEXT,
    "description": TEXT,
    "externalId": TEXT,
    "createTimeSinceEpoch": INT,
    "lastUpdateTimeSinceEpoch": INT,
}
_COMMON_OF_ASSETS: Final = {
    **_COMMON,
    "source_id": TEXT,
    "provider": TEXT,
    "license": TEXT,
    "licenseLink": TEXT,
    "logo": TEXT,
    "readme": TEXT,
}
_ARTIFACT: Final = {**_COMMON, "uri": TEXT, "artifactType": TEXT, "metricsType": TEXT}
_MODEL: Final = {
    **_COMMON_OF_ASSETS,
    "maturity": TEXT,
    "libraryName": TEXT,
    "language": TEXTS,
    "tasks": TEXTS,
}
MODEL_NAMES: Final = tuple(_MODEL)
ARTIFACT_NAMES: Final = tuple(_ARTIFACT)

_TOOL: Final = {**_COMMON, "accessType": TEXT}
_INDICATORS: Final = ("verifiedSource", "secureEndpoint", "sast", "readOnlyTools")
_SERVER: Final = {
    **_COMMON_OF_ASSETS,
    "version": TEXT,
    "deploymentMode": TEXT,
    "tags": TEXTS,
    "transports": TEXTS,
    **dict.fromkeys(_INDICATORS, BOOL),
}

ALTERNATIVE_NAMES: Final = {
    "library_name": "libraryName",
    "license_link": "licenseLink",
    "deployment_mode": "deploymentMode",
    "sourceId": "source_id",
    "access_type": "accessType",
}
"""Alternative spellings of names that filters accept."""

_ARTIFACTS: Final = "artifacts."


def _with_alternatives(known: dict[str, str]) -> dict[str, str]:
    return {
        **known,
        **{
            alternative: known[name]
            for alternative, name in ALTERNATIVE_NAMES.items()
            if name in known
        },
    }


def attribute(entry: CatalogEntry, name: str) -> Any:
    """Returns the value of an attribute of a catalog entry (such as a model or an MCP server), by
    the name that a ``filterQuery`` uses; None if the entry has none."""
    match name:
        case "id":
            return entry.id
        case "name":
            return entry.name
        case "createTimeSinceEpoch":
            return entry.create_time
        case "lastUpdateTimeSinceEpoch":
            return entry.update_time
    name = ALTERNATIVE_NAMES.get(name, name)
    if name == "source_id":
        return id_of(entry.source)
    if name in _INDICATORS:
        return entry.fields.get("securityIndicators", {}).get(name)
    return entry.fields.get(name)


ARTIFACTS: Final = PropertySource(_with_alternatives(_ARTIFACT), attribute, CatalogEntry.property)
MODELS: Final = PropertySource(
    _with_alternatives(_MODEL),
    attribute,
    CatalogEntry.property,
    PartSource(_ARTIFACTS, lambda entry: entry.children, ARTIFACTS),
)
SERVERS: Final = PropertySource(_with_alternatives(_SERVER), attribute, CatalogEntry.property)
TOOLS: Final = PropertySource(_with_alternatives(_TOOL), attribute, CatalogEntry.property)
