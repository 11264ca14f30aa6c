"""Redaction replaces what rules match, leaves everything else as it is, and is idempotent."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlcore.redaction import detectors
from mlcore.redaction import redactor as redactor_module
from mlcore.redaction.redactor import Redactor
from mlcore.redaction.rules import parsed
from tests.examples import number_of

ENTITIES = ["email", "credit_card", "iban", "phone", "ip_address", "aws_key", "bearer_token"]
RULES: list[dict[str, Any]] = [
    {"fields": ["inputs.password", "**.token"], "replacement": "[gone]"},
    {"pattern": "secret-[0-9]+"},
    {"entities": ENTITIES},
]
SECRETS = ("ann@example.com", "secret-42", "4111 1111 1111 1111", "10.1.2.3")


def redacting(*rules: dict[str, Any]) -> Redactor:
    redactor = parsed({"rules": list(rules or RULES)}).redactor("default", "1")
    assert redactor is not None
    return redactor


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(SECRETS)
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "token", *SECRETS]), inner, max_size=4)
        | inner.map(json.dumps)
    ),
    max_leaves=12,
)


def test_a_long_name_with_many_members() -> None:
    """The path of each member repeats the name."""
    began = time.process_time()
    members = {f"b{number}": f"private {number}" for number in range(50_000)}
    value = {"c": {"token": "private", "d": 1}, "a" * 1_000_000: {**members, "token": "private"}}
    redacted = redacting({"fields": ["**.token"]}).value(value, "inputs")
    assert redacted["c"] == {"token": "[REDACTED]", "d": 1}
    assert redacted["a" * 1_000_000]["token"] == "[REDACTED]"
    assert time.process_time() - began < 20


def form(value: Any) -> Any:
    """The form of a value: its containers, with their numbers of members."""
    if isinstance(value, dict):
        return [form(item) for item in value.values()]
    return [form(item) for item in value] if isinstance(value, list) else None


@settings(max_examples=number_of(300), deadline=None)
@given(values)
def test_redaction_is_idempotent_and_leaves_no_secret(value: Any) -> None:
    redacted = redacting().value(value, "inputs")
    assert redacting().value(redacted, "inputs") == redacted
    text = json.dumps(redacted)
    assert not any(secret in text for secret in SECRETS)


@settings(max_examples=number_of(300), deadline=None)
@given(values)
def test_redaction_keeps_form_and_all_that_no_rule_matches(value: Any) -> None:
    rule = {"pattern": "ann@example[.]com", "replacement": "[x]"}
    redacted = redacting(rule).value(value)
    assert form(redacted) == form(value)
    original = json.dumps(value)
    if "ann@example.com" not in original:
        assert redacted == value


@settings(max_examples=number_of(200), deadline=None)
@given(values)
def test_a_text_without_matches_stays_to_the_letter(value: Any) -> None:
    text = json.dumps(value, indent=1)
    assert redacting({"pattern": "never-there"}).text(text) == text


@pytest.mark.parametrize(
    ("kind", "text", "redacted"),
    [
        ("email", "to ann.b+c@mail.example.com.", "to [REDACTED email]."),
        ("email", "a @ b", "a @ b"),
        ("credit_card", "4111-1111-1111-1111 12/29", "[REDACTED credit card] 12/29"),
        ("credit_card", "5500 0055 5555 5559 2029", "[REDACTED credit card] 2029"),
        ("credit_card", "4111111111111112", "4111111111111112"),
        ("credit_card", "0.4111111111111111", "0.4111111111111111"),
        ("iban", "gb82 west 1234 5698 7654 32 is mine", "[REDACTED iban] is mine"),
        ("iban", "DE89370400440532013000", "[REDACTED iban]"),
        ("iban", "DE89370400440532013001", "DE89370400440532013001"),
        ("phone", "call +49 (30) 1234-567 now", "call [REDACTED phone] now"),
        ("phone", "(212) 555-0100", "[REDACTED phone]"),
        ("phone", "1700000000000 and 3.14.15", "1700000000000 and 3.14.15"),
        ("phone", "loss 0.00123456789, v1.0012345678", "loss 0.00123456789, v1.0012345678"),
        ("phone", "Tel.0049 30 1234567", "Tel.[REDACTED phone]"),
        ("ip_address", "at 192.168.0.1:80", "at [REDACTED ip address]:80"),
        ("ip_address", "from 2001:db8::1.", "from [REDACTED ip address]."),
        ("ip_address", "std::vector at 12:30:45, 1.2.3.4.5", "std::vector at 12:30:45, 1.2.3.4.5"),
        ("aws_key", "AKIAIOSFODNN7EXAMPLE", "[REDACTED aws key]"),
        ("aws_key", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "[REDACTED aws key]"),
        ("aws_key", "da39a3ee5e6b4b0d3255bfef95601890afd80709", None),
        (
            "bearer_token",
            "Authorization: Bearer abcdef.123456",
            "Authorization: [REDACTED bearer token]",
        ),
        ("bearer_token", "the bearer of news", "the bearer of news"),
    ],
)
def test_entities(kind: str, text: str, redacted: str | None) -> None:
    assert redacting({"entities": [kind]}).text(text) == (text if redacted is None else redacted)


@pytest.mark.parametrize("name", ["password", "PassWord", "pass_word", "pass-word"])
def test_fields_are_found_in_every_spelling_and_in_nested_json(name: str) -> None:
    inner = json.dumps({"list": [{name: {"deep": 1}, "kept": 1.5}]})
    redacted = redacting({"fields": ["inputs.*.password"]}).value({"list": inner}, "inputs")
    assert redacted == {"list": inner}
    redacted = redacting({"fields": ["inputs.list.list.password"]}).value({"list": inner}, "inputs")
    assert json.loads(redacted["list"]) == {"list": [{name: "[REDACTED]", "kept": 1.5}]}


def test_escapes_hide_nothing() -> None:
    whole = '{"k": "\\u0061nn@example.com", "n": "\\ud83d\\ude00 \\ud800"}'
    assert json.loads(redacting().text(whole)) == {"k": "[REDACTED email]", "n": "😀 \ud800"}
    assert "nn@example" not in redacting().text(whole[:-1])
    redacting().text(whole).encode()


def test_of_two_members_with_one_name_none_is_forgotten() -> None:
    redacted = redacting().text('{"k": "ann@example.com", "k": "public"}')
    assert json.loads(redacted) == {"k": "public"}
    assert "ann" not in redacted


def test_numbers_and_names_of_members_are_searched() -> None:
    value = {"card": 4111111111111111, "float": 4111111111111111.0, "ann@example.com": 1}
    card = "[REDACTED credit card]"
    assert redacting().value(value) == {"card": card, "float": card, "[REDACTED email]": 1}
    two = redacting().value({"ann@example.com": 1, "bob@example.com": 2})
    assert two == {"[REDACTED email]": 1, "[REDACTED email] 2": 2}


def test_a_text_that_takes_too_long_is_replaced_as_a_whole() -> None:
    slow = redacting({"pattern": "(a|a|b?)+$x", "replacement": "[slow]"})
    text = "ann " + "a" * 5_000 + "!"
    assert slow.text(text) in (text, "[slow]")
    slow._seconds_left = 0.0
    assert slow.text("anything") == "[slow]"


def test_a_value_too_deep_to_search_is_replaced_as_a_whole() -> None:
    value: Any = "ann@example.com"
    for _ in range(5_000):
        value = [value]
    assert redacting().value(value) == "[REDACTED]"


def test_a_preview_that_may_show_a_named_field_is_replaced() -> None:
    cut = '{"password": "hunter2", "text": "aaa...'
    rule = {"fields": ["inputs.password"]}
    assert redacting(rule).preview(cut, "inputs") == "[REDACTED]"
    assert redacting(rule).preview(cut, "outputs") == cut
    assert redacting(rule).preview('{"password": 1}', "inputs") == '{"password": "[REDACTED]"}'


def test_rules_that_undo_one_another_end_in_the_replacement() -> None:
    endless = redacting({"pattern": "a+", "replacement": "ab"})
    assert endless.text("xa") == "ab"
    assert redactor_module.MAX_PASSES > 1


def test_scopes() -> None:
    rules = parsed(
        {
            "rules": [
                {"entities": ["email"], "workspaces": ["team"], "experiments": ["7"]},
                {"pattern": "x", "experiments": ["8"]},
            ]
        }
    )
    assert rules.redactor("team", "7") is not None
    assert rules.redactor("default", "7") is None
    assert rules.redactor("team", "9") is None
    assert rules.redactor("default", "8") is not None


def test_detectors_have_little_time_in_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits that may begin a card everywhere take long; what follows them is not searched."""
    rule = {"entities": ["credit_card"], "apply_to": ["providers"]}
    chosen = parsed({"rules": [rule]}).of_request("w", "1", "e")
    assert chosen is not None
    monkeypatch.setattr(detectors, "SECONDS", 0.01)
    slow, mark = "4111 " * 20_000, "[REDACTED credit card]"
    brief = Redactor((), chosen.rules[0].replacers, detector_seconds=0.0)
    for redactor in (chosen.redactor(), brief):
        with pytest.raises(redactor_module.SearchTooLong):
            redactor.value([slow, "a"])
    of_traces = redacting({"entities": ["credit_card"]})
    assert of_traces.value([slow, "a"]) == [mark, "a"], "one text took too long"


def test_names_may_hide_a_text_in_escapes() -> None:
    assert redacting({"pattern": "secret"}).value({"\\u0073ecret": 1}) == {"[REDACTED]": 1}


@pytest.mark.parametrize("zero", ["0", "\uff10", "\u0660"])
def test_card_numbers_in_digits_of_other_scripts(zero: str) -> None:
    card = "".join(chr(ord(zero) + int(digit)) for digit in "4111111111111111")
    redactor = redacting({"entities": ["credit_card"]})
    assert redactor.text(f"card {card}.") == "card [REDACTED credit card]."
    assert redactor.text(f"card {card[:-1]}{zero}.") == f"card {card[:-1]}{zero}."
