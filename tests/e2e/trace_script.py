"""Makes traces with the MLflow client that this interpreter has, and checks what comes back.

python trace_script.py URI EXPERIMENT async|sync
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import mlflow
from mlflow.entities import SpanEvent

URI, NAME, LOGGING = sys.argv[1], sys.argv[2], sys.argv[3]
os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = str(LOGGING == "async").lower()
VERSION = tuple(map(int, mlflow.__version__.split(".")[:2]))
SESSION = "mlflow.trace.session"
COMPLETED = {"mlflow.llm.model", "mlflow.llm.provider", "mlflow.llm.cost"}
"""Attributes that servers add."""
EMPTY: Any = {"a": [{}, []]} if VERSION >= (3, 17) else {"a": [{"b": 1}]}
"""Version 3.6 reads what is empty as None."""
Told = dict[str, Any]
Made = tuple[str, list[Told], Told]
"""A trace's id, its spans as they ended, and what is told about it."""

ended: dict[str, list[Any]] = {}
"""Live spans by trace."""


def id_of(span: Any) -> str:
    trace_id: str = getattr(span, "trace_id", None) or span.request_id
    return trace_id


def kept(span: Any) -> Any:
    ended.setdefault(id_of(span), []).append(span)
    return span


def plain(value: Any) -> Any:
    """As JSON has it: tuples are lists, keys are texts."""
    return json.loads(json.dumps(value, default=str))


def as_dict(span: Any) -> Told:
    """A span as its author sees it."""
    attributes = {key: plain(value) for key, value in span.attributes.items()}
    attributes.pop("mlflow.traceRequestId", None)
    return {
        "name": span.name,
        "type": span.span_type,
        "id": span.span_id,
        "parent": span.parent_id,
        "start": span.start_time_ns,
        "end": span.end_time_ns,
        "inputs": plain(span.inputs),
        "outputs": plain(span.outputs),
        "status": (span.status.status_code.value, span.status.description or ""),
        "attributes": attributes,
        "events": [
            (event.name, event.timestamp, plain(dict(event.attributes))) for event in span.events
        ],
        "links": [
            (link.trace_id, link.span_id, plain(link.attributes or {}))
            for link in getattr(span, "links", None) or ()
        ],
    }


def in_order(spans: list[Told]) -> list[Told]:
    return sorted(spans, key=lambda span: span["id"])


def nested(number: int) -> str:
    """Spans within spans, all kinds of values, one that fails."""
    with mlflow.start_span("outer", span_type="CHAIN") as outer:
        kept(outer)
        outer.set_inputs({"question": f"why {number}?", "ü": [1, 2.5, None], "deep": EMPTY})
        for step in range(3):
            with mlflow.start_span(f"step {step}", span_type="TOOL") as inner:
                inner.set_inputs({"step": step})
                inner.set_attributes(
                    {
                        "k": {"a": [step]},
                        "text": "ä\n\t\"'",
                        "empty": "",
                        "flag": step == 1,
                        "count": 2**53 + step,
                        "ratio": 0.1 * step,
                        "list": ["x", "y"],
                        "digits": "0123",
                    }
                )
                inner.set_outputs(["x" * 100, step])
                kept(inner)
        try:
            with mlflow.start_span("fails") as failing:
                kept(failing)
                raise ValueError("wanted")
        except ValueError:
            pass
        outer.set_outputs("because")
    return id_of(outer)


def with_events(_number: int) -> str:
    with mlflow.start_span("eventful") as span:
        kept(span)
        for step in range(2):
            span.add_event(
                SpanEvent(  # type: ignore[abstract]
                    name=f"event {step}",
                    attributes={"s": "é", "i": step, "f": 0.5, "b": True, "l": ["p", "q"]},
                )
            )
        span.set_status("OK")
    return id_of(span)


def decorated(number: int) -> str:
    """Functions and a coroutine."""

    @mlflow.trace
    def add(a: int, b: int = 2) -> int:
        kept(mlflow.get_current_active_span())
        return a + b

    @mlflow.trace(name="twice", span_type="LLM", attributes={"model": "m"})
    async def double(value: int) -> int:
        kept(mlflow.get_current_active_span())
        await asyncio.sleep(0)
        return 2 * value

    @mlflow.trace(span_type="AGENT")
    def answer(question: str, settings: dict[str, Any]) -> dict[str, Any]:
        root = kept(mlflow.get_current_active_span())
        answers.append(id_of(root))
        if VERSION >= (3, 0):
            mlflow.update_current_trace(
                tags={"city": "Oslo"}, metadata={SESSION: f"talk {NAME}", "mlflow.trace.user": "a"}
            )
        return {"sum": add(number), "double": asyncio.run(double(3))}

    answers: list[str] = []
    answer("how many?", {"temperature": 0.5})
    return answers[0]


def by_hand(number: int) -> str:
    """As MLflow's integrations with OpenAI and others make them: by parent, with usage."""
    request = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hello?"}]}
    message = {"role": "assistant", "content": "Hi."}
    answer = {"choices": [{"index": 0, "message": message}], "usage": {"total_tokens": 7}}
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    if hasattr(mlflow, "start_span_no_context"):
        root: Any = mlflow.start_span_no_context(
            "Completions", span_type="CHAIN", inputs={"n": number}
        )
        chat = mlflow.start_span_no_context(
            "chat", span_type="CHAT_MODEL", parent_span=root, inputs=request
        )
    else:
        client = mlflow.MlflowClient()
        root = client.start_trace("Completions", span_type="CHAIN", inputs={"n": number})
        chat = client.start_span(
            "chat", id_of(root), root.span_id, span_type="CHAT_MODEL", inputs=request
        )
    kept(root)
    kept(chat)
    chat.set_attributes({"temperature": 0.7})
    chat.set_attribute("mlflow.chat.tokenUsage", usage)
    if hasattr(mlflow, "start_span_no_context"):
        chat.end(outputs=answer)
        root.end(outputs=answer)
    else:
        client.end_span(id_of(root), chat.span_id, outputs=answer)
        client.end_trace(id_of(root), outputs=answer)
    return id_of(root)


def linked(_number: int) -> str:
    link_class = import_module("mlflow.entities.link").Link
    other = next(iter(ended.values()))[0]
    link = link_class(trace_id=id_of(other), span_id=other.span_id, attributes={"why": "follows"})
    with mlflow.start_span("linked", links=[link]) as span:
        kept(span)
    return id_of(span)


def streamed(_number: int) -> str:
    """The span ends with the stream."""
    spans: list[Any] = []

    @mlflow.trace(output_reducer="".join)
    def stream(text: str) -> Iterator[str]:
        spans.append(kept(mlflow.get_current_active_span()))
        yield from text

    assert "".join(stream("abc")) == "abc"
    return id_of(spans[0])


KINDS: list[Callable[[int], str]] = [nested, with_events, decorated, by_hand]
if VERSION >= (3, 1):
    KINDS.append(streamed)
if VERSION >= (3, 11):
    KINDS.append(linked)


def state_of(trace: Any) -> str:
    state = getattr(trace.info, "state", None) or trace.info.status
    return str(getattr(state, "value", state))


def check(client: Any, trace_id: str) -> Any:
    trace = client.get_trace(trace_id)
    came = in_order(list(map(as_dict, trace.data.spans)))
    went = in_order(list(map(as_dict, ended[trace_id])))
    assert len(came) == len(went), (trace_id, came, went)
    for received, sent in zip(came, went, strict=True):
        for key in COMPLETED - sent["attributes"].keys():
            received["attributes"].pop(key, None)
        different = {
            key: (received[key], sent[key]) for key in received if received[key] != sent[key]
        }
        assert not different, (trace_id, received["name"], different)
    root = next(span for span in went if span["parent"] is None)
    assert state_of(trace) == "OK"
    name = trace.info.tags["mlflow.traceName"]
    assert name == root["name"], name
    return trace


def reader() -> Any:
    if hasattr(mlflow, "MlflowClient"):
        return mlflow.MlflowClient()
    return import_module("mlflow.tracing.client").TracingClient()


def main() -> None:
    mlflow.set_tracking_uri(URI)
    owner = mlflow.set_experiment(NAME).experiment_id
    made: list[tuple[Callable[[int], str], str]] = []

    def work(number: int) -> None:
        for kind in KINDS[:4]:
            made.append((kind, kind(number)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, kind in enumerate(KINDS):
        made.append((kind, kind(number)))
    if LOGGING == "async":
        mlflow.flush_trace_async_logging()
    client = reader()
    for kind, trace_id in made:
        trace = check(client, trace_id)
        if VERSION >= (3, 0) and kind is decorated:
            assert trace.info.tags["city"] == "Oslo"
            assert trace.info.trace_metadata[SESSION] == f"talk {NAME}"
        if VERSION >= (3, 1) and kind is by_hand:
            assert trace.info.token_usage["total_tokens"] == 7, trace.info
    everything = {trace_id for _, trace_id in made}
    where: Any = {"locations" if VERSION >= (3, 17) else "experiment_ids": [owner]}
    deadline = time.monotonic() + 60
    while True:
        traces = client.search_traces(**where)
        if len(traces) == len(made) or time.monotonic() > deadline:
            break
    ids = {getattr(trace.info, "trace_id", None) or trace.info.request_id for trace in traces}
    assert ids == everything, ids
    for trace in traces:
        trace_id = getattr(trace.info, "trace_id", None) or trace.info.request_id
        assert len(trace.data.spans) == len(ended[trace_id])
    if VERSION >= (3, 0):
        talk = client.search_traces(**where, filter_string=f"metadata.`{SESSION}` = 'talk {NAME}'")
        wanted = {trace_id for kind, trace_id in made if kind is decorated}
        assert {trace.info.trace_id for trace in talk} == wanted
    first = made[0][1]
    client.set_trace_tag(first, "colour", "blue")
    assert client.get_trace(first).info.tags["colour"] == "blue"
    client.delete_trace_tag(first, "colour")
    assert "colour" not in client.get_trace(first).info.tags
    name = "trace_ids" if VERSION >= (3, 0) else "request_ids"
    chosen: Any = {name: [first]}
    assert client.delete_traces(owner, **chosen) == 1
    sys.stdout.write(f"ok {mlflow.__version__}\n")


main()
