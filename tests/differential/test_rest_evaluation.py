"""Evaluation datasets with their records, and scorers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.differential.calls import E, experiment, name
from tests.differential.pair import Pair
from tests.differential.rest import Call, Ref

pytestmark = pytest.mark.e2e
V3 = "/api/3.0/mlflow/"
D, NO_DATASET = Ref("dataset"), "d-" + "1" * 32
JUDGE = '{"instructions_judge_pydantic_data": {"instructions": "x", "model": "openai:/gpt"}}'


def send(method: str, path: str, body: Any = None, **more: Any) -> Call:
    return Call(method, V3 + path, {} if body is None else body, **more)


def read(path: str, **query: Any) -> Call:
    return Call("GET", V3 + path, query=query)


def create(dataset: str, **more: Any) -> Call:
    body = {"name": dataset, **more}
    return send("POST", "datasets/create", body, saves={"dataset": "dataset.dataset_id"})


def records(*items: Any, of: str = "{{dataset}}") -> Call:
    return send("POST", f"datasets/{of}/records", {"records": json.dumps(items)})


SHOWN = (read("datasets/{{dataset}}"), read("datasets/{{dataset}}/records"))


def test_datasets(both: Pair) -> None:
    tags = json.dumps({"a": "b", "mlflow.user": "bob"})
    both.send_all(
        [
            experiment(),
            experiment("other"),
            create(name(), experiment_ids=[E, "7777777"], tags=tags),
            read("datasets/{{dataset}}/experiment-ids"),
            *SHOWN,
            *(create("x", tags=text) for text in ("[1]", "no JSON", '"text"')),
            create(""),
            send("POST", "datasets/create", {"name": 5}),
            read(f"datasets/{NO_DATASET}"),
            read(f"datasets/{NO_DATASET}/experiment-ids"),
            *(
                send("PATCH", f"datasets/{dataset}/tags", body)
                for dataset in ("{{dataset}}", NO_DATASET)
                for body in (
                    {"tags": '{"a": null, "n": 5, "t": true, "o": {"x": [1]}}'},
                    {},
                )
            ),
            *SHOWN,
            *(
                send("DELETE", f"datasets/{dataset}/tags/{key}")
                for dataset in ("{{dataset}}", NO_DATASET)
                for key in ("n", "n", "none")
            ),
            *(
                send("POST", f"datasets/{dataset}/{verb}-experiments", {"experiment_ids": ids})
                for dataset in ("{{dataset}}", NO_DATASET)
                for verb in ("add", "remove")
                for ids in ([], [Ref("other")], [Ref("other"), E], ["9" * 9])
            ),
            read("datasets/{{dataset}}/experiment-ids"),
            *SHOWN,
            send("DELETE", "datasets/{{dataset}}"),
            send("DELETE", "datasets/{{dataset}}"),
            *SHOWN,
        ]
    )


def test_records(both: Pair) -> None:
    human = {"source_type": "human", "source_data": {"source_id": "me"}}
    trace = {"source_type": "TRACE", "source_data": {"trace_id": "tr-1"}}
    user = {"mlflow.user": "ann"}
    both.send_all(
        [
            create(name()),
            records(),
            *SHOWN,
            records({"inputs": {"q": 1, "z": None}, "expectations": {"e": [1]}, "tags": user}),
            records(
                {"inputs": {"z": None, "q": 1}, "outputs": {"t": "x"}, "expectations": {"f": {}}}
            ),
            *SHOWN,
            records({"inputs": {"q": 1, "z": None}, "outputs": None, "tags": {"k": "v"}}),
            records({"inputs": {"q": 2.5}, "outputs": {"o": True}, "source": human}),
            records({"inputs": {"q": "x"}, "source": trace}, {"inputs": {"q": "x"}, "tags": user}),
            records({"inputs": {"q": "x"}, "source": human}),
            records({"inputs": {"u": 1}, "source": {"source_type": "unspecified"}}),
            *SHOWN,
            read("datasets/{{dataset}}/records", max_results=2),
            read("datasets/{{dataset}}/records", max_results=0),
            records({}),
            records({"inputs": {"q": 3}, "source": {"source_type": "nothing"}}),
            *(
                records(wrong)
                for wrong in (
                    1,
                    {"inputs": [1]},
                    {"inputs": {"b": 1}, "expectations": [1]},
                    {"inputs": {"b": 1}, "source": "text"},
                    {"inputs": {"b": 1}, "source": {"kind": "HUMAN"}},
                )
            ),
            *(
                send("POST", "datasets/{{dataset}}/records", body)
                for body in ({}, {"records": ""}, {"records": "{}"}, {"records": "no JSON"})
            ),
            *SHOWN,
            records(of=NO_DATASET),
            records({"inputs": {"q": 1}}, of=NO_DATASET),
            read(f"datasets/{NO_DATASET}/records"),
            *(
                send("DELETE", f"datasets/{dataset}/records", {"dataset_record_ids": ids})
                for dataset in ("{{dataset}}", NO_DATASET)
                for ids in ([], ["dr-none"])
            ),
            *SHOWN,
        ]
    )
    for side in (both.stock, both.product):
        shown = side.send(read("datasets/{{dataset}}/records"))
        ids = [each["dataset_record_id"] for each in json.loads(shown.body["records"])]
        side.values["ids"] = [*ids, ids[0], "dr-none"]
        side.values["first"] = ids[:1]
    deleting = send("DELETE", "datasets/{{dataset}}/records", {"dataset_record_ids": Ref("first")})
    everything = send("DELETE", "datasets/{{dataset}}/records", {"dataset_record_ids": Ref("ids")})
    both.send_all([deleting, deleting, everything, *SHOWN, everything, *SHOWN])
    both.send_all([records({"inputs": {"again": 1}}), *SHOWN])


def test_search_datasets(both: Pair) -> None:
    start = name()

    def search(filter_string: str = "", **more: Any) -> Call:
        alone = f"name LIKE '{start}%'"
        joined = f"{filter_string} AND {alone}" if filter_string else alone
        body = {"filter_string": joined, "order_by": ["name"], **more}
        return send("POST", "datasets/search", body)

    def only(filter_string: str) -> Call:
        return send("POST", "datasets/search", {"filter_string": filter_string})

    both.send_all(
        [
            experiment(),
            *(
                create(
                    f"{start}-{letter}",
                    experiment_ids=[E] if letter in "bc" else [],
                    tags=json.dumps({"k": letter, "mlflow.user": letter.upper()}),
                )
                for letter in "abcde"
            ),
            search(),
            search(experiment_ids=[E]),
            search(experiment_ids=["9" * 9]),
            *(search(max_results=most) for most in (1, 0, -1, 50_001, "x")),
            *(
                search(text)
                for text in (
                    f"name = '{start}-a'",
                    f"name != '{start}-a'",
                    f"name ILIKE '{start.upper()}-B'",
                    f"name IN ('{start}-a', '{start}-c')",
                    f"name > '{start}-c'",
                    "tags.k = 'b'",
                    "tags.k != 'b'",
                    "tags.k LIKE '%'",
                    "tags.none = 'b'",
                    "created_by = 'D'",
                    "last_updated_by ILIKE 'd'",
                    "created_time > 5",
                    "last_update_time <= 5",
                )
            ),
            *(
                search(order_by=order)
                for order in (
                    ["name DESC"],
                    ["name", "created_time DESC"],
                    ["colour"],
                    ["dataset_id"],
                    ["tags.k"],
                    ["name SIDEWAYS"],
                )
            ),
            *(
                only(text)
                for text in (
                    "colour = 'x'",
                    "attributes.name = 'x'",
                    "name = x",
                    "name",
                    "name = 'a' OR name = 'b'",
                    "created_by IN ('a')",
                    "created_time = 'x'",
                    "created_time > 1.5",
                    "created_time LIKE 'x'",
                    "tags.k > 'b'",
                    "tags.k = 5",
                )
            ),
            search(page_token="no token"),
            read("datasets/search", filter_string=f"name = '{start}-e'", max_results=5),
        ]
    )


def scorer(verb: str, method: str = "GET", **fields: Any) -> Call:
    given = {"experiment_id": E, "name": "judge", **fields}
    kept = {key: value for key, value in given.items() if value is not None}
    if method == "GET":
        return Call(method, f"{V3}scorers/{verb}", query=kept)
    return Call(method, f"{V3}scorers/{verb}", kept)


def register(**fields: Any) -> Call:
    return scorer("register", "POST", **{"serialized_scorer": JUDGE, **fields})


def test_scorers(both: Pair) -> None:
    nested = '{"ensemble_scorer_data": {"scorers": [{"call_source": "1"}]}}'
    third = '{"third_party_scorer_data": {"kwargs": {"a": [["api_base", "x"]]}}}'
    both.send_all(
        [
            experiment(),
            experiment("gone"),
            Call("POST", "/api/2.0/mlflow/experiments/delete", {"experiment_id": Ref("gone")}),
            register(),
            register(),
            register(name="a/b c#d"),
            register(name=" "),
            register(name=""),
            register(experiment_id="9" * 9),
            register(experiment_id=Ref("gone")),
            register(experiment_id=None),
            *(
                register(serialized_scorer=text)
                for text in (
                    "no JSON",
                    "[]",
                    "",
                    '{"call_source": "x"}',
                    nested,
                    third,
                    '{"third_party_scorer_data": {"kwargs": []}}',
                    '{"builtin_scorer_pydantic_data": {"model": " "}}',
                    '{"builtin_scorer_pydantic_data": {"model": 5}}',
                    '{"builtin_scorer_pydantic_data": {"model": "gateway:/none"}}',
                    '{"memory_augmented_judge_data": {"base_judge": '
                    '{"instructions_judge_pydantic_data": {"model": "gateway://none"}}}}',
                )
            ),
            scorer("list", name=None),
            scorer("list", name=None, experiment_id=Ref("gone")),
            scorer("list", name=None, experiment_id="9" * 9),
            scorer("list", name=None, experiment_id=None, experiment_ids=[E, Ref("gone")]),
            scorer("list", name=None, experiment_ids=[E]),
            scorer("versions"),
            scorer("versions", name="none"),
            *(scorer("get", version=version) for version in (None, 1, 2, 3, 0, "x")),
            scorer("get", name="none"),
            scorer("get", name="a/b c#d"),
            *(
                scorer("online-config", "PUT", sample_rate=rate, **more)
                for rate, more in (
                    (0.5, {}),
                    (2, {}),
                    (None, {}),
                    (0.5, {"name": "none"}),
                    (0.5, {"filter_string": "bad"}),
                )
            ),
            Call("GET", f"{V3}scorers/online-configs", query={"scorer_ids": ["x", "y"]}),
            scorer("delete", "DELETE", version=1),
            scorer("delete", "DELETE", version=1),
            scorer("versions"),
            register(),
            scorer("delete", "DELETE", version=3),
            register(),
            scorer("list", name=None),
            scorer("delete", "DELETE"),
            scorer("delete", "DELETE"),
            scorer("delete", "DELETE", name="none", version=1),
            scorer("list", name=None),
            register(),
        ]
    )
