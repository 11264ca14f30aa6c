"""Parses a model's answer to a judge's question into a rating and its rationale."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from mlcore import errors
from mlcore.entities.evaluation.judges import Judge
from mlcore.wire.json_text import load_json

_FENCE: Final = "```"
_LANGUAGE: Final = re.compile(r"\A[\w-]*")
_YES: Final = frozenset(
    (
        *("true", "pass", "passed", "correct", "success", "1", "1.0", "yes", "y", "yeah", "sure"),
        *("ok", "okay", "agree", "accepted", "right", "positive", "accurate", "valid"),
        *("approved", "complete", "good"),
    )
)
_NO: Final = frozenset(
    (
        *("false", "fail", "failed", "incorrect", "failure", "0", "0.0", "no", "n", "nope"),
        *("negative", "rejected", "disagree", "invalid", "inaccurate", "wrong", "denied"),
        *("incomplete", "bad"),
    )
)


class Verdict(NamedTuple):
    value: Any
    rationale: str
    input_tokens: int | None
    output_tokens: int | None


def parse_verdict(judge: Judge, answer: dict[str, Any]) -> Verdict:
    """Returns the verdict in a chat completion. Raises BadRequest if the answer is not a JSON
    object with a result."""
    text = text_of(answer)
    try:
        data = load_json(without_fences(text), strict=False)
    except ValueError:
        raise _unreadable(text) from None
    if not isinstance(data, dict) or "result" not in data:
        raise _unreadable(text)
    usage = answer.get("usage") or {}
    rationale = data.get("rationale")
    return Verdict(
        _normalized(judge, data["result"]),
        rationale if isinstance(rationale, str) else "",
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
    )


def text_of(answer: dict[str, Any]) -> str:
    """Returns the text of the first choice in a chat completion; "" without any."""
    choices = answer.get("choices") or [{}]
    content = (choices[0].get("message") or {}).get("content")
    return content if isinstance(content, str) else ""


def without_fences(text: str) -> str:
    """Returns the content of the first Markdown code block in a model's answer; the whole answer if
    it has none or begins with ``{``."""
    stripped = text.strip()
    if stripped.startswith("{"):
        return stripped
    _, fence, rest = stripped.partition(_FENCE)
    block, end, _ = _LANGUAGE.sub("", rest).partition(_FENCE)
    return block.strip() if fence and end else stripped


def _normalized(judge: Judge, value: Any) -> Any:
    """Returns the rating of a judge with a user's instructions unchanged, and of a built-in judge
    in lower case. If a built-in judge answers yes or no, synonyms become these words, and all other
    words "unknown"."""
    if not judge.builtin:
        return value
    word = str(value).strip().lower()
    if word in judge.value["enum"]:
        return word
    if "yes" in judge.value["enum"]:
        return "yes" if word in _YES else "no" if word in _NO else "unknown"
    return word


def _unreadable(text: str) -> errors.BadRequest:
    return errors.BadRequest(f"Failed to parse response from judge model. Response: {text}")
