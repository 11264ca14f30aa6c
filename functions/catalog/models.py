"""The rules of models and their artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from catalog import options, orders, recommendations, shown, sources
from catalog.answers import Call, descending, page
from mlcore.catalog import filters
from mlcore.catalog.entry import Entry
from mlcore.errors import ResourceDoesNotExist
from mlcore.kubeflow.errors import bad
from mlcore.search import filter_query

_TEXTS: Final = ("description", "provider", "libraryName")
_RECOMMENDED: Final = "RECOMMENDED"


def list_models(call: Call) -> Any:
    arguments = call.arguments()
    read, after = call.reading()
    keys = sources.chosen(call, read, "models")
    test = filter_query.parse(arguments.get("filterQuery", ""), filters.MODELS)
    words = arguments.get("q", "").lower()
    by, down = arguments.get("orderBy", ""), descending(arguments)
    recommended = call.flag("recommendations") or by.upper() == _RECOMMENDED
    setting = recommendations.setting_of(call) if recommended else None

    def in_order() -> list[Entry]:
        if setting is not None:
            return recommendations.ordered(read.models, setting)
        return orders.ordered(read.models, by, descending=down)

    def search() -> list[Entry]:
        return [
            entry
            for entry in read.remembered(("order", by, down, setting), in_order)
            if entry.source in keys and (not words or _says(entry, words)) and test(entry)
        ]

    question = (
        *("models", frozenset(keys), arguments.get("filterQuery", ""), words),
        *(by, down, setting),
    )
    found = read.remembered(question, search)
    return page(call, found, shown.sourced, read, after, lambda entry: entry.id)


def _says(entry: Entry, words: str) -> bool:
    if words in entry.name.lower():
        return True
    fields = entry.fields
    return any(words in str(fields.get(name, "")).lower() for name in _TEXTS) or any(
        words in task.lower() for task in fields.get("tasks", ())
    )


def filter_options(call: Call) -> Any:
    read = call.current()
    keys = read.keys(call.workspace, "models")

    def choose() -> dict[str, Any]:
        entries = (entry for entry in read.models if entry.source in keys)
        return options.of_models(entries, read.state.get("queries", {}).get("models", {}))

    return read.remembered(("options", frozenset(keys)), choose)


def get_model(call: Call) -> Any:
    return shown.sourced(find(call))


def find(call: Call) -> Entry:
    """The model that a path names. Raises ResourceDoesNotExist."""
    entry = _find(call)
    if entry is None:
        raise ResourceDoesNotExist(
            f"no models found for name={call.parameter('model_name')}: not found"
        )
    return entry


def _find(call: Call) -> Entry | None:
    name = call.parameter("model_name")
    return call.current().model(call.workspace, call.parameter("source_id"), name)


def list_artifacts(call: Call) -> Any:
    """Those of a model that is not there are refused with 400, as upstream does it."""
    read, after = call.reading()
    name = call.parameter("model_name")
    entry = read.model(call.workspace, call.parameter("source_id"), name)
    if entry is None:
        raise bad(f"invalid model name '{name}' for source '{call.parameter('source_id')}'")
    types = call.repeated("artifactType", "artifact_type")
    for kind in types:
        if kind not in ("model-artifact", "metrics-artifact"):
            raise bad(f"invalid artifactType: {kind[:50]}")
    found = [
        child for child in entry.children if not types or child.fields["artifactType"] in types
    ]
    return _artifacts(call, found, read, after)


def list_performance(call: Call) -> Any:
    """With replicas for a rate of requests, and only what is worth its price, where asked."""
    read, after = call.reading()
    name = call.parameter("model_name")
    entry = read.model(call.workspace, call.parameter("source_id"), name)
    if entry is None:
        raise ResourceDoesNotExist(f"no models found for name={name}: not found")
    setting = recommendations.setting_of(call)
    found = recommendations.performance(entry, setting)
    test = _test(call)
    found = [child for child in found if test(child)]
    if call.flag("recommendations"):
        found = recommendations.recommended(found, setting)
        return page(call, found, shown.entry, read, after, lambda child: child.id)
    return _artifacts(call, found, read, after)


def _test(call: Call) -> filter_query.Test:
    return filter_query.parse(call.arguments().get("filterQuery", ""), filters.ARTIFACTS)


def _artifacts(call: Call, found: Sequence[Entry], read: Any, after: Any) -> Any:
    arguments = call.arguments()
    test = _test(call)
    in_order = orders.ordered(
        filter(test, found),
        arguments.get("orderBy", ""),
        descending=descending(arguments),
        default="ID",
    )
    return page(call, in_order, shown.entry, read, after, lambda child: child.id)
