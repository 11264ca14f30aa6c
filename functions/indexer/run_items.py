"""Keeps what is derived from runs: PARAM, TAG, INPUT and LM items, ranks, DLINK and FTS items;
takes the marks of runs away that are followed.

Params, tags, inputs and models change rarely, and are followed at once. What a running run keeps
changing, its metrics, is ranked when the run is settled (:mod:`indexer.settled`). If the records
of a batch do not tell of every version since the run was marked, all metrics are ranked, and what
is there of the rest is compared with the run: an earlier record may have been given up.

A value that its run item has no room for lives in a child item alone. Such a value never moves, so
it is indexed from the records of the child item, and the others from those of the run item. It has
no FTS items: its run is marked for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from indexer import (
    child_items,
    earlier_markers,
    history_items,
    index_items,
    quiet_runs,
    rank_rows,
    retention,
    settled,
    text_items,
    writes,
)
from indexer.child_items import Changes, Entity, Posting, Writes, is_earlier_metric, is_outside
from indexer.index_items import INDEXES, OUTSIDE_MAPS
from indexer.settled import Found
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_in, table
from mlcore.models.base import ChildItem, Item
from mlcore.models.runs import Run, RunParam
from mlcore.repos import text_index
from mlcore.repos.document import Owner
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs import marked_experiments, marks
from mlcore.repos.runs.rank_columns import SettledRun
from mlcore.search import text_fields

_FIELD = {"tags": text_fields.tag_field, "params": text_fields.param_field}
"""Of the maps whose texts may be in the full-text index: what a key's text is called there."""
_METRICS = "metrics"


class _Seen:
    """What the records of a batch tell of one run."""

    def __init__(self) -> None:
        self.changed: Changes = set()
        """Entries of the run item that differ, but for metrics."""
        self.metrics: set[str] = set()
        """Metrics whose values differ."""
        self.inside: dict[tuple[str, str], set[Key]] = {}
        """Places of index items that came or went, by the entry of the run item they are of."""
        self.outside: dict[tuple[str, str], set[Key]] = {}
        """The same for entries that are child items of their own."""
        self.texts: list[tuple[str, str, str]] = []
        """Changes of texts that may be in the full-text index."""
        self.versions: set[int] = set()
        """The versions of the run that were seen."""
        self.is_told_of = False
        """Whether the run itself has a record here."""
        self.became_marked = False
        """The run was not marked before."""
        self.unmarked = False
        """Whether an earlier version of the product wrote, which left no mark."""
        self.writes: set[str] = set()
        """The ids of writes that have a marker beside the run, as earlier versions put it."""
        self.found: Found | None = None
        """What is there, where the whole run is compared."""
        self.earlier: Sequence[Raw] = ()
        """METRIC items of earlier versions, where one may have followed the run."""
        self.indexed: set[Posting] = set()
        """Postings that are there, where the whole run is compared, or is gone."""
        self.reverse: list[Key] = []
        """The FTS_REV items that told them."""
        self.gone = False
        """The run was removed."""
        self.surplus: list[Key] = []
        """Child items of entries that are gone, where the whole run is compared."""


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """One BatchGetItem for the runs of the records, then the writes for all of them; the marks
    last."""
    seen: dict[Owner, _Seen] = {}
    for record in records:
        image: Raw = record.get("NewImage") or record.get("OldImage") or {}
        if Item.of(image).type == keys.RUN.name:
            run_item = Run.of(image)
            run: Owner = (run_item.experiment_id, run_item.run_id)
            _read_run(seen.setdefault(run, _Seen()), run, record)
        elif is_outside(image):
            run = keys.run_of(key_in(image))
            _read_outside(seen.setdefault(run, _Seen()), run, record, image)
    runs, experiments, outside = _read(seen)
    settling = {run for run, item in runs.items() if item and settled.is_settled(Run.of(item))}
    settling |= _many(seen, runs, experiments, settling)
    _compare(seen, runs, settling)
    made: list[Writes] = []
    rows: dict[str, list[SettledRun]] = {}
    for run, item in runs.items():
        made += _derive(run, seen[run], item, experiments.get(run[0]))
        if item is not None and (run in settling or seen[run].unmarked):
            ranked = rank_rows.of_run(Run.of(item), _ranked_anew(seen[run]))
            if ranked is not None:
                rows.setdefault(run[0], []).append(ranked)
    made += [
        _index(run, one.outside, outside.get(run, {}), None)
        for run, one in seen.items()
        if one.outside
    ]
    put = rank_rows.put(rows)
    writes.apply(_sparing(made))
    history_items.pack_runs(sorted(settling), read=True)
    table.parallel([partial(settled.clear, Run.of(runs[run] or {})) for run in sorted(settling)])
    table.batch_write(deletes=sorted(_markers(seen)))
    rank_rows.look(put)


def _many(
    seen: dict[Owner, _Seen],
    runs: dict[Owner, Raw | None],
    experiments: dict[str, Raw | None],
    settling: set[Owner],
) -> set[Owner]:
    """The runs that are to be settled because their experiments have too many that go on."""
    left = [run for run, one in seen.items() if one.became_marked and run not in settling]
    for experiment_id in dict.fromkeys(experiment_id for experiment_id, _ in left):
        marked_experiments.note(experiment_id)
    found = dict(quiet_runs.too_many([run[0] for run in seen], left))
    for run, item in found.items():
        seen[run], runs[run] = seen.get(run) or _Seen(), item
    missing = sorted({experiment_id for experiment_id, _ in found} - experiments.keys())
    read = table.batch_get([keys.experiment(experiment_id) for experiment_id in missing])
    experiments.update(zip(missing, read, strict=True))
    return set(found)


def _read(
    seen: Mapping[Owner, _Seen],
) -> tuple[dict[Owner, Raw | None], dict[str, Raw | None], dict[Owner, dict[tuple[str, str], str]]]:
    """The runs that there is something to do for, their experiments where texts are looked at, and
    the texts that live outside."""
    wanted = [run for run, one in seen.items() if _concerns(one)]
    searched = sorted({run[0] for run in wanted})
    places = {
        (run, entry): run_children.MAPS[entry[0]].place(run, entry[1])
        for run, one in seen.items()
        for entry in one.outside
    }
    read = iter(
        table.batch_get(
            [
                *(keys.run(*run) for run in wanted),
                *(keys.experiment(experiment_id) for experiment_id in searched),
                *places.values(),
            ]
        )
    )
    items = dict(zip(wanted, read, strict=False))
    experiments = dict(zip(searched, read, strict=False))
    outside: dict[Owner, dict[tuple[str, str], str]] = {}
    for (run, entry), item in zip(places, read, strict=True):
        if item is not None and is_outside(item):
            outside.setdefault(run, {})[entry] = ChildItem.of(item).text or ""
    return items, experiments, outside


def _concerns(seen: _Seen) -> bool:
    return bool(seen.changed or seen.texts or seen.is_told_of or seen.unmarked)


def _compare(
    seen: Mapping[Owner, _Seen], runs: Mapping[Owner, Raw | None], settling: set[Owner]
) -> None:
    """Looks at what is there of runs whose records do not tell all."""
    wanted, ranked_before = [], []
    for run, item in runs.items():
        if item is None:
            _read_postings(seen[run], settled.postings(run))
            ranked_before.append(run)
            continue
        one, since = seen[run], marks.since(Run.of(item))
        whole = since and one.versions.issuperset(range(since, Run.of(item).version + 1))
        if one.unmarked or (run in settling and not whole):
            wanted.append((run, item))
        elif run in settling and settled.was_followed(Run.of(item)):
            ranked_before.append(run)
    calls = [partial(settled.earlier_ranks, run) for run in ranked_before]
    for run, items in zip(ranked_before, table.parallel(calls), strict=True):
        seen[run].earlier = items
    read = table.parallel([partial(settled.read, run) for run, _ in wanted])
    for (run, item), found in zip(wanted, read, strict=True):
        seen[run].found = found
        seen[run].earlier = list(filter(is_earlier_metric, found.children.values()))
        _read_postings(seen[run], found.postings)
        _suspect(seen[run], run, item, found)


def _read_postings(seen: _Seen, items: Iterable[Raw]) -> None:
    for item in items:
        seen.indexed |= text_items.postings_of(item)
        seen.reverse.append(key_in(item))


def _ranked_anew(seen: _Seen) -> set[str] | None:
    """The metrics that are to be ranked of a run; None for all."""
    return None if seen.found is not None or seen.earlier else seen.metrics


def _derive(run: Owner, seen: _Seen, item: Raw | None, experiment: Raw | None) -> list[Writes]:
    children = child_items.children(item, run, run_children.MAPS, seen.changed)
    children = children._replace(deletes=[*children.deletes, *seen.surplus])
    # What a child item says is indexed when it is there.
    last = children._replace(puts=[], after=children.puts)
    version = None if item is None else Run.of(item).version
    return [
        retention.with_end(last, item),
        _index(run, seen.inside, _texts(item), version),
        _full_text(run, seen, item, experiment),
        settled.without_earlier(run, seen.earlier),
    ]


def _sparing(made: Sequence[Writes]) -> list[Writes]:
    """Nothing is taken away that is put."""
    puts = {key_in(item) for each in made for item in (*each.puts, *each.after)}
    return [
        each._replace(
            before=[key for key in each.before if key not in puts],
            removals=[key for key in each.removals if key not in puts],
        )
        for each in made
    ]


def _full_text(run: Owner, seen: _Seen, item: Raw | None, experiment: Raw | None) -> Writes:
    """The FTS items that the changes of texts, and those found, are about."""
    indexed = None if experiment is None else text_index.maintained(experiment)
    current = text_items.postings(text_items.texts_of_run(item), indexed)
    touched = text_items.touched(seen.texts, indexed) | (seen.indexed - current)
    entity = Entity(run[0], text_items.RUN, run[1])
    version = None if item is None else Run.of(item).version
    made = text_items.writes(entity, touched, current, version)
    if item is None:
        # Also those that nobody follows, or that an earlier version put.
        return made._replace(removals=list(dict.fromkeys([*made.removals, *seen.reverse])))
    return made


def _suspect(seen: _Seen, run: Owner, item: Raw, found: Found) -> None:
    """As if every entry had changed whose child item is not what it must be."""
    places: set[Key] = set()
    current = text_items.texts_of_run(item)
    for attribute, entry in run_children.MAPS.items():
        for key, text in child_items.content(item, attribute).items():
            place = entry.place(run, key)
            places.add(place)
            there = found.children.get(place)
            if attribute == _METRICS or (there is not None and is_outside(there)):
                continue
            if there is None or not settled.same(there, entry.child(place, key, text)):
                seen.changed.add((attribute, key))
                if attribute in INDEXES:
                    places_of_entry = seen.inside.setdefault((attribute, key), set())
                    if there is not None and attribute == "params":  # Kubeflow's may change
                        places_of_entry.add(
                            INDEXES[attribute].place(run, key, RunParam.of(there).value)
                        )
                if attribute in _FIELD:
                    seen.texts.append((_FIELD[attribute](key), "", text))
    gone = [place for place in found.children if place not in places]
    seen.surplus += [place for place in gone if not is_outside(found.children[place])]
    if any(attribute == "tags" for attribute, _ in seen.changed):
        # Attributes that are indexed never change; they were followed with the first tags.
        seen.texts += [(field, "", text) for field, text in current.items()]


def _index(
    run: Owner,
    touched: Mapping[tuple[str, str], set[Key]],
    texts: Mapping[tuple[str, str], str],
    version: int | None,
) -> Writes:
    """The index items of the touched entries as they are now; all others of them go."""
    puts: list[Raw] = []
    removals: list[Key] = []
    for entry, places in sorted(touched.items()):
        attribute, key = entry
        text = texts.get(entry)
        current = index_items.place_of(run, attribute, key, text)
        if text is not None:
            puts.append(INDEXES[attribute].item(run, key, text, version))
        removals += sorted(places - {current})
    return Writes(puts, [], [], removals)


def _read_run(seen: _Seen, run: Owner, record: Mapping[str, Any]) -> None:
    old, new = record.get("OldImage"), record.get("NewImage")
    seen.gone = seen.gone or new is None
    changed = child_items.changes(old, new, run_children.MAPS)
    metrics = {entry for entry in changed if entry[0] == _METRICS}
    seen.changed |= changed - metrics
    before, after = _texts(old), _texts(new)
    for entry in changed:
        if entry in metrics:
            places = {index_items.place_of(run, *entry, one.get(entry)) for one in (before, after)}
            # One that stays where it is (a later point of the same value) was ranked before.
            if len(places) > 1:
                seen.metrics.add(entry[1])
        elif entry[0] in INDEXES:
            _touch(seen.inside, run, entry, before.get(entry), after.get(entry))
    # The name is a tag, and attributes that are indexed never change but with the run.
    if old is None or new is None or any(entry[0] in _FIELD for entry in changed):
        seen.texts += text_items.changed(text_items.texts_of_run(old), text_items.texts_of_run(new))
    if new is None:
        seen.is_told_of = True
        return
    item = Run.of(new)
    # Being told quiet, or followed, is no version: its record does not tell what the last one said.
    if old is None or Run.of(old).version != item.version:
        seen.versions.add(item.version)
    seen.is_told_of = seen.is_told_of or settled.is_settled(item)
    if marks.since(item) and (old is None or not marks.since(Run.of(old))):
        seen.became_marked = True
    write = earlier_markers.followed_write(record)
    seen.writes |= {write} if write else set()
    if marks.since(item) is None:
        seen.unmarked = seen.unmarked or write is not None or bool(changed)


def _read_outside(seen: _Seen, run: Owner, record: Mapping[str, Any], image: Raw) -> None:
    child = ChildItem.of(image)
    attribute = OUTSIDE_MAPS.get(child.type)
    if attribute is not None:
        texts = [ChildItem.of(record.get(name) or {}).text for name in ("OldImage", "NewImage")]
        _touch(seen.outside, run, (attribute, child.key), *texts)


def _touch(
    touched: dict[tuple[str, str], set[Key]],
    run: Owner,
    entry: tuple[str, str],
    before: str | None,
    after: str | None,
) -> None:
    """Notes an entry whose index item is another one. One that stays where it is (a later point of
    the same value) costs nothing: the record that brought it there put it."""
    attribute, key = entry
    places = {
        index_items.place_of(run, attribute, key, before),
        index_items.place_of(run, attribute, key, after),
    }
    if len(places) > 1:
        touched.setdefault(entry, set()).update(place for place in places if place is not None)


def _markers(seen: Mapping[Owner, _Seen]) -> set[Key]:
    """The markers that earlier versions put beside runs which have been followed by now."""
    return {keys.pending(run[0], "run", run[1], one) for run in seen for one in seen[run].writes}


def _texts(image: Raw | None) -> dict[tuple[str, str], str]:
    """The entries of the indexed maps."""
    return {
        (attribute, key): text
        for attribute in INDEXES
        for key, text in child_items.content(image, attribute).items()
    }
