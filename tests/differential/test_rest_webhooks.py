"""The webhook RPCs against the stock server: what is refused, what is answered, what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.differential.pair import Pair
from tests.differential.rest import API, Call, get, post

pytestmark = pytest.mark.e2e

URL = "https://8.8.8.8/hook"
CREATED = {"entity": "REGISTERED_MODEL", "action": "CREATED"}
_NUMBERS = count()
LENIENT = frozenset({"partial parse", "list as body"})


def create(save: str = "webhook", **fields: Any) -> Call:
    body = {"name": f"hook{next(_NUMBERS)}", "url": URL, "events": [CREATED], **fields}
    return post(
        "webhooks",
        {key: value for key, value in body.items() if value is not None},
        saves={save: "webhook.webhook_id"},
        permits=LENIENT,
    )


def update(**fields: Any) -> Call:
    return Call("PATCH", API + "webhooks/{{webhook}}", fields, permits=LENIENT)


def read(webhook: str = "webhook") -> Call:
    return get(f"webhooks/{{{{{webhook}}}}}")


@pytest.fixture(autouse=True)
def tidy(both: Pair) -> Iterator[None]:
    """Both servers list nothing before a test and after it."""
    yield
    for side in (both.stock, both.product):
        webhooks = side.send(get("webhooks", max_results=1000)).body.get("webhooks", [])
        for webhook in webhooks:
            side.send(Call("DELETE", f"{API}webhooks/{webhook['webhook_id']}"))


NAMES = ["a", "A-b_c.d9", "x" * 63, "x" * 64, "", " ", "-a", "a-", "a b", "é", "a\n", 5, None]
URLS = [
    *("", "   ", "http://8.8.8.8/x", "ftp://8.8.8.8", "not-a-url", "https://", "https:///x", 7),
    *("https://[::1", "HTTPS://8.8.8.8", "https://8.8.8.8:99999/x", "https://u:p@8.8.8.8/x"),
    *("https://127.0.0.1/x", "https://10.0.0.1", "https://169.254.169.254/latest", "https://0/"),
    *("https://[::1]/x", "https://[::ffff:10.0.0.1]/", "https://[64:ff9b::7f00:1]/", "file:///x"),
    *("https://[2002:7f00:1::]/", "https://100.64.0.1/", "https://2130706433/", "https://127.1/"),
    *("https://[fe80::1]/", "https://[fd00::1]/", "https://localhost/x", "https://0x7f.1/"),
]
EVENTS: list[Any] = [
    *([], None, "x", {}, [CREATED, CREATED], [{"entity": "PROMPT", "action": "CREATED"}]),
    [{"entity": 6, "action": "1"}],
    [{"entity": "PROMPT", "action": "DELETED"}],
    [{"entity": "MODEL_VERSION_TAG", "action": "CREATED"}],
    [{"entity": "MODEL_VERSION_TAG", "action": "UPDATED"}],
    [{"entity": "BUDGET_POLICY", "action": "EXCEEDED"}],
    [{"entity": "NOBODY", "action": "CREATED"}],
    [{"entity": "PROMPT"}],
    [{"action": "CREATED"}],
    [{}],
    [
        {"entity": "PROMPT_ALIAS", "action": "DELETED"},
        {"entity": "MODEL_VERSION_TAG", "action": "SET"},
        CREATED,
    ],
]
STATUSES = ["ACTIVE", "DISABLED", 1, 2, "2", "active", 0, 3, "", None]


def test_create_checks_every_field(both: Pair) -> None:
    calls = [create(name=name) for name in NAMES]
    calls += [create(url=url) for url in URLS]
    calls += [create(events=events) for events in EVENTS]
    calls += [create(status=status) for status in STATUSES]
    calls += [create(description=text) for text in ("", "d", "é" * 50, 5)]
    calls += [create(secret=text) for text in ("", "s", 5)]
    calls += [create(name="", url="", events=[]), create(name="-", url="", events=[{}])]
    calls += [post("webhooks", raw=b"[]", permits=LENIENT), post("webhooks", raw=b"nonsense")]
    both.send_all(calls)


def test_update_checks_and_keeps(both: Pair) -> None:
    both.send(create(description="d", secret="s"))
    calls = [update(name=name) for name in NAMES if name is not None]
    calls += [update(url=url) for url in URLS]
    calls += [update(events=events) for events in EVENTS if events is not None]
    calls += [update(status=status) for status in STATUSES]
    calls += [update(description=text) for text in ("", "e")]
    calls += [update(secret=""), update(secret="t"), update(), update(name="b", url="x:y")]
    both.send_all(step for call in calls for step in (call, read()))


def test_what_is_missing(both: Pair) -> None:
    gone = Call("DELETE", API + "webhooks/{{webhook}}")
    calls = [create(), gone, gone, read(), update(name="x"), update(name="-"), update(events=[{}])]
    calls += [post("webhooks/{{webhook}}/test"), get("webhooks/nothing"), get("webhooks/%20")]
    calls.append(post("webhooks/{{webhook}}/test", {"event": {"entity": "PROMPT", "action": 3}}))
    both.send_all(calls)


def test_lists(both: Pair) -> None:
    both.send(get("webhooks"))
    for number in range(4):
        both.send(create(f"webhook{number}", status="DISABLED" if number == 2 else "ACTIVE"))
        both.send(read(f"webhook{number}"))
    calls = [get("webhooks"), Call("GET", "/ajax-api/2.0/mlflow/webhooks")]
    calls += [get("webhooks", max_results=most) for most in (1, 2, 4, 5, 1000, 0, 1001, -1, "x")]
    calls += [get("webhooks", page_token="nonsense"), get("webhooks", page_token="")]
    both.send_all(calls)
    for side in (both.stock, both.product):
        query: dict[str, Any] = {"max_results": 2}
        names: list[str] = []
        while True:
            body = side.send(get("webhooks", query)).body
            names += [webhook["name"] for webhook in body["webhooks"]]
            if "next_page_token" not in body:
                break
            query["page_token"] = body["next_page_token"]
        assert len(names) == len(set(names)) == 4


def test_methods(both: Pair) -> None:
    both.send(create())
    calls = [
        Call(method, API + path)
        for method in ("PUT", "PATCH", "DELETE", "OPTIONS")
        for path in ("webhooks", "webhooks/{{webhook}}/test")
    ]
    both.send_all([*calls, Call("PUT", API + "webhooks/{{webhook}}", {})])
