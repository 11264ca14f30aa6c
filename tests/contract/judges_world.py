"""Judges on the real engine: their queue in this process, and a model that says what a test
wants."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

import evaluation.app
import judge_runner.app
from mlcore import ids, queues
from mlcore.errors import TemporarilyUnavailable
from tests.contract import trace_calls
from tests.contract.api import Answer, Api, called

Json = dict[str, Any]
TRACE = "0000000000000000000000000000a{:03x}"


class Context:
    """What Lambda passes beside an event."""

    def __init__(self, milliseconds: int = 600_000) -> None:
        self._left = milliseconds

    def get_remaining_time_in_millis(self) -> int:
        return self._left


class Put(NamedTuple):
    body: str
    receives: int = 0
    delay_seconds: int = 0
    sent: int = 0


class Queue:
    """Messages that were sent and not yet done."""

    def __init__(self) -> None:
        self.waiting: list[Put] = []
        self.postponed: list[float] = []
        self.broken = False

    def send(self, _url: str, messages: Sequence[queues.QueueMessage]) -> None:
        if self.broken:
            raise TemporarilyUnavailable("The queue cannot be reached.")
        self.waiting += [
            Put(message.body, delay_seconds=message.delay_seconds, sent=ids.now_ms())
            for message in messages
        ]

    def postpone(self, _url: str, _handle: str, seconds: float) -> None:
        self.postponed.append(seconds)


class Model:
    """What judges ask; it answers ``said``, and remembers the chats."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self.said: Callable[[Json], Any] = lambda _chat: {"result": "yes", "rationale": "It is so."}

    def complete(
        self, workspace: str, endpoint: str, chat: Mapping[str, Any], _user: str | None
    ) -> Json:
        self.asked.append({**chat, "endpoint": endpoint, "workspace": workspace})
        answer = self.said(dict(chat))
        content = answer if isinstance(answer, str) else json.dumps(answer)
        return {
            "choices": [{"message": {"role": "assistant", "content": content}}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7},
        }

    def shown(self, number: int = -1) -> str:
        """The user's message of a chat."""
        return str(self.asked[number]["messages"][-1]["content"])


class World:
    def __init__(self, api: Api, patch: pytest.MonkeyPatch) -> None:
        self.queue, self.model = Queue(), Model()
        patch.setenv("JOB_QUEUE_URL", "https://queue/jobs")
        patch.setattr(queues, "send", self.queue.send)
        patch.setattr(queues, "postpone", self.queue.postpone)
        patch.setattr(judge_runner.app, "_gateway_completion", lambda **_: self.model.complete)
        self.api = api
        self.experiment = str(api.post("experiments/create", name="judged")["experiment_id"])
        self._number = 0

    def trace(self, question: Any, answered: Any, session: str = "", **attributes: Any) -> str:
        """The id of a trace with one span."""
        self._number += 1
        trace = TRACE.format(self._number)
        more = {"session__id": session} if session else {}
        all_attributes = {
            "mlflow__spanInputs": question,
            "mlflow__spanOutputs": answered,
            **more,
            **attributes,
        }
        at = self._number * 10
        span = trace_calls.span(trace, 1, start=at, end=at + 5, **all_attributes)
        assert trace_calls.export(self.experiment, [span]).status == 200
        return f"tr-{trace}"

    def invoke(self, judge: Json, trace_ids: Sequence[str], **fields: Any) -> list[str]:
        """The ids of the jobs."""
        body = {
            "experiment_id": self.experiment,
            "serialized_scorer": json.dumps(judge),
            "trace_ids": trace_ids,
            "log_assessments": True,
            **fields,
        }
        answer = ask("POST", "mlflow/scorer/invoke", body)
        assert answer.status == 200, answer
        return [job["job_id"] for job in answer.body["jobs"]]

    def work(self, milliseconds: int = 600_000, context: Any = None) -> list[str]:
        """Receives what waits once; the bodies that shall come again.

        Args:
            context: what Lambda passes, instead of one that always has ``milliseconds`` left.
        """
        batch, self.queue.waiting = self.queue.waiting, []
        again = []
        for received in batch:
            put = received._replace(receives=received.receives + 1)
            record = {
                "messageId": "m",
                "receiptHandle": "h",
                "body": put.body,
                "attributes": {
                    "ApproximateReceiveCount": str(put.receives),
                    "SentTimestamp": str(put.sent),
                },
            }
            try:
                answer = judge_runner.app.handler(
                    {"Records": [record]}, context or Context(milliseconds)
                )
                failed = answer["batchItemFailures"]
            except judge_runner.app.AllMessagesFailed:
                failed = [{"itemIdentifier": "m"}]
            if failed:
                self.queue.waiting.append(put)
                again.append(put.body)
        return again

    def done(self, judge: Json, trace_ids: Sequence[str], **fields: Any) -> Json:
        """The job's answer, where one job does it all."""
        (job_id,) = self.invoke(judge, trace_ids, **fields)
        assert self.work() == []
        return self.job(job_id)

    def job(self, job_id: str) -> Json:
        answer = ask("GET", f"jobs/{job_id}")
        assert answer.status == 200, answer
        return answer.body


def ask(method: str, path: str, body: Any = None, **query: Any) -> Answer:
    """``path`` is below ``/ajax-api/3.0``."""
    return called(evaluation.app.handler, method, f"/ajax-api/3.0/{path}", body, **query)


def judge(instructions: str, name: str = "quality", **held: Any) -> Json:
    """As ``make_judge`` writes it."""
    data = {"instructions": instructions, "model": "gateway:/e", **held}
    return {
        "name": name,
        "aggregations": None,
        "is_session_level_scorer": False,
        "mlflow_version": "3.18.0",
        "serialization_version": 1,
        "builtin_scorer_class": None,
        "call_source": None,
        "instructions_judge_pydantic_data": data,
    }


def builtin(kind: str, name: str = "", **settings: Any) -> Json:
    """As MLflow's UI writes it."""
    data = {"name": name or kind.lower(), "model": "gateway:/e", **settings}
    return {
        "name": name or kind.lower(),
        "builtin_scorer_class": kind,
        "builtin_scorer_pydantic_data": data,
    }


def assessments(trace_id: str) -> list[Json]:
    return list(trace_calls.info(trace_id).get("assessments", []))
