"""SQS on this machine: durable queues in one SQLite file, with visibility timeouts, receive counts
and dead-letter queues."""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable
from hashlib import md5
from pathlib import Path
from typing import Any, Final, NamedTuple

from local.aws.endpoint import Operation, ServiceError
from local.log import report
from local.store.database import advice_of
from local.template_definitions import QueueDefinition
from mlcore.db.failures import NOT_SAVED

_SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
    id TEXT PRIMARY KEY,
    queue TEXT NOT NULL,
    body TEXT NOT NULL,
    owner TEXT NOT NULL,
    sent REAL NOT NULL,
    visible REAL NOT NULL,
    receives INTEGER NOT NULL DEFAULT 0,
    first_received REAL,
    handle TEXT
);
CREATE INDEX IF NOT EXISTS by_visibility ON messages (queue, visible);
"""

_NEXT = """
SELECT id, body, sent, receives, first_received FROM messages AS waiting
WHERE queue = :queue AND visible <= :now
ORDER BY (
    SELECT count(*) FROM messages AS held
    WHERE held.queue = waiting.queue AND held.owner = waiting.owner
        AND held.handle IS NOT NULL AND held.visible > :now
), visible
LIMIT :number
"""
"""Messages of groups with the fewest messages in flight come first: SQS's fair queues."""


_CLOCK_TOLERANCE_SECONDS: Final = 0.5
"""If the wall clock was set back by less, delays of messages become longer by as much."""


class ReceivedMessage(NamedTuple):
    """A message of an SQS queue, as :meth:`Queues.receive` returns it."""

    message_id: str
    handle: str
    body: str
    sent: float
    receives: int
    first_received: float


class Queues:
    """The SQS queues that template.yaml defines, stored in one SQLite file."""

    def __init__(self, path: Path, definitions: Iterable[QueueDefinition]) -> None:
        self._definitions = {definition.name: definition for definition in definitions}
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.executescript(_SCHEMA)
        # Messages that an earlier run received and did not finish become visible again, and delayed
        # messages become visible at once.
        self._database.execute(
            "UPDATE messages SET visible = min(visible, ?), handle = NULL", (time.time(),)
        )
        self._changed = threading.Condition()
        self._started_at = _start_of_monotonic_clock()

    def close(self) -> None:
        """Closes the SQLite file of the local queues. Messages that were not deleted stay in it
        until the server's next start."""
        with self._changed:
            self._database.close()

    def operations(self) -> dict[str, Operation]:
        """Returns the functions that execute SQS's operations, by the value of the header
        X-Amz-Target that selects each."""
        return {
            "AmazonSQS.SendMessage": self._send_message,
            "AmazonSQS.SendMessageBatch": self._send_message_batch,
            "AmazonSQS.ChangeMessageVisibility": self._change_message_visibility,
        }

    def send(self, queue: str, body: str, owner: str = "", delay: float | None = None) -> str:
        """Adds a message to a queue and returns the message's id. The message becomes visible after
        ``delay`` seconds, by default after the queue's own delay.

        Raises:
            ServiceError: there is no such queue, or the message cannot be saved until somebody
                acts, for example because the disk is full.
            sqlite3.Error: SQLite failed for another reason.
        """
        definition = self._definition(queue)
        message_id = str(uuid.uuid4())
        with self._changed:
            try:
                now = self._now()
                visible = now + (definition.delay_seconds if delay is None else delay)
                self._database.execute(
                    "INSERT INTO messages (id, queue, body, owner, sent, visible)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (message_id, queue, body, owner or message_id, now, visible),
                )
            except sqlite3.Error as error:
                advice = advice_of(error)
                if advice is None:
                    raise
                report(f"the file of the queues cannot be written: {error}")
                raise ServiceError(NOT_SAVED, advice) from error
            self._changed.notify_all()
        return message_id

    def receive(self, queue: str, number: int) -> list[ReceivedMessage]:
        """Returns up to ``number`` visible messages and hides them for the visibility timeout.
        Messages that were received too often move to the dead-letter queue instead."""
        definition = self._definition(queue)
        received = []
        with self._changed:
            now = self._now()
            self._expire(definition, now)
            rows = self._database.execute(
                _NEXT, {"queue": queue, "now": now, "number": number}
            ).fetchall()
            for message_id, body, sent, receives, first in rows:
                if definition.dead_letter and receives >= definition.maximum_receives:
                    self._database.execute(
                        "UPDATE messages SET queue = ?, visible = ?, handle = NULL WHERE id = ?",
                        (definition.dead_letter, now, message_id),
                    )
                    continue
                handle, earliest = str(uuid.uuid4()), first or now
                self._database.execute(
                    "UPDATE messages SET visible = ?, receives = receives + 1, handle = ?,"
                    " first_received = ? WHERE id = ?",
                    (now + definition.visibility_seconds, handle, earliest, message_id),
                )
                received.append(
                    ReceivedMessage(message_id, handle, body, sent, receives + 1, earliest)
                )
        return received

    def delete(self, handle: str) -> None:
        """Deletes the message that was received with this receipt handle, in whichever local queue
        it is. A message that was received again since has another handle and stays."""
        with self._changed:
            self._database.execute("DELETE FROM messages WHERE handle = ?", (handle,))

    def wait(self, queue: str, seconds: float, end: threading.Event) -> None:
        """Blocks until the local SQS queue has a visible message, another thread calls :meth:`wake`
        or changes any of the queues, or ``seconds`` have passed. Returns at once if ``end`` is set:
        who sets it and then calls :meth:`wake` waits for no caller that was about to wait."""
        with self._changed:
            if end.is_set():
                return
            (first,) = self._database.execute(
                "SELECT min(visible) FROM messages WHERE queue = ?", (queue,)
            ).fetchone()
            until = seconds if first is None else min(seconds, first - self._now())
            if until > 0:
                self._changed.wait(until)

    def wake(self) -> None:
        """Makes every running call of :meth:`wait` return."""
        with self._changed:
            self._changed.notify_all()

    def _now(self) -> float:
        """Returns the time of the wall clock. If that was set back since the last call, first sets
        back the times of all messages by as much, because delayed and received messages would stay
        invisible until the clock has caught up."""
        started_at = _start_of_monotonic_clock()
        change = started_at - self._started_at
        if change < -_CLOCK_TOLERANCE_SECONDS:
            self._database.execute(
                "UPDATE messages SET visible = visible + :change, sent = sent + :change,"
                " first_received = first_received + :change",
                {"change": change},
            )
        self._started_at = started_at
        return time.time()

    def _expire(self, definition: QueueDefinition, now: float) -> None:
        self._database.execute(
            "DELETE FROM messages WHERE queue = ? AND sent < ?",
            (definition.name, now - definition.retention_seconds),
        )

    def _definition(self, queue: str) -> QueueDefinition:
        try:
            return self._definitions[queue.rpartition("/")[2]]
        except KeyError:
            raise ServiceError(
                "com.amazonaws.sqs#QueueDoesNotExist", f"there is no queue {queue!r}"
            ) from None

    def _send_message(self, request: dict[str, Any]) -> dict[str, Any]:
        queue = self._definition(request["QueueUrl"]).name
        body: str = request["MessageBody"]
        message_id = self.send(
            queue, body, request.get("MessageGroupId", ""), request.get("DelaySeconds")
        )
        return {"MessageId": message_id, "MD5OfMessageBody": checksum(body)}

    def _send_message_batch(self, request: dict[str, Any]) -> dict[str, Any]:
        sent = [
            {"Id": entry["Id"], **self._send_message({**entry, "QueueUrl": request["QueueUrl"]})}
            for entry in request["Entries"]
        ]
        return {"Successful": sent, "Failed": []}

    def _change_message_visibility(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._changed:
            self._database.execute(
                "UPDATE messages SET visible = ? WHERE handle = ?",
                (self._now() + request["VisibilityTimeout"], request["ReceiptHandle"]),
            )
            self._changed.notify_all()
        return {}


def _start_of_monotonic_clock() -> float:
    """Returns the wall time at which the monotonic clock began; it changes when the wall clock is
    set."""
    return time.time() - time.monotonic()


def checksum(body: str) -> str:
    """Returns the MD5 of a message's body, as SQS reports it."""
    return md5(body.encode(), usedforsecurity=False).hexdigest()
