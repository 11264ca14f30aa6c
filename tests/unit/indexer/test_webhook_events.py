from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer import webhook_events
from mlcore import queues
from mlcore.entities.registry import ModelVersion, RegisteredModel
from mlcore.entities.webhooks import ACTIVE, DISABLED, EventName, Webhook
from mlcore.repos import webhooks
from mlcore.webhooks import announcement, delivery_message
from mlcore.webhooks.delivery_message import DeliveryMessage

MODEL = RegisteredModel("m#1", "team", 1, 1, "", {}, {}, {})
PROMPT = MODEL._replace(tags={"mlflow.prompt.is_prompt": "True"})
VERSION = ModelVersion(
    "m#1", 7, 1, 1, None, None, "None", "s3://b", "s3://b", None, "", "READY", None, {}
)
EVERYTHING = tuple(
    EventName(*name.split("."))
    for name in (
        "registered_model.created",
        "prompt.created",
        "prompt_tag.set",
        "prompt_tag.deleted",
    )
)
HOOK = Webhook("w", "team", "n", "https://x", EVERYTHING, ACTIVE, "", "", 0, 0)


def image(event: str | None, **tags: str) -> dict[str, Any]:
    item: dict[str, Any] = {
        "PK": {"S": "RM#m#1"},
        "SK": {"S": "M#META"},
        "type": {"S": "registered_model"},
        "description": {"S": ""},
        "tags": {"M": {key: {"S": value} for key, value in tags.items()}},
        "aliases": {"M": {}},
        "version": {"N": "1"},
    }
    return item if event is None else {**item, "event": {"S": event}}


@given(st.sampled_from([MODEL, PROMPT]), st.text(), st.text(), st.integers(1, 2**63))
def test_announcements_are_read_as_they_were_written(
    model: RegisteredModel, key: str, value: str, number: int
) -> None:
    noun = "prompt" if model is PROMPT else "model"
    texts = {
        f"{noun}_version_tag.set": announcement.version_tag_set(model, number, key),
        f"{noun}_version_tag.deleted": announcement.version_tag_deleted(model, number, key),
        announcement.parse(announcement.model_created(model)).event: announcement.model_created(
            model
        ),
    }
    for event, text in texts.items():
        read = announcement.parse(text)
        assert str(read.event) == str(event)
        assert (read.workspace, read.name) == ("team", "m#1")
    read = announcement.parse(texts[f"{noun}_version_tag.set"])
    assert (read.version, read.key) == (number, key)


def test_models_that_are_no_prompts_have_silent_tags() -> None:
    assert announcement.model_tag_set(MODEL, "k", "v") is None
    assert announcement.model_tag_deleted(MODEL, "k") is None
    assert announcement.model_tag_set(MODEL, "mlflow.prompt.is_prompt", "true") is not None
    assert announcement.model_tag_deleted(PROMPT, "mlflow.prompt.is_prompt") is None
    assert announcement.parse(announcement.alias_set(PROMPT, "a", 3)).event.entity == "prompt_alias"


def test_a_write_that_says_nothing_new_is_no_event() -> None:
    text, other = announcement.model_created(MODEL), announcement.model_created(MODEL)
    assert webhook_events.announces({"NewImage": image(text)})
    assert webhook_events.announces({"NewImage": image(text), "OldImage": image(other)})
    assert not webhook_events.announces({"NewImage": image(text), "OldImage": image(text)})
    assert not webhook_events.announces({"NewImage": image(None), "OldImage": image(text)})
    assert not webhook_events.announces({"OldImage": image(text)})


def test_only_who_asked_in_time_is_told() -> None:
    created = announcement.parse(announcement.model_created(MODEL))
    asking = [
        HOOK,
        HOOK._replace(webhook_id="off", status=DISABLED),
        HOOK._replace(webhook_id="other", events=(EventName("prompt", "created"),)),
        HOOK._replace(webhook_id="late", creation_time=created.time_ms + 1),
        HOOK._replace(webhook_id="second"),
    ]
    deliveries = webhook_events.deliveries(created, image(created.text(), k="v"), asking)
    assert [delivery.webhook_id for delivery in deliveries] == ["w", "second"]
    assert deliveries[0].data == {"name": "m#1", "tags": {"k": "v"}, "description": ""}


def test_a_record_that_comes_again_makes_the_same_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[list[queues.QueueMessage]] = []
    monkeypatch.setenv("WEBHOOK_QUEUE_URL", "queue")
    monkeypatch.setattr(queues, "send", lambda _, messages: sent.append(messages))
    monkeypatch.setattr(webhooks, "of_workspace", lambda _: [HOOK])
    records = [
        {"NewImage": image(announcement.model_created(MODEL))},
        {"NewImage": image(announcement.model_tag_set(PROMPT, "k", "v"), k="v")},
        {"NewImage": image(announcement.model_tag_set(PROMPT, "k", "v"), k="v")},
    ]
    webhook_events.project(records)
    webhook_events.project(records)
    assert sent[0] == sent[1]
    assert len({delivery_message.parse(queued.body).delivery_id for queued in sent[0]}) == 3


@given(st.dictionaries(st.text(), st.text() | st.none(), max_size=3), st.integers(0, 2**53))
def test_messages_are_read_as_they_were_written(data: dict[str, Any], time_ms: int) -> None:
    wanted = DeliveryMessage("w", "h", "d", EventName("prompt", "created"), time_ms, data)
    assert delivery_message.parse(delivery_message.text(wanted)) == wanted


@pytest.mark.parametrize("character", ["x", "é", "\0", "\uffff", "😀"])
def test_the_largest_item_fits_a_queue(character: str) -> None:
    text = character * (400_000 // len(character.encode()))
    wanted = DeliveryMessage("w", "h", "d", EventName("prompt", "created"), 1, {"value": text})
    written = delivery_message.text(wanted)
    assert written.isascii()
    assert len(written) < 256 * 1024
    assert delivery_message.parse(written) == wanted
