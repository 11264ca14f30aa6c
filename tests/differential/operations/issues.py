# Much is given wrongly on purpose.
# mypy: disable-error-code="arg-type, assignment, dict-item, abstract"
"""Issues: what is created, changed and searched, with the fields of MLflow 3.18."""

from __future__ import annotations

from typing import Any

from mlflow import MlflowClient
from mlflow.genai import issues as issue_calls

from .record import Record

CREATED: tuple[dict[str, Any], ...] = (
    {"severity": "low", "categories": ["Latency", " latency ", "cost", "cost"]},
    {"severity": "high", "metadata": {"k": "v", "é": "☃"}, "last_seen_timestamp": 1234},
    {"severity": "not_an_issue", "status": "resolved"},
    {"severity": "medium", "status": "rejected", "categories": []},
    {"severity": "bogus"},
    {"severity": "low", "status": "bogus"},
    {"severity": "low", "description": ""},
    {"severity": "low", "name": ""},
    {"severity": "low", "name": "x" * 251},
    {"severity": "low", "categories": [""]},
    {"severity": "low", "categories": ["c"] * 101},
    {"severity": "low", "metadata": {"": "v"}},
    {"severity": "low", "metadata": {f"k{n}": "v" for n in range(101)}},
    {"severity": "low", "last_seen_timestamp": -1},
    {"severity": "low", "source_run_id": "none"},
    {"severity": "low", "issue_id": "bad id"},
    {"severity": "low", "issue_id": "iss-" + "x" * 33},
)
CHANGES: tuple[dict[str, Any], ...] = (
    *({"name": "renamed"}, {"name": ""}, {"description": ""}, {"status": "resolved"}, {}),
    *({"severity": "high"}, {"categories": []}, {"categories": ["a", "a", "B"]}, {"status": "x"}),
    *({"last_seen_timestamp": 99}, {"last_seen_timestamp": 10**12}, {"metadata": {"a": "1"}}),
    *({"delete_metadata_keys": ["a"]}, {"metadata": {"a": "1"}, "delete_metadata_keys": ["a"]}),
    *({"delete_metadata_keys": [""]}, {"metadata": {"a": 1}}, {"severity": "x"}),
)
SEARCHES: tuple[dict[str, Any], ...] = (
    *({}, {"name": "ISSUE 1"}, {"name": "%"}, {"severities": ["low", "high"]}, {"view": "basic"}),
    *({"categories": ["LATENCY "]}, {"include_total_count": True}, {"max_results": 2}),
    *(
        {"order_by": [f"{field} {way}", "name"]}
        for field in ("name", "severity")
        for way in ("ASC", "DESC")
    ),
    *(
        {"order_by": ["status", "name"]},
        {"order_by": ["foo"]},
        {"order_by": ["last_seen_timestamp DESC"]},
    ),
    *({"view": "x"}, {"severities": ["x"]}, {"name": "x" * 251}, {"max_results": 0}),
    *({"order_by": ["name", "name"], "max_results": 1}, {"page_token": "x"}, {"categories": []}),
    *(
        {"filter_string": text}
        for text in ("status = 'pending'", "severity = 'low'", "status > 'a'")
    ),
    {"filter_string": "status != 'pending'", "include_total_count": True, "max_results": 1},
)


def registry(record: Record, _client: MlflowClient, experiment: str, name: str) -> None:
    do, made = record.do, []
    for number, fields in enumerate(CREATED):
        given = {"name": f"Issue {number}", "description": "it is so", **fields}
        issue = do(
            f"create_issue {number}", issue_calls.create_issue, **given, experiment_id=experiment
        )
        made += [issue.issue_id] if issue else []
    chosen = f"iss-{name}"
    for _ in range(2):
        do(
            "create_issue with an id",
            issue_calls.create_issue,
            "chosen",
            severity="low",
            description="d",
            issue_id=chosen,
            experiment_id=experiment,
        )
    for change in CHANGES:
        for issue_id in (*made[:1], "iss-none"):
            update = issue_calls.update_issue
            do(f"update_issue {change}", update, issue_id, **change, experiment_id=experiment)
    for issue_id in (*made[:2], "iss-none", "x"):
        do("get_issue", issue_calls.get_issue, issue_id, experiment_id=experiment)
    for search in SEARCHES:
        what = str(search)[:80]
        do(f"search_issues {what}", issue_calls.search_issues, **search, experiment_id=experiment)
    results: list[str] = []
    token = None
    while True:
        page = issue_calls.search_issues(
            experiment_id=experiment,
            order_by=["severity DESC", "name"],
            max_results=2,
            page_token=token,
        )
        results += [issue.name for issue in page]
        token = page.token
        if not token:
            break
    do("walk issues", lambda: results)
