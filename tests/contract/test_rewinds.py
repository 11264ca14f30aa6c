"""A run is rewound: its points after a step are gone from every read, whatever form its history
has, whoever writes meanwhile, and whenever the process dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.history import history_packing
from indexer.lifecycle import file_removals
from indexer.verification import rebuild
from mlcore import file_removal_queue
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import Store, examples, forget
from tests.contract.index_state import deliver
from tests.contract.interleaved_calls import interleaved
from tests.contract.logged_runs import KEYS, Logged, Request, World, killed_at
from tests.contract.rewind_requests import NUMBERS, rewind, trained
from tests.contract.streams import Stream, following


@pytest.fixture(scope="module")
def stream(shared_store: Store) -> Iterator[Stream]:
    with following(shared_store) as stream:
        yield stream


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store of files, to which every second run's history goes."""
    with artifacts_in(tmp_path_factory.mktemp("files")) as folder:
        yield folder


def follow(stream: Stream) -> None:
    for _ in range(2):
        records = stream.fresh()
        assert deliver(records) == len(records)


POINTS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(KEYS),
            # NaN counts as 0: of a NaN and a 0 at one step and time either may be the latest.
            "value": st.sampled_from([2, 1.5, -1, "NaN"]),
            "timestamp": st.integers(0, 1),
            "step": st.integers(-1, 4),
        }
    ),
    min_size=1,
    max_size=6,
)
LOG = st.tuples(st.just("log"), POINTS)
STEP = st.one_of(st.none(), st.integers(-2, 4))
REWIND = st.tuples(st.just("rewind"), STEP, st.sampled_from([None, "a", "b", "ab", "c"]))
CALM = st.sampled_from([("follow",), ("end",), ("resume",)])


def fields_of(step: int | None, keys: str | None) -> dict[str, Any]:
    fields: dict[str, Any] = {"delete_all": True} if step is None else {"after_step": step}
    return fields if keys is None else {**fields, "metric_keys": list(keys)}


@examples(15)
@given(
    steps=st.lists(st.one_of(LOG, LOG, REWIND, CALM), min_size=2, max_size=9),
    file_points=st.sampled_from([3, 2000]),
    few_keys=st.sampled_from([0, 16]),
)
def test_every_read_equals_a_model(
    shared_store: Store, stream: Stream, steps: list[Any], file_points: int, few_keys: int
) -> None:
    """Histories are batches, packs, files and mixtures of them."""
    stream.fresh()
    world, logged = World(shared_store.api), Logged()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history_packing, "FILE_POINTS", file_points)
        patch.setattr(history_packing, "FEW_KEYS", few_keys)
        for number, (kind, *more) in enumerate(steps):
            if kind == "log":
                request = Request(more[0], number, texts=False, of_model=False)
                assert request.send(world.api, world.run_id, world.model_id) == 200
                logged = logged.with_(request)
            elif kind == "rewind":
                answer = rewind(world.run_id, **fields_of(*more))
                assert (answer.status, answer.body) == (200, {})
                logged = logged.rewound(*more)
            elif kind == "follow":
                follow(stream)
            elif kind == "end":
                world.api.end(world.run_id)
                follow(stream)
            else:
                world.api.post("runs/update", run_id=world.run_id, status="RUNNING")
            assert world.differences(logged) == [], steps[: number + 1]
        world.api.end(world.run_id)
        follow(stream)
        assert world.differences(logged) == [], steps
        assert rebuild.verify(world.experiment_id, patience=0).findings == []
        rebuild.reindex(world.experiment_id)
        assert world.differences(logged) == [], steps


@examples(10)
@given(
    before=st.lists(POINTS, min_size=1, max_size=4),
    packed=st.booleans(),
    file_points=st.sampled_from([3, 2000]),
    step=STEP,
    keys=st.sampled_from([None, "a"]),
    request=st.integers(0, 9),
    afterwards=st.sampled_from(["repeat", "log", "follow"]),
    later=POINTS,
)
def test_a_killed_rewind_is_seen_whole_or_not_at_all_and_completed(
    shared_store: Store,
    stream: Stream,
    before: list[Any],
    packed: bool,
    file_points: int,
    step: int | None,
    keys: str | None,
    request: int,
    afterwards: str,
    later: Any,
) -> None:
    """By its repetition, by the next request that logs, or by the indexer."""
    stream.fresh()
    world, logged = World(shared_store.api), Logged()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history_packing, "FILE_POINTS", file_points)
        for number, points in enumerate(before):
            log_request = Request(points, number, texts=False, of_model=False)
            assert log_request.send(world.api, world.run_id, world.model_id) == 200
            logged = logged.with_(log_request)
            if packed and number == 1:
                world.api.end(world.run_id)
                follow(stream)
        whole = logged.rewound(step, keys)
        with killed_at(request, []) as arrived:
            rewind(world.run_id, **fields_of(step, keys))
        is_done = world.differences(logged) != []
        if is_done:
            assert world.differences(whole) == [], arrived
        if afterwards == "follow":
            follow(stream)
            assert world.differences(whole if is_done else logged) == [], arrived
        if afterwards != "repeat":
            log_request = Request(later, 9, texts=True, of_model=False)
            assert log_request.send(world.api, world.run_id, world.model_id) == 200
            logged = (whole if is_done else logged).with_(log_request)
            assert world.differences(logged) == [], arrived
        for _ in range(2):
            assert rewind(world.run_id, **fields_of(step, keys)).status == 200
            assert world.differences(logged.rewound(step, keys)) == [], arrived
        world.api.end(world.run_id)
        follow(stream)
        assert world.differences(logged.rewound(step, keys)) == [], arrived
        assert rebuild.verify(world.experiment_id, patience=0).findings == []


ORDER = st.lists(st.integers(0, 2), max_size=40)


@examples(15)
@given(
    before=st.lists(POINTS, min_size=1, max_size=3),
    batch=POINTS,
    is_known=st.booleans(),
    step=st.integers(-1, 3),
    order=ORDER,
    beside=st.permutations(range(3)),
)
def test_beside_a_rewind_nothing_is_lost_and_nothing_halved(
    shared_store: Store,
    stream: Stream,
    before: list[Any],
    batch: Any,
    is_known: bool,
    step: int,
    order: list[int],
    beside: list[int],
) -> None:
    """One process logs while another rewinds: in the end it is as if the one had come after the
    other. What stays if the request of points that are all older came first is also right."""
    stream.fresh()
    world, logged = World(shared_store.api), Logged()
    for number, points in enumerate(before):
        request = Request(points, number, texts=False, of_model=False)
        assert request.send(world.api, world.run_id, world.model_id) == 200
        logged = logged.with_(request)
    if not is_known:
        forget()
    request = Request(batch, 9, texts=False, of_model=False)
    answers = interleaved(
        order,
        [
            lambda: request.send(world.api, world.run_id, world.model_id),
            lambda: rewind(world.run_id, after_step=step).status,
        ],
        beside=lambda _actor, count: (
            [at for at in beside if at < count] + list(range(len(beside), count))
        ),
    )
    assert answers == [200, 200]
    forget()
    for _ in range(2):
        follow(stream)
    first, last = (
        logged.with_(request).rewound(step, None),
        logged.rewound(step, None).with_(request),
    )
    if world.differences(first):
        assert world.differences(last) == []
    world.api.end(world.run_id)
    follow(stream)
    if world.differences(first):
        assert world.differences(last) == []
    assert rebuild.verify(world.experiment_id, patience=0).findings == []


@examples(10)
@given(order=ORDER, step=st.integers(-1, 3), file_points=st.sampled_from([3, 2000]))
def test_packing_beside_a_rewind_brings_no_point_back(
    shared_store: Store, stream: Stream, order: list[int], step: int, file_points: int
) -> None:
    stream.fresh()
    world, logged = World(shared_store.api), Logged()
    for number in range(5):
        points = [
            {"key": key, "value": number, "timestamp": number, "step": number} for key in KEYS
        ]
        request = Request(points, number, texts=False, of_model=False)
        assert request.send(world.api, world.run_id, world.model_id) == 200
        logged = logged.with_(request)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history_packing, "FILE_POINTS", file_points)
        interleaved(
            order,
            [
                lambda: history_packing.pack_runs([(world.experiment_id, world.run_id)]),
                lambda: rewind(world.run_id, after_step=step),
            ],
        )
        logged = logged.rewound(step, None)
        assert world.differences(logged) == []
        # What came back would be seen once there are later points.
        request = Request(
            [{"key": key, "value": 9, "timestamp": 9, "step": 9} for key in KEYS],
            9,
            texts=False,
            of_model=False,
        )
        assert request.send(world.api, world.run_id, world.model_id) == 200
        assert world.differences(logged.with_(request)) == []


def test_a_training_goes_on_from_a_checkpoint(store: Store) -> None:
    experiment, run_id = trained(store, 10)
    assert rewind(run_id, after_step=6).status == 200
    assert store.api.data(run_id)["metrics"] == {"loss": (6, 6, 6), "f1": (6, 6, 6)}
    store.api.post("runs/log-metric", run_id=run_id, key="loss", value=0.5, timestamp=99, step=7)
    assert [step for _, step, _ in store.api.history(run_id, "loss")] == list(range(8))
    assert store.api.history(run_id, "loss")[-1] == (99, 7, 0.5)
    assert [step for _, step, _ in store.api.history(run_id, "f1")] == list(range(7))
    ordered = store.api.post(
        "runs/search", experiment_ids=[experiment], filter="metrics.f1 > 6", max_results=10
    )
    assert "runs" not in ordered
    assert rewind(run_id, delete_all=True, metric_keys=["f1"]).status == 200
    assert set(store.api.data(run_id)["metrics"]) == {"loss"}


def test_points_are_removed_from_table_and_files(store: Store, files: Path) -> None:
    """So that versions that know no rewinds read the same."""
    experiment, run_id = trained(store, 12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history_packing, "FILE_POINTS", 3)
        history_packing.pack_runs([(experiment, run_id)])
    store.api.post("runs/log-metric", run_id=run_id, key="loss", value=1, timestamp=12, step=12)
    (before,) = (path for path in files.rglob("points") if run_id in str(path))
    with following(store, latest=True) as stream:
        assert rewind(run_id, after_step=3).status == 200
        kinds = sorted(
            item["type"]["S"]
            for item in store.items_of(experiment, run_id)
            if item["type"]["S"].startswith("run_metric")
        )
        assert kinds == ["run_metric_file"]
        (record,) = (
            record
            for record in stream.fresh()
            if record["dynamodb"]["Keys"]["SK"]["S"].startswith(f"R#{run_id}#MBFILE")
        )
    assert record["eventName"] == "MODIFY"
    assert record["dynamodb"]["NewImage"]["event"] == {"S": "replaced"}
    sent: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(file_removals.QUEUE, "queue")
        patch.setattr(file_removal_queue, "send", lambda _queue, removals: sent.extend(removals))
        assert deliver([record]) == 1
    assert [removal.key for removal in sent] == [str(before.parent.relative_to(files / "files"))]
    (after,) = (path for path in files.rglob("points") if run_id in str(path) and path != before)
    assert after.stat().st_size < before.stat().st_size
    assert rewind(run_id, delete_all=True).status == 200
    left = {item["type"]["S"] for item in store.items_of(experiment, run_id)}
    assert not {kind for kind in left if kind.startswith("run_metric_")}


def test_values_outside_the_run_are_lowered(store: Store) -> None:
    """Of a run with so many metrics that some have items of their own."""
    experiment = store.api.new_experiment(f"wide {next(NUMBERS)}")
    run_id = store.api.new_run(experiment)
    names = [f"{'m' * 240}{number:04}" for number in range(1_200)]
    for step in (1, 2):
        for at in range(0, len(names), 600):
            metrics = [
                {"key": name, "value": step, "timestamp": step, "step": step}
                for name in names[at : at + 600]
            ]
            store.api.post("runs/log-batch", run_id=run_id, metrics=metrics)
    assert rewind(run_id, after_step=1).status == 200
    assert set(store.api.data(run_id)["metrics"].values()) == {(1, 1, 1)}
    assert store.api.history(run_id, names[-1]) == [(1, 1, 1)]
    assert rewind(run_id, delete_all=True).status == 200
    assert store.api.data(run_id)["metrics"] == {}
