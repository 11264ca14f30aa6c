"""The rules of sources and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from catalog.answers import Call, descending, page
from catalog.generation import Generation
from mlcore.catalog.entry import ASSET_TYPES, source_key
from mlcore.kubeflow.errors import bad

UNLABELLED: Final = "null"
"""Stands for sources without a label."""

_ORDERS: Final[dict[str, Callable[[Mapping[str, Any]], str]]] = {
    "ID": lambda source: str(source["id"]),
    "NAME": lambda source: str(source["name"]),
}


def list_sources(call: Call) -> Any:
    arguments = call.arguments()
    read, after = call.reading()
    by = arguments.get("orderBy", "ID").upper()
    if by not in _ORDERS:
        raise bad(f"unsupported order by field: {by[:50]}")
    wanted = arguments.get("name", "").lower()
    found = [
        source
        for source in read.sources(call.workspace, arguments.get("assetType", "models"))
        if wanted in source["name"].lower()
    ]
    found.sort(key=lambda one: (_ORDERS[by](one), one["id"]), reverse=descending(arguments))
    return page(call, found, lambda some: [_source(one) for one in some], read, after)


def _source(source: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: source[name] for name in ("id", "name", "enabled", "labels", "assetType")}
    shown["status"] = source["status"]
    if source["error"]:
        shown["error"] = source["error"]
    return shown


def list_labels(call: Call) -> Any:
    """By any of their keys; labels that lack it are last."""
    arguments = call.arguments()
    asset_type = arguments.get("assetType", "models")
    if asset_type not in ASSET_TYPES:
        raise bad(
            f"invalid value '{asset_type[:50]}' for CatalogAssetType: "
            f"valid values are [{' '.join(ASSET_TYPES)}]"
        )
    read, after = call.reading()
    labels = [
        label
        for label in read.state.get("labels", ())
        if label["assetType"] == asset_type
        and label.get("workspace", call.workspace) == call.workspace
    ]
    down = descending(arguments)
    by = arguments.get("orderBy", "")
    if by:
        having = [label for label in labels if label.get(by) is not None]
        lacking = [label for label in labels if label.get(by) is None]
        labels = sorted(having, key=lambda one: str(one[by]), reverse=down) + lacking
    elif down:
        labels.reverse()
    return page(call, labels, lambda some: [_label(one) for one in some], read, after)


def _label(label: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in label.items() if name != "workspace"}


def chosen(call: Call, read: Generation, asset_type: str) -> frozenset[str]:
    """The keys of the sources whose entries a request is about. Raises InvalidParameterValue."""
    sources = call.repeated("source")
    labels = call.repeated("sourceLabel")
    if sources and labels:
        raise bad("source and sourceLabel cannot be used together")
    listed: Iterable[Mapping[str, Any]] = read.sources(call.workspace, asset_type)
    if sources:
        listed = [one for one in listed if one["id"] in sources]
    if labels:
        wanted = {label.lower() for label in labels}
        listed = [one for one in listed if wanted & _labels_of(one)]
    return frozenset(source_key(one["workspace"], one["id"]) for one in listed)


def _labels_of(source: Mapping[str, Any]) -> set[str]:
    return {label.lower() for label in source["labels"]} or {UNLABELLED}
