"""Archives traces: their spans move from the table to files, and tags of the trace say so.

First the spans of each pack are moved to a file. Then the trace's tags are changed, on condition
that the trace was not written since it was read. So an export of spans that arrives in between
prevents the archival, and the next call completes an interrupted one.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from mlcore import reserved_tags
from mlcore.db import keys
from mlcore.db.table import Page, key_of_item, table
from mlcore.entities.experiments import Experiment
from mlcore.models.base import KEY
from mlcore.repos.traces import span_packs, traces
from mlcore.repos.traces.span_packs import Owner
from mlcore.repos.traces.traces import StoredTrace, TraceChange
from mlcore.repos.traces.traces_by_time import BY_TIME, Window, bounds_of

PAGE_ITEMS: Final = 100
LOCATION: Final = "mlflow-artifacts:/"
"""Begins the location that an archived trace shows. No request can read or write below it."""


class ArchivalOutcome(Enum):
    ARCHIVED = auto()
    NOT_POSSIBLE = auto()
    """The trace is in progress, is archived, has no spans in the table or a slash in its id, or is
    marked as one that cannot be archived."""
    LATER = auto()
    """The indexer has not processed the trace's spans yet, or the trace was written meanwhile."""
    REMOVED = auto()
    """The trace was deleted meanwhile. Files may have been written for it."""


def archive(trace: StoredTrace) -> ArchivalOutcome:
    """Archives a trace if that is possible. May be interrupted anywhere and repeated. Takes one
    Query per MB of the trace's packs (items with its spans), the move of each pack to a file, and
    one write of the trace."""
    if not is_archivable(trace):
        return ArchivalOutcome.NOT_POSSIBLE
    owner = owner_of(trace)
    if not span_packs.move_to_files(owner):
        return ArchivalOutcome.LATER
    was_changed = False

    def decide(current: StoredTrace) -> TraceChange | None:
        nonlocal was_changed
        was_changed = current.item.version != trace.item.version
        if was_changed:
            return None
        location = LOCATION + span_packs.archive_folder(owner)
        tags = {
            reserved_tags.SPANS_LOCATION: reserved_tags.SPANS_ARCHIVED,
            reserved_tags.ARCHIVE_LOCATION: location,
        }
        return TraceChange(current.info, {"tags": tags})

    if traces.write(trace, decide) is None:
        return ArchivalOutcome.REMOVED
    return ArchivalOutcome.LATER if was_changed else ArchivalOutcome.ARCHIVED


def owner_of(trace: StoredTrace) -> Owner:
    return Owner(trace.experiment.workspace, trace.experiment.experiment_id, trace.trace_id)


def is_archived(trace: StoredTrace) -> bool:
    """Whether a trace is archived: its spans are in files."""
    tags = trace.document.texts("tags")
    return tags.get(reserved_tags.SPANS_LOCATION) == reserved_tags.SPANS_ARCHIVED


def is_archivable(trace: StoredTrace) -> bool:
    """Whether a trace can be archived: it has ended, has spans in the table and is not marked as
    one whose archival failed. A trace with a slash in its id cannot, because its files could not be
    removed with it."""
    tags = trace.document.texts("tags")
    return (
        tags.get(reserved_tags.SPANS_LOCATION) == reserved_tags.SPANS_IN_STORE
        and reserved_tags.ARCHIVAL_FAILURE not in tags
        and trace.info.state != "IN_PROGRESS"
        and trace.info.first_pack is not None
        and "/" not in trace.trace_id
    )


def oldest_first(experiment: Experiment, earliest: int, latest: int) -> Iterator[list[StoredTrace]]:
    """Yields the traces of an experiment in a range of request times (milliseconds since the epoch,
    bounds included), oldest first, page by page. Per page: one Query of keys, one BatchGetItem."""
    bounds = bounds_of(BY_TIME, Window(earliest, latest))
    page: Page | None = None
    while bounds is not None and (page is None or page.last_key is not None):
        page = table.query(
            keys.experiment(experiment.experiment_id).pk,
            index=BY_TIME.name,
            between=bounds,
            limit=PAGE_ITEMS,
            start=page.last_key if page else None,
            attributes=KEY,
        )
        items = table.batch_get(list(map(key_of_item, page.items)))
        yield [traces.of_item(item, experiment) for item in items if item is not None]
