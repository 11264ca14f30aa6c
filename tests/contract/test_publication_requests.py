"""What publisher and upkeep of the system tables ask of S3, and that they ask enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.bill import usage
from lander import app as lander
from mlcore import errors
from mlcore.system_tables import audit_landing, storage
from tests.contract import counted_publications, delta_readers
from tests.contract.capacity_figures import holds
from tests.contract.conftest import Store
from tests.contract.counted_publications import Publications
from tests.contract.lake import Tables, tables
from tests.contract.lake_in_s3 import Mortal, bucket, rows, s3
from tests.contract.trace_calls import export, span, tell
from tests.doubles.s3_requests import Asked

__all__ = ["bucket", "s3", "tables"]

pytestmark = [pytest.mark.xdist_group("system tables in S3"), pytest.mark.timeout(300)]


@pytest.mark.parametrize("story", counted_publications.STORIES)
def test_a_publication_makes_as_many_requests_as_the_bill_says(
    store: Store, bucket: Tables, s3: tuple[str, Mortal], story: str
) -> None:
    """`MEASURE=1` writes the figures anew."""
    _, mortal = s3
    told = Publications(store.api, bucket.stream.fresh, mortal.requests)
    figures, counts = told.tell(story)
    assert {asked.place for asked in counts} >= {"landing objects"}
    holds(story, {"publisher": figures})
    if story == next(iter(counted_publications.STORIES)):
        holds(counted_publications.UPKEEP, {"publisher": told.keep_up()[0]})


def test_who_has_an_old_copy_of_the_log_sees_what_others_committed(
    store: Store, bucket: Tables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An erasure on this machine misses no row, also if it finds nothing to change in the copy."""
    publisher = pytest.importorskip("mltables.publisher")
    audit = pytest.importorskip("mltables.audit_erasure")
    chain = pytest.importorskip("mltables.audit_verification")

    def publish(machine: str, number: int) -> None:
        monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path / machine))
        entry = {"user": f"user {number}", "outcome": "done", "entity": {}}
        request = {"rpc": "/x", "method": "POST", "status": 200, "audit": entry}
        line = audit_landing.line_of(f"id{number}", 1_782_820_800_000, request)
        audit_landing.put(f"part-{number}", [line])
        publisher.publish()

    publish("here", 1)
    publish("there", 2)
    monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path / "here"))
    assert [audit.rows_about(f"user {number}") for number in (1, 2)] == [1, 1]
    publish("there", 3)
    publish("here", 4)
    assert [audit.rows_about(f"user {number}") for number in (1, 2, 3, 4)] == [1, 1, 1, 1]
    assert chain.verify()[1] == []


def test_the_copy_of_a_deleted_table_is_not_continued(
    store: Store, bucket: Tables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its next entry would leave a gap in the log of the table that was made instead."""
    experiment = store.api.new_experiment("s3")

    def publish(machine: str) -> str:
        monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path / machine))
        run: str = store.api.new_run(experiment)
        bucket.follow()
        return run

    for _ in range(3):
        publish("here")
    storage.store().delete_tree("system")
    runs = [publish("there"), publish("here"), publish("there")]
    assert sorted(row["run_id"] for row in rows("runs_latest")) == sorted(runs)
    log = [file.key for file in storage.store().below("system/mlflow/runs_latest/_delta_log")]
    assert [int(Path(key).stem) for key in log] == [*range(len(log))]


def test_a_publisher_that_starts_fetches_files_of_the_times_that_changed(
    store: Store,
    bucket: Tables,
    s3: tuple[str, Mortal],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Not all files of the day."""
    monkeypatch.setattr("mltables.row_replacement.FULL_FILE_ROWS", 1)
    experiment = store.api.new_experiment("s3")
    for minute in range(4):
        sent = span(f"{minute + 1:032x}", 1, start=60_000 * minute, end=60_000 * minute + 1)
        assert export(experiment, [sent]).status == 200
        bucket.follow()
    monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path / "empty"))
    _, mortal = s3
    tell("PATCH", f"3.0/traces/tr-{3:032x}/tags", {"key": "seen", "value": "yes"})
    mortal.requests.take()
    bucket.follow()
    counts = mortal.requests.take()
    assert [counts[Asked("GET", f"files of {table}")] for table in ("traces", "spans")] == [1, 1]
    seen = [[tag["value"] for tag in row["tags"] if tag["key"] == "seen"] for row in rows("traces")]
    assert sorted(seen) == [[], [], [], ["yes"]]


def test_only_a_deleted_trace_that_is_not_at_its_time_is_searched_for(
    store: Store,
    bucket: Tables,
    s3: tuple[str, Mortal],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """In the ids of all files, each read once; nothing is searched for a trace that was made since
    the last publication."""
    experiment = store.api.new_experiment("s3")
    names, day_ms = ("traces", "spans"), 86_400_000
    _, mortal = s3

    def export_one(number: int, at: int, of: int = 1) -> None:
        sent = span(f"{number:032x}", of, 1 if of > 1 else None, start=at, end=at + 1)
        assert export(experiment, [sent]).status == 200

    def delete(number: int) -> None:
        body = {"experiment_id": experiment, "request_ids": [f"tr-{number:032x}"]}
        assert tell("POST", "2.0/traces/delete-traces", body)["traces_deleted"] == 1

    def fetched(machine: str) -> list[int]:
        monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path / machine))
        mortal.requests.take()
        bucket.follow()
        counts = mortal.requests.take()
        return [counts[Asked("GET", f"files of {name}")] for name in names]

    for number in range(6):
        for each in (number + 1, 16 + number):  # so no file is found by the bounds of its ids
            export_one(each, 10 * number * day_ms, of=2)
        bucket.follow()
    delete(2)
    assert fetched("usual") == [1, 1]
    export_one(7, 5 * day_ms)
    lander.handler({"Records": bucket.stream.fresh()}, None)
    delete(7)
    assert fetched("made since") == [0, 0]
    export_one(6, day_ms)  # and so it began earlier
    moved = bucket.stream.fresh()
    delete(6)
    deleted = bucket.stream.fresh()
    for records in (moved, deleted):
        lander.handler({"Records": records}, None)
        # The ids of five files, and then the file that holds the trace.
        assert fetched(f"empty {len(records)}") == [6, 6]
    for name in names:
        assert {row["trace_id"][-2:] for row in rows(name)} == {
            *("01", "03", "04", "05", "10", "11", "12", "13", "14", "15")
        }


def test_the_upkeep_of_unchanged_tables_lists_their_files_and_ends(
    store: Store, bucket: Tables, s3: tuple[str, Mortal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opens no table; another change wakes it."""
    rest = pytest.importorskip("mltables.maintenance_needed")
    definitions = pytest.importorskip("mltables.table_definitions")
    store.api.new_run(store.api.new_experiment("s3"))
    bucket.follow()
    assert usage.CHECKPOINT_VERSIONS == definitions.CHECKPOINT_VERSIONS
    _, mortal = s3
    told = Publications(store.api, bucket.stream.fresh, mortal.requests)
    places = {"log of runs_latest", "files of runs_latest"}
    for _ in range(2):  # it changed less than a day ago
        assert {asked.place for asked in told.keep_up()[1]} >= places
    monkeypatch.setattr(rest, "COMPLETE_SECONDS", -60)
    told.keep_up()
    _, counts = told.keep_up()
    assert [(asked.kind, count) for asked, count in counts.items()] == [("LIST", 1)] * 2
    store.api.new_run(store.api.new_experiment("again"))
    bucket.follow()
    assert {asked.place for asked in told.keep_up()[1]} >= places


def test_a_table_that_cannot_be_kept_up_stops_no_other(
    store: Store, bucket: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error is told in the end. Files without a log are no table, and none is made of them."""
    upkeep = pytest.importorskip("mltables.table_maintenance")
    monkeypatch.setattr(upkeep, "KEPT_HOURS", 0)
    run = store.api.new_run(store.api.new_experiment("s3"))
    bucket.follow()
    store.api.post("runs/update", run_id=run, status="FINISHED", end_time=1)
    bucket.follow()
    storage.store().put("system/mlflow/registered_models/left.parquet", b"")
    log = "system/mlflow/run_metrics_history/_delta_log"
    for file in list(storage.store().below(log)):
        storage.store().put(file.key, b"broken")

    def files() -> int:
        return sum(
            file.key.endswith(".parquet")
            for file in storage.store().below("system/mlflow/runs_latest")
        )

    assert files() == 2
    with pytest.raises(Exception, match="Json error"):
        upkeep.maintain_tables()
    assert files() == 1
    assert [*storage.store().below("system/mlflow/registered_models/_delta_log")] == []


def test_a_file_that_is_gone_is_asked_for_twice(
    store: Store,
    bucket: Tables,
    s3: tuple[str, Mortal],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    run = store.api.new_run(store.api.new_experiment("s3"))
    bucket.follow()
    (lost,) = (
        file.key
        for file in storage.store().below("system/mlflow/runs_latest")
        if file.key.endswith(".parquet")
    )
    storage.store().delete(lost)
    monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path / "empty"))
    store.api.post("runs/update", run_id=run, status="FINISHED", end_time=1)
    _, mortal = s3
    mortal.requests.take()
    with pytest.raises(errors.ResourceDoesNotExist):
        bucket.follow()
    assert mortal.requests.take()[Asked("GET", "files of runs_latest")] == 2


def test_the_upkeep_merges_what_other_machines_published(
    store: Store, bucket: Tables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its own copy of the log is behind."""
    upkeep = pytest.importorskip("mltables.table_maintenance")
    experiment = store.api.new_experiment("s3")
    for number, machine in enumerate(("here", "there", "there"), start=1):
        monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path / machine))
        assert export(experiment, [span(f"{number:032x}", 1)]).status == 200
        bucket.follow()
    monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path / "here"))
    upkeep.maintain_tables()
    assert len(rows("traces")) == 3
    assert len([name for name in delta_readers.live_files() if name.startswith("part-a3-")]) == 2
