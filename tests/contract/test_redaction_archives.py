"""Traces that are archived while rules of redaction change: what was stored under a rule has no
private text in any file either, and archival neither copies nor rewrites what was stored before."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore.db.table import table
from mlcore.repos.settings import stored_settings
from mlcore.repos.traces import span_packs
from mlcore.repos.traces.span_packs import Owner
from tests.contract.archived_traces import archiving, files_of, is_archived, packs_of, stored, tick
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import Store
from tests.contract.private_texts import (
    CARD,
    PASSWORD,
    PRIVATE,
    RULES,
    SECRET,
    private_span,
    texts_of,
)
from tests.contract.private_texts import stored as all_texts
from tests.contract.trace_calls import export, span

__all__ = ["archiving"]

Json = dict[str, Any]
TRACE = "a" * 32
CONTENT_FREE: Json = {"rules": [{"content": "none"}, *RULES["rules"]]}
NONE: Json = {"rules": []}


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Iterator[Path]:
    with artifacts_in(tmp_path / "files") as folder:
        yield folder


def rules(value: Json) -> None:
    stored_settings.put("redaction", value)


def private_in(text: str) -> list[str]:
    return [private for private in PRIVATE if private.lower() in text.lower()]


def large(number: int) -> Json:
    """A private span whose pack is a file from the beginning."""
    noise = json.dumps([f"{n * 2654435761 % 2**32:08x}" for n in range(40_000)])
    return private_span(number, 1 if number > 1 else None, noise=noise)


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("rule", [RULES, CONTENT_FREE])
@pytest.mark.usefixtures("archiving")
def test_what_was_stored_under_a_rule(
    store: Store, files: Path, rule: Json, *, is_large: bool
) -> None:
    """Also if no rule holds any more when the trace is archived and read."""
    rules(rule)
    experiment = store.api.new_experiment("private")
    spans = [large(1), large(2)] if is_large else [private_span(1), private_span(2, 1)]
    for each in spans:
        assert export(experiment, [each]).status == 200
    rules(NONE)
    tick()
    assert is_archived(TRACE)
    assert len(files_of(files, TRACE)) == 2
    assert private_in(all_texts(store, files)) == []
    read = [line for _, line in span_packs.read(Owner("default", experiment, f"tr-{TRACE}"))]
    assert len(read) == 2
    assert private_in(str(read)) == []


@pytest.mark.parametrize("rule", [RULES, CONTENT_FREE])
@pytest.mark.usefixtures("archiving")
def test_what_was_stored_before_a_rule(store: Store, files: Path, rule: Json) -> None:
    """It stays as it is, in one place: the table loses the spans when the file has them, and a
    deletion leaves nothing. Spans that come later obey the rule."""
    rules(NONE)
    experiment = store.api.new_experiment("private")
    assert export(experiment, [private_span(1)]).status == 200
    rules(rule)
    before = all_texts(store, files).count(f"failed for {SECRET}")
    later = span(TRACE, 2, 1, mlflow__spanInputs=json.dumps({"mail": "later@example.com"}))
    assert export(experiment, [later]).status == 200
    tick()
    assert is_archived(TRACE)
    (first, second) = sorted(files_of(files, TRACE), key=lambda path: path.stat().st_mtime)
    contents = {path: "\n".join(texts_of(path.read_bytes())) for path in (first, second)}
    assert sorted(SECRET in text for text in contents.values()) == [False, True]
    assert "later@example.com" not in all_texts(store, files)
    assert all_texts(store, files).count(f"failed for {SECRET}") == before
    packs = packs_of(store, TRACE)
    assert len(packs) == 2
    kept = "\n".join(text for pack in packs for text in texts_of(pack))
    assert "/users/" in kept, "names of spans stay for searches"
    assert [text for text in (PASSWORD, CARD, f"failed for {SECRET}") if text in kept] == []


@pytest.mark.usefixtures("archiving")
def test_a_rule_that_comes_between_a_pack_and_its_file(
    store: Store, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass that dies after the file was written is repeated under another rule: no second file
    appears."""
    rules(NONE)
    experiment = store.api.new_experiment("private")
    assert export(experiment, [private_span(1)]).status == 200
    with monkeypatch.context() as patch:

        def dies(*_: Any, **__: Any) -> Any:
            raise OSError("the process died")

        patch.setattr(type(table), "transact", dies)
        with contextlib.suppress(OSError):
            tick()
    rules(CONTENT_FREE)
    tick()
    assert is_archived(TRACE)
    assert len(files_of(files, TRACE)) == 1
    assert stored(TRACE).trace_id == f"tr-{TRACE}"
