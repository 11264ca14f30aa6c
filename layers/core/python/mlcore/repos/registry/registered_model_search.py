"""Searches registered models: filter, order, pages."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from mlcore import paging, reserved_tags
from mlcore.db import keys
from mlcore.entities.registry import ModelVersion, RegisteredModel
from mlcore.limits.shared_checks import check_max_results
from mlcore.repos.registry import latest_versions, registered_models
from mlcore.repos.registry.registered_models import StoredRegisteredModel
from mlcore.responses import registry as responses
from mlcore.search import grammar, sort_keys
from mlcore.search.fields import ATTRIBUTE, TAG
from mlcore.search.grammar import Comparison
from mlcore.search.match import predicate
from mlcore.search.registry_fields import REGISTERED_MODEL, REGISTERED_MODEL_ORDER

ModelReader = Callable[[str, bool], bool]
"""Whether the caller may read a registered model, or (True) a prompt, given its name."""

READ_TOGETHER = 100
MOST_RESULTS = 1_000

_WHOLE_NAME = 900
"""Names up to this many bytes are whole in the index. Longer names may be cut off there, so
conditions on names cannot be tested."""


def search(
    workspace: str,
    filter_string: str,
    limit: int,
    order_by: Sequence[str],
    page_token: str,
    readable: ModelReader,
) -> dict[str, Any]:
    """Returns a page of registered models as MLflow's JSON. Names come from GSI5, which may lag by
    seconds, and are filtered there; the models are then read strongly consistently. In the order of
    names, models are read only until the page is full.

    Args:
        limit: models per page.
        readable: tells which models the caller may read.
    """
    check_max_results(limit, MOST_RESULTS)
    conditions = grammar.parse_filter(filter_string, REGISTERED_MODEL)
    prompts, comparisons = without_prompt_filter(conditions)
    ordering = grammar.parse_order_by(order_by, REGISTERED_MODEL_ORDER)
    query = [workspace, filter_string, list(order_by)]
    position = paging.position_of(page_token, query)
    after = None
    if position is not None:
        after = sort_keys.restore_key(position, ordering, REGISTERED_MODEL)
    matches = predicate(comparisons, REGISTERED_MODEL)
    key_of = sort_keys.sort_key(ordering, REGISTERED_MODEL)
    by_name = not ordering or ordering[0].key == "name"
    descending = bool(ordering) and by_name and not ordering[0].ascending
    start = "" if after is None or not by_name or descending else str(after[1])
    others = any(comparison.key != "name" for comparison in comparisons)
    together = max(limit + 1, READ_TOGETHER if others or not by_name else 0)
    keyed = (
        (key_of(stored.model), stored)
        for stored in of_names(
            workspace, comparisons, start, descending=descending, together=together
        )
        if (prompts or not is_prompt(stored.model))
        and readable(stored.model.name, is_prompt(stored.model))
        and matches(stored.model)
    )
    following = (pair for pair in keyed if after is None or pair[0] > after)
    if by_name and not _named(comparisons):
        rows = list(islice(following, limit + 1))
    else:
        rows = heapq.nsmallest(limit + 1, following, key=lambda pair: pair[0])
    records = [stored for _, stored in rows[:limit]]
    whole = list(zip(records, latest_versions.of_many(records), strict=True))
    page = paging.fitting(whole, _weight)
    answer: dict[str, Any] = {}
    if page:
        answer["registered_models"] = [
            responses.registered_model(stored.model, latest) for stored, latest in page
        ]
    if len(page) < len(rows):
        answer["next_page_token"] = paging.token(rows[len(page) - 1][0], query)
    return answer


def of_names(
    workspace: str,
    comparisons: Sequence[Comparison],
    start: str = "",
    *,
    descending: bool = False,
    together: int = READ_TOGETHER,
) -> Iterator[StoredRegisteredModel]:
    """Yields the registered models whose names can meet the conditions, ordered by name; the caller
    tests all conditions. If a condition gives whole names (``=``, ``IN``), these models are read
    without an index, so they do not lag, in ascending order and without regard to ``start``.

    Args:
        start: the first name wanted.
        together: models per read.
    """
    names = _named(comparisons)
    if names is not None:
        places = [keys.registered_model(workspace, name) for name in names]
        yield from registered_models.find_many(places, workspace)
        return
    test = _name_test(comparisons)
    listed = registered_models.listed(workspace, _prefix(comparisons), start, descending=descending)
    places_found = (key for name, key in listed if _is_cut(name) or test(name))
    while chunk := list(islice(places_found, together)):
        yield from registered_models.find_many(chunk, workspace)


def without_prompt_filter(
    comparisons: Sequence[Comparison],
) -> tuple[bool, Sequence[Comparison]]:
    """Returns whether the filter asks for prompts, and the conditions to apply. Prompts are hidden
    unless the first condition on the tag ``mlflow.prompt.is_prompt`` asks for them; if they are
    hidden, conditions on this tag are ignored."""
    for comparison in comparisons:
        if comparison.kind == TAG and comparison.key == reserved_tags.IS_PROMPT:
            value = str(comparison.value).lower()
            if (comparison.operator, value) in (("=", "true"), ("!=", "false")):
                return True, comparisons
            break
    return False, [
        comparison
        for comparison in comparisons
        if comparison.kind != TAG or comparison.key != reserved_tags.IS_PROMPT
    ]


def is_prompt(model: RegisteredModel) -> bool:
    """Whether a search treats a model as a prompt: its tag ``mlflow.prompt.is_prompt`` must be
    exactly ``true``."""
    return model.tags.get(reserved_tags.IS_PROMPT) == "true"


def _is_cut(name_in_index: str) -> bool:
    return len(name_in_index.encode()) > _WHOLE_NAME


class _Named(NamedTuple):
    name: str


def _of_names(comparisons: Iterable[Comparison]) -> list[Comparison]:
    return [
        comparison
        for comparison in comparisons
        if (comparison.kind, comparison.key) == (ATTRIBUTE, "name")
    ]


def _named(comparisons: Sequence[Comparison]) -> list[str] | None:
    """Returns the names to which a condition limits the search, each once; None if no condition
    lists names."""
    for comparison in _of_names(comparisons):
        if comparison.operator == "=":
            return [str(comparison.value)]
        if comparison.operator == "IN" and isinstance(comparison.value, tuple):
            return sorted(set(comparison.value))
    return None


def _prefix(comparisons: Sequence[Comparison]) -> str:
    """Returns the longest of the texts with which the LIKE patterns of names begin, up to the first
    ``%`` or ``_``. All names that meet the conditions have it as a prefix. "" without patterns."""
    prefixes = [
        str(comparison.value).split("%")[0].split("_")[0]
        for comparison in _of_names(comparisons)
        if comparison.operator == "LIKE"
    ]
    return max(prefixes, key=len, default="")


def _name_test(comparisons: Sequence[Comparison]) -> Callable[[str], bool]:
    test = predicate(_of_names(comparisons), REGISTERED_MODEL)
    return lambda name: test(_Named(name))


def _weight(row: tuple[StoredRegisteredModel, list[ModelVersion]]) -> int:
    stored, latest = row
    model = stored.model
    return (
        300
        + weight_of_texts([model.name, model.description, *model.aliases], model.tags)
        + sum(map(weight_of_version, latest))
    )


def weight_of_version(version: ModelVersion) -> int:
    texts = [version.name, version.description or "", version.source, version.run_link]
    return 500 + weight_of_texts(texts, version.tags)


def weight_of_texts(texts: Sequence[str], tags: dict[str, str]) -> int:
    return 60 * (len(texts) + len(tags)) + paging.weight_of(
        chain(texts, tags.keys(), tags.values())
    )
