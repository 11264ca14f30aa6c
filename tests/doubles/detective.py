"""A model at OpenAI that detects issues for MLflow's pipeline and for the product: answers with the
word WRONG are incorrect, those with CRASH fail."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.doubles.providers import Asked, Told, openai

Json = dict[str, Any]


def statement(body: Json) -> Any:
    """What the model says to either pipeline: it knows its question by the form of the answer."""
    text = str(body["messages"][-1]["content"])
    words = [word for word in ("WRONG", "CRASH") if word in text]
    kinds = {"WRONG": "correctness", "CRASH": "execution"}
    form = body.get("response_format")
    if form is None:
        return "".join(f"it says {word}" for word in words)
    schema = form["json_schema"]["schema"]
    names = set(schema["properties"])
    categories = [kinds[word] for word in words]
    passed = not words
    rationale = f"The answer says {' and '.join(words)}." if words else "All is well."
    if "result" in names:
        result = {"passed": str(passed).lower(), "categories": ", ".join(categories)}
        return {"result": result, "rationale": rationale}
    if "passed" in names:
        return {"passed": passed, "categories": categories, "rationale": rationale}
    if "labels" in names:
        return {"labels": [f"it says {word}" for word in words]}
    if "severity" in names:
        return {
            "name": f"Issue: Answers say {words[0]}",
            "description": f"Users read {words[0]}.",
            "root_cause": f"A step says {words[0]}.",
            "severity": "high" if words[0] == "CRASH" else "medium",
            "categories": [kinds[words[0]], "invented"],
            "example_indices": [],
            "category_rationale": "",
        }
    if "steps" in names:
        [span_id] = set(re.findall(r'span_id(?:=|": ")([0-9a-f]{16})', text))
        step = {"span_id": span_id, "text": "The answer was bad.", "highlights": ["bad"]}
        steps = [{**step, "highlight_tone": "error", "mono": False}]
        return {"summary": "A bad answer.", "steps": steps, "primary_span_id": span_id}
    if "root_cause" in json.dumps(schema):
        return {"groups": []}
    return {
        "groups": [
            {"name": word, "indices": numbers}
            for word in ("WRONG", "CRASH")
            if (numbers := [int(each) for each in re.findall(rf"^\W?(\d+).*{word}", text, re.M)])
        ]
    }


def answer(request: Asked) -> Told:
    response = openai(request)
    content = statement(request.body)
    text = content if isinstance(content, str) else json.dumps(content)
    response.body["choices"][0]["message"]["content"] = text
    return response
