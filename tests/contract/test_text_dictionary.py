"""A word or a value that somebody holds is in the dictionary, whoever comes and leaves."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from indexer.full_text import dictionary_page, text_dictionary, text_items
from indexer.projection.child_items import Posting, SourceEntity
from indexer.verification import partition_scan, rebuild
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.search.text_tokens import VALUE, IndexToken
from tests.contract.api import pairs
from tests.contract.conftest import Store
from tests.contract.index_state import deliver
from tests.contract.interleaved_calls import interleaved
from tests.contract.streams import following

ANNIE = Posting("tags.owner", IndexToken(VALUE, "annie"))
_names = itertools.count()


class Holders:
    """Runs that come to hold a value and leave it, as the indexer has them do."""

    def __init__(self, experiment_id: str) -> None:
        self.experiment_id = experiment_id
        self.faults = 0

    def of(self, run_id: str) -> SourceEntity:
        return SourceEntity(self.experiment_id, text_items.RUN, run_id)

    def comes(self, run_id: str, settled: set[str]) -> None:
        item = text_items.item(self.of(run_id), ANNIE, 1)
        table.batch_write([item])
        for page, entries in text_dictionary.missing_entries([item]):
            text_dictionary.put_all(dictionary_page.add_entries(page, entries))
        settled.add(run_id)  # its mark goes

    def leaves(self, run_id: str) -> None:
        table.batch_write(deletes=[text_items.key_of(self.of(run_id), ANNIE)])
        text_dictionary.remove_unused([(self.of(run_id), ANNIE)])

    def is_listed(self, store: Store) -> bool:
        """Past the product, which counts the calls."""
        entry = dictionary_page.DictionaryEntry(self.experiment_id, text_items.RUN, ANNIE)
        wanted = [*text_dictionary.item_keys(entry), keys.fts_texts(self.experiment_id)]
        items = [
            store.direct.get_item(
                TableName=store.table,
                Key={"PK": {"S": key.pk}, "SK": {"S": key.sk}},
                ConsistentRead=True,
            ).get("Item")
            for key in wanted
        ]
        return entry.name in dictionary_page.texts_of(items.pop()) or all(items)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("room", [dictionary_page.ROOM, 0])
def test_the_last_one_leaves_while_another_comes(
    shared_store: Store, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """In every order of their calls, and with one of them killed before any of its own."""
    monkeypatch.setattr(dictionary_page, "ROOM", room)
    left_over = 0
    for order in itertools.product((0, 1), repeat=6):
        for death in ({}, {0: 1 + sum(order)}, {1: 1 + sum(order)}):
            holders = Holders(f"dictionary-{next(_names)}")
            settled: set[str] = set()
            holders.comes("first", settled)
            settled.clear()

            def look(holders: Holders = holders, settled: set[str] = settled) -> None:
                if settled and not holders.is_listed(shared_store):
                    holders.faults += 1

            actors: list[Callable[[], None]] = [
                lambda holders=holders: holders.leaves("first"),  # type: ignore[misc]
                lambda holders=holders, settled=settled: holders.comes("second", settled),  # type: ignore[misc]
            ]
            interleaved(order, actors, after=look, deaths=death)
            look()
            assert holders.faults == 0, (order, death)
            left_over += not settled
            if death:
                holders.comes("second", settled)
                look()
                assert holders.faults == 0, (order, death)
            holders.leaves("second")
            holders.leaves("first")
            assert not holders.is_listed(shared_store), (order, death)
    assert left_over > 5


@pytest.mark.parametrize("room", [dictionary_page.ROOM, 0])
def test_a_rebuild_takes_away_what_nobody_holds(
    store: Store, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """What a killed indexer left behind is no fault, and goes: from the first page, too."""
    monkeypatch.setattr(dictionary_page, "ROOM", room)
    with following(store) as stream:
        experiment_id = store.api.new_experiment("left behind")
        store.api.new_run(experiment_id, run_name="magpie", tags=pairs({"owner": "annie"}))
        deliver(stream.fresh())
    unheld = dictionary_page.DictionaryEntry(
        experiment_id, text_items.RUN, Posting("tags.owner", IndexToken(VALUE, "hannah"))
    )
    page = partition_scan.first_dictionary_page(experiment_id)
    text_dictionary.put_all(dictionary_page.add_entries(page or None, [unheld]))
    report = rebuild.verify(experiment_id, patience=0)
    assert (report.findings, report.behind) == ([], [])
    rebuild.reindex(experiment_id)
    left = {item["SK"]["S"] for item in table.query_all(keys.experiment(experiment_id).pk)}
    left.update(partition_scan.first_dictionary_page(experiment_id))
    assert not [text for text in left if "hannah" in text]
    listed = '["run","tags.owner","annie"]' if room else "run_text#annie"
    assert [text for text in left if listed in text]
    assert rebuild.verify(experiment_id, patience=0).findings == []


def test_an_index_that_was_made_by_other_rules(store: Store) -> None:
    """Searches do without it, nothing counts as wrong, a run that goes takes its items along, and a
    rebuild makes it whole."""
    api = store.api
    with following(store) as stream:
        experiment_id = api.new_experiment("other rules")
        runs = [
            api.new_run(experiment_id, run_name="magpie", tags=pairs({"owner": "annie"}))
            for _ in range(2)
        ]
        assert deliver(stream.fresh()) > 0
        item = table.get(keys.experiment(experiment_id))
        assert item is not None
        item["fts"] = {"S": item["fts"]["S"].replace('"rules": 2', '"rules": 1')}
        table.put(item)
        query: dict[str, Any] = {
            "experiment_ids": [experiment_id],
            "filter": "tags.owner ILIKE '%NNI%'",
        }
        assert len(api.post("runs/search", **query)["runs"]) == 2
        api.post("runs/set-tag", run_id=runs[0], key="owner", value="bob")
        assert deliver(stream.fresh()) > 0
        assert len(api.post("runs/search", **query)["runs"]) == 1
        assert rebuild.verify(experiment_id, patience=0).findings == []
        table.delete(keys.run(experiment_id, runs[1]))
        assert deliver(stream.fresh()) > 0
        left = list(table.query_all(keys.experiment(experiment_id).pk))
        places = [item["SK"]["S"] for item in left if item["type"]["S"] in ("fts", "fts_rev")]
        assert places
        assert not [sort_key for sort_key in places if runs[1] in sort_key]
        rebuild.reindex(experiment_id)
        assert rebuild.verify(experiment_id, patience=0).findings == []
    prefix = keys.fts_rev_prefix("run", runs[0])
    reverse = table.query_all(keys.experiment(experiment_id).pk, prefix=prefix)
    assert [item["token"]["S"] for item in reverse] == ["0"]
    page = partition_scan.first_dictionary_page(experiment_id)
    assert [name for name in page if '"bob"' in name]
