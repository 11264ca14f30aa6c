"""The rules of models and their artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from catalog import orders, recommendations, search, shown, sources
from catalog.answers import Call, Position, descending, page
from catalog.generation import MODELS, OPTIONS, Generation
from mlcore.catalog import filters, options
from mlcore.catalog.entry import MODEL, Entry
from mlcore.errors import ResourceDoesNotExist
from mlcore.kubeflow.errors import bad
from mlcore.search import filter_query

_RECOMMENDED: Final = "RECOMMENDED"


def list_models(call: Call) -> Any:
    arguments = call.arguments()
    node = filter_query.read(arguments.get("filterQuery", ""), filters.MODELS)
    words = arguments.get("q", "").lower()
    by, down = arguments.get("orderBy", ""), descending(arguments)
    recommended = call.flag("recommendations") or by.upper() == _RECOMMENDED
    setting = recommendations.setting_of(call) if recommended else None
    read, after = call.reading()
    keys = sources.chosen(call, read, "models")

    def in_order() -> list[int]:
        if setting is not None:
            read.fetch([MODELS, *recommendations.parts_of(read, setting)])
            return recommendations.ordered(read, setting)
        return orders.models(read, by, descending=down)

    def find() -> list[int]:
        read.fetch(
            [
                *orders.parts_of(by, read),
                *(recommendations.parts_of(read, setting) if setting else ()),
                *(search.words_parts(read) if words else ()),
                *search.parts_of(node, read),
            ]
        )
        every = read.models
        wanted = {at for at, key in enumerate(every["sources"]) if key in keys}
        met = search.places(node, read)
        if words:
            said = search.saying(words, read)
            met = said if met is None else met & said
        source = every["source"]
        return [
            at
            for at in read.remembered(("order", by, down, setting), in_order)
            if source[at] in wanted and (met is None or at in met)
        ]

    question = (
        *("models", keys, arguments.get("filterQuery", ""), words),
        *(by, down, setting),
    )
    found = read.remembered(question, find)
    read.fetch([MODELS])
    ids, weights = read.models["id"], read.models["weight"]
    return page(
        call,
        found,
        lambda places: [shown.sourced(entry) for entry in read.entries(places)],
        read,
        after,
        identity=lambda at: int(ids[at]),
        weigh=lambda at: int(weights[at]),
    )


def filter_options(call: Call) -> Any:
    read = call.current()
    return options_of(read, read.keys(call.workspace, "models"), "models", MODEL)


def options_of(read: Generation, keys: frozenset[str], asset_type: str, kind: str) -> Any:
    """What filters on entries of some sources can be about."""

    def choose() -> dict[str, Any]:
        read.fetch([OPTIONS])
        some = [
            one["options"]
            for one in read.options()
            if one["kind"] == kind and one["source"] in keys
        ]
        return options.shown(some, read.state.get("queries", {}).get(asset_type, {}))

    return read.remembered(("options", kind, keys), choose)


def get_model(call: Call) -> Any:
    return shown.sourced(find(call))


def find(call: Call, *, whole: bool = False) -> Entry:
    """The model that a path names, with its artifacts if it is to be whole. Raises
    ResourceDoesNotExist."""
    entry = _named(call, call.current(), whole=whole)
    if entry is None:
        raise _missing(call)
    return entry


def _named(call: Call, read: Generation, *, whole: bool) -> Entry | None:
    source, name = call.parameter("source_id"), call.parameter("model_name")
    return read.model(call.workspace, source, name, whole=whole)


def _missing(call: Call) -> ResourceDoesNotExist:
    return ResourceDoesNotExist(
        f"no models found for name={call.parameter('model_name')}: not found"
    )


def list_artifacts(call: Call) -> Any:
    """Those of a model that is not there are refused with 400, as upstream does it."""
    test = _test(call)
    read, after = call.reading()
    entry = _named(call, read, whole=True)
    if entry is None:
        name, source = call.parameter("model_name"), call.parameter("source_id")
        raise bad(f"invalid model name '{name}' for source '{source}'")
    types = call.repeated("artifactType", "artifact_type")
    for kind in types:
        if kind not in ("model-artifact", "metrics-artifact"):
            raise bad(f"invalid artifactType: {kind[:50]}")
    found = [
        child
        for child in entry.children
        if (not types or child.fields["artifactType"] in types) and test(child)
    ]
    return _artifacts(call, _in_order(call, found), read, after)


def list_performance(call: Call) -> Any:
    """With replicas for a rate of requests, and only what is worth its price, where asked."""
    test, setting = _test(call), recommendations.setting_of(call)
    recommended = call.flag("recommendations")
    read, after = call.reading()
    entry = _named(call, read, whole=True)
    if entry is None:
        raise _missing(call)
    found = [child for child in recommendations.performance(entry, setting) if test(child)]
    if recommended:
        return _artifacts(call, recommendations.recommended(found, setting), read, after)
    return _artifacts(call, _in_order(call, found), read, after)


def _test(call: Call) -> filter_query.Test:
    return filter_query.parse(call.arguments().get("filterQuery", ""), filters.ARTIFACTS)


def _in_order(call: Call, found: Sequence[Entry]) -> list[Entry]:
    arguments = call.arguments()
    by, down = arguments.get("orderBy", ""), descending(arguments)
    return orders.ordered(found, by, descending=down, default="ID")


def _artifacts(call: Call, found: Sequence[Entry], read: Generation, after: Position | None) -> Any:
    return page(
        call,
        found,
        lambda some: [shown.entry(child) for child in some],
        read,
        after,
        identity=lambda child: child.id,
    )
