"""What a model answered to a judge's question: the rating and its reasons, read from its text."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from mlcore import errors
from mlcore.entities.evaluation.judges import Judge

_FENCED: Final = re.compile(r"```[\w-]*\s*\n?(.*?)\n?\s*```", re.DOTALL)
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


def of_answer(judge: Judge, answer: dict[str, Any]) -> Verdict:
    """The verdict in a chat completion.

    Raises:
        BadRequest: it holds none.
    """
    text = text_of(answer)
    try:
        found = json.loads(without_fences(text), strict=False)
    except (ValueError, RecursionError):
        raise _unreadable(text) from None
    if not isinstance(found, dict) or "result" not in found:
        raise _unreadable(text)
    usage = answer.get("usage") or {}
    rationale = found.get("rationale")
    return Verdict(
        _plain(judge, found["result"]),
        rationale if isinstance(rationale, str) else "",
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
    )


def text_of(answer: dict[str, Any]) -> str:
    choices = answer.get("choices") or [{}]
    content = (choices[0].get("message") or {}).get("content")
    return content if isinstance(content, str) else ""


def without_fences(text: str) -> str:
    """Models like to put JSON in a block of Markdown, some with a word before it."""
    stripped = text.strip()
    if stripped.startswith("{"):
        return stripped
    block = _FENCED.search(stripped)
    return stripped if block is None else block[1].strip()


def _plain(judge: Judge, value: Any) -> Any:
    """Built-in judges answer one of their words, however the model puts it."""
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
