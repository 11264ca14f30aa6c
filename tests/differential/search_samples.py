"""Random filters and orders for the comparison with stock MLflow; owns only their making."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

# fmt: off
KEYS = ("acc", "loss", "a b", "val.loss", "f1_score", "lr", "order", "x-y", "é")
TEXTS = (
    "", "a", "A", "ab", "AB", "b", "a%b", "a_b", "10", "9", "é", "É", "Ünïcode", "x y", "sgd",
    "SGD", "日本", "a\nb", "z", "it's", 'say "hi"', "it''s", "back\\slash", "😀", "\uffff", "ba",
    "aab", "abab",
)
PATTERNS = (
    "%", "_", "a%", "%b", "%a%", "A%", "a_b", "__", "_%", "%_", "%é%", "É", "a%b", "a\\%b", "%%",
    "", "ab%ab", "s_d", "%a%b", "a%a%b", "_a%b_", "%y", "日_", "😀", "%ab%ab%", "_%_%_",
)
NUMBERS = (
    "0", "1", "-1", "0.5", ".5", "5.", "1e3", "1E-3", "-2.5e-3", "1e400", "-1e400",
    "1.7976931348623157e308", "100", "9007199254740993", "-0.0",
)
METRIC_VALUES = (
    0.0, -0.0, 1.0, -1.0, 0.5, 5.0, 1000.0, 0.001, -0.0025, 100.0, float("nan"), float("inf"),
    float("-inf"), 1.7976931348623157e308, 5e-324, 9007199254740993.0,
)
TIMES = (0, 1, 100, 1000, 1000, 2000, 1_700_000_000_000)
DATASET_NAMES = ("a", "b", "AB", "é")
DATASET_DIGESTS = ("a", "ab", "é")
DATASET_CONTEXTS = ("a", "AB", "é")
STATUSES = ("RUNNING", "FINISHED", "FAILED", "KILLED", "SCHEDULED")
TEXT_OPERATORS = ("=", "!=", "LIKE", "ILIKE")
NUMBER_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
_WORDS = (
    "metrics.acc", "params.lr", "tags.a.b", "attributes.status", "status", "run_id", "start_time",
    "created", "Created", "run name", "`run name`", '"Run name"', "`Run Name`", "run.end_time",
    "attr.user_id", "dataset.name", "datasets.digest", "dataset.context", "dataset.foo",
    "metric.`a b`", 'param."a b"', "parameter.'a b'", "parameters.x", "tag.`a.b`", "`tags`.a",
    "`metrics.acc`", "Metrics.acc", "foo.bar", "foo", "name", "experiment_id", "tags.order",
    "tags.select", "tags.in", "tags.case", "tags._x", "tags.3d", "tags.12d", "tags.a1",
    "metrics. acc", "metrics .acc", "metrics.", ".acc", "metrics.a-b", "metrics.a/b",
    "metrics.a:b", "tags.é", "tags.日本", "tags.a.`b c`", 'tags."a"."b"', "tags.''", "tags.``",
    "creation_time", "last_update_time", "attribute.name", "attributes.name",
    "attribute.experiment_id", "tags.from.x", "tags.a.as", "tags.a$b", "tags._a$b", "tags.[x]",
    "tags.@foo", "tags.a#b", "tags.*", "lifecycle_stage", "attribute.run_name", "artifact_uri",
    "tags.mlflow.runName", "'status'", "run.`status`", "run.'status'", 'run."status"',
    "metrics.acc.x.y", "tags.a..b", "version", "type", "start time", "start", "date",
    "tags.version", "user", "name x", "type.x", "tags.a type",
)
_OPERATORS = (
    "=", "!=", "<", "<=", ">", ">=", "==", "<>", "=!", "~", "LIKE", "like", "ILIKE", "ilike",
    "RLIKE", "NOT LIKE", "IN", "in", "NOT IN", "not in", "IS NULL", "is null", "IS NOT NULL",
    "is not null", "IS", "BETWEEN", "+", "-", "*", "/", "=-", ":=", "IS  NULL", "IS NOT  NULL",
    "NOT  IN", "REGEXP", "IS NOT", "||",
)
_VALUES = (
    "1", "0.5", "-1", "1e5", "1e-5", "1E5", ".5", "5.", "-.5", "+5", "1e+5", "- 5", "0x1f",
    "1_000", "12_0", "5abc", "12abc", "nan", "inf", "'x'", '"x"', "`x`", "'it''s'", "'it\\'s'",
    "'a\"b'", '"a\'b"', "''", '""', "'x", "x'", '"x', "x", "NULL", "null", "TRUE", "('a')",
    "('a', 'b')", '("a","b",)', "()", "('a' 'b')", "('a', 5)", "(5)", "(('a'))", "('a'", "(a)",
    "('it''s')", "('a',\n'b')", "'é'", "'日本'", "'%'", "'C:\\'", "'a\\\\'", "%s", "?", "$1", ":x",
    "'x' 'y'", '"x"."y"', "1 + 2", "x.y", "1.2.3", "--1", "1 2", "('\\n')", "'AND'", "'a AND b'",
    "99999999999999999999", "1.5", "' x '", "(r'x')", "(b'x')", "('a'\t,\t'b' )",
)
_JOINS = (
    " AND ", " and ", " And ", "  AND  ", "\nAND\t", " OR ", " ", ", ", "; ", " AND AND ", "AND",
    ")AND(", " & ", " -- ", " /* x */ ",
)
_ENDS = (
    "", "", "", "", "", "", "", "", " ", "\n", " AND", ";", " foo", ")", " DESC", " --x", ",",
    "; ", " #", " # x",
)
_STARTS = (
    "", "", "", "", "", "", "", "", "", " ", "\t\n", "AND ", "(", "NOT ", ";", "-- x\n", "\u00a0",
)
# fmt: on


class Made(NamedTuple):
    filter: str
    order_by: list[str]


def any_filter(rng: random.Random) -> str:
    """A filter of one to three clauses, most often with something unusual in it."""
    clauses = [_any_clause(rng) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))]
    text = clauses[0]
    for clause in clauses[1:]:
        text += (rng.choice(_JOINS) if rng.random() < 0.3 else " AND ") + clause
    if rng.random() < 0.3:
        text = rng.choice(_STARTS) + text + rng.choice(_ENDS)
    if rng.random() < 0.1:
        at = rng.randrange(len(text))
        text = (
            text[:at]
            + rng.choice("'\"`().,;=<>! \n-+*/#$@[]%\\aZ0_é")
            + text[at + rng.choice((0, 1)) :]
        )
    return text


_NUMBER_WORDS = tuple(
    word
    for word in _WORDS
    if word.startswith(("metric", "creat", "last", "start", "Creat", "run.end"))
)


def _any_clause(rng: random.Random) -> str:
    spaces = rng.choice((" ", " ", " ", "", "  ", "\n"))
    wild = rng.random() < 0.25
    if rng.random() < 0.3:
        word, operator, value = (
            rng.choice(_NUMBER_WORDS),
            rng.choice(NUMBER_OPERATORS),
            rng.choice(NUMBERS),
        )
    else:
        word, operator, value = (
            rng.choice(_WORDS),
            rng.choice(TEXT_OPERATORS),
            quoted(rng, rng.choice(TEXTS)),
        )
        if rng.random() < 0.3:
            operator, value = (
                rng.choice(("IN", "NOT IN")),
                rng.choice(("('a', 'b')", "('1')", '("é",)')),
            )
    match rng.randrange(3) if wild else -1:
        case 0:
            word = rng.choice(_WORDS)
        case 1:
            operator = rng.choice(_OPERATORS)
        case 2:
            value = rng.choice(_VALUES)
    if rng.random() < 0.15:
        operator = rng.choice(("IS NULL", "IS NOT NULL", "is null", "is Not Null", "IS\nNULL"))
    if operator.upper().endswith("NULL") and rng.random() < 0.9:
        return word + (spaces or " ") + operator
    glue = spaces if spaces or not operator[-1].isalpha() else " "
    return word + glue + operator + glue + value


def any_order(rng: random.Random) -> str:
    """An order of one field, half of the time with something unusual in it."""
    # Before a name, stock takes SQL's AS and arithmetic for a part of a key.
    words = [word for word in _WORDS if not word.endswith(".as") and not set(word) & set("-/*#")]
    directions = ("ASC", "DESC", "asc", "desc", "Desc", "foo", "DESC NULLS LAST", "ASC ASC")
    others = ("5", ";", ", name", "`DESC`", "'asc'")
    text = rng.choice(words)
    if rng.random() < 0.8:
        text += rng.choice(("", " ", " ", "  ", "\t"))
        text += rng.choice((*directions, *directions, *others))
    return rng.choice(("", "", "", "", "", " ")) + text + rng.choice(("", "", "", "", "", " ", ";"))


def shown(value: float) -> float | str:
    """As MLflow's clients write what JSON has no number for."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def quoted(rng: random.Random, text: str) -> str:
    """A value as a client would quote it; such that the language can express it."""
    if "'" in text or (rng.random() < 0.4 and '"' not in text):
        return f'"{text}"'
    return f"'{text}'"


def key(rng: random.Random, name: str) -> str:
    plain = name.replace(".", "").replace("_", "").isalnum()
    return name if plain and rng.random() < 0.6 else rng.choice((f"`{name}`", f'"{name}"'))


def _text_clause(
    rng: random.Random,
    field: str,
    values: tuple[str, ...],
    nullable: bool = False,
    lists: bool = False,
) -> str:
    operators = (
        TEXT_OPERATORS
        + (("IS NULL", "IS NOT NULL") if nullable else ())
        + (("IN", "NOT IN") if lists else ())
    )
    operator = rng.choice(operators)
    if operator.endswith("NULL"):
        return f"{field} {operator}"
    if operator.endswith("IN"):
        listed = ", ".join(repr(rng.choice(values)) for _ in range(rng.randint(1, 4)))
        return f"{field} {operator} ({listed})"
    value = rng.choice(PATTERNS if operator.endswith("LIKE") and rng.random() < 0.7 else values)
    return f"{field} {operator} {quoted(rng, value)}"


def run_search(rng: random.Random, run_ids: tuple[str, ...], uris: tuple[str, ...]) -> Made:
    """A valid search of the runs made by :func:`runs`."""
    makers = (
        lambda: (
            f"metrics.{key(rng, rng.choice(KEYS))}"
            f" {rng.choice(NUMBER_OPERATORS)} {rng.choice(NUMBERS)}"
        ),
        lambda: (
            f"metrics.{key(rng, rng.choice(KEYS))}"
            f" {rng.choice(NUMBER_OPERATORS)} {rng.choice(NUMBERS)}"
        ),
        lambda: _text_clause(rng, f"params.{key(rng, rng.choice(KEYS))}", TEXTS, nullable=True),
        lambda: _text_clause(rng, f"tags.{key(rng, rng.choice(KEYS))}", TEXTS, nullable=True),
        lambda: _text_clause(rng, "tags.mlflow.runName", TEXTS, nullable=True),
        lambda: _text_clause(
            rng, rng.choice(("run_name", "`run name`", "attributes.run_name")), TEXTS
        ),
        lambda: _text_clause(rng, "status", (*STATUSES, "finished")),
        lambda: _text_clause(rng, rng.choice(("user_id", "run.user_id")), TEXTS),
        lambda: _text_clause(rng, "run_id", run_ids, lists=True),
        lambda: _text_clause(rng, "attributes.artifact_uri", uris),
        lambda: (
            f"{rng.choice(('start_time', 'created', 'attr.end_time', 'end_time'))}"
            f" {rng.choice(NUMBER_OPERATORS)} {rng.choice((*map(str, TIMES), '0.5', '1e3', '-1'))}"
        ),
        lambda: _text_clause(
            rng,
            f"dataset.{rng.choice(('name', 'digest', 'context'))}",
            ("a", "b", "AB", "é", "ab"),
            lists=True,
        ),
        lambda: _text_clause(
            rng,
            f"dataset.{rng.choice(('name', 'digest', 'context'))}",
            ("a", "b", "AB", "é", "ab"),
            lists=True,
        ),
    )
    clauses = [rng.choice(makers)() for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))]
    fields = [f"{kind}.{key(rng, name)}" for kind in ("metrics", "params", "tags") for name in KEYS]
    fields += fields[: len(KEYS)]
    fields += [
        "start_time",
        "created",
        "attributes.end_time",
        "run_id",
        "status",
        "run_name",
        "user_id",
        "artifact_uri",
    ]
    chosen = list(dict.fromkeys(rng.sample(fields, rng.choice((0, 1, 1, 2, 2, 3)))))
    if "created" in chosen and "start_time" in chosen:
        chosen.remove("created")  # the same field twice: stock crashes
    return Made(
        " AND ".join(clauses),
        [field + rng.choice(("", " ASC", " DESC", " DESC")) for field in chosen],
    )


def indexed_search(rng: random.Random) -> Made:
    """A search of runs in whose conditions and order an index may help."""
    makers = (
        lambda: (
            f"metrics.{key(rng, rng.choice(KEYS))}"
            f" {rng.choice(('=', '>', '>=', '<', '<='))} {rng.choice(NUMBERS)}"
        ),
        lambda: f"params.{key(rng, rng.choice(KEYS))} = {quoted(rng, rng.choice(TEXTS))}",
        lambda: f"tags.{key(rng, rng.choice(KEYS))} = {quoted(rng, rng.choice(TEXTS))}",
        lambda: f"status = '{rng.choice(STATUSES)}'",
        lambda: f"run_name = {quoted(rng, rng.choice(TEXTS))}",
        lambda: f"run_name LIKE {quoted(rng, rng.choice(TEXTS) + '%')}",
        lambda: _like_clause(rng, rng.choice(("run_name", "tags.mlflow.runName"))),
        lambda: _like_clause(rng, f"params.{key(rng, rng.choice(KEYS))}"),
        lambda: _like_clause(rng, f"tags.{key(rng, rng.choice(KEYS))}"),
        lambda: f"dataset.name = '{rng.choice(DATASET_NAMES)}'",
        lambda: f"dataset.digest = '{rng.choice(DATASET_DIGESTS)}'",
        lambda: f"dataset.name IN ('{rng.choice(DATASET_NAMES)}', '{rng.choice(DATASET_NAMES)}')",
    )
    clauses = [rng.choice(makers)() for _ in range(rng.choice((0, 0, 1, 1, 1, 1, 2)))]
    ordered = [f"metrics.{key(rng, name)}" for name in KEYS[:2]] + ["start_time", "run_name"]
    chosen = rng.sample(ordered, rng.choice((0, 1, 1, 2)))
    return Made(
        " AND ".join(clauses), [field + rng.choice(("", " ASC", " DESC")) for field in chosen]
    )


def _like_clause(rng: random.Random, field: str) -> str:
    """LIKE of a piece of a text, wildcards anywhere."""
    text = rng.choice(TEXTS)
    start, end = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
    piece = text[start:end]
    if piece and rng.random() < 0.2:
        at = rng.randrange(len(piece))
        piece = piece[:at] + rng.choice("_%") + piece[at + 1 :]
    pattern = rng.choice(("", "%", "%", "_")) + piece + rng.choice(("", "%", "%", "_"))
    return f"{field} {rng.choice(('LIKE', 'ILIKE'))} {quoted(rng, pattern)}"


def experiment_search(rng: random.Random, ids: tuple[str, ...], names: tuple[str, ...]) -> Made:
    makers = (
        lambda: _text_clause(rng, rng.choice(("name", "attribute.name")), (*names, *TEXTS)),
        lambda: _text_clause(rng, f"tags.{key(rng, rng.choice(KEYS))}", TEXTS, nullable=True),
        lambda: _text_clause(rng, f"tag.{key(rng, rng.choice(KEYS))}", TEXTS, nullable=True),
        lambda: (
            f"{rng.choice(('creation_time', 'last_update_time'))}"
            f" {rng.choice(NUMBER_OPERATORS)} {rng.choice(TIMES)}"
        ),
        lambda: f"experiment_id {rng.choice(('=', '!='))} '{rng.choice(ids)}'",
        lambda: (
            f"experiment_id {rng.choice(('IN', 'NOT IN'))}"
            f" ('{rng.choice(ids)}', '{rng.choice(ids)}')"
        ),
    )
    clauses = [rng.choice(makers)() for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))]
    chosen = rng.sample(
        ["name", "experiment_id", "creation_time", "last_update_time", "attribute.name"],
        rng.choice((0, 1, 1, 2, 2, 3)),
    )
    return Made(
        " AND ".join(clauses),
        [field + rng.choice(("", " ASC", " DESC", " DESC")) for field in chosen],
    )
