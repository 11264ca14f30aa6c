"""A private text reaches no provider while a rule applies to providers, however it is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mlcore.redaction import leaves
from mlcore.repos.settings import stored_settings
from tests import examples
from tests.contract.conftest import Store
from tests.contract.gateway_world import KEY, allow_local, endpoint, model
from tests.contract.recording_provider import anything, received
from tests.contract.sealing import seal_here
from tests.contract.ways_to_providers import SPELLINGS, WAYS
from tests.doubles.providers import Provider, failing, serving

Json = dict[str, Any]

RULES: Final[Json] = {
    "rules": [
        {"entities": ["email"], "apply_to": ["providers"]},
        {"pattern": "пароль-[0-9]{4}|hunter2[a-z]{6}", "apply_to": ["traces", "providers"]},
    ]
}
PRIVATE: Final = st.tuples(
    st.from_regex(r"[a-z]{2,9}\.[a-z]{2,9}@[a-z]{2,9}\.example", fullmatch=True),
    st.from_regex(r"hunter2[a-z]{6}", fullmatch=True),
    st.from_regex(r"пароль-[0-9]{4}", fullmatch=True),
)


@pytest.fixture
def provider(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    """The provider of all endpoints."""
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    with serving(anything) as made, serving(failing(500)) as broken:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", made.url)
        for name, kind in (("chat", "openai"), ("claude", "anthropic"), ("gemini", "gemini")):
            endpoint(name, [model(name, kind, f"{made.url}/v1")])
        region = {"aws_region_name": "us-east-2"}
        bedrock = model("b", "bedrock", secret={"api_key": KEY}, auth_config=region)
        endpoint("bedrock", [bedrock])
        first = model("first", "openai", f"{broken.url}/v1")
        endpoint("falling", [first], [model("second", "anthropic", f"{made.url}/v1")])
        yield made


def test_each_way_leads_to_the_provider_without_rules(provider: Provider) -> None:
    text = "ann.secret@mail.example"
    for way in WAYS:
        provider.asked.clear()
        answer = way.send(text, "plain")
        assert answer.status == 200, (way.name, answer)
        is_packed = any(part in way.name for part in ("zipped", "utf-16"))
        if not is_packed and way.name not in ("first of two", "header cookie"):
            assert text in received(provider), way.name


@given(texts=PRIVATE, turn=st.integers(0, len(SPELLINGS) * 3))
@settings(
    max_examples=3 + examples.MULTIPLE,
    phases=[Phase.generate],  # an example is a hundred requests
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_private_text_reaches_no_provider(
    provider: Provider, texts: tuple[str, ...], turn: int
) -> None:
    stored_settings.put("redaction", RULES)
    for number, way in enumerate(WAYS, turn):
        text = texts[number % len(texts)]
        spelling = list(SPELLINGS)[number // len(texts) % len(SPELLINGS)]
        provider.asked.clear()
        answer = way.send(text, spelling)
        # A text with quotes makes no JSON of a tool's arguments, which some providers need.
        statuses = (400,) if way.is_refused else (200, 422) if spelling == "nested" else (200,)
        assert answer.status in statuses, (way.name, answer)
        assert text not in received(provider), way.name
        assert bool(provider.asked) == (answer.status == 200), way.name
        shown = answer.body.decode()
        assert text not in shown, way.name
        assert text not in leaves.unescaped(shown), way.name
        if way.is_refused:
            assert isinstance(json.loads(shown)["detail"], str)
