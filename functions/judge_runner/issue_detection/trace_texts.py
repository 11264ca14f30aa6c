"""Builds the texts by which the model that detects issues sees a trace or a session (the traces of
a conversation). The texts contain data of the traced application, so they are cut, and the model is
told not to follow instructions in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from mlcore.judges import trace_content
from mlcore.judges.trace_content import Subject

CHARACTERS: Final = 60_000
"""About the most characters of a recording."""
_ERROR_CHARACTERS: Final = 500
_PLUMBING: Final = ("LLM", "CHAT_MODEL", "EMBEDDING")
"""Types of spans that say nothing about the steps that an application took."""


def recording(subjects: Sequence[Subject]) -> str:
    """Returns the text by which a model sees a session or a single trace: its traces as JSON, after
    the messages of a session. Long parts are cut."""
    if len(subjects) == 1 and subjects[0].session is None:
        return cut(trace_content.trace_json(subjects[0]), CHARACTERS)
    messages = json.dumps(trace_content.conversation(subjects), ensure_ascii=False, default=str)
    share = CHARACTERS // 2
    room = share // max(1, len(subjects))
    traces = [cut(trace_content.trace_json(subject), room) for subject in subjects]
    return (
        f"messages of the conversation: {cut(messages, share)}\n"
        f"traces of the conversation, one for each call:\n" + "\n".join(traces)
    )


def path(subjects: Sequence[Subject]) -> str:
    """Returns the names of the spans below the root spans of these traces, without the calls of
    models, as ``route > search, read``; failed spans have ``[ERROR]`` after their name."""
    paths = dict.fromkeys(filter(None, map(_path, subjects)))
    return "; ".join(paths) or "no steps"


def errors_of(subjects: Sequence[Subject]) -> str:
    """Returns the error messages of the failed spans of these traces, each once, joined and cut to
    500 characters."""
    messages: dict[str, None] = {}
    for subject in subjects:
        for span in trace_content.summaries(subject):
            for message in span.get("exceptions", ()):
                messages.setdefault(f"{span.get('name')}: {message}")
    return "; ".join(messages)[:_ERROR_CHARACTERS]


def spans(subject: Subject, most: int, characters: int) -> str:
    """Returns the first ``most`` spans of a trace, with their ids, as one line of JSON each."""
    known = trace_content.summaries(subject, characters)[:most]
    return "\n".join(json.dumps(span, ensure_ascii=False, default=str) for span in known)


def cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[:characters]} (cut)"


def _path(subject: Subject) -> str:
    summaries = trace_content.summaries(subject, 0)
    children: dict[Any, list[dict[str, Any]]] = {}
    for span in summaries:
        children.setdefault(span.get("parent_id"), []).append(span)
    roots = children.get(None, summaries[:1])
    steps = []
    for root in roots:
        for step in children.get(root["span_id"], ()):
            if step.get("type") in _PLUMBING:
                continue
            below = dict.fromkeys(_names_below(step, children))
            steps.append(_name(step) + (f" > {', '.join(below)}" if below else ""))
    return " | ".join(steps)


def _names_below(step: dict[str, Any], children: dict[Any, list[dict[str, Any]]]) -> list[str]:
    names, waiting, seen = [], [step], {step["span_id"]}
    while waiting:
        for span in children.get(waiting.pop()["span_id"], ()):
            if span["span_id"] in seen:  # parent ids, which clients choose, may form a cycle
                continue
            seen.add(span["span_id"])
            waiting.append(span)
            if span.get("type") not in _PLUMBING:
                names.append(_name(span))
    return names


def _name(span: dict[str, Any]) -> str:
    failed = span.get("status") == "ERROR" or bool(span.get("exceptions"))
    return f"{str(span.get('name'))[:100]}{' [ERROR]' if failed else ''}"
