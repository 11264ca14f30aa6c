"""Keeps what is derived from runs: METRIC, PARAM, TAG, INPUT and LM items, RANK, DLINK and FTS
items, and takes the pending markers of the writes away that are followed.

A value that its run item has no room for lives in a child item alone. Such a value never moves, so
it is indexed from the records of the child item, and the others from those of the run item. It has
no FTS items: its run is pending for good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from indexer import (
    history_items,
    index_items,
    markers,
    projections,
    retention,
    text_items,
    unfinished,
    writes,
)
from indexer.index_items import INDEXES
from indexer.projections import Changes, Entity, Posting, Writes
from mlcore.db import keys
from mlcore.db.attributes import text_of
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_in, table
from mlcore.entities.stages import ACTIVE
from mlcore.repos import text_index
from mlcore.repos.document import Owner
from mlcore.repos.runs import children as run_children

OUTSIDE_MAPS = {"run_metric": "metrics", "run_param": "params", "run_input": "inputs"}
"""The indexed maps by the type of the child items that hold their values outside."""


_TEXT_MAPS = ("tags", "params")
_GOING_ON = ("RUNNING", "SCHEDULED")


class _Seen:
    """What the records of a batch tell of one run."""

    __slots__ = (
        "changed",
        "gone",
        "indexed",
        "inside",
        "outside",
        "rests",
        "reverse",
        "settled",
        "suspicion",
        "texts",
    )

    def __init__(self) -> None:
        self.changed: Changes = set()
        """Entries of the run item that differ."""
        self.inside: dict[tuple[str, str], set[Key]] = {}
        """Places of index items that came or went, by the entry of the run item they are of."""
        self.outside: dict[tuple[str, str], set[Key]] = {}
        """The same for entries that are child items of their own."""
        self.rests = False
        """Whether the run has ended or is deleted."""
        self.texts: list[tuple[str, str, str]] = []
        """Changes of texts that may be in the full-text index."""
        self.indexed: set[Posting] = set()
        """Postings that are there, where the whole run is looked at, or is gone."""
        self.reverse: list[Key] = []
        """The FTS_REV items that told them."""
        self.gone = False
        """The run was removed."""
        self.settled: set[Key] = set()
        """The markers of the writes."""
        self.suspicion: int | None = None
        """Markers from before this time (ms) are of no write that is still to be followed."""


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """One BatchGetItem for the runs of the records, then the writes for all of them; the markers
    last."""
    seen: dict[Owner, _Seen] = {}
    for record in records:
        image: Raw = record.get("NewImage") or record.get("OldImage") or {}
        if image["type"]["S"] == "run":
            run = (image["experiment_id"]["S"], image["run_id"]["S"])
            _read_run(seen.setdefault(run, _Seen()), run, record)
        elif "outside" in image:
            run = _owner_of(image)
            _read_outside(seen.setdefault(run, _Seen()), run, record, image)
    suspicious = [run for run, one in seen.items() if one.suspicion is not None]
    abandoned = table.parallel(
        [partial(markers.abandoned, run, seen[run].suspicion or 0) for run in suspicious]
    )
    derive_whole = {run for run, found in zip(suspicious, abandoned, strict=True) if found}
    table.parallel([partial(unfinished.complete, run) for run in sorted(derive_whole)])
    looked_at = derive_whole | {run for run, one in seen.items() if one.gone}
    table.parallel([partial(_read_postings, seen[run], run) for run in sorted(looked_at)])
    writes.apply(_derive(seen, derive_whole, looked_at))
    gone = {key for one in seen.values() for key in one.settled}
    gone.update(key for found in abandoned for key in found)
    table.batch_write(deletes=sorted(gone))
    history_items.pack_runs([run for run, one in seen.items() if one.rests])


def _derive(
    seen: Mapping[Owner, _Seen], derive_whole: set[Owner], looked_at: set[Owner]
) -> list[Writes]:
    wanted = [run for run, one in seen.items() if one.changed or run in looked_at]
    searched = sorted({run[0] for run in wanted if seen[run].texts or run in looked_at})
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
    made = []
    for run, item in items.items():
        one = seen[run]
        if item is not None and run in derive_whole:
            _suspect_everything(one, item)
        children = projections.children(item, run, run_children.MAPS, one.changed)
        made.append(retention.with_end(children, item))
        made.append(_index(run, one.inside, _texts(item), _version(item)))
        if run[0] in experiments:
            made.append(_full_text(run, one, item, experiments[run[0]]))
    outside: dict[Owner, dict[tuple[str, str], str]] = {}
    for (run, entry), item in zip(places, read, strict=True):
        if item is not None and "outside" in item:
            outside.setdefault(run, {})[entry] = item["text"]["S"]
    made += [
        _index(run, one.outside, outside.get(run, {}), None)
        for run, one in seen.items()
        if one.outside
    ]
    return made


def _full_text(run: Owner, seen: _Seen, item: Raw | None, experiment: Raw | None) -> Writes:
    """The FTS items that the changes of texts, and those found, are about."""
    indexed = None if experiment is None else text_index.maintained(experiment)
    touched = text_items.touched(seen.texts, indexed) | seen.indexed
    current = text_items.postings(text_items.texts_of_run(item), indexed)
    entity = Entity(run[0], text_items.RUN, run[1])
    made = text_items.writes(entity, touched, current, _version(item))
    if item is None:
        # Also those that nobody follows, or that an earlier version put.
        return made._replace(removals=list(dict.fromkeys([*made.removals, *seen.reverse])))
    return made


def _read_postings(seen: _Seen, run: Owner) -> None:
    prefix = keys.fts_rev_prefix(text_items.RUN, run[1])
    for item in table.query_all(keys.run(*run).pk, prefix=prefix):
        seen.indexed |= text_items.postings_of(item)
        seen.reverse.append(key_in(item))


def _suspect_everything(seen: _Seen, item: Raw) -> None:
    """As if every entry of the run item had changed."""
    seen.changed |= {
        (attribute, key)
        for attribute in run_children.MAPS
        for key in projections.content(item, attribute)
    }
    for entry in _texts(item):
        seen.inside.setdefault(entry, set())
    seen.texts += text_items.changed({}, text_items.texts_of_run(item))


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
    changed = projections.changes(old, new, run_children.MAPS)
    seen.changed |= changed
    before, after = _texts(old), _texts(new)
    for entry in changed:
        if entry[0] in INDEXES:
            _touch(seen.inside, run, entry, before.get(entry), after.get(entry))
    # The name is a tag, and attributes that are indexed never change but with the run.
    if old is None or new is None or any(entry[0] in _TEXT_MAPS for entry in changed):
        seen.texts += text_items.changed(text_items.texts_of_run(old), text_items.texts_of_run(new))
    settled = markers.settled(run, record)
    if settled is not None:
        seen.settled.add(settled)
    seen.suspicion = markers.worth_a_look(record) or seen.suspicion
    seen.rests = new is not None and (
        text_of(new, "status") not in _GOING_ON or text_of(new, "stage") != ACTIVE
    )


def _read_outside(seen: _Seen, run: Owner, record: Mapping[str, Any], image: Raw) -> None:
    attribute = OUTSIDE_MAPS.get(image["type"]["S"])
    if attribute is not None:
        texts = [
            (record.get(name) or {}).get("text", {}).get("S") for name in ("OldImage", "NewImage")
        ]
        _touch(seen.outside, run, (attribute, image["key"]["S"]), *texts)


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


def _texts(image: Raw | None) -> dict[tuple[str, str], str]:
    """The entries of the indexed maps."""
    return {
        (attribute, key): value["S"]
        for attribute in INDEXES
        for key, value in projections.content(image, attribute).items()
    }


def _version(item: Raw | None) -> int | None:
    return None if item is None else int(item["version"]["N"])


def _owner_of(child: Raw) -> tuple[str, str]:
    fields = keys.parse(child["PK"]["S"], child["SK"]["S"]).fields
    return (fields["experiment_id"], fields["run_id"])
