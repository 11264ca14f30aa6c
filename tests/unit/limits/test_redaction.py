"""What the setting ``redaction`` accepts."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from mlcore.errors import InvalidParameterValue, TemporarilyUnavailable
from mlcore.limits.settings import check_setting
from mlcore.repos.settings import redaction

RULE = {"entities": ["email"], "workspaces": ["team"], "experiments": ["1"], "replacement": "-"}


def test_good_rules() -> None:
    check_setting("redaction", {"rules": []})
    check_setting("redaction", {"rules": [RULE, {"fields": ["a.*.b", "**.c"]}, {"pattern": "x+"}]})
    sent = [
        {"fields": ["inputs.a", "**.b", "*.c"], "apply_to": ["providers", "traces"]},
        {"entities": ["iban"], "apply_to": ["providers"], "unsearchable": "send"},
        {"content": "none", "apply_to": ["traces"]},
    ]
    check_setting("redaction", {"rules": sent})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "must be an object"),
        ([], "must be an object"),
        ({"rules": [], "more": 1}, "must be an object"),
        ({"rules": {}}, "must be a list"),
        ({"rules": [{"pattern": "x"}] * 51}, "at most 50"),
        ({"rules": [{"pattern": "x" * 500}] * 50 + []}, None),
        ({"rules": [1]}, "Rule 1"),
        ({"rules": [{"pattern": "x", "unknown": 1}]}, "a rule must be an object"),
        ({"rules": [{"replacement": "x"}]}, "exactly one"),
        ({"rules": [{"pattern": "x", "entities": ["email"]}]}, "exactly one"),
        ({"rules": [{"entities": ["email"]}, {"entities": ["mail"]}]}, "Rule 2.*no entity 'mail'"),
        ({"rules": [{"entities": []}]}, "list of 1"),
        ({"rules": [{"entities": "email"}]}, "list of 1"),
        ({"rules": [{"fields": ["a..b"]}]}, "no path"),
        ({"rules": [{"fields": ["**.a.**"]}]}, "no path"),
        ({"rules": [{"pattern": "("}]}, "no regular expression"),
        ({"rules": [{"pattern": ""}]}, "1 to 500"),
        ({"rules": [{"pattern": 5}]}, "1 to 500"),
        ({"rules": [{"pattern": "(a{1000}){1000}"}]}, "counts"),
        ({"rules": [{"pattern": "RED"}]}, "matches the replacement"),
        ({"rules": [{"pattern": "x", "replacement": ""}]}, "printable"),
        ({"rules": [{"pattern": "x", "replacement": "a\nb"}]}, "printable"),
        ({"rules": [{"pattern": "y", "workspaces": [1]}]}, "list of 1"),
        ({"rules": [{"pattern": "y", "experiments": ["01"]}]}, "is written as '1'"),
        ({"rules": [{"pattern": "y", "experiments": ["a/b"]}]}, "Invalid experiment ID"),
        ({"rules": [{"content": "none", "apply_to": ["providers"]}]}, "applies to traces alone"),
        ({"rules": [{"content": "none", "apply_to": ["traces", "providers"]}]}, "traces alone"),
        ({"rules": [{"pattern": "y", "apply_to": []}]}, "some of traces, providers"),
        ({"rules": [{"pattern": "y", "apply_to": "traces"}]}, "some of traces, providers"),
        ({"rules": [{"pattern": "y", "apply_to": ["jobs"]}]}, "some of traces, providers"),
        ({"rules": [{"pattern": "y", "apply_to": [["traces"]]}]}, "some of traces, providers"),
        ({"rules": [{"pattern": "y", "apply_to": None}]}, "some of traces, providers"),
        ({"rules": [{"pattern": "y", "unsearchable": "send"}]}, "apply to providers"),
        (
            {"rules": [{"fields": ["**.a"], "apply_to": ["providers"], "unsearchable": "send"}]},
            "'entities' or 'pattern'",
        ),
        (
            {"rules": [{"pattern": "y", "apply_to": ["providers"], "unsearchable": "drop"}]},
            "one of refuse, send",
        ),
        *(
            ({"rules": [{"fields": [field], "apply_to": ["providers"]}]}, "names no part")
            for field in (
                "inputs",
                "*",
                "**",
                "outputs.a",
                "tags.a",
                "name",
                "_inputs",
                "**.inputs",
            )
        ),
        ({"rules": [{"pattern": "RED", "apply_to": ["providers"]}]}, "matches the replacement"),
    ],
)
def test_bad_rules(value: Any, message: str | None) -> None:
    if message is None:
        check_setting("redaction", value)
        return
    with pytest.raises(InvalidParameterValue, match=message):
        check_setting("redaction", value)


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        7,
        {"rules": [{"sentiment": "x"}]},
        {"rules": [{"entities": ["dna"]}]},
        {"rules": [{"entities": ["email"], "apply_to": ["somewhere"]}]},
        {"rules": [{"entities": ["email"], "apply_to": []}]},
        {"rules": [{"entities": ["email"], "apply_to": 1}]},
        {"rules": [{"entities": ["email"], "unsearchable": "some"}]},
        {"rules": [7]},
    ],
)
def test_rules_of_a_later_release_are_not_ignored(value: Any) -> None:
    with pytest.raises(TemporarilyUnavailable):
        redaction._parsed(value)


def test_without_rules_nothing_is_imported_for_them() -> None:
    code = (
        "import sys, traces.app, artifacts.app, workspaces.app, gateway_calls.app\n"
        "import mlcore.gateway.call_traces\n"
        "from mlcore.repos.settings import redaction\n"
        "for value in (None, {'rules': []}):\n"
        "    assert redaction._parsed(value).redactor('default', '1') is None\n"
        "    assert redaction._parsed(value).of_request('default', '1', 'e-1') is None\n"
        "print(*sorted(name for name in sys.modules if 'redaction' in name))"
    )
    names = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout.split()
    assert names == [
        "mlcore.redaction",
        "mlcore.redaction.setting",
        "mlcore.repos.settings.redaction",
        "mlcore.repos.traces.redaction",
        "mlcore.spans.trace_file_redaction",
    ]
