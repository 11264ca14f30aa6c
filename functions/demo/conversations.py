"""Creates the demo's traces: conversations with the assistant of a bicycle shop, with sessions,
tools, token usage, one failure, and assessments by a person and a judge."""

from __future__ import annotations

import hashlib
import json
import logging
from functools import partial
from typing import Any, Final, NamedTuple

from mlcore import reserved_tags
from mlcore.http.api_client import ApiClient
from mlcore.ids import now_ms
from mlcore.wire import times

_MODEL: Final = "gpt-4o-mini"
_MINUTE_MS: Final = 60_000
_BY_HAND: Final = {"source_type": "HUMAN", "source_id": "ann@bicycles.example"}
_BY_JUDGE: Final = {"source_type": "LLM_JUDGE", "source_id": "mlflow-demo-judge"}


class Turn(NamedTuple):
    """A turn of a demo conversation: a question, the assistant's answer, and the passages that the
    assistant retrieved."""

    session: str
    user: str
    question: str
    passages: tuple[str, ...]
    answer: str
    is_grounded: bool = True
    remark: str = ""
    """A person's assessment of the answer."""


TURNS: Final = (
    Turn(
        "chain",
        "mia",
        "My chain slips when I pedal hard. What is worn?",
        ("A chain longer than 0.75 % is to be replaced.", "Worn sprockets have teeth like fins."),
        "Most likely the chain, and with it the cassette. Measure the chain: above 0.75 % replace "
        "it.",
    ),
    Turn(
        "chain",
        "mia",
        "Can I change the chain alone?",
        ("A new chain on a worn cassette slips.",),
        "Only if the cassette is not worn yet; a new chain slips on an old cassette.",
        remark="Exactly what I tell people at the counter.",
    ),
    Turn(
        "chain",
        "mia",
        "How much is a chain for nine gears?",
        ("Chain, nine gears: 24 euros.",),
        "24 euros.",
    ),
    Turn(
        "brakes",
        "jon",
        "My disc brakes squeal in the rain.",
        ("Wet discs squeal for some turns.", "Oil on pads makes them squeal for good."),
        "Wet discs do that for a few turns. If it stays, there is oil on the pads: clean the disc "
        "and replace the pads.",
    ),
    Turn(
        "brakes",
        "jon",
        "Which pads do you have for it?",
        ("Pads, organic: 14 euros.", "Pads, sintered: 19 euros."),
        "Organic for 14 euros, quiet; sintered for 19, which last longer in the wet.",
    ),
    Turn(
        "opening",
        "lea",
        "Are you open on Sunday?",
        (),
        "Yes, from ten to four.",
        is_grounded=False,
        remark="We are closed on Sundays. Nothing that was found says otherwise.",
    ),
    Turn(
        "size",
        "sam",
        "Which frame size do I need at 172 cm?",
        ("Frames, trekking: 165 to 175 cm is size M.",),
        "Size M. Sit on it before you buy: arms differ.",
    ),
    Turn(
        "size",
        "sam",
        "And for my daughter of 9 years?",
        ("Bicycles for children: 24 inches from 125 cm.",),
        "That depends on her height: from 125 cm on, 24 inches.",
    ),
)
FAILED: Final = Turn("stock", "kim", "Is the red one there in size L?", (), "")
"""The turn of the demo whose tool call fails."""


def make(client: ApiClient, experiment_id: str) -> None:
    now = now_ms()
    turns = [*TURNS, FAILED]
    calls = []
    for number, turn in enumerate(turns):
        began = now - (len(turns) - number) * 7 * _MINUTE_MS
        calls.append(partial(_trace, client, experiment_id, number, turn, began))
    client.run_in_parallel(calls)
    client.run_in_parallel(
        [
            partial(_assess, client, _trace_id(experiment_id, number), turn)
            for number, turn in enumerate(TURNS)
        ]
    )


def remove(client: ApiClient, experiment_id: str) -> None:
    ids = [trace_name(experiment_id, number) for number in range(len(TURNS) + 1)]
    client.post("/2.0/mlflow/traces/delete-traces", experiment_id=experiment_id, request_ids=ids)


def trace_name(experiment_id: str, number: int) -> str:
    """Returns the trace id (``tr-…``) of a turn of the demo's conversations."""
    return f"tr-{_trace_id(experiment_id, number)}"


def _trace_id(experiment_id: str, number: int) -> str:
    """Returns a trace id of 32 hexadecimal digits that depends only on the experiment and the
    turn's number. So creating the demo twice creates each trace once."""
    name = f"demo {experiment_id} {number}".encode()
    return hashlib.sha256(name).hexdigest()[:32]


def _trace(client: ApiClient, experiment_id: str, number: int, turn: Turn, began: int) -> None:
    trace_id = _trace_id(experiment_id, number)
    failed = turn is FAILED
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment_id}}
    client.post(
        "/3.0/mlflow/traces",
        trace={
            "trace_info": {
                "trace_id": f"tr-{trace_id}",
                "trace_location": location,
                "request_time": times.point(began),
                "execution_duration": "1.9s",
                "request_preview": turn.question,
                "response_preview": turn.answer,
                "state": "ERROR" if failed else "OK",
                "trace_metadata": {
                    reserved_tags.TRACE_SESSION: f"demo-{turn.session}",
                    reserved_tags.TRACE_USER: turn.user,
                },
                "tags": {reserved_tags.TRACE_NAME: "assistant", reserved_tags.DEMO: "true"},
            }
        },
    )
    client.export(experiment_id, _spans(trace_id, turn, began, failed=failed))


def _spans(trace_id: str, turn: Turn, began: int, *, failed: bool) -> list[dict[str, Any]]:
    root, search, answer = (f"{number:016x}" for number in (1, 2, 3))

    def span(name: str, kind: str, span_id: str, start: int, end: int, **more: Any) -> Any:
        attributes = {reserved_tags.SPAN_TYPE: kind, **more.pop("attributes", {})}
        for direction in ("inputs", "outputs"):
            if direction in more:
                attributes[f"mlflow.span{direction.title()}"] = more.pop(direction)
        return {
            "traceId": trace_id,
            "spanId": span_id,
            "name": name,
            "kind": 1,
            "startTimeUnixNano": str((began + start) * 1_000_000),
            "endTimeUnixNano": str((began + end) * 1_000_000),
            "attributes": [
                {
                    "key": reserved_tags.SPAN_LOG_LEVEL,
                    "value": {"intValue": str(logging.ERROR if failed else logging.INFO)},
                },
                *(
                    {"key": key, "value": {"stringValue": json.dumps(value, ensure_ascii=False)}}
                    for key, value in attributes.items()
                ),
            ],
            "status": {"code": 1},
            **({"parentSpanId": root} if span_id != root else {}),
            **more,
        }

    question = {"question": turn.question}
    if failed:
        refused = {"code": 2, "message": "ConnectionError: the stock cannot be reached"}
        return [
            span("assistant", "AGENT", root, 0, 1900, inputs=question, status=refused),
            span("look_into_stock", "TOOL", search, 40, 1880, inputs=question, status=refused),
        ]
    documents = [
        {"page_content": text, "metadata": {"doc_uri": f"handbook/{turn.session}.md"}}
        for text in turn.passages
    ]
    messages = [
        {"role": "system", "content": "Answer only from what is given."},
        {"role": "user", "content": turn.question},
    ]
    words = len(" ".join((turn.question, *turn.passages)).split())
    usage = {"input_tokens": 60 + 2 * words, "output_tokens": 2 * len(turn.answer.split())}
    usage["total_tokens"] = sum(usage.values())
    completion = {
        "model": _MODEL,
        "choices": [{"message": {"role": "assistant", "content": turn.answer}}],
    }
    return [
        span("assistant", "AGENT", root, 0, 1900, inputs=question, outputs=turn.answer),
        span("search_handbook", "RETRIEVER", search, 30, 310, inputs=question, outputs=documents),
        span(
            "answer",
            "CHAT_MODEL",
            answer,
            320,
            1880,
            inputs={"messages": messages, "model": _MODEL},
            outputs=completion,
            attributes={
                reserved_tags.SPAN_MODEL: _MODEL,
                reserved_tags.SPAN_PROVIDER: "openai",
                reserved_tags.SPAN_TOKEN_USAGE: usage,
            },
        ),
    ]


def _assess(client: ApiClient, trace_id: str, turn: Turn) -> None:
    path = f"/3.0/mlflow/traces/tr-{trace_id}/assessments"
    trace_info = client.get(f"/3.0/mlflow/traces/tr-{trace_id}")["trace"]["trace_info"]
    names = {each["assessment_name"] for each in trace_info.get("assessments", ())}
    why_grounded = (
        "Every statement stands in a passage." if turn.is_grounded else "No passage says so."
    )
    for name, source, rationale in (
        ("is_grounded", _BY_JUDGE, why_grounded),
        ("helpful", _BY_HAND, turn.remark),
    ):
        if rationale and name not in names:
            client.post(
                path,
                assessment={
                    "trace_id": f"tr-{trace_id}",
                    "assessment_name": name,
                    "source": source,
                    "feedback": {"value": turn.is_grounded},
                    "rationale": rationale,
                },
            )
