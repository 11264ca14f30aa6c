"""Lists and returns the model catalog's models, their artifacts, and the options for filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from catalog import entry_json, model_search, recommendations, sorting, sources
from catalog.calls import CatalogCall, Position, descending, page
from catalog.generations import MODELS, OPTIONS, Generation
from mlcore.catalog import filter_fields
from mlcore.catalog import filter_options as options
from mlcore.catalog.entry import MODEL, CatalogEntry
from mlcore.errors import ResourceDoesNotExist
from mlcore.kubeflow.errors import invalid
from mlcore.search import kubeflow_filter

_RECOMMENDED: Final = "RECOMMENDED"


def list_models(call: CatalogCall) -> Any:
    arguments = call.arguments()
    node = kubeflow_filter.parse_node(arguments.get("filterQuery", ""), filter_fields.MODELS)
    words = arguments.get("q", "").lower()
    by, down = arguments.get("orderBy", ""), descending(arguments)
    recommended = call.flag("recommendations") or by.upper() == _RECOMMENDED
    setting = recommendations.parse_setting(call) if recommended else None
    generation, after = call.pinned_generation()
    keys = sources.requested_source_keys(call, generation, "models")

    def in_order() -> list[int]:
        if setting is not None:
            generation.fetch([MODELS, *recommendations.required_parts(generation, setting)])
            return recommendations.sort_models(generation, setting)
        return sorting.sort_models(generation, by, descending=down)

    def find() -> list[int]:
        generation.fetch(
            [
                *sorting.required_parts(by, generation),
                *(recommendations.required_parts(generation, setting) if setting else ()),
                *(model_search.parts_for_words(generation) if words else ()),
                *model_search.required_parts(node, generation),
            ]
        )
        models = generation.models
        wanted = {index for index, key in enumerate(models["sources"]) if key in keys}
        matches = model_search.matching_positions(node, generation)
        if words:
            with_words = model_search.positions_with_words(words, generation)
            matches = with_words if matches is None else matches & with_words
        source = models["source"]
        return [
            position
            for position in generation.cached(("order", by, down, setting), in_order)
            if source[position] in wanted and (matches is None or position in matches)
        ]

    cache_key = (
        *("models", keys, arguments.get("filterQuery", ""), words),
        *(by, down, setting),
    )
    positions = generation.cached(cache_key, find)
    generation.fetch([MODELS])
    ids, weights = generation.models["id"], generation.models["weight"]
    return page(
        call,
        positions,
        lambda chunk: [entry_json.model_json(entry) for entry in generation.entries(chunk)],
        generation,
        after,
        identity=lambda position: int(ids[position]),
        weigh=lambda position: int(weights[position]),
    )


def filter_options(call: CatalogCall) -> Any:
    generation = call.current_generation()
    return filter_options_of(generation, call.workspace, "models", MODEL)


def filter_options_of(generation: Generation, workspace: str, asset_type: str, kind: str) -> Any:
    """Returns the values by which the model catalog's entries of the sources that a workspace sees
    can be filtered, and the named queries that it sees.

    Args:
        asset_type: the asset type of the sources and queries.
        kind: the kind of entry.
    """
    keys = generation.source_keys(workspace, asset_type)

    def choose() -> dict[str, Any]:
        generation.fetch([OPTIONS])
        of_sources = [
            stored["options"]
            for stored in generation.options()
            if stored["kind"] == kind and stored["source"] in keys
        ]
        return options.response(of_sources, generation.queries(workspace, asset_type))

    owner = generation.owner_of_queries(workspace)
    return generation.cached(("options", kind, keys, owner), choose)


def get_model(call: CatalogCall) -> Any:
    return entry_json.model_json(find_model(call))


def find_model(call: CatalogCall, *, with_artifacts: bool = False) -> CatalogEntry:
    """Returns the model of the model catalog that the request's path names. Raises
    ResourceDoesNotExist if there is none."""
    entry = _find(call, call.current_generation(), with_artifacts=with_artifacts)
    if entry is None:
        raise _missing(call)
    return entry


def _find(
    call: CatalogCall, generation: Generation, *, with_artifacts: bool
) -> CatalogEntry | None:
    source, name = call.parameter("source_id"), call.parameter("model_name")
    return generation.model(call.workspace, source, name, with_artifacts=with_artifacts)


def _missing(call: CatalogCall) -> ResourceDoesNotExist:
    return ResourceDoesNotExist(
        f"no models found for name={call.parameter('model_name')}: not found"
    )


def list_artifacts(call: CatalogCall) -> Any:
    """Returns a page of the artifacts of a model of the catalog. As on Kubeflow's server, a missing
    model is answered with 400."""
    test = _parse_filter(call)
    generation, after = call.pinned_generation()
    entry = _find(call, generation, with_artifacts=True)
    if entry is None:
        name, source = call.parameter("model_name"), call.parameter("source_id")
        raise invalid(f"invalid model name '{name}' for source '{source}'")
    types = call.list_argument("artifactType", "artifact_type")
    for kind in types:
        if kind not in ("model-artifact", "metrics-artifact"):
            raise invalid(f"invalid artifactType: {kind[:50]}")
    artifacts = [
        child
        for child in entry.children
        if (not types or child.fields["artifactType"] in types) and test(child)
    ]
    return _artifact_page(call, _sorted(call, artifacts), generation, after)


def list_performance(call: CatalogCall) -> Any:
    """Returns a page of the performance artifacts of a model in the model catalog: with numbers of
    replicas if the request has a target rate, and only the recommended ones if it asks for
    recommendations."""
    test, setting = _parse_filter(call), recommendations.parse_setting(call)
    recommended = call.flag("recommendations")
    generation, after = call.pinned_generation()
    entry = _find(call, generation, with_artifacts=True)
    if entry is None:
        raise _missing(call)
    artifacts = [
        child for child in recommendations.performance_artifacts(entry, setting) if test(child)
    ]
    if recommended:
        return _artifact_page(
            call, recommendations.recommend(artifacts, setting), generation, after
        )
    return _artifact_page(call, _sorted(call, artifacts), generation, after)


def _parse_filter(call: CatalogCall) -> kubeflow_filter.Test:
    return kubeflow_filter.parse_test(
        call.arguments().get("filterQuery", ""), filter_fields.ARTIFACTS
    )


def _sorted(call: CatalogCall, entries: Sequence[CatalogEntry]) -> list[CatalogEntry]:
    arguments = call.arguments()
    by, down = arguments.get("orderBy", ""), descending(arguments)
    return sorting.sort_entries(entries, by, descending=down, default="ID")


def _artifact_page(
    call: CatalogCall,
    artifacts: Sequence[CatalogEntry],
    generation: Generation,
    after: Position | None,
) -> Any:
    return page(
        call,
        artifacts,
        lambda chunk: [entry_json.entry_json(child) for child in chunk],
        generation,
        after,
        identity=lambda child: child.id,
    )
