"""What deliveries are made of, against the functions of the stock server that make them."""

from __future__ import annotations

import ipaddress
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.entities.webhooks import ACTIONS, EventName
from mlcore.public_addresses import is_public
from mlcore.webhooks import delivery, examples

pytest.importorskip("mlflow")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from mlflow.entities import webhook as stock_webhook
    from mlflow.utils import validation
    from mlflow.webhooks import delivery as stock_delivery
    from mlflow.webhooks import types as stock_types

pytestmark = pytest.mark.e2e
entities: Any = stock_webhook
stock: Any = stock_delivery


@given(st.text(), st.text(), st.text(), st.text())
def test_signatures(secret: str, delivery_id: str, timestamp: str, text: str) -> None:
    ours = delivery.signature(secret, delivery_id, timestamp, text)
    assert ours == stock._generate_hmac_signature(secret, delivery_id, timestamp, text)


def test_events_and_their_examples() -> None:
    possible: Any = entities.VALID_ENTITY_ACTIONS
    assert {entity: list(actions) for entity, actions in ACTIONS.items()} == {
        entity.value: sorted(action.value for action in actions)
        for entity, actions in possible.items()
    }
    for entity, actions in ACTIONS.items():
        for action in actions:
            event: Any = entities.WebhookEvent(entity, action)
            ours = examples.example(EventName(entity, action))
            assert ours == stock_types.get_example_payload_for_event(event)


@given(st.ip_addresses())
def test_what_we_reach_stock_reaches(address: ipaddress.IPv4Address) -> None:
    """Not the reverse: multicast, for one, is closed here."""
    assert not is_public(address) or validation._is_public_ip(address)
