"""Parses the files that define the sources, labels and named queries of the model catalog, and
merges them.

These are the YAML files with ``sources`` in their name: those in the catalog's folder are for all
workspaces, those in ``workspaces/<name>`` for one. If several files of the same folder define the
same source or label, the file with the later name wins, field by field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from catalog_loader import field_checks
from catalog_loader.field_checks import InvalidField
from mlcore.catalog.entry import ASSET_TYPES, source_key

YAML: Final = "yaml"
HUGGING_FACE: Final = ("hf", "huggingface")
TYPES: Final = (YAML, *HUGGING_FACE)
OPERATORS: Final = ("=", "!=", ">", "<", ">=", "<=", "LIKE", "ILIKE", "IN", "NOT IN")

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,237}")
_WORKSPACES: Final = "workspaces"
_IGNORED_TYPES: Final = ("agents", "skills")
"""Asset types of Kubeflow's newer catalogs. Their definitions are ignored, so that such files can
be used here unchanged."""


class ConfiguredSource(NamedTuple):
    """A source of the model catalog as the catalog's YAML files define it."""

    workspace: str
    """The workspace of the source; empty for a source that all workspaces share."""
    asset_type: str
    id: str
    name: str
    type: str
    enabled: bool
    labels: tuple[str, ...]
    included: tuple[str, ...]
    excluded: tuple[str, ...]
    properties: Mapping[str, Any]
    folder: str
    """The folder of the file that defines ``properties``; their paths are relative to it."""

    @property
    def key(self) -> str:
        return source_key(self.workspace, self.id)

    def includes(self, name: str) -> bool:
        """Whether the catalog shows the source's model or server with this name."""
        if any(matches(pattern, name) for pattern in self.excluded):
            return False
        return not self.included or any(matches(pattern, name) for pattern in self.included)


class Configuration(NamedTuple):
    sources: tuple[ConfiguredSource, ...]
    labels: tuple[dict[str, Any], ...]
    """The labels of sources. Each has ``assetType``, and ``workspace`` if it belongs to one
    workspace only."""
    queries: dict[str, dict[str, Any]]
    """Named queries for all workspaces, by asset type and name; each maps a field to ``operator``
    and, unless it is omitted, ``value``."""
    workspace_queries: dict[str, dict[str, dict[str, Any]]]
    """Named queries of single workspaces, by workspace, asset type and name."""


def matches(pattern: str, name: str) -> bool:
    """Whether a name matches a pattern in which ``*`` stands for any text, ignoring case. There is
    no backtracking, however many stars the pattern has."""
    first, *rest = pattern.lower().split("*")
    lowered = name.lower()
    if not rest:
        return lowered == first
    last = rest.pop()
    if not lowered.startswith(first) or not lowered.endswith(last):
        return False
    at, end = len(first), len(lowered) - len(last)
    if at > end:
        return False
    for part in rest:
        begin = lowered.find(part, at, end)
        if begin < 0:
            return False
        at = begin + len(part)
    return True


def defining_files(names: Iterable[str]) -> list[str]:
    """Returns those of the names whose files define the model catalog's sources, in the order in
    which the files are merged."""
    selected = []
    for name in sorted(names):
        folder, _, file = name.rpartition("/")
        top = folder == "" or (folder.startswith(f"{_WORKSPACES}/") and folder.count("/") == 1)
        if top and "sources" in file.lower() and file.lower().endswith((".yaml", ".yml")):
            selected.append(name)
    return sorted(selected, key=lambda name: (name.count("/"), name))


def workspace_of(file: str) -> str:
    return file.split("/")[1] if file.startswith(f"{_WORKSPACES}/") else ""


def merge(files: Iterable[tuple[str, Any]]) -> Configuration:
    """Returns the sources, labels and named queries of the model catalog that all files together
    define. Raises InvalidField if the content of a file is not valid.

    Args:
        files: name and parsed content of each file; later ones win.
    """
    sources: dict[tuple[str, str, str], dict[str, Any]] = {}
    labels: dict[tuple[str, str, str | None], dict[str, Any]] = {}
    queries: dict[str, dict[str, dict[str, Any]]] = {}
    for file, data in files:
        read = _file(file, data)
        workspace = workspace_of(file)
        folder = file.rpartition("/")[0]
        for asset_type, entries in (
            ("models", [*read.get("catalogs", ()), *read.get("model_catalogs", ())]),
            ("mcp_servers", read.get("mcp_catalogs", ())),
        ):
            source_ids = set()
            for entry in entries:
                if entry["id"] in source_ids:
                    raise InvalidField(f"{file}: duplicate source id {entry['id']!r}")
                source_ids.add(entry["id"])
                key = (workspace, asset_type, entry["id"])
                own = {"folder": folder} if "properties" in entry else {}
                sources[key] = {**sources.get(key, {}), **entry, **own}
        for label in read.get("labels", ()):
            asset_type = label.get("assetType", "models")
            if asset_type in _IGNORED_TYPES:
                continue
            label_key = (workspace, asset_type, label["name"])
            labels[label_key] = {**labels.get(label_key, {}), **label, "assetType": asset_type}
            if workspace:
                labels[label_key]["workspace"] = workspace
        for name, query in read.get("namedQueries", {}).items():
            if query["assetType"] in _IGNORED_TYPES:
                continue
            of_workspace = queries.setdefault(workspace, {})
            of_workspace.setdefault(query["assetType"], {})[name] = query["filters"]
    return Configuration(
        tuple(_source(*key, entry) for key, entry in sources.items()),
        tuple(labels.values()),
        queries.pop("", {}),
        queries,
    )


def source_of(where: str, data: Any) -> ConfiguredSource:
    """Returns the catalog source that a request to preview a source describes. Raises
    InvalidField."""
    asset_type = "models"
    entry = field_checks.read_mapping(where, data, _SOURCE)
    return _source("", asset_type, entry.get("id", "preview"), entry)


def _source(
    workspace: str, asset_type: str, source_id: str, entry: Mapping[str, Any]
) -> ConfiguredSource:
    return ConfiguredSource(
        workspace,
        asset_type,
        source_id,
        entry.get("name") or source_id,
        entry.get("type", ""),
        entry.get("enabled", True),
        tuple(entry.get("labels", ())),
        tuple(entry.get("includedModels", entry.get("includedServers", ()))),
        tuple(entry.get("excludedModels", entry.get("excludedServers", ()))),
        entry.get("properties", {}),
        entry.get("folder", ""),
    )


def _file(file: str, data: Any) -> dict[str, Any]:
    if data is None:
        return {}
    read: dict[str, Any] = field_checks.read_mapping(file, data, _FILE)
    return read


def _id(where: str, value: Any) -> str:
    source_id = field_checks.text(where, value)
    if not _ID.fullmatch(source_id):
        raise InvalidField(f"{where}: must be up to 238 letters, digits, '.', '_' and '-'")
    return source_id


def _patterns(where: str, value: Any) -> list[str]:
    patterns = field_checks.texts(where, value)
    for pattern in patterns:
        if not pattern.strip():
            raise InvalidField(f"{where}: a pattern is empty")
    return patterns


def _labels(where: str, value: Any) -> list[str]:
    return [text for text in field_checks.texts(where, value) if text.strip()]


def _listed(where: str, value: Any) -> dict[str, Any]:
    fields: dict[str, Any] = field_checks.read_mapping(where, value, _SOURCE, ("id",))
    return fields


def _label(where: str, value: Any) -> dict[str, Any]:
    data = field_checks.mapping(where, value)
    if "name" not in data:
        raise InvalidField(f"{where}: name is required; null stands for sources without a label")
    if data.get("assetType", "models") not in (*ASSET_TYPES, *_IGNORED_TYPES):
        raise InvalidField(f"{where}.assetType: must be one of {', '.join(ASSET_TYPES)}")
    return {
        name: None if each is None else field_checks.text(f"{where}.{name}", each)
        for name, each in data.items()
        if each is not None or name == "name"
    }


def _queries(where: str, value: Any) -> dict[str, Any]:
    queries = {}
    for name, query in field_checks.mapping(where, value).items():
        query_path = f"{where}.{name}"
        data = field_checks.mapping(query_path, query)
        asset_type = "models"
        if isinstance(data.get("assetType"), str) and "filters" in data:
            asset_type, data = data["assetType"], data["filters"]
        elif "filters" in data and "operator" not in field_checks.mapping(
            query_path, data["filters"]
        ):
            data = data["filters"]
        if asset_type not in (*ASSET_TYPES, *_IGNORED_TYPES):
            raise InvalidField(f"{query_path}.assetType: must be one of {', '.join(ASSET_TYPES)}")
        filters = {
            field: field_checks.read_mapping(
                f"{query_path}.{field}", check, _CONDITION, ("operator",)
            )
            for field, check in field_checks.mapping(query_path, data).items()
        }
        queries[name] = {"assetType": asset_type, "filters": filters}
    return queries


def _value(where: str, value: Any) -> Any:
    members = value if isinstance(value, list) else [value]
    if any(isinstance(member, dict | list) or member is None for member in members):
        raise InvalidField(f"{where}: must be a string, a number, a boolean, or a list of them")
    return value


_CONDITION: Final = {"operator": field_checks.one_of(*OPERATORS), "value": _value}
_SOURCE: Final[dict[str, field_checks.Check]] = {
    "id": _id,
    "name": field_checks.name,
    "type": field_checks.text,
    "enabled": field_checks.flag,
    "labels": _labels,
    "includedModels": _patterns,
    "excludedModels": _patterns,
    "includedServers": _patterns,
    "excludedServers": _patterns,
    "properties": field_checks.mapping,
    "assetType": field_checks.one_of(*ASSET_TYPES),
}
_FILE: Final[dict[str, field_checks.Check]] = {
    "catalogs": field_checks.each(_listed),
    "model_catalogs": field_checks.each(_listed),
    "mcp_catalogs": field_checks.each(_listed),
    **{f"{asset[:-1]}_catalogs": field_checks.anything for asset in _IGNORED_TYPES},
    "labels": field_checks.each(_label),
    "namedQueries": _queries,
}
