"""Runs agents whose calls OpenAI's and LangChain's autologging and OpenTelemetry's SDK trace, and
writes the ids and names of what they traced; run by test_published_questions.py.

python usage_agents_script.py URL PROVIDER FILE USER PASSWORD
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

URL, PROVIDER, FILE, USER, PASSWORD = sys.argv[1:]
os.environ |= {
    "MLFLOW_TRACKING_URI": URL,
    "MLFLOW_TRACKING_USERNAME": USER,
    "MLFLOW_TRACKING_PASSWORD": PASSWORD,
    "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
}

import mlflow  # noqa: E402 -- reads its settings when it is imported
import openai  # noqa: E402
from langchain_core.prompts import ChatPromptTemplate  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: E402
    OTLPSpanExporter,
)
from opentelemetry.sdk.resources import Resource  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.trace import Status, StatusCode  # noqa: E402

MODELS = ("gpt-4o", "gpt-4o-mini")


@tool
def look_up(city: str) -> str:
    """Returns what is known of a city."""
    if city == "Atlantis":
        raise ValueError("there is no such city")
    return f"{city} is known."


def by_openai() -> list[str]:
    """The ids of the traces of OpenAI's client."""
    mlflow.openai.autolog()
    client = openai.OpenAI(base_url=PROVIDER, api_key="own", max_retries=0)
    ids = []
    for number in range(4):
        client.chat.completions.create(
            model=MODELS[number % 2],
            messages=[{"role": "user", "content": f"question {number}"}],
        )
        ids.append(str(mlflow.get_last_active_trace_id()))
    mlflow.openai.autolog(disable=True)
    return ids


def by_langchain() -> list[str]:
    """The ids of the traces of chains and tools."""
    mlflow.langchain.autolog()
    model = ChatOpenAI(base_url=PROVIDER, api_key="own", model=MODELS[1], max_retries=0)
    chain: Any = ChatPromptTemplate.from_messages([("user", "What of {city}?")]) | model
    ids = []
    for city in ("Rome", "Oslo", "Atlantis"):
        chain.invoke({"city": city})
        ids.append(str(mlflow.get_last_active_trace_id()))
        try:
            look_up.invoke({"city": city})
        except ValueError:
            assert city == "Atlantis"
        ids.append(str(mlflow.get_last_active_trace_id()))
    return ids


def by_opentelemetry(experiment_id: str) -> list[str]:
    """The ids of the traces of OpenTelemetry's own SDK and exporter."""
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    exporter = OTLPSpanExporter(
        endpoint=f"{URL}/v1/traces",
        headers={"x-mlflow-experiment-id": experiment_id, "Authorization": f"Basic {login}"},
    )
    provider = TracerProvider(resource=Resource({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("shop", "1.2")
    ids = []
    for number in range(3):
        with tracer.start_as_current_span("invoke_agent") as root:
            root.set_attributes({"gen_ai.conversation.id": f"c{number % 2}", "number": number})
            with tracer.start_as_current_span("execute_tool") as child:
                child.set_attribute("gen_ai.tool.name", ("search", "order", "search")[number])
                child.add_event("retried", {"times": number})
                time.sleep(0.002)
                if number == 1:
                    child.set_status(Status(StatusCode.ERROR, "sold out"))
            root.set_status(Status(StatusCode.OK))
        ids.append(f"tr-{root.get_span_context().trace_id:032x}")
    provider.shutdown()
    return ids


experiment = mlflow.set_experiment("agents")
traced = {
    "openai": by_openai(),
    "langchain": by_langchain(),
    "opentelemetry": by_opentelemetry(experiment.experiment_id),
}
Path(FILE).write_text(json.dumps(traced), encoding="utf-8")
sys.stdout.write(f"ok {version('opentelemetry-sdk')}\n")
