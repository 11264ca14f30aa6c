"""What a scorer's process answers is untrusted: it cannot say more than a scorer may say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mlcore.scorer_cage import answers
from tests.cage.scorers import LIMITS, error, run

PLAIN = {"name": "quality", "value": True, "source_id": "quality"}


def _forged(answer: str) -> Any:
    """Writes an answer in place of the cage, and ends the process."""
    body = f"import os\nos.write(3, {answer.encode()!r})\nos._exit(0)"
    return run(body)


@pytest.mark.parametrize(
    "fields",
    [
        {"source": {"source_type": "HUMAN", "source_id": "admin"}},
        {"source_type": "HUMAN"},
        {"overrides": "a-1"},
        {"valid": False},
        {"assessment_id": "a-1"},
        {"trace_id": "tr-other"},
        {"run_id": "1"},
        {"create_time": "2020-01-01T00:00:00Z"},
        {"span_id": "0"},
        {"expectation": {"value": 1}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_other_fields_are_refused(fields: dict[str, Any]) -> None:
    made = _forged(json.dumps([{**PLAIN, **fields}]))
    assert made.feedback == ()
    assert "other fields" in made.failure


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "not JSON"),
        ("sealed\n", "not JSON"),
        ("{}", "not a list"),
        ("[1]", "other fields"),
        ("[" * 100_000, "not JSON"),
        (json.dumps([{**PLAIN, "value": float("nan")}]), "NaN"),
        ('[{"name": "q", "value": 1e999}]', "too large"),
        ('[{"name": "q", "value": 1' + "0" * 400 + "}]", "too large"),
        ('[{"name": "q", "value": 1' + "0" * 9000 + "}]", "not JSON"),
        ('[{"name": "q", "value": "\\ud800"}]', "not Unicode"),
        ('[{"name": "q", "value": {"\\udfff": 1}}]', "not Unicode"),
        ('[{"name": "\\ud800"}]', "not Unicode"),
        ('[{"name": "q", "value": ' + "[" * 60 + "]" * 60 + "}]", "nested deeper"),
        ('[{"name": ""}]', "a name"),
        ('[{"name": 7}]', "no text"),
        (json.dumps([{"name": "x" * 300}]), "a name"),
        (json.dumps([PLAIN] * 101), "more than 100"),
        ('[{"name": "q", "rationale": 7}]', "no text"),
        ('[{"name": "q", "metadata": [1]}]', "metadata"),
        ('[{"name": "q", "metadata": {"a": 1}}]', "no text"),
        ('[{"name": "q", "error": "x"}]', "an error"),
        ('[{"name": "q", "error": {"error_code": ""}}]', "no code"),
        ('[{"name": "q", "error": {"error_code": "X", "status": 1}}]', "an error"),
        ("\x80\x04\x95cos\nsystem\n(S'true'\ntR.", "not JSON"),
    ],
)
def test_malformed_answers_are_refused(answer: str, reason: str) -> None:
    made = _forged(answer)
    assert made.feedback == ()
    assert reason in made.failure
    with pytest.raises(answers.MalformedAnswer, match=reason):
        answers.parse(answer.encode().removeprefix(b"sealed\n"))


def test_mlflows_own_metadata_cannot_be_set() -> None:
    body = """
return Feedback(value=1, metadata={
    'mlflow.assessment.scorerName': 'other', 'mlflow.assessment.scorerVersion': '9',
    'mlflow.assessment.sourceRunId': 'r', 'mlflow.trace.session': 's', 'own': 'kept'})"""
    (feedback,) = run(body).feedback
    assert feedback.metadata == {"own": "kept"}


def test_the_source_is_code_whatever_a_scorer_claims() -> None:
    body = "return Feedback(value=1, source=AssessmentSource('HUMAN', 'admin'))"
    (feedback,) = run(body).feedback
    assert feedback.source_id == "admin"
    assert not hasattr(feedback, "source_type")


def test_a_scorer_cannot_pretend_that_the_system_offers_no_cage() -> None:
    made = run("import os\nos.write(3, b'no seccomp')\nos._exit(3)")
    assert made.failure == "The scorer's process ended without an answer (exit code 3)."


def test_a_pickle_is_not_loaded() -> None:
    body = """
import os, sys
class Bomb:
    def __reduce__(self): return (print, ('loaded',))
return Bomb()"""
    assert "must return one of" in error(run(body))


@pytest.mark.parametrize(
    "body",
    [
        "import sys\n"
        "sys.modules['mlcore.scorer_cage.feedback_json'].dump = lambda made: b'[]'\nreturn 1",
        'import sys\nforged = \'[{"name": "q", "valid": false}]\'\n'
        "sys.modules['json'].dumps = lambda *a, **k: forged\nreturn 1",
        "import sys\nsys._getframe(1).f_locals['name'] = 'other'\nreturn 1",
    ],
    ids=["the harness", "the JSON library", "a local name"],
)
def test_a_changed_harness_gives_no_more_than_a_scorer_may_say(body: str) -> None:
    made = run(body)
    assert made.failure is not None or all(
        feedback.name == "quality" and feedback.value == 1 for feedback in made.feedback
    )


def test_the_process_holds_nothing_but_its_own_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_SECRET", "the-secret-word")
    body = """
import gc, sys
texts = [each for each in gc.get_objects() if isinstance(each, dict)]
words = repr([str(each)[:100000] for each in texts])
return [name for name in ('the-secret' + '-word', 'TABLE_' + 'NAME') if name in words] == []"""
    limits = LIMITS._replace(packages=(*LIMITS.packages, "gc"))
    assert run(body, limits).feedback[0].value is True


def test_a_scorer_does_not_see_what_another_left() -> None:
    leave = "import sys\nsys.modules['left'] = 1\n__builtins__['left'] = 1\nreturn True"
    assert run(leave).feedback[0].value is True
    look = "import sys\nreturn 'left' in sys.modules or 'left' in __builtins__"
    assert run(look).feedback[0].value is False
