"""The grammar accepts and reads what stock MLflow does, and refuses the rest with its words."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from sqlparse import tokens as sql
from sqlparse.lexer import Lexer

from mlcore.errors import InvalidParameterValue
from mlcore.search import fields, grammar
from mlcore.search.sql_words import SQL_WORDS
from tests.differential import search_samples as samples
from tests.differential.stock import (
    COUNT,
    REFUSED,
    SEED,
    SearchExperimentsUtils,
    SearchUtils,
    answer,
    open_store,
    sqlalchemy_store,
)

pytestmark = pytest.mark.filterwarnings("ignore")

_ALIASES = {
    "created": "start_time",
    "Created": "start_time",
    **dict.fromkeys(("run name", "Run name", "Run Name"), "run_name"),
}


@pytest.fixture(scope="module")
def session(folder_in_memory: Path) -> Any:
    store = open_store(folder_in_memory)
    with store.ManagedSessionMaker() as session:
        yield session


def _ours(text: str, entity: fields.SearchableEntity) -> tuple[Any, str]:
    try:
        return [tuple(comparison) for comparison in grammar.parse_filter(text, entity)], ""
    except InvalidParameterValue as error:
        return REFUSED, error.message


def _runs_filter(session: Any) -> Any:
    def parse(text: str) -> list[tuple[Any, ...]]:
        parsed = SearchUtils.parse_search_filter(text)
        for clause in parsed:
            if isinstance(clause["value"], tuple) and clause["comparator"].upper() not in (
                "IN",
                "NOT IN",
            ):
                raise ValueError  # the database refuses it
            if isinstance(clause["value"], int) and abs(clause["value"]) >= 2**63:
                raise OverflowError  # likewise
        sqlalchemy_store._get_sqlalchemy_filter_clauses(parsed, session, "sqlite")
        return [_canonical(clause) for clause in parsed]

    return parse


def _experiments_filter(text: str) -> list[tuple[Any, ...]]:
    parsed = SearchExperimentsUtils.parse_search_filter(text)
    for clause in parsed:
        if isinstance(clause["value"], tuple) and clause["comparator"].upper() not in (
            "IN",
            "NOT IN",
        ):
            raise ValueError
        if isinstance(clause["value"], int) and abs(clause["value"]) >= 2**63:
            raise OverflowError
    # Our experiment ids are texts, stock's are numbers.
    checked = [{**clause, "value": _stock_id(clause)} for clause in parsed]
    sqlalchemy_store._get_search_experiments_filter_clauses(checked, "sqlite")
    return [_canonical(clause) for clause in parsed]


def _stock_id(clause: dict[str, Any]) -> Any:
    if clause["key"] != "experiment_id" or clause["type"] != "attribute":
        return clause["value"]
    return ("1",) if isinstance(clause["value"], tuple) else "1"


def _canonical(clause: dict[str, Any]) -> tuple[Any, ...]:
    kind, key, operator, value = (
        clause["type"],
        clause["key"],
        clause["comparator"],
        clause["value"],
    )
    if kind == "attribute":
        key = _ALIASES.get(key, key)
    if kind == "metric":
        value = float(value)
    return (
        {"parameter": "param"}.get(kind, kind),
        key,
        operator.upper(),
        value,
    )


def _words(message: str) -> str:
    """A message with the sets in one order."""
    return re.sub(
        r"\{[^{}]*\}", lambda match: str(sorted(match.group()[1:-1].split(", "))), message
    )


def _compare(entity: fields.SearchableEntity, stock: Any, seed: int) -> None:
    rng = random.Random(seed)
    accepted = refused = same_words = 0
    for _ in range(COUNT * 10):
        text = samples.any_filter(rng)
        theirs, their_words = answer(stock, text)
        ours, our_words = _ours(text, entity)
        if theirs != ours:
            # Stock takes whole conditions, function calls and subscripts for keys.
            nonsense = theirs != REFUSED and any(
                set(clause[1]) & set("=<>~([ ") for clause in theirs
            )
            assert nonsense, (text, theirs, their_words, ours, our_words)
            assert ours == REFUSED, (text, theirs, their_words, ours, our_words)
        elif ours == REFUSED:
            refused += 1
            same_words += _words(their_words) == _words(our_words)
        else:
            accepted += 1
    assert accepted > COUNT / 3
    # The rest is which stray tokens stock shows as one.
    assert same_words > refused * 0.8


def test_words_of_sql() -> None:
    """They are those that MLflow's lexer does not take for names when they stand alone."""
    lexer = Lexer.get_default_instance()
    listed = {word for words in lexer._keywords for word in words}

    def is_kept(word: str) -> bool:
        kinds = [kind for kind, _ in lexer.get_tokens(word)]
        return len(kinds) == 1 and (kinds[0] in sql.Keyword or kinds[0] in sql.Name.Builtin)

    alone = {word for word in listed if " " not in word}
    assert {word for word in alone if is_kept(word)} == SQL_WORDS | {"TIMESTAMP"}


def test_run_filters(session: Any) -> None:
    _compare(fields.RUN, _runs_filter(session), SEED)


def test_experiment_filters() -> None:
    _compare(fields.EXPERIMENT, _experiments_filter, SEED + 1)


@pytest.mark.parametrize(
    ("entity", "stock"),
    [
        (fields.RUN, SearchUtils.parse_order_by_for_search_runs),
        (fields.EXPERIMENT, SearchExperimentsUtils.parse_order_by_for_search_experiments),
    ],
    ids=["runs", "experiments"],
)
def test_orders(entity: fields.SearchableEntity, stock: Any) -> None:
    rng = random.Random(SEED + 2)
    accepted = 0
    for _ in range(COUNT * 5):
        text = samples.any_order(rng)
        theirs, their_words = answer(stock, text)
        if theirs != REFUSED:
            kind, key, ascending = theirs
            if kind == "attribute":
                key = _ALIASES.get(key, key)
            theirs = ({"parameter": "param"}.get(kind, kind), key, ascending)
            if kind == "dataset" or (entity is fields.EXPERIMENT and kind == "tag"):
                theirs, their_words = REFUSED, ""  # refused one step later
        try:
            ours: Any = tuple(grammar.parse_order_by([text], entity)[0])
            our_words = ""
        except InvalidParameterValue as error:
            ours, our_words = REFUSED, error.message
        assert ours == theirs, (text, theirs, their_words, our_words)
        accepted += ours != REFUSED
        if ours == REFUSED and their_words:
            assert _words(our_words) == _words(their_words), text
    assert accepted > COUNT / 20
