"""Runs are written to without being read first: what is answered with success is there, what is
refused is not, whoever writes, deletes and restores in other processes meanwhile."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lander.app
from indexer.history import history_packing
from indexer.verification import rebuild
from mlcore.db import keys
from mlcore.db.table import key_of_item, table
from mlcore.process_cache import ProcessCache
from mlcore.repos.runs.core import cached_run_writes, run_cache
from mlcore.repos.runs.core.marked_runs import MarkedRuns
from mlcore.system_tables import landing_objects
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, examples
from tests.contract.index_state import deliver
from tests.contract.interleaved_calls import interleaved
from tests.contract.streams import Record, following

_names = itertools.count()
_steps = itertools.count(1)

SENT = st.lists(
    st.sampled_from(["metric", "batch", "param", "tag", "points", "curve"]), min_size=1, max_size=5
)
STAGES = st.lists(
    st.tuples(st.sampled_from(["runs", "experiments"]), st.sampled_from(["delete", "restore"])),
    max_size=4,
)


class OfThread:
    """A memory that each thread has for itself, as each process has."""

    def __init__(self, of: ProcessCache[Any, Any]) -> None:
        self._of = of
        self._local = threading.local()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mine(), name)

    def __contains__(self, key: Any) -> bool:
        return key in self._mine()

    def _mine(self) -> ProcessCache[Any, Any]:
        if not hasattr(self._local, "memory"):
            noun = f"{self._of._noun} {next(_names)}"
            self._local.memory = ProcessCache[Any, Any](noun, seconds=self._of._seconds)
        memory: ProcessCache[Any, Any] = self._local.memory
        return memory


@contextlib.contextmanager
def processes() -> Iterator[None]:
    """Each thread is a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_cache, "_known", OfThread(run_cache._known))
        patch.setattr(cached_run_writes, "_shared", OfThread(cached_run_writes._shared))
        yield


class Writer:
    """Logs what nobody else logs, and notes what was answered."""

    def __init__(self, api: Api, run_id: str) -> None:
        self._api = api
        self._run_id = run_id
        self.answered: dict[int, int] = {}
        """Status by step, the param and the tag of the same number; none where it was killed."""
        self.sent: dict[int, str] = {}

    def write(self, acts: list[str]) -> Callable[[], None]:
        def write() -> None:
            for what in acts:
                self._act(what)

        return write

    def _act(self, what: str) -> None:
        step = next(_steps)
        self.sent[step] = what
        point = {"key": "m", "value": 0.5, "timestamp": 1, "step": step}
        points: list[dict[str, Any]] = [point]
        match what:
            case "metric":
                path, fields = "runs/log-metric", point
            case "param":
                path, fields = "runs/log-parameter", {"key": f"p{step}", "value": "v"}
            case "tag":
                path, fields = "runs/set-tag", {"key": f"t{step}", "value": "v"}
            case "batch":
                path = "runs/log-batch"
                fields = {
                    "metrics": points,
                    "params": pairs({f"p{step}": "v"}),
                    "tags": pairs({f"t{step}": "v"}),
                }
            case _:
                points += [{**point, **({"key": "n"} if what == "points" else {"timestamp": 2})}]
                path, fields = "runs/log-batch", {"metrics": points}
        self.answered[step] = self._api.ask("POST", path, run_id=self._run_id, **fields).status


def shown(api: Api, run_id: str) -> dict[str, set[int]]:
    """The numbers of what can be seen, by kind."""
    data = api.data(run_id)
    return {
        "m": {point[1] for point in api.history(run_id, "m")},
        "n": {point[1] for point in api.history(run_id, "n")},
        "u": {step for timestamp, step, _ in api.history(run_id, "m") if timestamp == 2},
        "p": {int(key[1:]) for key in data["params"]},
        "t": {int(key[1:]) for key in data["tags"] if key[1:].isdecimal()},
    }


LEAVES = {"metric": "m", "batch": "mpt", "param": "p", "tag": "t", "points": "mn", "curve": "mu"}


def check(api: Api, run_id: str, writers: list[Writer]) -> None:
    steps = shown(api, run_id)
    for writer in writers:
        for step, what in writer.sent.items():
            status = writer.answered.get(step)
            for kind in LEAVES[what] if status is not None else "":
                assert (step in steps[kind]) == (status == 200), (step, what, status, steps)
    latest = api.data(run_id)["metrics"]
    for key in "mn":
        assert latest.get(key, (0, 0, 0))[2] == max(steps[key], default=0), (key, latest, steps)


@examples(25)
@given(
    left=SENT,
    right=SENT,
    stages=STAGES,
    order=st.lists(st.integers(0, 3), max_size=80),
    deaths=st.dictionaries(st.integers(0, 1), st.integers(1, 12), max_size=1),
)
def test_whatever_others_do(
    shared_store: Store,
    left: list[str],
    right: list[str],
    stages: list[tuple[str, str]],
    order: list[int],
    deaths: dict[int, int],
) -> None:
    api = shared_store.api
    records: list[Record] = []
    with following(shared_store, latest=True) as stream, processes():
        experiment_id = api.new_experiment(f"unread {next(_names)}")
        run_id = api.new_run(experiment_id)
        writers = [Writer(api, run_id), Writer(api, run_id)]

        def others() -> None:
            for noun, verb in stages:
                named = {"run_id": run_id} if noun == "runs" else {"experiment_id": experiment_id}
                api.ask("POST", f"{noun}/{verb}", **named)

        def follow(times: int = 4) -> None:
            for _ in range(times):
                records.extend(stream.fresh())
                del records[: deliver(list(records))]

        actors = [writers[0].write(left), writers[1].write(right), others, follow]
        interleaved(order, actors, deaths=deaths)
        follow(2)
        check(api, run_id, writers)
        api.ask("POST", "experiments/restore", experiment_id=experiment_id)
        api.ask("POST", "runs/restore", run_id=run_id)
        api.end(run_id)
        follow(2)
        assert records == []
        check(api, run_id, writers)
        assert rebuild.verify(experiment_id, patience=0).findings == []


@pytest.fixture
def refused(shared_store: Store) -> Iterator[tuple[str, str, list[Record]]]:
    """A run, its experiment, and what the stream tells of points that were logged to it after
    another process had deleted it."""
    api = shared_store.api
    with following(shared_store, latest=True) as stream, processes():
        experiment_id = api.new_experiment(f"unread {next(_names)}")
        run_id = api.new_run(experiment_id)
        api.post("runs/log-metric", run_id=run_id, key="m", value=1, timestamp=1, step=1)
        elsewhere = threading.Thread(target=partial(api.post, "runs/delete", run_id=run_id))
        elsewhere.start()
        elsewhere.join()
        stream.fresh()
        answer = api.ask(
            "POST", "runs/log-metric", run_id=run_id, key="m", value=2, timestamp=1, step=2
        )
        assert answer.status == 400
        records = [
            record for record in stream.fresh() if "MBATCH" in record["dynamodb"]["Keys"]["SK"]["S"]
        ]
        yield experiment_id, run_id, records


def test_the_indexer_raises_nothing_to_refused_points(
    shared_store: Store, refused: tuple[str, str, list[Record]]
) -> None:
    """The record of the points comes in a batch before that of their refusal, and again when their
    item is gone."""
    experiment_id, run_id, (put, mark) = refused
    assert deliver([put]) == deliver([mark]) == 1
    history_packing.pack_runs([(experiment_id, run_id)], read=True)
    assert table.get(key_of_item(put["dynamodb"]["NewImage"])) is None
    assert deliver([put]) == 1
    assert shared_store.api.data(run_id)["metrics"]["m"][2] == 1
    assert shared_store.api.history(run_id, "m") == [(1, 1, 1)]


def test_a_run_is_marked_when_a_write_is_taken_back(
    shared_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The indexer has followed the run with what is taken back: what it ranked is wrong then."""
    api, take_back = shared_store.api, cached_run_writes._revert

    def elsewhere(path: str, **named: str) -> None:
        thread = threading.Thread(target=partial(api.post, path, **named))
        thread.start()
        thread.join()

    with following(shared_store, latest=True) as stream, processes():
        experiment_id = api.new_experiment(f"unread {next(_names)}")
        run_id = api.new_run(experiment_id)
        api.post("runs/log-metric", run_id=run_id, key="m", value=1, timestamp=1, step=1)
        elsewhere("experiments/delete", experiment_id=experiment_id)

        def marked() -> bool:
            runs = MarkedRuns(experiment_id)
            for read in runs.reads():
                read()
            return keys.run(experiment_id, run_id) in runs.runs()

        def late(*arguments: Any) -> None:
            elsewhere("runs/delete", run_id=run_id)
            records = stream.fresh()
            assert deliver(records) == len(records)
            assert not marked()
            take_back(*arguments)
            assert marked()
            done.append(True)

        done: list[bool] = []
        monkeypatch.setattr(cached_run_writes, "_revert", late)
        answer = api.ask(
            "POST", "runs/log-metric", run_id=run_id, key="m", value=2, timestamp=1, step=2
        )
        assert answer.status == 400
        assert done


def test_the_lander_lands_no_refused_points(
    refused: tuple[str, str, list[Record]], monkeypatch: pytest.MonkeyPatch
) -> None:
    landed: list[Any] = []
    monkeypatch.setattr(landing_objects, "put", lambda *_: None)
    monkeypatch.setattr(
        landing_objects,
        "encode",
        lambda points, _, refused: landed.append((len(list(points)), len(list(refused)))),
    )
    put, mark = refused[2]
    lander.app.land([put], "shard")
    lander.app.land([put, mark], "shard")
    lander.app.land([mark], "shard")
    assert landed == [(1, 0), (0, 1)]


def test_refused_points_may_be_sent_again(
    shared_store: Store, refused: tuple[str, str, list[Record]]
) -> None:
    """To the run when it was restored."""
    api, run_id = shared_store.api, refused[1]
    point = {"run_id": run_id, "key": "m", "value": 2, "timestamp": 1, "step": 2}
    api.post("runs/restore", run_id=run_id)
    for _ in range(2):
        api.post("runs/log-metric", **point)
        assert len(api.history(run_id, "m")) == 2
