"""Whatever stands at any place in a scorer's JSON, it is accepted or refused as the caller's
mistake."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from mlcore.errors import InvalidParameterValue
from mlcore.limits.evaluation.judge_endpoints import judge_endpoint, with_endpoint
from mlcore.limits.evaluation.scorer_parsing import parse_scorer
from mlcore.limits.evaluation.scorers import check_payload
from mlcore.wire.json_text import MAX_DEPTH
from tests.contract.judges_world import builtin, judge

Path = tuple[str | int, ...]

OUTPUTS = "Is {{ outputs }} fine?"
SCORERS: list[Any] = [
    judge(OUTPUTS, feedback_value_type={"type": "array", "items": {"type": "string"}}),
    judge(OUTPUTS, feedback_value_type={"anyOf": [{"type": "string"}, {"type": "null"}]}),
    judge(OUTPUTS, feedback_value_type={"enum": ["a"], "type": "string"}),
    judge(OUTPUTS, inference_params={"temperature": 1}),
    builtin("Guidelines", guidelines=["a"], inference_params={}),
    {"name": "a", "memory_augmented_judge_data": {"base_judge": judge(OUTPUTS)}},
    {"name": "t", "third_party_scorer_data": {"module": "m", "kwargs": {"api_base": "http://a"}}},
    {
        "name": "c",
        "call_source": "return 1",
        "call_signature": "(outputs)",
        "original_func_name": "f",
        "timeout": 5,
        "aggregations": ["mean"],
    },
]


def _deep(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"base_judge": value, "items": [1]}
    return value


STRANGE: list[Any] = [
    *(None, True, 0, -1, 1.5, 10**400, float("nan"), float("inf"), "", "\ud800", "\x00", "string"),
    *([], [None], ["\ud800"], [[]], ["string"], {}, {"a": None}, {"type": ["a"]}, {"type": {}}),
    *("x" * 3000, _deep(MAX_DEPTH // 2), _deep(MAX_DEPTH + 1)),
]


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, (*path, index))


def _with(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    first, *rest = path
    changed = _with(value[first], tuple(rest), new)
    if isinstance(value, dict):
        return {**value, first: changed}
    return [changed if index == first else inner for index, inner in enumerate(value)]


@pytest.mark.parametrize("code", ["true", ""])
@pytest.mark.parametrize("scorer", SCORERS, ids=lambda scorer: next(reversed(scorer)))
def test_strange_parts(scorer: Any, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS", code)
    accepted = 0
    for path in _paths(scorer):
        for strange in STRANGE:
            text = json.dumps(_with(scorer, path, strange))
            with contextlib.suppress(InvalidParameterValue):
                data = check_payload(text)
                endpoint = judge_endpoint(data)
                if endpoint is not None:
                    with_endpoint(data, None)
                json.dumps(data, ensure_ascii=False).encode()
                accepted += 1
                parse_scorer(data)
    assert accepted > 30 or (scorer["name"] == "c" and not code)
