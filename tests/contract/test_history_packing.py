"""Packing the history of runs: what it costs, what it keeps in the table, and that whoever dies on
the way loses nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from indexer.history import history_packing
from indexer.lifecycle import expiry
from indexer.verification import rebuild
from mlcore import artifacts, file_removal_queue
from mlcore.db import keys
from mlcore.db.table import Table, key_of_item, table
from mlcore.entities.metrics import Metric
from mlcore.repos.removal import permanent_deletion
from mlcore.repos.runs.history import metric_history
from operate.collection_sizes import item_bytes
from tests.contract.conftest import Store
from tests.contract.index_state import deliver
from tests.contract.run_points import tell_run
from tests.contract.streams import following

EXPERIMENT = "0"
BEGIN = 1_700_000_000_000


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Where the files of the store lie."""
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path))
    artifacts.store.cache_clear()
    yield tmp_path / "files"
    artifacts.store.cache_clear()


def in_it(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def training(store: Store, steps: int, metrics: int, *, together: bool = True) -> str:
    """A run to which random values were logged, a step a call, or a point a call."""
    run_id: str = store.api.new_run()
    chance = random.Random(1)
    for step in range(steps):
        points = [
            Metric(f"train/metric_{n}", chance.random(), BEGIN + 70 * step, step)
            for n in range(metrics)
        ]
        for request in [points] if together else [[point] for point in points]:
            metric_history.write(EXPERIMENT, run_id, request)
    tell_run(run_id, points)
    return run_id


def kinds(store: Store, run_id: str) -> Counter[str]:
    counter = Counter(item["type"]["S"] for item in store.items_of(EXPERIMENT, run_id))
    return Counter(
        {kind: count for kind, count in counter.items() if kind.startswith("run_metric_")}
    )


def everything(run_id: str) -> dict[str, list[Metric]]:
    series: dict[str, list[Metric]] = {}
    for point in metric_history.of_run(EXPERIMENT, run_id):
        series.setdefault(point.key, []).append(point)
    return {key: metric_history.distinct(points) for key, points in series.items()}


def test_a_step_of_fifty_metrics_is_one_write_unit_and_packing_one_more(
    store: Store, files: Path
) -> None:
    with table.measure() as logged:
        run_id = training(store, 200, 50)
    assert logged.write_units <= 200 + 20  # and the run
    before = everything(run_id)
    with table.measure() as packed:
        history_packing.pack_runs([(EXPERIMENT, run_id)])
    assert packed.write_units <= 205
    assert packed.read_units <= 60
    assert kinds(store, run_id) == {"run_metric_file": 1}
    assert len(in_it(files)) == 1
    assert everything(run_id) == before
    assert store.api.history(run_id, "train/metric_7") == [
        (point.timestamp, point.step, point.value) for point in before["train/metric_7"]
    ]
    assert store.api.cost.round_trips == 2  # and the file
    with table.measure() as again:
        history_packing.pack_runs([(EXPERIMENT, run_id)])
    assert again.write_units == 0


def test_without_a_store_packs_stay_in_the_table(store: Store) -> None:
    run_id = training(store, 200, 50)
    before = everything(run_id)
    with table.measure() as packed:
        history_packing.pack_runs([(EXPERIMENT, run_id)])
    # Two kilobytes of each metric, an entry in LSI2, and the batches go.
    assert packed.write_units <= 50 * 3 + 200
    assert kinds(store, run_id) == {"run_metric_history": 50}
    assert everything(run_id) == before


def test_single_points_are_packed_together(store: Store, files: Path) -> None:
    run_id = training(store, 150, 4, together=False)
    before = everything(run_id)
    with table.measure() as packed:
        history_packing.pack_runs([(EXPERIMENT, run_id)])
    assert packed.write_units <= 600 + 4 * 3
    assert kinds(store, run_id) == {"run_metric_history": 4}
    assert everything(run_id) == before


def test_few_points_of_many_metrics_stay_as_they_came(store: Store, files: Path) -> None:
    run_id = training(store, 2, 100)
    with table.measure() as packed:
        history_packing.pack_runs([(EXPERIMENT, run_id)])
    assert packed.write_units == 0
    assert kinds(store, run_id) == {"run_metric_batch": 2}


def test_what_a_million_runs_keep_in_the_table(store: Store, files: Path) -> None:
    """Of 50 metrics with 1,000 steps each; random values, which no compression helps."""
    run_id = store.api.new_run()
    chance = random.Random(1)
    made = []
    for step in range(1000):
        metrics = [
            Metric(f"train/metric_{n}", chance.random(), BEGIN + 70 * step, step) for n in range(50)
        ]
        made += metric_history.items(EXPERIMENT, run_id, metrics)
    in_batches = sum(map(item_bytes, made))
    looks = sum(map(history_packing._is_sampled, made))
    assert 0.5 < looks / (in_batches / history_packing.CHECK_EACH_BYTES) < 1.5
    table.batch_write(made)
    history_packing.pack_runs([(EXPERIMENT, run_id)])
    kept = [
        item_bytes(item)
        for item in store.items_of(EXPERIMENT, run_id)
        if item["type"]["S"].startswith("run_metric_")
    ]
    assert len(kept) == 1
    assert sum(kept) * 1_000_000 < 1e9
    assert in_batches * 1_000_000 > 600e9
    (file,) = in_it(files)
    assert file.stat().st_size < 9 * 50_000


def test_a_run_that_goes_on_is_packed_once_it_has_very_many(
    store: Store, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks is told by the batch's digest; who finds few leaves them."""
    monkeypatch.setattr(history_packing, "CHECK_EACH_BYTES", 1)
    run_id = training(store, 20, 50)
    batches = [
        item
        for item in store.items_of(EXPERIMENT, run_id)
        if item["type"]["S"] == "run_metric_batch"
    ]
    records: list[dict[str, Any]] = [
        {"Keys": {"PK": item["PK"], "SK": item["SK"]}, "NewImage": item} for item in batches
    ]
    history_packing.project(records)
    assert kinds(store, run_id) == {"run_metric_batch": 20}
    monkeypatch.setattr(history_packing, "MANY_BYTES", 10_000)
    history_packing.project(records)
    assert kinds(store, run_id).keys() == {"run_metric_history"}  # 1,000 points


@pytest.mark.parametrize("form", ["packs", "files"])
def test_killed_anywhere_and_repeated(
    store: Store, files: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Before each call of the engine, and after it."""
    monkeypatch.setattr(history_packing, "FILE_POINTS", 10 if form == "files" else 10_000)
    call = Table._call

    class Killed(BaseException):
        pass

    for moment in range(40):
        run_id = training(store, 20, 3)
        before = everything(run_id)
        count = Counter[str]()

        def dying(
            self: Table,
            operation: str,
            count: Counter[str] = count,
            moment: int = moment,
            **parameters: Any,
        ) -> Any:
            count["calls"] += 1
            if count["calls"] == moment // 2 and moment % 2 == 0:
                raise Killed
            answer = call(self, operation, **parameters)
            if count["calls"] == moment // 2:
                raise Killed
            return answer

        died = False
        with monkeypatch.context() as patch:
            patch.setattr(Table, "_call", dying)
            try:
                history_packing.pack_runs([(EXPERIMENT, run_id)])
            except Killed:
                died = True
        assert everything(run_id) == before
        history_packing.pack_runs([(EXPERIMENT, run_id)])
        assert everything(run_id) == before
        assert "run_metric_batch" not in kinds(store, run_id)
        if not died and moment > 1:
            return
    raise AssertionError("packing takes more calls than were tried")


def test_many_at_once(store: Store, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [training(store, 5, 2) for _ in range(20)] + [training(store, 100, 30)]
    before = [everything(run_id) for run_id in runs]
    with table.measure() as packed:
        history_packing.pack_runs([(EXPERIMENT, run_id) for run_id in runs])
    assert packed.round_trips <= 12
    monkeypatch.setattr(history_packing, "SIDE_BY_SIDE", 2)
    more = [training(store, 2, 2) for _ in range(5)]
    runs, before = [*runs, *more], [*before, *map(everything, more)]
    history_packing.pack_runs([(EXPERIMENT, run_id) for run_id in more])
    assert [everything(run_id) for run_id in runs] == before
    assert all("run_metric_batch" not in kinds(store, run_id) for run_id in runs)


@pytest.mark.parametrize("together", [False, True])
def test_points_that_change_nothing_of_a_followed_run_are_packed(
    store: Store, *, together: bool
) -> None:
    """Those of a request that is sent again: no mark of the run tells of them. They come with the
    record of the mark that went, or alone."""
    points = [{"key": "a", "value": 1, "timestamp": 1, "step": step} for step in (2, 1)]
    with following(store) as stream:
        run_id = store.api.new_run()
        store.api.post("runs/log-batch", run_id=run_id, metrics=points)
        store.api.post("runs/update", run_id=run_id, status="FINISHED")
        deliver(stream.fresh())
        if not together:
            deliver(stream.fresh())
        before = everything(run_id)
        assert "run_metric_batch" not in kinds(store, run_id)
        store.api.post("runs/log-batch", run_id=run_id, metrics=points)
        assert kinds(store, run_id)["run_metric_batch"] == 1
        deliver(stream.fresh())
        assert everything(run_id) == before
        assert "run_metric_batch" not in kinds(store, run_id)


def test_files_go_with_their_run(store: Store, files: Path) -> None:
    kept, gone = (training(store, 100, 30) for _ in range(2))
    history_packing.pack_runs([(EXPERIMENT, kept), (EXPERIMENT, gone)])
    assert len(in_it(files)) == 2
    store.api.post("runs/delete", run_id=gone)
    permanent_deletion.run(EXPERIMENT, gone, "default")
    (left,) = in_it(files)
    assert f"/{kept}/" in left.as_posix()
    assert sum(map(len, everything(kept).values())) == 3000


def test_files_go_with_their_items(
    store: Store, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item that expires by itself takes its file along, a run all of its own, and no other's."""
    monkeypatch.setenv("FILE_REMOVAL_QUEUE_URL", "queue")
    sent: list[file_removal_queue.Removal] = []
    monkeypatch.setattr(file_removal_queue, "send", lambda _, removals: sent.extend(removals))
    runs = [training(store, 100, 30) for _ in range(3)]
    history_packing.pack_runs([(EXPERIMENT, run_id) for run_id in runs])
    (file,) = [
        item
        for item in store.items_of(EXPERIMENT, runs[0])
        if item["type"]["S"] == "run_metric_file"
    ]
    whole = table.get(keys.run(EXPERIMENT, runs[1]))
    for image in (file, whole):
        assert image is not None
        table.delete(key_of_item(image))
        expiry.project([{"OldImage": image, "ApproximateCreationDateTime": 2e9}])
    for removal in sent:
        artifacts.store().delete_older(removal.key, float("inf"), removal.keep)
    (left,) = in_it(files)
    assert f"/{runs[2]}/" in left.as_posix()


def test_who_knows_no_store_still_verifies(
    store: Store, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = training(store, 100, 30)
    history_packing.pack_runs([(EXPERIMENT, run_id)])
    rebuild.reindex(EXPERIMENT)
    monkeypatch.delenv("ARTIFACT_FOLDER")
    assert rebuild.verify(EXPERIMENT, patience=0).findings == []


def test_a_run_without_its_reference_keeps_its_history(store: Store, files: Path) -> None:
    """Tables have such runs: the reference of a run that was about to expire was removed before the
    run, which was then restored."""
    run_id = training(store, 20, 3)
    logged = everything(run_id)
    table.delete(keys.run_ref(run_id))
    history_packing.pack_runs([(EXPERIMENT, run_id)], read=True)
    assert everything(run_id) == logged


def test_the_history_of_a_run_that_is_removed_meanwhile_goes(store: Store, files: Path) -> None:
    run_id = training(store, 20, 3)
    table.delete(keys.run_ref(run_id))
    table.delete(keys.run(EXPERIMENT, run_id))
    history_packing.pack_runs([(EXPERIMENT, run_id)], read=True)
    assert not store.items_of(EXPERIMENT, run_id)
