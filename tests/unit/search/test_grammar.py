from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.errors import InvalidParameterValue
from mlcore.search import evaluation_fields, fields, grammar, trace_filter
from mlcore.search.grammar import Comparison, OrderBy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metrics.acc > 0.5", Comparison("metric", "acc", ">", 0.5)),
        ("metric.`a b` <= -1e3", Comparison("metric", "a b", "<=", -1000.0)),
        ('params."model.type" = "adam"', Comparison("param", "model.type", "=", "adam")),
        ("parameters.lr != '0.1'", Comparison("param", "lr", "!=", "0.1")),
        (
            "tags.mlflow.source.type LIKE '%x_'",
            Comparison("tag", "mlflow.source.type", "LIKE", "%x_"),
        ),
        ("tags.order ilike 'x'", Comparison("tag", "order", "ILIKE", "x")),
        (
            "tags.`mlflow.parentRunId` IS NULL",
            Comparison("tag", "mlflow.parentRunId", "IS NULL", None),
        ),
        ("params.a is not null", Comparison("param", "a", "IS NOT NULL", None)),
        ("status = 'FINISHED'", Comparison("attribute", "status", "=", "FINISHED")),
        ("attr.run_id IN ('a', \"b\")", Comparison("attribute", "run_id", "IN", ("a", "b"))),
        ("run_id not in ('a')", Comparison("attribute", "run_id", "NOT IN", ("a",))),
        ("created > 5", Comparison("attribute", "start_time", ">", 5)),
        ("run.end_time > 1.5", Comparison("attribute", "end_time", ">", 1.5)),
        ("`run name` = 'x'", Comparison("attribute", "run_name", "=", "x")),
        ("\"Run name\" = 'x'", Comparison("attribute", "run_name", "=", "x")),
        ("dataset.context IN ('train',)", Comparison("dataset", "context", "IN", ("train",))),
        ("params.a = 'it''s'", Comparison("param", "a", "=", "it''s")),
        ("params.a = 'C:\\'", Comparison("param", "a", "=", "C:\\")),
        ("params.a = 'x AND y'", Comparison("param", "a", "=", "x AND y")),
        ("\n metrics.a=1\t", Comparison("metric", "a", "=", 1.0)),
    ],
)
def test_one_comparison(text: str, expected: Comparison) -> None:
    assert grammar.parse_filter(text, fields.RUN) == (expected,)


def test_comparisons_are_joined_by_and() -> None:
    comparisons = grammar.parse_filter(
        "metrics.a > 1 and tags.b IS NULL AND run_id IN ('x')", fields.RUN
    )
    assert [comparison.key for comparison in comparisons] == ["a", "b", "run_id"]


@pytest.mark.parametrize("text", ["", None])
def test_no_filter(text: str | None) -> None:
    assert grammar.parse_filter(text, fields.RUN) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  ", "Invalid filter '  '. Could not be parsed."),
        ("metrics.a > 1 OR metrics.b > 2", "Invalid clause(s) in filter string: 'OR'"),
        ("(metrics.a > 1)", "Invalid clause(s) in filter string: '(metrics.a > 1)'"),
        ("metrics.a = 1;", "Invalid clause(s) in filter string: ';'"),
        ("= 1", "Invalid clause(s) in filter string: '=', '1'"),
        ("metrics.a > 1 junk", "Invalid clause(s) in filter string: 'metrics.a > 1 junk'"),
        (
            "metrics.a = 1; metrics.b = 2",
            "Search filter contained multiple expression 'metrics.a = 1; metrics.b = 2'. "
            "Provide AND-ed expression list.",
        ),
        ("metrics.a-b > 1", "Invalid comparison clause. Expected 'Identifier' found 'metrics.a-b'"),
        ("metrics.a > '1'", "Expected numeric value type for metric. Found '1'"),
        (
            "params.a = 1",
            "Expected a quoted string value for parameter (e.g. 'my-value'). Got value 1",
        ),
        (
            "params.a = x",
            "Parameter value is either not quoted or unidentified quote types used for string value"
            " x. Use either single or double quotes.",
        ),
        (
            "metric.a LIKE 1",
            "Invalid comparator 'LIKE' not one of '{'!=', '<', '<=', '=', '>', '>='}",
        ),
        (
            "status IN ('a')",
            "Only ['run_id'] attributes support comparison with a list of quoted string values.",
        ),
        (
            "metrics.a IS NULL",
            "IS NULL / IS NOT NULL is only supported for tags and params, not for 'metric' 'a'",
        ),
        (
            "run_id IN ()",
            "While parsing a list in the query, expected a non-empty list of string values,"
            " but got empty list",
        ),
        (
            "foo.a = 'x'",
            "Invalid entity type 'foo'. Valid values are"
            " ['metric', 'parameter', 'tag', 'attribute', 'dataset']",
        ),
    ],
)
def test_refused_with_the_words_of_mlflow(text: str, message: str) -> None:
    with pytest.raises(InvalidParameterValue) as refusal:
        grammar.parse_filter(text, fields.RUN)
    assert refusal.value.message == message


@pytest.mark.parametrize(
    "text",
    [
        "run_id IN (name)",
        "run_id IN (" + "(" * 500 + "'a'" + ")" * 500 + ")",
        "run_id = ('a')",
        "start_time > 99999999999999999999",
        "start_time > " + "9" * 5000,
        "metrics.a > 1 /* c */",
        "params.a = 'x",
        "attributes.experiment_id = '1'",
        "metrics.a RLIKE 'x'",
        "tags.a = 'x' AND " * 5000,
    ],
)
def test_refused_and_never_a_crash(text: str) -> None:
    with pytest.raises(InvalidParameterValue):
        grammar.parse_filter(text, fields.RUN)


def test_experiments() -> None:
    text = "name ILIKE 'a%' AND tags.`mlflow.experiment.isGateway` IS NULL AND creation_time > 5"
    assert grammar.parse_filter(text, fields.EXPERIMENT) == (
        Comparison("attribute", "name", "ILIKE", "a%"),
        Comparison("tag", "mlflow.experiment.isGateway", "IS NULL", None),
        Comparison("attribute", "creation_time", ">", 5),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("experiment_id LIKE '1'", "Invalid comparator for experiment_id: LIKE"),
        ("tags.a > 'x'", "Invalid comparator for tag: >"),
        ("creation_time > 1.5", "Invalid value for numeric attribute 'creation_time': '1.5'"),
        (
            "name IS NULL",
            "IS NULL / IS NOT NULL is only supported for tags, not for attribute 'name'",
        ),
        (
            "attr.name = 'x'",
            "Invalid entity type 'attr'. "
            "Valid entity types are ('attribute', 'attributes', 'tag', 'tags')",
        ),
    ],
)
def test_experiments_refuse(text: str, message: str) -> None:
    with pytest.raises(InvalidParameterValue) as refusal:
        grammar.parse_filter(text, fields.EXPERIMENT)
    assert refusal.value.message == message


@given(
    operator=st.sampled_from(["=", "!=", "<", ">=", "LIKE", "ilike"]),
    names=st.lists(st.sampled_from(["'a'", "'b c'"]), min_size=1, max_size=3),
)
def test_datasets_take_lists_of_names_only_after_in(operator: str, names: list[str]) -> None:
    many = f"({', '.join(names)})"
    dataset = evaluation_fields.EVALUATION_DATASET
    assert len(grammar.parse_filter(f"name IN {many}", dataset)) == 1
    with pytest.raises(InvalidParameterValue, match="only supported with the IN comparator"):
        grammar.parse_filter(f"name {operator} {many}", dataset)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metrics.acc", OrderBy("metric", "acc", True)),
        ("metrics.`a b` DESC", OrderBy("metric", "a b", False)),
        ('params."x.y" asc', OrderBy("param", "x.y", True)),
        ("attributes.start_time DESC", OrderBy("attribute", "start_time", False)),
        ("Created", OrderBy("attribute", "start_time", True)),
    ],
)
def test_order(text: str, expected: OrderBy) -> None:
    assert grammar.parse_order_by([text], fields.RUN) == (expected,)


def test_a_repeated_order_counts_once() -> None:
    texts = ["start_time DESC", "created ASC", "metrics.a", "metric.a DESC"]
    assert grammar.parse_order_by(texts, fields.RUN) == (
        OrderBy("attribute", "start_time", False),
        OrderBy("metric", "a", True),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        " metrics.a",
        "metrics.a ",
        "metrics.a up",
        "metrics.a DESC NULLS LAST",
        "5",
        "metrics.a, metrics.b",
        "metrics.a;",
        "dataset.name",
        "run name",
        "metrics.a-b DESC",
        'metrics.`a"b` DESC',
        "nothing",
    ],
)
def test_order_refused(text: str) -> None:
    with pytest.raises(InvalidParameterValue):
        grammar.parse_order_by([text], fields.RUN)


def test_long_orders() -> None:
    began = time.process_time()
    longest = "a" * (grammar.MAX_ORDERING_CHARACTERS - len("metrics.``"))
    [order] = grammar.parse_order_by([f"metrics.`{longest}`"], fields.RUN)
    assert order.key == longest
    for text in ("metrics.`" + "a" * 5_000_000 + "`", "a " * 3_000_000, "'" * 5_000_000):
        for parse in (
            lambda text: grammar.parse_order_by([text], fields.RUN),
            lambda text: trace_filter.parse_order_by([text]),
            grammar.parse_direction,
        ):
            with pytest.raises(InvalidParameterValue, match="at most 2000 characters"):
                parse(text)
    assert time.process_time() - began < 5


def test_many_orders() -> None:
    texts = [f"tags.a{number}" for number in range(grammar.MAX_ORDERINGS)]
    assert len(grammar.parse_order_by(texts, fields.RUN)) == grammar.MAX_ORDERINGS
    assert len(trace_filter.parse_order_by(texts)) == grammar.MAX_ORDERINGS
    with pytest.raises(InvalidParameterValue, match="at most 100 order_by entries"):
        grammar.parse_order_by([*texts, "tags.b"], fields.RUN)
    with pytest.raises(InvalidParameterValue, match="at most 100 order_by entries"):
        trace_filter.parse_order_by([*texts, "tags.b"])
