"""Answers to the model calls and judgements of jobs: a partition per job, an item per call. They
expire when the job can no longer continue."""

from __future__ import annotations

import json
import zlib
from typing import Any, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.models.evaluation import JobCall as JobCallItem

MAX_BYTES = 380_000
"""Most bytes of a compressed answer; DynamoDB allows 400 KB per item."""


class CallId(NamedTuple):
    """Identifies a model call of a job: by the digest of its request, and by how many calls with
    the same request the job has made before."""

    request_digest: str
    number: int
    """0 for the first call of the job with this request, 1 for the second …"""


class AnswerTooLarge(Exception):
    """Raised if the answer to a model call of a job is too large to be stored in an item."""


def of_job(job_id: str) -> dict[CallId, bytes]:
    """Returns the compressed answers to a job's model calls (:func:`unpacked` decompresses one);
    one consistent Query per MB."""
    pk = keys.job_call(job_id, "", 0).pk
    items = map(JobCallItem.of, table.query_all(pk, prefix=keys.job_call_prefix()))
    return {CallId(item.request_digest, item.number): item.answer for item in items}


def put(job_id: str, call: CallId, answer: Any, expiry_ms: int) -> Any:
    """Stores the answer to a model call of a job and returns it. If another process has stored one
    first, returns that one. One PutItem.

    Args:
        answer: a JSON value.
        expiry_ms: when it may be deleted, in milliseconds since the epoch.

    Raises:
        AnswerTooLarge: the answer does not fit into an item.
    """
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    data = zlib.compress(text.encode(errors="surrogatepass"))
    if len(data) > MAX_BYTES:
        raise AnswerTooLarge
    key = keys.job_call(job_id, *call)
    item = JobCallItem(
        PK=key.pk,
        SK=key.sk,
        request_digest=call.request_digest,
        number=call.number,
        answer=data,
        updated_at=now_ms(),
        ttl=expiry_ms // 1000,
    )
    absent = ConditionExpression()
    absent.require_absent(JobCallItem.PK)
    try:
        table.put(item.serialize(), absent)
    except ConditionFailed as failed:
        return answer if failed.item is None else unpacked(_answer(failed.item))
    return answer


def unpacked(data: bytes) -> Any:
    """Returns the answer to a model call, a JSON value, from the compressed bytes in which an item
    holds it."""
    return json.loads(zlib.decompress(data))


def _answer(raw: Raw) -> bytes:
    return JobCallItem.of(raw).answer
