"""A process that logs is killed before any of its requests to DynamoDB: every read then shows all
that it logged or nothing, its client's repetition completes it, and nothing is in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indexer.verification import rebuild
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.repos.runs.core import run_cache
from tests.contract.conftest import Store, examples, forget
from tests.contract.index_state import deliver
from tests.contract.logged_runs import KEYS, Logged, Request, World, killed_at
from tests.contract.streams import Stream, following


@pytest.fixture(scope="module")
def stream(shared_store: Store) -> Iterator[Stream]:
    with following(shared_store) as stream:
        yield stream


POINTS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(KEYS),
            "value": st.sampled_from([0, 1.5, -1, "NaN"]),
            "timestamp": st.integers(0, 1),
            "step": st.integers(0, 4),
        }
    ),
    min_size=1,
    max_size=4,
)
LOGGING = st.tuples(POINTS, st.booleans(), st.sampled_from([False, False, True]))
ORDER = st.lists(st.integers(0, 2), max_size=6)


# Points arrive, and neither the params nor the tags that were logged with them.
@example(
    before=[([{"key": "b", "value": 0, "timestamp": 0, "step": 0}], False, False)],
    logging=([{"key": "a", "value": 0, "timestamp": 0, "step": 0}], True, False),
    is_known=True,
    request=1,
    order=[2],
    is_followed=True,
)
@examples(40)
@given(
    before=st.lists(LOGGING, max_size=2),
    logging=LOGGING,
    is_known=st.booleans(),
    request=st.integers(0, 7),
    order=ORDER,
    is_followed=st.booleans(),
)
def test_a_killed_request_is_seen_whole_or_not_at_all(
    shared_store: Store,
    stream: Stream,
    before: list[Any],
    logging: Any,
    is_known: bool,
    request: int,
    order: list[int],
    is_followed: bool,
) -> None:
    """Known runs are written to without being read; indexers follow before or after the client
    repeats what was not answered."""
    stream.fresh()
    world, logged = World(shared_store.api), Logged()
    sent = [
        Request(points, number, texts=texts, of_model=of_model)
        for number, (points, texts, of_model) in enumerate([*before, logging])
    ]
    for log_request in sent[:-1]:
        assert log_request.send(world.api, world.run_id, world.model_id) == 200
        logged = logged.with_(log_request)
        known = run_cache._known.get(world.run_id)
        run = keys.run(world.experiment_id, world.run_id)
        assert known is None or known.item == table.get(run), "the run is remembered otherwise"
    if not is_known:
        forget()
    last = sent[-1]
    with killed_at(request, order) as arrived:
        last.send(world.api, world.run_id, world.model_id)
    whole = logged.with_(last)
    wrong = world.differences(logged)
    if wrong:
        assert world.differences(whole) == [], (arrived, wrong)
    if is_followed:
        for _ in range(2):
            records = stream.fresh()
            assert deliver(records) == len(records)
        assert world.differences(whole if wrong else logged) == [] or (
            world.differences(whole) == []
        ), arrived
    for _ in range(2):
        assert last.send(world.api, world.run_id, world.model_id) == 200
        assert world.differences(whole) == [], arrived
    world.api.end(world.run_id)
    for _ in range(2):
        records = stream.fresh()
        assert deliver(records) == len(records)
    assert world.differences(whole) == [], arrived
    assert rebuild.verify(world.experiment_id, patience=0).findings == []
