import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.entities.webhooks import ACTIONS, EventName
from mlcore.webhooks import delivery, examples
from mlcore.webhooks.environment import webhook_settings


def test_the_signature_never_changes() -> None:
    """Receivers verify it; the value is that of MLflow's server."""
    made = delivery.signature("s3cr€t", "id-1", "1700000000", '{"a": "é"}')
    assert made == "v1,kvtElkZzfRDejCB2fAcSQts6cdAAofpRMqPfuvtu6Fs="


@given(st.text(), st.text(), st.text())
def test_any_other_text_or_secret_has_another_signature(
    secret: str, first: str, second: str
) -> None:
    made = [delivery.signature(secret + "x", "id", "1", text) for text in (first, second)]
    assert (made[0] == made[1]) == (first == second)
    assert delivery.signature(secret + "y", "id", "1", first) != made[0]


def test_headers_without_a_secret_have_no_signature() -> None:
    assert set(delivery.headers("", "id", "{}")) == {
        "Content-Type",
        "X-MLflow-Delivery-Id",
        "X-MLflow-Timestamp",
    }


def test_the_body_names_the_workspace_only_where_there_are_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    event = EventName("prompt", "created")
    monkeypatch.delenv("MLFLOW_ENABLE_WORKSPACES", raising=False)
    webhook_settings.cache_clear()
    text = delivery.body(event, 1_700_000_000_123, {"name": "é"}, "default")
    assert text == (
        '{"entity": "prompt", "action": "created", '
        '"timestamp": "2023-11-14T22:13:20.123000+00:00", "data": {"name": "\\u00e9"}}'
    )
    monkeypatch.setenv("MLFLOW_ENABLE_WORKSPACES", "true")
    webhook_settings.cache_clear()
    assert json.loads(delivery.body(event, 0, {}, "team"))["workspace"] == "team"
    webhook_settings.cache_clear()


@pytest.mark.parametrize(
    "event",
    [EventName(entity, action) for entity in ACTIONS for action in ACTIONS[entity]],
    ids=str,
)
def test_every_event_has_an_example(event: EventName) -> None:
    assert examples.example(event)
    assert event.action in ACTIONS[event.entity]
