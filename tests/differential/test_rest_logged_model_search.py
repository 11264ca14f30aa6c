"""Searches of logged models through both servers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.calls import E, R, experiment, metric, pairs, run
from tests.differential.pair import Pair
from tests.differential.rest import Call, Ref, post

pytestmark = pytest.mark.e2e

LENIENT = frozenset({"partial parse"})
MANY = "name = 'a' and params.lr = '0.1' and tags.`t g`='x' and metrics.m > 4 and metrics.m < 2"
FILTERS = (
    *("name='a'", 'name="a"', "name = a", "`name`='a'", "attributes.name='a'", "NAME='a'"),
    *("attribute.name='a'", "name LIKE 'a%'", "name ilike 'B'", "name != 'a'", "name == 'a'"),
    *("name IN ('a','b')", "name NOT IN ('a')", "name in ('a')", "name IN ()", "name IN 'a'"),
    *("foo='a'", "status='READY'", "status=1", "status!='READY'", "status LIKE '1'"),
    *("model_type=''", "model_type!='t1'", "attributes.creation_time > 0", "creation_time > 0"),
    *("creation_timestamp>0", "creation_timestamp_ms>0", "creation_timestamp='0'"),
    *("creation_timestamp LIKE 1", "last_updated_timestamp<=99999999999999"),
    *("last_updated_time>0", "metrics.m>4", "metrics.m=0", "metrics.m=9", "metrics.m!=1"),
    *("metrics.m='9'", "metrics.m LIKE '9'", "metrics.`m`>4", "metrics.x>0"),
    *("metrics.m>4 AND metrics.m<2", "metrics.m>1 and name='a'", "metrics.m > nan"),
    *("params.lr='0.1'", "params.lr=0.1", 'params.lr="0.1"', "params.`lr`='0.1'"),
    *("params.lr LIKE '0%'", "params.lr!='0.1'", "params.lr>'0'", "params.lr IN ('0.1')"),
    *("tags.`t g`='x'", "tags.'t g'='x'", "tags.\"t g\"='x'", "tags.t='x'"),
    *("tags.`t g`='it''s'", "param.lr='0.1'", "params.lr IS NULL", "name IS NOT NULL"),
    *("name='a' OR name='b'", "(name='a')", "name='a';", "name='a'; name='b'", " ", "name"),
    *("name='a' AND", "AND name='a'", "name='a' name='b'", "'a'=name", "name NOT LIKE 'a'"),
    *("lifecycle_stage='active'", "artifact_location LIKE '%models%'", "metrics.m > -1"),
    *("metrics.m > 1e0", "metrics.m>+1", "metrics.m BETWEEN 1 AND 2", "metrics.m <> 1"),
    *("Metrics.m>1", "metrics.M>1", "status_message='x'", "status_message!='x'"),
    *("params.lr = 'a b'", "name RLIKE 'a'", "metrics.m >", "params.lr = ''", "name = ''"),
    *("tags.`t g` ILIKE 'IT%'", "model_type IN ('t1', 't2')", MANY),
)
DATASETS: tuple[Any, ...] = (
    [],
    [{"dataset_name": "d"}],
    [{"dataset_name": "d", "dataset_digest": "g"}],
    [{"dataset_name": "d", "dataset_digest": "g"}, {"dataset_name": "d", "dataset_digest": "h"}],
    [{"dataset_digest": "g"}],
    [{}],
    [{"dataset_name": ""}],
    "x",
)
FIELDS = (
    *("name", "metrics.m", "creation_time", "creation_timestamp_ms", "model_type"),
    *("source_run_id", "status", "lifecycle_stage", "status_message", "metrics.zzz"),
    *("last_updated_timestamp", "last_updated_time", "params.lr", "attributes.name", "Name"),
    *("nope", "", "tags", "metrics", "metrics.`m`"),
)
ORDERS: tuple[Any, ...] = (
    *(
        [{"field_name": name, "ascending": ascending}]
        for name in FIELDS
        for ascending in (True, False)
    ),
    [{"field_name": "metrics.m", "dataset_name": "d"}],
    [{"field_name": "metrics.m", "dataset_name": "d", "dataset_digest": "g"}],
    [{"field_name": "metrics.m", "dataset_digest": "h"}],
    [{"field_name": "name"}, {"field_name": "name", "ascending": False}],
    [{"field_name": "metrics.m"}, {"field_name": "metrics.m"}, {"field_name": "name"}],
    [{}],
    "x",
)


def search(permits: frozenset[str] = frozenset(), save: str = "", **fields: Any) -> Call:
    return post(
        "logged-models/search",
        {"experiment_ids": [E], **fields},
        permits=permits,
        saves={save: "next_page_token"} if save else None,
    )


def population() -> list[Call]:
    """Three models, of which one alone has an ambiguous latest value."""

    def model(name: str, model_type: str, rate: str, tag: str, source: Any = "") -> Call:
        body = {
            "experiment_id": E,
            "name": name,
            "model_type": model_type,
            "source_run_id": source,
            "params": pairs(lr=rate),
            "tags": pairs(**{"t g": tag}),
        }
        return post("logged-models", body, saves={f"model {name}": "model.info.model_id"})

    def log(name: str, value: Any, timestamp: int, step: int, **more: Any) -> Call:
        point = metric("m", value, timestamp, step)
        return post(
            "runs/log-metric", {"run_id": R, "model_id": Ref(f"model {name}"), **point, **more}
        )

    return [
        experiment(),
        run(),
        model("a", "t1", "0.1", "x", R),
        model("b", "t2", "0.2", "y"),
        model("B", "", "10", "it's"),
        log("a", 1, 1, 0),
        log("a", 5, 2, 0),
        log("b", 3, 1, 0),
        log("b", "NaN", 3, 0, dataset_name="d", dataset_digest="g"),
        log("a", 9, 0, 7, dataset_name="d", dataset_digest="h"),
    ]


def test_filters(both: Pair) -> None:
    both.send_all([*population(), *(search(filter=text) for text in FILTERS)])


def test_filters_of_ids(both: Pair) -> None:
    both.send_all(population())
    for text in (
        "model_id = '{model a}'",
        "attributes.model_id IN ('{model a}', '{model b}', 'x')",
        "attributes.model_id IN ('{model b}') AND metrics.m > 5",
        "model_id != '{model b}'",
        "source_run_id = '{run}'",
        "source_run_id = '{run}' AND metrics.m > 8",
        "source_run_id != '{run}'",
    ):
        for side in (both.stock, both.product):
            side.values["filter"] = text.format(**side.values)
        both.send(search(filter=Ref("filter")))


def test_datasets(both: Pair) -> None:
    calls = [
        search(datasets=datasets, filter=text)
        for datasets in DATASETS
        for text in ("", "metrics.m > 1", "metrics.m > 0 AND name = 'a'", "name = 'b'")
    ]
    both.send_all([*population(), *calls])


def test_orders(both: Pair) -> None:
    both.send_all([*population(), *(search(order_by=order) for order in ORDERS)])


def test_pages(both: Pair) -> None:
    both.send_all(
        [
            *population(),
            *(search(max_results=number) for number in (0, 1, 2, 3, 100_000, "2", "x", None)),
            *(search(max_results=number, permits=LENIENT) for number in (2.5, 10**10)),
            *(search(experiment_ids=ids) for ids in (["98765432"], [E, E], [], None, "x", [1])),
            search(max_results=1, save="token"),
            search(max_results=1, page_token=Ref("token"), save="second"),
            search(max_results=1, page_token=Ref("second")),
            search(max_results=5, page_token=Ref("token")),
            search(page_token=Ref("token"), filter="name='a'"),
            search(page_token=Ref("token"), order_by=[{"field_name": "name"}]),
            search(page_token="eA=="),
            search(page_token=5),
        ]
    )
    order = [{"field_name": "metrics.m", "ascending": False}]
    both.send_all(
        [
            search(order_by=order, max_results=1, save="token"),
            search(order_by=order, max_results=1, page_token=Ref("token"), save="second"),
            search(order_by=order, max_results=1, page_token=Ref("second")),
        ]
    )
