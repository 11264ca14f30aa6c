"""Lists the sources and labels of the model catalog, and resolves which sources a request is
about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from catalog.calls import CatalogCall, descending, page
from catalog.generations import Generation
from mlcore.catalog.entry import ASSET_TYPES, source_key
from mlcore.kubeflow.errors import invalid

UNLABELLED: Final = "null"
"""The value of a request's ``sourceLabel`` that selects sources without a label."""

_ORDERS: Final[dict[str, Callable[[Mapping[str, Any]], str]]] = {
    "ID": lambda source: str(source["id"]),
    "NAME": lambda source: str(source["name"]),
}


def list_sources(call: CatalogCall) -> Any:
    arguments = call.arguments()
    generation, after = call.pinned_generation()
    by = arguments.get("orderBy", "ID").upper()
    if by not in _ORDERS:
        raise invalid(f"unsupported order by field: {by[:50]}")
    wanted = arguments.get("name", "").lower()
    sources = [
        source
        for source in generation.sources(call.workspace, arguments.get("assetType", "models"))
        if wanted in source["name"].lower()
    ]
    sources.sort(
        key=lambda source: (_ORDERS[by](source), source["id"]), reverse=descending(arguments)
    )
    return page(
        call, sources, lambda chunk: [_source(source) for source in chunk], generation, after
    )


def _source(source: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: source[name] for name in ("id", "name", "enabled", "labels", "assetType")}
    shown["status"] = source["status"]
    if source["error"]:
        shown["error"] = source["error"]
    return shown


def list_labels(call: CatalogCall) -> Any:
    """Returns a page of the labels of the model catalog's sources. ``orderBy`` may be any key of a
    label; labels without it come last."""
    arguments = call.arguments()
    asset_type = arguments.get("assetType", "models")
    if asset_type not in ASSET_TYPES:
        raise invalid(
            f"invalid value '{asset_type[:50]}' for CatalogAssetType: "
            f"valid values are [{' '.join(ASSET_TYPES)}]"
        )
    generation, after = call.pinned_generation()
    labels = [
        label
        for label in generation.state.get("labels", ())
        if label["assetType"] == asset_type
        and label.get("workspace", call.workspace) == call.workspace
    ]
    down = descending(arguments)
    by = arguments.get("orderBy", "")
    if by:
        with_key = [label for label in labels if label.get(by) is not None]
        without_key = [label for label in labels if label.get(by) is None]
        labels = sorted(with_key, key=lambda label: str(label[by]), reverse=down) + without_key
    elif down:
        labels.reverse()
    return page(call, labels, lambda chunk: [_label(label) for label in chunk], generation, after)


def _label(label: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in label.items() if name != "workspace"}


def requested_source_keys(
    call: CatalogCall, generation: Generation, asset_type: str
) -> frozenset[str]:
    """Returns the keys of the sources of the model or MCP catalog that the request's ``source`` or
    ``sourceLabel`` selects; if it has neither, of all sources that the caller's workspace sees.
    Raises InvalidParameterValue if it has both."""
    sources = call.list_argument("source")
    labels = call.list_argument("sourceLabel")
    if sources and labels:
        raise invalid("source and sourceLabel cannot be used together")
    listed: Iterable[Mapping[str, Any]] = generation.sources(call.workspace, asset_type)
    if sources:
        listed = [source for source in listed if source["id"] in sources]
    if labels:
        wanted = {label.lower() for label in labels}
        listed = [source for source in listed if wanted & _labels_of(source)]
    return frozenset(source_key(source["workspace"], source["id"]) for source in listed)


def _labels_of(source: Mapping[str, Any]) -> set[str]:
    return {label.lower() for label in source["labels"]} or {UNLABELLED}
