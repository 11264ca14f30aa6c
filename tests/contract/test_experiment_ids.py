"""Experiments have small numbers, each given out once; who repeats a creation finds its own."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from mlcore.db import capacity, keys
from mlcore.db import table as table_module
from mlcore.db.client import client
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.ids import now_ms
from mlcore.repos import document
from mlcore.repos.experiments import creations as experiment_creations
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments import ids as experiment_ids
from operate.transfer.experiments import Experiments
from operate.transfer.journal import Journal
from operate.transfer.transfer_item import differences
from tests.contract.api import Api, pairs
from tests.contract.conftest import EXAMPLES, Store
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles

LONG_ID = "01JCAB3DEFGHJKMNPQRSTVWXYZ"
ROUND_TRIPS = 2
TRANSACTION = frozenset({"TransactWriteItems"})
NUMBERS = 300


def imported(experiment_id: str, name: str, creation_time: int = 5, **tags: str) -> None:
    experiments.create(
        Experiment(
            *(experiment_id, name, f"mlflow-artifacts:/{experiment_id}", ACTIVE),
            *(creation_time, creation_time, tags, "default"),
        )
    )


def listed(api: Api, **fields: Any) -> list[str]:
    """The ids of a search of all experiments, page by page."""
    results: list[str] = []
    token = ""
    while True:
        page = api.post("experiments/search", page_token=token, max_results=2, **fields)
        results += [experiment["experiment_id"] for experiment in page.get("experiments", ())]
        token = page.get("next_page_token", "")
        if not token:
            return results


def test_they_count_from_one(store: Store) -> None:
    api = store.api
    assert [api.new_experiment(f"e{n}") for n in range(1, 4)] == ["1", "2", "3"]
    assert api.cost.round_trips == ROUND_TRIPS
    refused = api.ask("POST", "experiments/create", name="e2")
    assert (refused.status, refused.code) == (400, "RESOURCE_ALREADY_EXISTS")
    assert int(api.new_experiment("e4")) > 3
    (counter,) = [item for item in store.items() if item["PK"]["S"] == "CTR"]
    assert counter["type"] == {"S": "id_counter"}
    assert counter["contexts"] == {"N": "5"}


def test_creators_side_by_side_never_share_a_number(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: store.api.new_experiment(f"e{n}"), range(80)))
    assert sorted(map(int, made)) == list(range(1, 81))


def test_a_number_that_is_taken_is_skipped(store: Store) -> None:
    """Imported experiments keep their numbers, so the first numbers may already be taken."""
    api = store.api
    for number in range(1, NUMBERS + 1):
        imported(str(number), f"imported {number}")
    with capacity.measure() as cost:
        made = experiment_ids.unused_ids()
        first = int(
            next(made_id for made_id in made if experiments.find(made_id, "default") is None)
        )
    assert NUMBERS < first < 3 * NUMBERS
    assert cost.round_trips < 30
    following = [int(api.new_experiment(f"own {n}")) for n in range(3)]
    assert following[0] > first
    assert len(set(following)) == 3
    assert api.cost.round_trips == ROUND_TRIPS
    kept = [api.get("experiments/get", experiment_id=str(n))["experiment"] for n in (1, NUMBERS)]
    assert [experiment["name"] for experiment in kept] == ["imported 1", f"imported {NUMBERS}"]


@pytest.mark.parametrize("taken", ["1", "2"])
def test_what_a_skipped_number_has_is_left_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    """Also by tags that are written before the experiment, because it has no room for them."""
    monkeypatch.setattr(document, "INLINE_BYTES", 1000)
    api = store.api
    imported(taken, "theirs", a="x" * 900, b="y" * 900)
    made = [
        api.new_experiment(f"mine {n}", tags=pairs({"a": "1" * 900, "b": "2" * 900}))
        for n in range(2)
    ]
    assert taken not in made
    theirs = api.get("experiments/get", experiment_id=taken)["experiment"]
    assert {tag["key"]: tag["value"] for tag in theirs["tags"]} == {"a": "x" * 900, "b": "y" * 900}


def test_numbers_go_on_behind_what_is_imported(store: Store) -> None:
    for experiment_id in ("40", "7", LONG_ID, "823149582371645290", "2147483647"):
        experiment_ids.advance_past(experiment_id)
    assert store.api.new_experiment("next") == "41"
    experiment_ids.advance_past("12")
    assert store.api.new_experiment("again") == "42"


def test_ids_of_every_form_are_found_and_ordered(store: Store) -> None:
    api = store.api
    made = [api.new_experiment(f"e{n}") for n in range(11)]
    imported(LONG_ID, "from before", creation_time=now_ms())
    imported("823149582371645290", "from files", creation_time=now_ms())
    imported("team_a-2", "by hand", creation_time=now_ms())
    ordered = ["0", LONG_ID, "team_a-2", *made, "823149582371645290"]
    assert listed(api, order_by=["experiment_id ASC"]) == ordered
    assert listed(api, order_by=["experiment_id DESC"]) == ordered[::-1]
    for experiment_id in ordered:
        experiment = api.get("experiments/get", experiment_id=experiment_id)["experiment"]
        assert experiment["experiment_id"] == experiment_id
        run_id = api.new_run(experiment_id)
        searched = api.post("runs/search", experiment_ids=[experiment_id], max_results=5)
        assert [run["info"]["run_id"] for run in searched["runs"]] == [run_id]
        assert api.run(run_id)["info"]["experiment_id"] == experiment_id


@pytest.mark.parametrize("absent", ["x", "team_a-2", LONG_ID])
def test_a_text_that_no_experiment_has_is_no_id(store: Store, absent: str) -> None:
    """As on MLflow's server, whose ids are numbers; unknown numbers are missing."""
    api = store.api
    text = f"Invalid experiment ID '{absent}'. Experiment ID must be a valid integer."
    for method, path, fields in (
        ("GET", "experiments/get", {"experiment_id": absent}),
        ("POST", "experiments/search", {"filter": f"experiment_id = '{absent}'", "max_results": 1}),
        ("POST", "runs/create", {"experiment_id": absent}),
        ("POST", "runs/search", {"experiment_ids": ["0", absent]}),
        ("POST", "logged-models/search", {"experiment_ids": [absent]}),
        ("POST", "experiments/search-datasets", {"experiment_ids": [absent]}),
    ):
        answer = api.ask(method, path, **fields)
        assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE"), path
        assert answer.body["message"] == text, path
    answer = api.ask("GET", "experiments/get", experiment_id="77")
    assert (answer.status, answer.code) == (404, "RESOURCE_DOES_NOT_EXIST")
    assert api.post("runs/search", experiment_ids=["77"]) == {}


def test_default_is_the_oldest(store: Store) -> None:
    """Though nobody has looked for it before."""
    made = []
    for number in range(3):
        made.append(store.api.new_experiment(f"e{number}"))
        time.sleep(0.002)  # the order is that of milliseconds
    assert listed(store.api) == [*made[::-1], "0"]


def test_default_is_older_than_what_was_imported(store: Store) -> None:
    for number, made_at in (("9", 2_000), ("7", 1_000), ("8", 3_000)):
        experiment_ids.advance_past(number)
        experiment_ids.note_creation_time(made_at)
        imported(number, f"e{number}", creation_time=made_at)
    assert listed(store.api) == ["8", "9", "7", "0"]


def test_an_import_keeps_ids_and_creation_goes_on_behind_them(store: Store) -> None:
    api = store.api
    assert [api.new_experiment(name) for name in ("mine", "both")] == ["1", "2"]
    at_source = [("0", "Default"), ("1", "theirs"), ("7", "kept"), (LONG_ID, "old"), ("9", "both")]
    target = Experiments(Journal(None), write=True)
    for experiment_id, name in at_source:
        source = Experiment(
            *(experiment_id, name, f"mlflow-artifacts:/{experiment_id}", ACTIVE),
            *(1_000, 1_000, {}, "default"),
        )
        item = target.item(source)
        if differences(item, item.want(), item.have()):
            item.write(item.want(), item.have())
        assert differences(item, item.want(), item.have()) == []
    moved = target.target_of("1")
    assert moved not in ("1", "2", "7", "9")
    assert [target.target_of(source_id) for source_id in ("0", "7", LONG_ID, "9")] == [
        "0",
        "7",
        LONG_ID,
        "2",
    ]
    # 9 is free, but files of what came into 2 lie below it.
    assert int(api.new_experiment("next")) > 9
    assert api.cost.round_trips == ROUND_TRIPS
    comparing = Experiments(Journal(None), write=False)
    before = store.items()
    for experiment_id, name in at_source:
        there = Experiment(experiment_id, name, "", ACTIVE, 1_000, 1_000, {}, "default")
        comparing.item(there)
    assert store.items() == before


@pytest.fixture
def unreliable(broken: tuple[Api, Doubles], monkeypatch: pytest.MonkeyPatch) -> tuple[Api, Doubles]:
    monkeypatch.setattr(table_module, "back_off", lambda _attempt: None)
    monkeypatch.setattr(experiment_creations, "back_off", lambda _attempt: None)
    return broken


@pytest.mark.parametrize("fault", [Fault.DEAD_AFTER, Fault.DEAD])
def test_a_creation_that_was_answered_with_an_error_is_found_by_its_repetition(
    unreliable: tuple[Api, Doubles], fault: Fault
) -> None:
    api, doubles = unreliable
    body = {"name": "mine", "tags": pairs({"a": "b"})}
    doubles.faulty.arm(fault, 1, TRANSACTION)
    for _ in range(3):
        assert api.ask("POST", "experiments/create", **body).status == 503
    doubles.faulty.heal()
    other = api.ask("POST", "experiments/create", name="mine", tags=pairs({"a": "other"}))
    expected = "RESOURCE_ALREADY_EXISTS" if fault is Fault.DEAD_AFTER else ""
    assert other.code == expected
    if fault is Fault.DEAD:
        # Another was faster.
        assert api.ask("POST", "experiments/create", **body).code == "RESOURCE_ALREADY_EXISTS"
        return
    assert api.post("experiments/create", **body) == {"experiment_id": "1"}
    again = api.ask("POST", "experiments/create", **body)
    assert again.code == "RESOURCE_ALREADY_EXISTS", "the second wish for a name is another's"
    experiment = api.get("experiments/get-by-name", experiment_name="mine")["experiment"]
    assert experiment["experiment_id"] == "1"


def test_an_answer_that_is_lost_costs_no_error(unreliable: tuple[Api, Doubles]) -> None:
    api, doubles = unreliable
    for number, fault in enumerate((Fault.ANSWER_LOST, Fault.ANSWER_500, Fault.REPEATED)):
        doubles.faulty.arm(fault, 1, TRANSACTION)
        assert api.new_experiment(f"e{number}") == str(number + 1)
        assert doubles.faulty.fired


@pytest.fixture
def storm(store: Store, monkeypatch: pytest.MonkeyPatch) -> random.Random:
    """Every fifth call of DynamoDB fails even after its repetitions, half of them executed."""
    rng = random.Random(5)
    real = client()

    class Unreliable:
        def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
            lot = rng.random()
            answer = real.call(operation, parameters) if lot > 0.1 else {}
            if lot < 0.2:
                raise ConnectionClosedError(endpoint_url=store.endpoint)
            return answer

    monkeypatch.setattr(table_module, "client", Unreliable)
    monkeypatch.setattr(experiment_creations, "back_off", lambda _attempt: None)
    return rng


def test_nobody_hears_that_an_own_creation_exists(
    store: Store, storm: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_creations, "ATTEMPTS", 1)  # so that many errors are answered
    made = []
    repeated = 0
    for number in range(100 * EXAMPLES):
        answer = store.api.ask("POST", "experiments/create", name=f"e{number}")
        while answer.status in (429, 503):
            repeated += 1
            answer = store.api.ask("POST", "experiments/create", name=f"e{number}")
        assert answer.status == 200, answer
        made.append(answer.body["experiment_id"])
    assert repeated > 20
    monkeypatch.undo()
    assert len(set(made)) == len(made)
    held = [item for item in store.items() if item["type"]["S"] == keys.EXPERIMENT.name]
    assert sorted(item["experiment_id"]["S"] for item in held) == sorted(made)
