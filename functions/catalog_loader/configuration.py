"""The files that name the sources, their labels and the named queries.

They are those whose name contains ``sources`` in the catalog's folder, for all workspaces, and in
``workspaces/<name>``, for that one. Of several files a later name wins, field by field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from catalog_loader import fields
from catalog_loader.fields import Wrong
from mlcore.catalog.entry import ASSET_TYPES, source_key

YAML: Final = "yaml"
HUGGING_FACE: Final = ("hf", "huggingface")
TYPES: Final = (YAML, *HUGGING_FACE)
OPERATORS: Final = ("=", "!=", ">", "<", ">=", "<=", "LIKE", "ILIKE", "IN", "NOT IN")

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,237}")
_WORKSPACES: Final = "workspaces"
_NOT_SHOWN: Final = ("agents", "skills")
"""Assets of upstream's newer catalogs: what the files say of them is passed over, so that files
with them can be moved here."""


class Source(NamedTuple):
    """A source as the files name it."""

    workspace: str
    """"" for one that all share."""
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
    """Of the file that names it, which its paths begin at."""

    @property
    def key(self) -> str:
        return source_key(self.workspace, self.id)

    def includes(self, name: str) -> bool:
        """Whether the catalog shows a model or server of the source."""
        if any(matches(pattern, name) for pattern in self.excluded):
            return False
        return not self.included or any(matches(pattern, name) for pattern in self.included)


class Configuration(NamedTuple):
    sources: tuple[Source, ...]
    labels: tuple[dict[str, Any], ...]
    """Each with its ``assetType``, and ``workspace`` where it belongs to one."""
    queries: dict[str, dict[str, Any]]
    """Named queries by asset type and name: field to ``operator`` and ``value``."""


def matches(pattern: str, name: str) -> bool:
    """Whether a name is what a pattern with ``*`` stands for, whatever the case. Linear in the
    length of both: a pattern with many stars costs no more."""
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
        found = lowered.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def named(names: Iterable[str]) -> list[str]:
    """The files that name sources, in the order in which they count."""
    found = []
    for name in sorted(names):
        folder, _, file = name.rpartition("/")
        top = folder == "" or (folder.startswith(f"{_WORKSPACES}/") and folder.count("/") == 1)
        if top and "sources" in file.lower() and file.lower().endswith((".yaml", ".yml")):
            found.append(name)
    return sorted(found, key=lambda name: (name.count("/"), name))


def workspace_of(file: str) -> str:
    return file.split("/")[1] if file.startswith(f"{_WORKSPACES}/") else ""


def merged(files: Iterable[tuple[str, Any]]) -> Configuration:
    """What files, each by its name and what it holds, say together. Raises Wrong."""
    sources: dict[tuple[str, str, str], dict[str, Any]] = {}
    labels: dict[tuple[str, str, str | None], dict[str, Any]] = {}
    queries: dict[str, dict[str, Any]] = {}
    for file, data in files:
        read = _file(file, data)
        workspace = workspace_of(file)
        folder = file.rpartition("/")[0]
        for asset_type, entries in (
            ("models", [*read.get("catalogs", ()), *read.get("model_catalogs", ())]),
            ("mcp_servers", read.get("mcp_catalogs", ())),
        ):
            seen = set()
            for entry in entries:
                if entry["id"] in seen:
                    raise Wrong(f"{file}: duplicate source id {entry['id']!r}")
                seen.add(entry["id"])
                place = (workspace, asset_type, entry["id"])
                own = {"folder": folder} if "properties" in entry else {}
                sources[place] = {**sources.get(place, {}), **entry, **own}
        for label in read.get("labels", ()):
            asset_type = label.get("assetType", "models")
            if asset_type in _NOT_SHOWN:
                continue
            at = (workspace, asset_type, label["name"])
            labels[at] = {**labels.get(at, {}), **label, "assetType": asset_type}
            if workspace:
                labels[at]["workspace"] = workspace
        for name, query in read.get("namedQueries", {}).items():
            if query["assetType"] in _NOT_SHOWN:
                continue
            queries.setdefault(query["assetType"], {})[name] = query["filters"]
    return Configuration(
        tuple(_source(*place, entry) for place, entry in sources.items()),
        tuple(labels.values()),
        queries,
    )


def source_of(where: str, data: Any) -> Source:
    """One source, as a preview is given it. Raises Wrong."""
    asset_type = "models"
    entry = fields.read(where, data, _SOURCE)
    return _source("", asset_type, entry.get("id", "preview"), entry)


def _source(workspace: str, asset_type: str, source_id: str, entry: Mapping[str, Any]) -> Source:
    return Source(
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
    read: dict[str, Any] = fields.read(file, data, _FILE)
    return read


def _id(where: str, value: Any) -> str:
    found = fields.text(where, value)
    if not _ID.fullmatch(found):
        raise Wrong(f"{where}: must be up to 238 letters, digits, '.', '_' and '-'")
    return found


def _patterns(where: str, value: Any) -> list[str]:
    found = fields.texts(where, value)
    for pattern in found:
        if not pattern.strip():
            raise Wrong(f"{where}: a pattern is empty")
    return found


def _labels(where: str, value: Any) -> list[str]:
    return [one for one in fields.texts(where, value) if one.strip()]


def _listed(where: str, value: Any) -> dict[str, Any]:
    found: dict[str, Any] = fields.read(where, value, _SOURCE, ("id",))
    return found


def _label(where: str, value: Any) -> dict[str, Any]:
    data = fields.mapping(where, value)
    if "name" not in data:
        raise Wrong(f"{where}: name is required; null stands for what has no label")
    if data.get("assetType", "models") not in (*ASSET_TYPES, *_NOT_SHOWN):
        raise Wrong(f"{where}.assetType: must be one of {', '.join(ASSET_TYPES)}")
    return {
        name: None if each is None else fields.text(f"{where}.{name}", each)
        for name, each in data.items()
        if each is not None or name == "name"
    }


def _queries(where: str, value: Any) -> dict[str, Any]:
    found = {}
    for name, query in fields.mapping(where, value).items():
        place = f"{where}.{name}"
        data = fields.mapping(place, query)
        asset_type = "models"
        if isinstance(data.get("assetType"), str) and "filters" in data:
            asset_type, data = data["assetType"], data["filters"]
        elif "filters" in data and "operator" not in fields.mapping(place, data["filters"]):
            data = data["filters"]
        if asset_type not in (*ASSET_TYPES, *_NOT_SHOWN):
            raise Wrong(f"{place}.assetType: must be one of {', '.join(ASSET_TYPES)}")
        filters = {
            field: fields.read(f"{place}.{field}", one, _CONDITION, ("operator",))
            for field, one in fields.mapping(place, data).items()
        }
        found[name] = {"assetType": asset_type, "filters": filters}
    return found


def _value(where: str, value: Any) -> Any:
    members = value if isinstance(value, list) else [value]
    if any(isinstance(each, dict | list) or each is None for each in members):
        raise Wrong(f"{where}: must be a string, a number, a boolean, or a list of them")
    return value


_CONDITION: Final = {"operator": fields.one_of(*OPERATORS), "value": _value}
_SOURCE: Final[dict[str, fields.Check]] = {
    "id": _id,
    "name": fields.name,
    "type": fields.text,
    "enabled": fields.flag,
    "labels": _labels,
    "includedModels": _patterns,
    "excludedModels": _patterns,
    "includedServers": _patterns,
    "excludedServers": _patterns,
    "properties": fields.mapping,
    "assetType": fields.one_of(*ASSET_TYPES),
}
_FILE: Final[dict[str, fields.Check]] = {
    "catalogs": fields.each(_listed),
    "model_catalogs": fields.each(_listed),
    "mcp_catalogs": fields.each(_listed),
    **{f"{asset[:-1]}_catalogs": fields.anything for asset in _NOT_SHOWN},
    "labels": fields.each(_label),
    "namedQueries": _queries,
}
