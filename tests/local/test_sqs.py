"""The queues of the runner, and the services that it answers for, through botocore's clients."""

import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from local.aws import sqs
from local.aws.endpoint import AwsEndpoint
from local.aws.kms import Kms
from local.aws.sqs import Queues
from local.events import queue_poller
from local.events.queue_poller import QueuePoller
from local.template_definitions import QueueDefinition, QueueMapping
from mlcore import queues as core_queues
from mlcore.errors import InsufficientStorage

from .conftest import eventually

WORK = QueueDefinition("Work", 30, 0, 1000, "Dead", 3)
DEAD = QueueDefinition("Dead", 30, 0, 1000, None, 0)


@pytest.fixture
def queues(tmp_path: Path) -> Any:
    made = Queues(tmp_path / "queues.sqlite", [WORK, DEAD])
    yield made
    made.close()


def client(service: str, url: str) -> Any:
    return botocore.session.get_session().create_client(
        service,
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="x",
        aws_secret_access_key="x",
    )


def test_a_message_in_work_is_out_of_sight_until_its_time_is_over(queues: Queues) -> None:
    queues.send("Work", "a")
    [message] = queues.receive("Work", 10)
    assert (message.body, message.receives) == ("a", 1)
    assert queues.receive("Work", 10) == []
    queues._change_message_visibility({"ReceiptHandle": message.handle, "VisibilityTimeout": 0})
    [again] = queues.receive("Work", 10)
    assert (again.message_id, again.receives) == (message.message_id, 2)
    queues.delete(again.handle)
    assert _bodies(queues, "Work") == []


def test_a_batch_delays_the_messages_that_ask_for_it(queues: Queues) -> None:
    entries = [
        {"Id": "0", "MessageBody": "later", "DelaySeconds": 30},
        {"Id": "1", "MessageBody": "now"},
    ]
    queues._send_message_batch({"QueueUrl": "http://queue/Work", "Entries": entries})
    assert [message.body for message in queues.receive("Work", 10)] == ["now"]
    assert sorted(_bodies(queues, "Work")) == ["later", "now"]


@given(st.lists(st.sampled_from([-86_400.0, -3600.0, -7.0, 0.0]), max_size=4))
def test_a_clock_that_is_set_back_hides_no_message(steps: list[float]) -> None:
    """Ten seconds after it was sent, a message with a delay of ten seconds is visible, and a
    received one again after the visibility timeout, however often the clock is set back."""
    elapsed, shift = 1_000.0, 0.0
    clock = SimpleNamespace(time=lambda: 2e9 + elapsed + shift, monotonic=lambda: elapsed)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(sqs, "time", clock)
        made = Queues(Path(folder, "queues.sqlite"), [WORK, DEAD])
        made.send("Work", "delayed", delay=10)
        for step in steps:
            shift += step
            assert made.receive("Work", 10) == []
        elapsed += 10
        [first] = made.receive("Work", 10)
        for step in steps:
            shift += step
            assert made.receive("Work", 10) == []
        elapsed += WORK.visibility_seconds
        [again] = made.receive("Work", 10)
        assert (again.body, again.receives) == ("delayed", 2)
        assert first.sent - again.sent == -sum(steps)
        made.close()


def _bodies(queues: Queues, queue: str) -> list[str]:
    """Those of all messages of a queue, in flight or not, oldest first."""
    rows = queues._database.execute(
        "SELECT body FROM messages WHERE queue = ? ORDER BY sent", (queue,)
    )
    return [body for (body,) in rows.fetchall()]


def test_what_came_too_often_is_dead(queues: Queues) -> None:
    queues.send("Work", "a")
    for _ in range(3):
        [message] = queues.receive("Work", 10)
        queues._change_message_visibility({"ReceiptHandle": message.handle, "VisibilityTimeout": 0})
    assert queues.receive("Work", 10) == []
    assert _bodies(queues, "Work") == []
    assert _bodies(queues, "Dead") == ["a"]


def test_messages_outlive_their_runner(tmp_path: Path) -> None:
    first = Queues(tmp_path / "q", [WORK, DEAD])
    first.send("Work", "a")
    assert first.receive("Work", 1)
    first.close()
    second = Queues(tmp_path / "q", [WORK, DEAD])
    [message] = second.receive("Work", 1)
    assert (message.body, message.receives) == ("a", 2)
    second.close()


def test_one_with_many_messages_lets_others_go_first(queues: Queues) -> None:
    for number in range(5):
        queues.send("Work", f"many {number}", "many")
    assert len(queues.receive("Work", 2)) == 2
    queues.send("Work", "one", "few")
    assert queues.receive("Work", 1)[0].body == "one"


def test_a_function_is_driven_as_by_lambda(queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is sent wakes the poller, which looks by itself too rarely to be of any help here.
    monkeypatch.setattr(queue_poller, "LOOK_SECONDS", 3600.0)
    calls: list[Any] = []
    hanging = threading.Event()

    def invoke(event: Any) -> Any:
        [record] = event["Records"]
        calls.append(record["body"])
        if record["body"] == "hangs":
            hanging.wait(60)
        if record["body"] == "raises":
            raise RuntimeError("as asked")
        failed = [{"itemIdentifier": record["messageId"]}] if record["body"] == "fails" else []
        return {"batchItemFailures": failed}

    mapping = QueueMapping("Mapping", "F", "Work", 1, 2, True)
    poller = QueuePoller(mapping, queues=queues, invoke=invoke)
    poller.start()
    try:
        for body in ("hangs", "fails", "raises", "works"):
            queues.send("Work", body)
        eventually(lambda: len(calls) == 4)
        eventually(lambda: sorted(_bodies(queues, "Work")) == ["fails", "hangs", "raises"])
        queues.send("Work", "woken")
        eventually(lambda: "woken" in calls)
    finally:
        hanging.set()
        poller.stop()


class StoppedBetween(Queues):
    """A poller is stopped after it has looked for messages and before it waits for some."""

    received, woken = threading.Event(), threading.Event()

    def receive(self, queue: str, number: int) -> Any:
        found = super().receive(queue, number)
        self.received.set()
        assert self.woken.wait(60)
        return found

    def wake(self) -> None:
        super().wake()
        self.woken.set()


def test_who_is_stopped_before_it_waits_ends_at_once(tmp_path: Path) -> None:
    queues = StoppedBetween(tmp_path / "queues.sqlite", [WORK, DEAD])
    mapping = QueueMapping("Mapping", "F", "Work", 1, 2, True)
    poller = QueuePoller(mapping, queues=queues, invoke=lambda event: None)
    poller.start()
    assert queues.received.wait(60)
    began = time.monotonic()
    poller.stop()
    assert time.monotonic() - began < queue_poller.STOP_SECONDS - 1
    queues.close()


def test_what_a_full_disk_does_not_take_is_told(
    queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller is told to make room, and not to repeat the request for minutes."""
    endpoint = AwsEndpoint(queues.operations())
    endpoint.start()
    for name, value in (
        ("AWS_ENDPOINT_URL_SQS", endpoint.url),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
    ):
        monkeypatch.setenv(name, value)
    core_queues._client.cache_clear()
    large = core_queues.QueueMessage("x" * 100_000, "group")
    try:
        core_queues.send("Work", [large])
        (pages,) = queues._database.execute("PRAGMA page_count").fetchone()
        queues._database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(InsufficientStorage, match="Make room") as refused:
            core_queues.send("Work", [large])
        assert refused.value.status == 507
        assert _bodies(queues, "Work") == [large.body]
        queues._database.execute(f"PRAGMA max_page_count = {pages + 100}")
        core_queues.send("Work", [large])
        assert _bodies(queues, "Work") == [large.body] * 2
    finally:
        core_queues._client.cache_clear()
        endpoint.stop()


def test_botocore_talks_to_both_services(queues: Queues, tmp_path: Path) -> None:
    key = tmp_path / "key"
    endpoint = AwsEndpoint({**Kms(key).operations(), **queues.operations()})
    endpoint.start()
    sqs, kms = client("sqs", endpoint.url), client("kms", endpoint.url)
    try:
        sqs.send_message(QueueUrl="http://x/000/Work", MessageBody="one")
        entry = {"Id": "0", "MessageBody": "two", "MessageGroupId": "g"}
        assert sqs.send_message_batch(QueueUrl="Work", Entries=[entry])["Successful"]
        assert _bodies(queues, "Work") == ["one", "two"]
        with pytest.raises(ClientError, match="there is no queue"):
            sqs.send_message(QueueUrl="Nothing", MessageBody="x")
        with pytest.raises(ClientError, match="Unknown"):
            sqs.list_queues()

        context = {"a": "b"}
        sealed = kms.encrypt(KeyId="k", Plaintext=b"secret", EncryptionContext=context)
        blob = sealed["CiphertextBlob"]
        opened = kms.decrypt(CiphertextBlob=blob, EncryptionContext=context)
        assert opened["Plaintext"] == b"secret"
        assert key.stat().st_mode & 0o777 == 0o600
        for wrong in ({"a": "c"}, {}):
            with pytest.raises(ClientError, match="InvalidCiphertext"):
                kms.decrypt(CiphertextBlob=blob, EncryptionContext=wrong)

        # Who only found the port is not answered.
        base_url, _, _ = endpoint.url.rpartition("/")
        for guessed in (base_url, f"{base_url}/guessed"):
            stranger = client("sqs", guessed)
            with pytest.raises(ClientError, match="AccessDenied"):
                stranger.send_message(QueueUrl="Work", MessageBody="three")
            stranger.close()
        assert _bodies(queues, "Work") == ["one", "two"]
    finally:
        sqs.close()
        kms.close()
        endpoint.stop()
