"""Evaluation on the real engine: records that are sent again or side by side, names that only one
can have, pages, and what calls cost."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from mlcore.db import capacity
from mlcore.db import table as table_module
from tests.contract import trace_calls
from tests.contract.api import Answer, Api
from tests.contract.conftest import Store
from tests.contract.evaluation_calls import YES_NO, Fields, ask, new_dataset, sent, upsert
from tests.contract.interleaved_calls import Act, meetings
from tests.contract.threads import at_once
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles

HALF = "\ud800"
"""Half of a surrogate pair."""

LARGE = base64.b85encode(random.Random(5).randbytes(420_000)).decode()
"""A text that, also compressed, is larger than an item may be."""

WRITERS = 8


def state(dataset_id: str) -> list[Any]:
    """All that clients can see of a dataset, but for ids and the clock."""
    dataset = sent("GET", f"datasets/{dataset_id}")["dataset"]
    records = json.loads(sent("GET", f"datasets/{dataset_id}/records")["records"])
    shown = [
        {name: record[name] for name in ("inputs", "expectations", "tags") if name in record}
        for record in records
    ]
    return [
        sorted(map(json.dumps, shown)),
        {name: dataset.get(name) for name in ("tags", "schema", "profile", "last_updated_by")},
    ]


@pytest.fixture
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "back_off", lambda _attempt: None)


FIRST = ({"inputs": {"q": 1}, "expectations": {"e": 1}},)
SECOND = (
    {"inputs": {"q": 1}, "expectations": {"f": 2}, "tags": {"mlflow.user": "ann"}},
    {"inputs": {"q": 2}, "expectations": {"e": "x"}},
    {"inputs": {"q": 2}, "tags": {"k": "v"}},
)


@pytest.mark.usefixtures("_no_waiting")
def test_records_survive_a_fault_at_every_call(broken: tuple[Api, Doubles]) -> None:
    _, doubles = broken

    def made() -> str:
        dataset_id = new_dataset()
        assert upsert(dataset_id, *FIRST).status == 200
        return dataset_id

    dataset_id = made()
    before, kills_before = doubles.faulty.total, doubles.faulty.kills
    assert upsert(dataset_id, *SECOND).body == {"inserted_count": 1, "updated_count": 2}
    calls = doubles.faulty.total - before
    kills = doubles.faulty.kills - kills_before
    expected = state(dataset_id)
    for nth in range(1, calls + 1):
        kinds = (Fault.DEAD, Fault.DEAD_AFTER) if nth <= kills else ()
        for fault in (*kinds, Fault.ANSWER_LOST):
            dataset_id = made()
            doubles.faulty.arm(fault, nth)
            answer = upsert(dataset_id, *SECOND)
            doubles.faulty.heal()
            if answer.status != 200:
                assert answer.status in (429, 503), (fault, nth, answer)
                assert upsert(dataset_id, *SECOND).status == 200
            assert state(dataset_id) == expected, (fault, nth)


@pytest.mark.usefixtures("_no_waiting")
def test_a_deletion_that_was_cut_short_is_completed(broken: tuple[Api, Doubles]) -> None:
    _, doubles = broken
    for nth in range(1, 5):
        dataset_id = new_dataset()
        assert upsert(dataset_id, *SECOND).status == 200
        doubles.faulty.arm(Fault.DEAD, nth)
        ask("DELETE", f"datasets/{dataset_id}")
        doubles.faulty.heal()
        assert ask("DELETE", f"datasets/{dataset_id}").status == 200
        assert ask("GET", f"datasets/{dataset_id}").status == 404
        left = doubles.direct.scan(TableName=doubles.table, ConsistentRead=True)["Items"]
        assert [item for item in left if dataset_id in str(item)] == []


@pytest.mark.parametrize("upsert_first", [True, False])
def test_a_deletion_beside_an_upsert_leaves_nothing(store: Store, *, upsert_first: bool) -> None:
    made: list[str] = []

    def prepare() -> tuple[Act, Act]:
        dataset_id = new_dataset()
        made.append(dataset_id)
        assert upsert(dataset_id, *FIRST).status == 200
        acts = (
            lambda: upsert(dataset_id, *SECOND).status,
            lambda: ask("DELETE", f"datasets/{dataset_id}").status,
        )
        return acts if upsert_first else acts[::-1]

    answers = set()
    for statuses in meetings(prepare):
        answers |= set(statuses)
        left = [item for item in store.items() if made[-1] in str(item)]
        assert left == [], (len(made), statuses, left)
    assert answers == {200, 400}


def test_writers_of_the_same_records(store: Store) -> None:
    dataset_id = new_dataset()

    def write(writer: int) -> Answer:
        together: list[Fields] = [
            {"inputs": {"q": number}, "expectations": {f"e{writer}": number}} for number in range(5)
        ]
        return upsert(dataset_id, *together, {"inputs": {"own": writer}})

    answers = at_once(WRITERS, write)
    assert {answer.status for answer in answers} == {200}
    assert sum(answer.body["inserted_count"] for answer in answers) == 5 + WRITERS
    dataset = sent("GET", f"datasets/{dataset_id}")["dataset"]
    assert json.loads(dataset["profile"]) == {"num_records": 5 + WRITERS}
    assert len(json.loads(dataset["schema"])["expectations"]) == WRITERS
    records = json.loads(sent("GET", f"datasets/{dataset_id}/records")["records"])
    shared = [record for record in records if "q" in record["inputs"]]
    assert [len(record["expectations"]) for record in shared] == [WRITERS] * 5


def test_versions_of_one_scorer(store: Store) -> None:
    experiment_id = store.api.new_experiment("scored")
    body = {"experiment_id": experiment_id, "name": "s", "serialized_scorer": "{}"}
    made = at_once(WRITERS, lambda _: sent("POST", "scorers/register", body))
    assert sorted(scorer["version"] for scorer in made) == list(range(1, WRITERS + 1))
    assert len({scorer["scorer_id"] for scorer in made}) == 1


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("label-schemas/create", {"name": "good?", "type": "FEEDBACK", "input": YES_NO}),
        ("review-queues/create", {"name": "Friday", "queue_type": "CUSTOM"}),
    ],
)
def test_one_creator_of_a_name_wins(store: Store, path: str, fields: Fields) -> None:
    experiment_id = store.api.new_experiment("named")
    body = {"experiment_id": experiment_id, **fields}
    answers = at_once(WRITERS, lambda _: ask("POST", path, body))
    assert sorted(answer.code for answer in answers) == [
        "",
        *["RESOURCE_ALREADY_EXISTS"] * (WRITERS - 1),
    ]


def test_what_appears_at_first_sight_appears_once(store: Store) -> None:
    experiment_id = store.api.new_experiment("seen")
    listing: Callable[[int], Any] = lambda _: sent(  # noqa: E731
        "GET", "label-schemas/list", experiment_id=experiment_id
    )
    listed = at_once(WRITERS, listing)
    assert len({answer["label_schemas"][0]["schema_id"] for answer in listed}) == 1
    body = {"experiment_id": experiment_id, "user": "ann"}
    queues = at_once(WRITERS, lambda _: sent("POST", "review-queues/get-or-create-user", body))
    assert len({queue["review_queue"]["queue_id"] for queue in queues}) == 1


def test_pages_of_records_hold_each_once_in_order(store: Store) -> None:
    dataset_id = new_dataset()
    for start in (0, 10, 20):
        together = [{"inputs": {"q": number}} for number in range(start, start + 10)]
        assert upsert(dataset_id, *together).status == 200
    for size in (1, 7, 30, 1000):
        seen: list[int] = []
        token = ""
        while True:
            page = sent("GET", f"datasets/{dataset_id}/records", max_results=size, page_token=token)
            seen += [record["inputs"]["q"] for record in json.loads(page["records"])]
            token = page.get("next_page_token", "")
            if not token:
                break
        assert seen == list(range(30))


@pytest.mark.parametrize(
    "fields",
    [
        {"inputs": {"q": HALF}},
        {"inputs": {HALF: 1}},
        {"outputs": HALF},
        {"expectations": {HALF: HALF}},
        {"tags": {HALF: HALF}},
        {"source": {"source_type": "TRACE", "source_data": {"trace_id": HALF}}},
        {HALF: 1},
    ],
)
def test_records_may_hold_halves_of_surrogate_pairs(store: Store, fields: Fields) -> None:
    """As MLflow's server, whose database has the texts as JSON in ASCII."""
    dataset_id = new_dataset()
    assert upsert(dataset_id, {"inputs": {"q": "a"}, **fields}).status == 200
    listed = json.loads(sent("GET", f"datasets/{dataset_id}/records")["records"])
    known = {name: value for name, value in fields.items() if name != HALF}
    assert [{name: record[name] for name in known} for record in listed] == [known]
    assert sent("GET", f"datasets/{dataset_id}")["dataset"]["profile"] == '{"num_records": 1}'


@pytest.mark.parametrize(
    "record",
    [
        {"inputs": {"q": LARGE}},
        {"inputs": {"q": "b"}, "outputs": LARGE},
        {"inputs": {"q": "b"}, "tags": {"mlflow.user": LARGE}},
        {"inputs": dict.fromkeys((LARGE[at : at + 40] for at in range(0, len(LARGE), 40)), 1)},
    ],
    ids=["inputs", "outputs", "user", "fields"],
)
def test_records_are_stored_together_or_not_at_all(store: Store, record: Fields) -> None:
    dataset_id = new_dataset()
    upsert(dataset_id, {"inputs": {"q": "a"}, "tags": {"k": "v"}})
    before = state(dataset_id)
    small = [{"inputs": {"q": "a"}, "tags": {"k": "w"}}, {"inputs": {"q": "c"}}]
    refused = upsert(dataset_id, *small, record)
    assert (refused.status, refused.body["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert state(dataset_id) == before


def test_a_user_that_no_item_can_hold_is_refused(store: Store) -> None:
    dataset_id = new_dataset()
    refused = upsert(dataset_id, {"inputs": {"q": "a"}, "tags": {"mlflow.user": HALF}})
    assert (refused.status, refused.body["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert json.loads(sent("GET", f"datasets/{dataset_id}/records")["records"]) == []


def test_pages_of_datasets_and_issues(store: Store) -> None:
    experiment_id = store.api.new_experiment("paged")
    names = [f"d{number}" for number in range(7)]
    for name in names:
        new_dataset(name=name, experiment_ids=[experiment_id])
        fields = {"experiment_id": experiment_id, "name": name, "description": "d"}
        severity = {"severity": "low"} if name > "d3" else {}
        sent("POST", "issues", {**fields, **severity})
    orders = {"datasets": ({"order_by": ["name"]}, names), "issues": ({}, None)}
    for kind, (more, expected) in orders.items():
        whole: list[str] = []
        for size in (7, 1, 3):
            seen: list[str] = []
            body: Fields = {"max_results": size, **more}
            body |= (
                {"experiment_ids": [experiment_id]}
                if kind == "datasets"
                else {"experiment_id": experiment_id}
            )
            while True:
                page = sent("POST", f"{kind}/search", body)
                seen += [item["name"] for item in page.get(kind, [])]
                body["page_token"] = page.get("next_page_token", "")
                if not body["page_token"]:
                    break
            whole = whole or seen
            assert seen == whole
        assert sorted(whole) == names
        assert expected is None or whole == expected


def test_what_calls_cost(store: Store) -> None:
    experiment_id = store.api.new_experiment("counted")
    dataset_id = new_dataset(experiment_ids=[experiment_id])
    records = [{"inputs": {"q": number}} for number in range(20)]

    def round_trips(call: Callable[[], Any]) -> int:
        call()
        last = capacity.last_measurement()
        assert last is not None
        return last.round_trips

    scorer = {"experiment_id": experiment_id, "name": "s", "serialized_scorer": "{}"}
    assert round_trips(lambda: sent("GET", f"datasets/{dataset_id}")) == 1
    assert round_trips(lambda: sent("POST", "datasets/search", {})) == 1
    assert round_trips(lambda: upsert(dataset_id, *records)) == 6
    assert round_trips(lambda: sent("GET", f"datasets/{dataset_id}/records")) == 2
    assert round_trips(lambda: sent("POST", "scorers/register", scorer)) == 3
    assert round_trips(lambda: sent("GET", "scorers/list", experiment_id=experiment_id)) == 2


MOVED = {"updated_at", "version", "last_update_time", "digest", "data"}
"""What each write moves; records hold the time of their last change in ``data``."""
SAID_SO = {"RESOURCE_ALREADY_EXISTS", "RESOURCE_DOES_NOT_EXIST"}


def content(store: Store) -> dict[tuple[str, str], Fields]:
    return {
        (item["PK"]["S"], item["SK"]["S"]): {
            name: value for name, value in item.items() if name not in MOVED
        }
        for item in store.items()
    }


def test_a_write_that_is_sent_twice_is_done_once(store: Store) -> None:
    experiment_id = store.api.new_experiment("twice")
    here: Fields = {"experiment_id": experiment_id}
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": here}
    info = {"trace_id": "tr-1", "trace_location": location, "state": "OK"}
    info["request_time"] = "2026-01-01T00:00:00Z"
    assert trace_calls.ask("POST", "3.0/traces", {"trace": {"trace_info": info}}).status == 200
    dataset = f"datasets/{new_dataset(tags=json.dumps({'old': '1'}))}"
    named = {**here, "name": "s", "serialized_scorer": "{}"}
    for _ in range(2):
        sent("POST", "scorers/register", named)
    schema: Fields = {**here, "name": "q", "type": "FEEDBACK", "input": YES_NO}
    made = sent("POST", "label-schemas/create", schema)["label_schema"]
    schema_id = {"schema_id": made["schema_id"]}
    custom = {**here, "name": "Friday", "queue_type": "CUSTOM"}
    made = sent("POST", "review-queues/create", custom)["review_queue"]
    queue_id = {"queue_id": made["queue_id"]}
    results = {**here, "name": "n", "description": "d"}
    issue = f"issues/{sent('POST', 'issues', results)['issue']['issue_id']}"
    items = {**queue_id, "item_ids": ["tr-1"]}
    done = {**queue_id, "item_id": "tr-1", "status": "COMPLETE", "completed_by": "me"}
    records = {"records": json.dumps(SECOND)}
    for method, path, body in (
        ("PATCH", f"{dataset}/tags", {"tags": '{"k": "v"}'}),
        ("DELETE", f"{dataset}/tags/old", {}),
        ("POST", f"{dataset}/records", records),
        ("POST", f"{dataset}/add-experiments", {"experiment_ids": [experiment_id]}),
        ("POST", f"{dataset}/remove-experiments", {"experiment_ids": [experiment_id]}),
        ("DELETE", f"{dataset}/records", {"dataset_record_ids": ["dr-none"]}),
        ("DELETE", dataset, {}),
        ("DELETE", "scorers/delete", {**here, "name": "s", "version": 1}),
        ("DELETE", "scorers/delete", {**here, "name": "s"}),
        ("POST", "label-schemas/create", {**schema, "name": "other"}),
        ("PATCH", "label-schemas/update", {**schema_id, "name": "renamed"}),
        ("DELETE", "label-schemas/delete", schema_id),
        ("POST", "review-queues/create", {**custom, "name": "Sunday"}),
        ("POST", "review-queues/get-or-create-user", {**here, "user": "me"}),
        ("POST", "review-queues/update", {**queue_id, "name": "Monday"}),
        ("POST", "review-queues/items/add", items),
        ("POST", "review-queues/items/set-status", done),
        ("POST", "review-queues/items/remove", items),
        ("POST", "review-queues/delete", queue_id),
        ("PATCH", issue, {"status": "resolved"}),
    ):
        assert ask(method, path, body).status == 200, path
        before = content(store)
        again = ask(method, path, body)
        assert again.status == 200 or again.code in SAID_SO, (path, again)
        assert content(store) == before, path


def test_an_issue_is_read_together_with_its_experiment(store: Store) -> None:
    experiment_id = store.api.new_experiment("reviewed")
    fields = {"name": "i", "description": "d", "experiment_id": experiment_id}
    issue = sent("POST", "issues", fields)["issue"]
    assert sent("GET", f"issues/{issue['issue_id']}")["issue"] == issue
    cost = capacity.last_measurement()
    assert cost is not None
    assert cost.round_trips == 2  # where it is; it, and whose it is


@pytest.mark.usefixtures("store")
def test_an_id_with_spaces_names_no_other_experiments() -> None:
    """Who creates a dataset may name any id, and is not asked for the experiments 1 and 2."""
    given = ["1 2", "3\u00a04", "5%206", "7"]
    dataset_id = new_dataset(experiment_ids=given)
    assert sent("GET", f"datasets/{dataset_id}/experiment-ids")["experiment_ids"] == given
    for experiment_id in (*given, *"123456"):
        page = sent("POST", "datasets/search", {"experiment_ids": [experiment_id]})
        assert bool(page.get("datasets")) == (experiment_id in given), experiment_id
