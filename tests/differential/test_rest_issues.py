"""Issues: what is refused, what is kept, and which ones a search returns in which order."""

from __future__ import annotations

import json
import random
from typing import Any
from uuid import uuid4

import pytest

from tests.differential.calls import E, R, experiment, run
from tests.differential.pair import Pair
from tests.differential.rest import Call, Ref, Side
from tests.differential.review_traces import V3, send, trace

pytestmark = pytest.mark.e2e
GONE = Ref("gone")
LONG = "x" * 251
SEARCHES = 60


def read(path: str) -> Call:
    return Call("GET", V3 + path)


def deleted_experiment() -> list[Call]:
    deleting = Call("POST", "/api/2.0/mlflow/experiments/delete", {"experiment_id": GONE})
    return [experiment("gone"), deleting]


def issue(title: str, save: str = "issue", **fields: Any) -> Call:
    given = {"experiment_id": E, "name": title, "description": "d", **fields}
    body = {key: value for key, value in given.items() if value is not None}
    return send("POST", "issues", body, saves={save: "issue.issue_id"})


def search(**fields: Any) -> Call:
    return send("POST", "issues/search", {"experiment_id": E, **fields})


def update(**fields: Any) -> Call:
    return send("PATCH", "issues/{{issue}}", {"issue_id": Ref("issue"), **fields})


BAD_FIELDS: tuple[dict[str, Any], ...] = (
    *({"metadata": value} for value in ({"": "v"}, {"k" * 251: "v"}, {"k": "v" * 65_537}, [], 5)),
    *({"metadata": value} for value in ({"k": 5}, {"k": None}, {str(n): "" for n in range(101)})),
    *({"last_seen_timestamp": value} for value in (-1, 1.5, True, "x", "-1", 2**63, [])),
    *({"categories": value} for value in ([""], [LONG], ["c"] * 101, "c", [5])),
    *({"status": value} for value in ("open", "PENDING", "", "it's", 5)),
    *({"severity": value} for value in ("worst", "High", "", 5)),
    {"name": LONG},
    {"name": 5},
    {"metadata": {"k": 5}, "name": LONG, "status": "open"},
)
GOOD_FIELDS: tuple[dict[str, Any], ...] = (
    {"metadata": {"k": "v", "ü": ""}, "last_seen_timestamp": 1234, "categories": ["a", " A ", "a"]},
    {"metadata": {}, "last_seen_timestamp": "77", "categories": []},
    {"metadata": None, "last_seen_timestamp": None, "categories": None},
    {"status": "resolved", "severity": "not_an_issue", "name": "n" * 250},
)


ODD_FIELDS: tuple[dict[str, Any], ...] = (
    {"description": None},
    {"description": ""},
    {"experiment_id": None},
    {"experiment_id": "9" * 9},
    {"experiment_id": GONE},
    {"source_run_id": "r" * 32},
    {"source_run_id": Ref("elsewhere")},
    {"source_run_id": ""},
    {"root_causes": "x"},
    {"created_by": "x" * 256},
    {"issue_id": 5},
)


def test_create(both: Pair) -> None:
    both.send_all(
        [
            experiment(),
            experiment("other"),
            *deleted_experiment(),
            run(),
            run("elsewhere", "other"),
            issue("slow"),
            issue("wrong", "wrong", severity="high", status="resolved", source_run_id=R),
            issue("rude", "rude", root_causes=["a", "b"], created_by="me"),
            *(issue("odd", "none", **fields) for fields in (*GOOD_FIELDS, *BAD_FIELDS)),
            issue("", "none"),
            *(issue("a", "none", **fields) for fields in ODD_FIELDS),
            *(
                issue("a", "none", issue_id=text)
                for text in ("", "iss-", "iss-ü", "x", "iss-" + "x" * 33, "iss-a\n", "iss-a/b")
            ),
            read("issues/{{issue}}"),
            read("issues/iss-none"),
            search(),
        ]
    )


def test_chosen_ids(both: Pair) -> None:
    chosen = f"iss-_{uuid4().hex[:20]}"
    both.send_all(
        [
            experiment(),
            experiment("other"),
            issue("a", issue_id=chosen, metadata={"k": "v"}),
            issue("b", "none", issue_id=chosen),
            issue("b", "none", issue_id=chosen, experiment_id=Ref("other")),
            read(f"issues/{chosen}"),
            send("POST", "issues/search", {"experiment_id": Ref("other")}),
        ]
    )


CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"name": "slower", "description": "e", "severity": "medium"},
    {"description": ""},
    {"name": ""},
    {"status": "rejected"},
    {"categories": ["x", "x", "X"]},
    {"categories": None},
    {"categories": []},
    {"last_seen_timestamp": 40},
    {"last_seen_timestamp": "60"},
    {"last_updated_by": "you"},
    {"last_updated_by": "x" * 256},
    {"last_updated_by": ""},
    {"metadata": {"a": "3", "c": "4"}},
    {"delete_metadata_keys": ["b", "none"]},
    {"metadata": {"a": "5"}, "delete_metadata_keys": ["a"]},
    {"metadata": {str(n): "" for n in range(99)}},
    {"delete_metadata_keys": [""]},
    {"delete_metadata_keys": ["x"] * 101},
    {"delete_metadata_keys": "x"},
    {"delete_metadata_keys": ["a", "c"]},
    {"root_causes": ["ignored"], "source_run_id": "ignored"},
)


def test_update(both: Pair) -> None:
    both.send_all(
        [
            experiment(),
            issue("slow", created_by="me", last_seen_timestamp=50, metadata={"a": "1", "b": "2"}),
            *(update(**fields) for fields in (*CHANGES, *GOOD_FIELDS, *BAD_FIELDS)),
            send("PATCH", "issues/{{issue}}", {"issue_id": "iss-none", "name": "by its path"}),
            send("PATCH", "issues/iss-none", {"issue_id": "iss-none", "name": "x"}),
            read("issues/{{issue}}"),
        ]
    )


def test_refused_searches(both: Pair) -> None:
    both.send_all(
        [
            experiment(),
            *deleted_experiment(),
            issue("a", source_run_id=None),
            *(search(max_results=most) for most in (0, -1, 50_001, "x")),
            *(search(filter_string=text) for text in FILTERS),
            *(search(order_by=[text]) for text in ("foo", "name SIDEWAYS", "", "name asc desc")),
            *(search(order_by=value) for value in ("name", ["name"] * 101, [5])),
            *(search(statuses=value) for value in (["open"], "pending", ["pending"] * 101, [None])),
            *(search(severities=value) for value in (["worst"], ["low"] * 101)),
            *(search(categories=value) for value in ([""], [LONG], ["c"] * 101)),
            *(search(view=value) for value in ("whole", "", 5)),
            *(search(name=value) for value in (LONG, 5)),
            *(search(include_total_count=value) for value in ("x", 1)),
            *(search(include_trace_count=value) for value in ("x", 1)),
            search(page_token="x"),
            search(page_token="e30="),
            search(experiment_id="9" * 9),
            search(experiment_id=GONE),
        ]
    )


FILTERS = (
    "status = 'rejected'",
    "status != 'rejected'",
    "source_run_id = 'x'",
    "status = 'pending' AND source_run_id != 'x'",
    "severity = 'low'",
    "status LIKE 'r%'",
    "status = 'a' OR status = 'b'",
    *("status = rejected", 'status = "rejected"', "status != pending", "status = 1", "status = ''"),
    *("status IN ('rejected')", "source_run_id = f00d AND status = pending"),
)
FIELDS = (
    *("name", "status", "severity", "created_timestamp", "last_updated_timestamp"),
    "last_seen_timestamp",
)
STATUSES = ("pending", "rejected", "resolved")
SEVERITIES = (None, "not_an_issue", "low", "medium", "high")


def test_searches(both: Pair) -> None:
    """Random searches over forty issues, walked by pages of several sizes."""
    rng = random.Random(18)
    prefix = uuid4().hex[:8]
    both.send(experiment())
    names = ["Slow", "slow", "slow 2", "100%", "a_b", "ab", "É", "zed\\", "zzz"]
    for number in range(40):
        both.send(
            issue(
                f"{rng.choice(names)}{number if rng.random() < 0.4 else ''}",
                f"i{number}",
                issue_id=f"iss-{prefix}-{rng.randrange(1000):03}-{number}",
                status=rng.choice(STATUSES),
                severity=rng.choice(SEVERITIES),
                categories=rng.sample(["Cost", " cost", "latency", "ü"], rng.randrange(3)) or None,
                last_seen_timestamp=rng.choice([None, 5, 6, 7]),
                metadata={"k": "v"},
                root_causes=["r"],
            )
        )
    for _ in range(SEARCHES):
        body = _search(rng)
        most = rng.choice([1, 3, 7, 100])
        walks = [_walk(side, {**body, "max_results": most}) for side in (both.stock, both.product)]
        assert walks[0] == walks[1], body


def _search(rng: random.Random) -> dict[str, Any]:
    choices: dict[str, Any] = {
        "name": rng.choice(["", "SLOW", "%", "_", "\\", "nothing", "b"]),
        "statuses": rng.sample(STATUSES, rng.randrange(3)),
        "severities": rng.sample(SEVERITIES[1:], rng.randrange(3)),
        "categories": rng.sample(["COST ", "latency", "none"], rng.randrange(3)),
        "order_by": [
            f"{rng.choice(FIELDS)}{rng.choice(['', ' ASC', ' desc'])}"
            for _ in range(rng.randrange(4))
        ],
        "include_total_count": rng.random() < 0.5,
        "view": rng.choice(["basic", "full"]),
        "filter_string": rng.choice(FILTERS[:1]),
    }
    return {key: value for key, value in choices.items() if rng.random() < 0.35}


def _walk(side: Side, body: dict[str, Any]) -> list[Any]:
    """The pages of a search, less what differs between the servers."""
    pages, token = [], ""
    while True:
        reply = side.send(search(**body, **({"page_token": token} if token else {})))
        answer = side.comparable(reply).body
        pages.append({**answer, "next_page_token": bool(reply.body["next_page_token"])})
        token = reply.body["next_page_token"]
        if not token:
            return pages


def test_a_token_belongs_to_its_search(both: Pair) -> None:
    both.send_all([experiment(), *(issue(f"n{number}", f"i{number}") for number in range(5))])
    first = {"order_by": ["name"], "statuses": ["pending", "rejected"], "max_results": 2}
    tokens = [side.send(search(**first)).body["next_page_token"] for side in _sides(both)]
    for changed in (
        {"max_results": 3},
        {"statuses": ["rejected", "pending", "pending"]},
        {"statuses": ["pending"]},
        {"order_by": ["name DESC"]},
        {"order_by": []},
        {"view": "basic"},
        {"include_total_count": True},
        {"filter_string": "status = 'pending'"},
    ):
        replies = [
            side.comparable(side.send(search(**{**first, **changed}, page_token=token)))
            for side, token in zip(_sides(both), tokens, strict=True)
        ]
        assert replies[0] == replies[1], json.dumps(changed)


def _sides(both: Pair) -> tuple[Side, Side]:
    return both.stock, both.product


def test_trace_counts(both: Pair) -> None:
    one, two = (f"tr-{uuid4().hex}" for _ in range(2))

    def refer(trace_id: str, to: str) -> Call:
        source = {"source_type": "HUMAN", "source_id": "me"}
        assessment = {
            "assessment_name": Ref(to),
            "source": source,
            "issue": {"issue_name": "n"},
        }
        return send("POST", f"traces/{trace_id}/assessments", {"assessment": assessment})

    both.send_all(
        [
            experiment(),
            issue("rude", "rude", severity="low"),
            issue("odd", "odd", severity="low"),
            issue("slow", "slow", severity="high"),
            *(trace(trace_id) for trace_id in (one, two)),
        ]
    )
    for trace_id, to in ((one, "odd"), (two, "odd"), (one, "rude"), (one, "odd")):
        for side in _sides(both):
            assert side.send(refer(trace_id, to)).status == 200
    both.send_all(
        [
            search(include_trace_count=True),
            search(include_trace_count=False),
            search(include_trace_count=True, order_by=["name"], include_total_count=True),
            search(include_trace_count=True, view="basic", max_results=2),
        ]
    )
