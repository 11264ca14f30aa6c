"""Keeps the derived items of runs up to date: PARAM, TAG, INPUT and LM items, ranks, DLINK and FTS
items. Then removes the marks of the runs that it has indexed (the keys that say that a run is not
indexed yet).

Params, tags, inputs and models change rarely: their items are written at once. Metrics change with
every step: they are ranked when the run is inactive (:mod:`indexer.projection.inactive_runs`). If
the batch lacks a record of a version since the run was marked, an earlier record may have been
dropped: then all metrics are ranked, and all other derived items are read and compared with the
run.

A value that does not fit into the run item lives only in a child item and never moves back. Its
index item follows from records of the child item, all other index items from records of the run
item. It has no FTS items: a run with such values keeps its mark forever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from indexer.full_text import text_items
from indexer.history import history_packing
from indexer.lifecycle import expiry_times
from indexer.projection import child_items, inactive_runs, index_items, item_writes, quiet_runs
from indexer.projection.child_items import (
    Changes,
    Posting,
    SourceEntity,
    Writes,
    is_outside,
)
from indexer.projection.inactive_runs import DerivedItems
from indexer.projection.index_items import INDEXES, OUTSIDE_MAPS
from indexer.ranks import rank_rows
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item, table
from mlcore.models.base import ChildItem, Item
from mlcore.models.runs import Run, RunParam
from mlcore.repos import text_index_state
from mlcore.repos.document import Owner
from mlcore.repos.runs.core import marked_experiments, marks
from mlcore.repos.runs.core import run_maps as run_children
from mlcore.repos.runs.ranks.rank_columns import RunRanks
from mlcore.search import text_fields

_FIELD = {"tags": text_fields.tag_field, "params": text_fields.param_field}
"""By map that full text may cover: a function from a key to the name of its field."""
_METRICS = "metrics"


class _RunChanges:
    """What the stream records of a batch show about one run: which entries changed, and which
    versions."""

    def __init__(self) -> None:
        self.entries: Changes = set()
        """Entries of the run item's maps that differ, without metrics."""
        self.metrics: set[str] = set()
        """Metrics whose values differ."""
        self.index_keys: dict[tuple[str, str], set[Key]] = {}
        """Old and new keys of index items, by the entry of the run item that they are of."""
        self.outside_index_keys: dict[tuple[str, str], set[Key]] = {}
        """The same for entries that live in child items."""
        self.texts: list[tuple[str, str, str]] = []
        """Changes of texts that full text may cover: field, old text, new text."""
        self.versions: set[int] = set()
        """The versions of the run that the records show."""
        self.is_removed_or_ready = False
        """Whether a record shows the run removed, or ready to be indexed as a whole."""
        self.became_marked = False
        """Whether a record shows the run's change from unmarked to marked."""
        self.existing: DerivedItems | None = None
        """The derived items in the table, if they were read to compare them with the run."""
        self.existing_postings: set[Posting] = set()
        """The postings of its FTS_REV items, if those were read."""
        self.reverse_keys: list[Key] = []
        """The keys of these FTS_REV items."""
        self.surplus_children: list[Key] = []
        """Child items without an entry in the run, if the derived items were compared."""


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Handles stream records of runs and of values outside the run item.

    Reads the runs and their experiments together (a BatchGetItem per hundred items), writes the
    derived items of all runs, and at last removes the marks of the runs that are due (the keys that
    say that they are not indexed yet).
    """
    changes_of_runs: dict[Owner, _RunChanges] = {}
    for record in records:
        image: Raw = record.get("NewImage") or record.get("OldImage") or {}
        if Item.of(image).type == keys.RUN.name:
            run_item = Run.of(image)
            run: Owner = (run_item.experiment_id, run_item.run_id)
            _read_run(changes_of_runs.setdefault(run, _RunChanges()), run, record)
        elif is_outside(image):
            run = keys.run_of(key_of_item(image))
            _read_outside(changes_of_runs.setdefault(run, _RunChanges()), run, record, image)
    runs, experiments, outside = _read(changes_of_runs)
    ready = {run for run, item in runs.items() if item and inactive_runs.is_ready(Run.of(item))}
    ready |= _crowded(changes_of_runs, runs, experiments, ready)
    _compare(changes_of_runs, runs, ready)
    writes: list[Writes] = []
    rows: dict[str, list[RunRanks]] = {}
    for run, item in runs.items():
        writes += _derive(run, changes_of_runs[run], item, experiments.get(run[0]))
        if item is not None and run in ready:
            run_rows = rank_rows.of_run(Run.of(item), _ranked_anew(changes_of_runs[run]))
            if run_rows is not None:
                rows.setdefault(run[0], []).append(run_rows)
    writes += [
        _index(run, changes.outside_index_keys, outside.get(run, {}), None)
        for run, changes in changes_of_runs.items()
        if changes.outside_index_keys
    ]
    row_items = rank_rows.put(rows)
    item_writes.apply(_without_conflicts(writes))
    history_packing.pack_runs(sorted(ready), read=True)
    table.parallel(
        [partial(inactive_runs.remove_mark, Run.of(runs[run] or {})) for run in sorted(ready)]
    )
    rank_rows.compact_if_due(row_items)


def _crowded(
    changes_of_runs: dict[Owner, _RunChanges],
    runs: dict[Owner, Raw | None],
    experiments: dict[str, Raw | None],
    ready: set[Owner],
) -> set[Owner]:
    """Returns the active runs to index now because their experiments have too many runs that the
    indexer has not processed. Adds these runs to ``changes_of_runs`` and ``runs``, and their
    experiments to ``experiments``."""
    still_active = [
        run
        for run, changes in changes_of_runs.items()
        if changes.became_marked and run not in ready
    ]
    for experiment_id in dict.fromkeys(experiment_id for experiment_id, _ in still_active):
        marked_experiments.note(experiment_id)
    crowded = dict(quiet_runs.crowded_runs([run[0] for run in changes_of_runs], still_active))
    for run, item in crowded.items():
        changes_of_runs[run], runs[run] = changes_of_runs.get(run) or _RunChanges(), item
    missing = sorted({experiment_id for experiment_id, _ in crowded} - experiments.keys())
    items = table.batch_get([keys.experiment(experiment_id) for experiment_id in missing])
    experiments.update(zip(missing, items, strict=True))
    return set(crowded)


def _read(
    changes_of_runs: Mapping[Owner, _RunChanges],
) -> tuple[dict[Owner, Raw | None], dict[str, Raw | None], dict[Owner, dict[tuple[str, str], str]]]:
    """Reads the runs with changes, their experiments, and the changed values outside; one
    BatchGetItem per hundred items."""
    concerned = [run for run, changes in changes_of_runs.items() if _is_concerned(changes)]
    experiment_ids = sorted({run[0] for run in concerned})
    outside_keys = {
        (run, entry): run_children.MAPS[entry[0]].key_of(run, entry[1])
        for run, changes in changes_of_runs.items()
        for entry in changes.outside_index_keys
    }
    read = iter(
        table.batch_get(
            [
                *(keys.run(*run) for run in concerned),
                *(keys.experiment(experiment_id) for experiment_id in experiment_ids),
                *outside_keys.values(),
            ]
        )
    )
    items = dict(zip(concerned, read, strict=False))
    experiments = dict(zip(experiment_ids, read, strict=False))
    outside: dict[Owner, dict[tuple[str, str], str]] = {}
    for (run, entry), item in zip(outside_keys, read, strict=True):
        if item is not None and is_outside(item):
            outside.setdefault(run, {})[entry] = ChildItem.of(item).text or ""
    return items, experiments, outside


def _is_concerned(changes: _RunChanges) -> bool:
    return bool(changes.entries or changes.texts or changes.is_removed_or_ready)


def _compare(
    changes_of_runs: Mapping[Owner, _RunChanges],
    runs: Mapping[Owner, Raw | None],
    ready: set[Owner],
) -> None:
    """Adds all differences from the stored derived items to the changes of those ``ready`` runs (to
    be indexed now) whose records do not show all versions since they were marked. For removed
    runs, reads the FTS_REV items."""
    to_compare = []
    for run, item in runs.items():
        if item is None:
            _read_postings(changes_of_runs[run], inactive_runs.reverse_items(run))
            continue
        since = marks.since(Run.of(item))
        shows_all = since and changes_of_runs[run].versions.issuperset(
            range(since, Run.of(item).version + 1)
        )
        if run in ready and not shows_all:
            to_compare.append((run, item))
    items_of_runs = table.parallel(
        [partial(inactive_runs.derived_items, run) for run, _ in to_compare]
    )
    for (run, item), existing in zip(to_compare, items_of_runs, strict=True):
        changes_of_runs[run].existing = existing
        _read_postings(changes_of_runs[run], existing.reverse_items)
        _add_differences(changes_of_runs[run], run, item, existing)


def _read_postings(changes: _RunChanges, items: Iterable[Raw]) -> None:
    for item in items:
        changes.existing_postings |= text_items.postings_of(item)
        changes.reverse_keys.append(key_of_item(item))


def _ranked_anew(changes: _RunChanges) -> set[str] | None:
    """Returns the names of the metrics of a run whose values must be added to the index; None for
    all."""
    return None if changes.existing is not None else changes.metrics


def _derive(
    run: Owner, changes: _RunChanges, item: Raw | None, experiment: Raw | None
) -> list[Writes]:
    children = child_items.children(item, run, run_children.MAPS, changes.entries)
    children = children._replace(deletes=[*children.deletes, *changes.surplus_children])
    # A child item is put last: its existence shows that its value is indexed.
    child_writes = children._replace(puts=[], after=children.puts)
    version = None if item is None else Run.of(item).version
    return [
        expiry_times.with_end(child_writes, item),
        _index(run, changes.index_keys, _texts(item), version),
        _full_text(run, changes, item, experiment),
    ]


def _without_conflicts(writes: Sequence[Writes]) -> list[Writes]:
    """Returns the writes without removals of items that another of the writes puts."""
    puts = {key_of_item(item) for each in writes for item in (*each.puts, *each.after)}
    return [
        write._replace(removals=[key for key in write.removals if key not in puts])
        for write in writes
    ]


def _full_text(
    run: Owner, changes: _RunChanges, item: Raw | None, experiment: Raw | None
) -> Writes:
    """Returns the writes of FTS and FTS_REV items after the indexed texts of a run changed.
    ``item`` is None for a removed run."""
    indexed = None if experiment is None else text_index_state.maintained_fields(experiment)
    current = text_items.postings(text_items.texts_of_run(item), indexed)
    changed_postings = text_items.changed_postings(changes.texts, indexed) | (
        changes.existing_postings - current
    )
    entity = SourceEntity(run[0], text_items.RUN, run[1])
    version = None if item is None else Run.of(item).version
    writes = text_items.writes(entity, changed_postings, current, version)
    if item is None:
        # Also the items of fields that the index no longer covers.
        return writes._replace(
            removals=list(dict.fromkeys([*writes.removals, *changes.reverse_keys]))
        )
    return writes


def _add_differences(changes: _RunChanges, run: Owner, item: Raw, existing: DerivedItems) -> None:
    """Adds to the changes every entry, except metrics, whose child item differs from the required
    one."""
    required_keys: set[Key] = set()
    current = text_items.texts_of_run(item)
    for attribute, entry in run_children.MAPS.items():
        for key, text in child_items.content(item, attribute).items():
            child_key = entry.key_of(run, key)
            required_keys.add(child_key)
            child = existing.children.get(child_key)
            if attribute == _METRICS or (child is not None and is_outside(child)):
                continue
            if child is None or not inactive_runs.is_same_child(
                child, entry.child(child_key, key, text)
            ):
                changes.entries.add((attribute, key))
                if attribute in INDEXES:
                    entry_keys = changes.index_keys.setdefault((attribute, key), set())
                    if child is not None and attribute == "params":  # Kubeflow's may change
                        entry_keys.add(
                            INDEXES[attribute].key_of(run, key, RunParam.of(child).value)
                        )
                if attribute in _FIELD:
                    changes.texts.append((_FIELD[attribute](key), "", text))
    surplus = [child_key for child_key in existing.children if child_key not in required_keys]
    changes.surplus_children += [
        child_key for child_key in surplus if not is_outside(existing.children[child_key])
    ]
    if any(attribute == "tags" for attribute, _ in changes.entries):
        # Indexed attributes never change, so only the run's first record makes the indexer index
        # them. A missing child item of a tag suggests that this record was dropped.
        changes.texts += [(field, "", text) for field, text in current.items()]


def _index(
    run: Owner,
    index_keys: Mapping[tuple[str, str], set[Key]],
    texts: Mapping[tuple[str, str], str],
    version: int | None,
) -> Writes:
    """Returns the writes that put the present index items of changed map entries and remove their
    former ones.

    Args:
        index_keys: old and new index keys by (map, key).
        texts: the present values by (map, key).
    """
    puts: list[Raw] = []
    removals: list[Key] = []
    for entry, entry_keys in sorted(index_keys.items()):
        attribute, key = entry
        text = texts.get(entry)
        current_key = index_items.key_of(run, attribute, key, text)
        if text is not None:
            puts.append(INDEXES[attribute].item(run, key, text, version))
        removals += sorted(entry_keys - {current_key})
    return Writes(puts, [], [], removals)


def _read_run(changes: _RunChanges, run: Owner, record: Mapping[str, Any]) -> None:
    old, new = record.get("OldImage"), record.get("NewImage")
    changed = child_items.changes(old, new, run_children.MAPS)
    metrics = {entry for entry in changed if entry[0] == _METRICS}
    changes.entries |= changed - metrics
    before, after = _texts(old), _texts(new)
    for entry in changed:
        if entry in metrics:
            rank_keys = {
                index_items.key_of(run, *entry, texts.get(entry)) for texts in (before, after)
            }
            # A metric whose value did not change (a later point) was ranked before.
            if len(rank_keys) > 1:
                changes.metrics.add(entry[1])
        elif entry[0] in INDEXES:
            _touch(changes.index_keys, run, entry, before.get(entry), after.get(entry))
    # The name is a tag; the other indexed attributes are set and removed only with the run.
    if old is None or new is None or any(entry[0] in _FIELD for entry in changed):
        changes.texts += text_items.changed(
            text_items.texts_of_run(old), text_items.texts_of_run(new)
        )
    if new is None:
        changes.is_removed_or_ready = True
        return
    item = Run.of(new)
    # A write that sets `quiet` or removes the mark does not increase the version. So its record
    # does not show what the version's own write has changed.
    if old is None or Run.of(old).version != item.version:
        changes.versions.add(item.version)
    changes.is_removed_or_ready = changes.is_removed_or_ready or inactive_runs.is_ready(item)
    if marks.since(item) and (old is None or not marks.since(Run.of(old))):
        changes.became_marked = True


def _read_outside(changes: _RunChanges, run: Owner, record: Mapping[str, Any], image: Raw) -> None:
    child = ChildItem.of(image)
    attribute = OUTSIDE_MAPS.get(child.type)
    if attribute is not None:
        texts = [ChildItem.of(record.get(name) or {}).text for name in ("OldImage", "NewImage")]
        _touch(changes.outside_index_keys, run, (attribute, child.key), *texts)


def _touch(
    index_keys: dict[tuple[str, str], set[Key]],
    run: Owner,
    entry: tuple[str, str],
    before: str | None,
    after: str | None,
) -> None:
    """Adds the index keys of a map entry, (map, key), before and after a change to ``index_keys``,
    if they differ. If they are equal (a later point with the same value), the index item exists."""
    attribute, key = entry
    entry_keys = {
        index_items.key_of(run, attribute, key, before),
        index_items.key_of(run, attribute, key, after),
    }
    if len(entry_keys) > 1:
        index_keys.setdefault(entry, set()).update(
            index_key for index_key in entry_keys if index_key is not None
        )


def _texts(image: Raw | None) -> dict[tuple[str, str], str]:
    """Returns the values of all entries of a run's indexed maps, by (map, key)."""
    return {
        (attribute, key): text
        for attribute in INDEXES
        for key, text in child_items.content(image, attribute).items()
    }
