"""Random statements that look up attributes of spans, in all spellings and places."""

from __future__ import annotations

import random

from mltables.span_attribute_columns import KEYS, ROOT_KEYS
from tests.contract.span_lakes import NEARLY


class Questions:
    """Random statements that look up attributes in all spellings."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def key(self) -> str:
        key = self.rng.choice((KEYS[0], KEYS[0], *KEYS, *NEARLY))
        return self.rng.choice((f"'{key}'", f"'{key}'", f"'{key}'", f'"{key}"'))

    def lookup(self, of: str) -> str:
        """Args:
        of: what stands before the name of the map.
        """
        column = f"{of}{self.rng.choice(('attributes', 'ATTRIBUTES', '`attributes`'))}"
        key = self.key()
        return self.rng.choice(
            (
                f"{column}[{key}]",
                f"({column})[{key}]",
                f"element_at({column}, {key})",
                f"TRY_ELEMENT_AT({column}, {key})",
            )
        )

    def map(self) -> str:
        """A map of the statement's own."""
        return f"map({self.key()}, 'own', '{KEYS[0]}', '7')"

    def value(self, of: str) -> str:
        lookup, other = self.lookup(of), self.lookup(of)
        return self.rng.choice(
            (
                lookup,
                lookup,
                f"coalesce({lookup}, {other})",
                f"length({lookup})",
                f"upper({lookup}) || '-'",
                f"TRY_CAST({lookup} AS BIGINT)",
                f"CAST({lookup} AS INT)",
                f"CAST({lookup} AS STRING)",
                f"get_json_object({lookup}, '$.total_tokens')",
                f"{lookup} IS NULL",
                f"struct({lookup} AS a, {other} AS b)",
                f"transform(array('own'), x -> {lookup})",
                f"transform(array({self.map()}), attributes -> {self.lookup('')})",
                f"transform(array(struct({self.map()} AS attributes)), s -> {self.lookup('s.')})",
                f"transform(array(struct({self.map()} AS attributes)), x -> {self.lookup('x.')})",
                f"CASE WHEN {lookup} = '7' THEN {other} END",
                f"map_filter({of}attributes, (k, v) -> v = {lookup})",
                f"size({of}attributes)",
            )
        )

    def condition(self, of: str) -> str:
        lookup = self.lookup(of)
        return self.rng.choice(
            (
                "true",
                f"{lookup} IS NULL",
                f"{lookup} IS NOT NULL",
                f"{lookup} = ''",
                f"{lookup} > 5",
                f"{lookup} BETWEEN '1' AND 'b'",
                f"{lookup} IN ('a', 'TOOL', '7')",
                f"{lookup} <=> {self.lookup(of)}",
                f"{lookup} RLIKE '[0-9]'",
                f"NOT {lookup} LIKE '%a%'",
                f"EXISTS (SELECT 1 FROM spans i WHERE trace_id = 'x' "
                f"OR {self.lookup('i.')} = 'TOOL' AND {lookup} IS NOT NULL)",
            )
        )

    def source(self) -> tuple[str, str]:
        """Returns a FROM, and what may stand before the map."""
        name = self.rng.choice(("spans", "mlflow.spans", "system.mlflow.spans"))
        return self.rng.choice(
            (
                (name, ""),
                (name, "spans."),
                (name, f"{name}."),
                (f"{name} s", ""),
                (f"{name} AS s", "S."),
                (f"{name} s JOIN traces t USING (experiment_id, trace_id)", ""),
                (f"traces t LEFT JOIN {name} s ON s.trace_id = t.trace_id AND "
                 f"{self.lookup('s.')} IS NOT NULL", "s."),
                (f"{name} s JOIN spans o ON s.trace_id = o.trace_id AND s.span_id >= o.span_id",
                 self.rng.choice(("s.", "o.", ""))),
                (f"{name} s LATERAL VIEW explode(array(1, 2)) l AS n", ""),
                (f"{name} LATERAL VIEW explode(map_values(attributes)) l AS attributes", ""),
                (f"(SELECT trace_id, span_id, attributes FROM {name}) s", "s."),
                (f"(SELECT *, {self.lookup('')} AS made FROM {name}) s", ""),
                (f"(SELECT map('own', {self.lookup('')}) AS attributes, span_id FROM {name})", ""),
                (f"{name} VERSION AS OF 1", ""),
                ("trace_unified LATERAL VIEW explode(spans) l AS x", "x."),
                ("trace_unified u LATERAL VIEW OUTER explode(u.spans) l AS X", "x."),
                ("trace_unified u LATERAL VIEW explode(spans) l AS x JOIN spans s "
                 "ON s.span_id = x.span_id", self.rng.choice(("x.", "s."))),
                ("trace_unified LATERAL VIEW explode(spans) trace_unified AS spans", "spans."),
                ("trace_unified LATERAL VIEW explode(spans) l AS s "
                 f"JOIN (SELECT 'x' AS span_id, {self.map()} AS attributes) s", "s."),
                ("(SELECT explode(spans) AS x FROM trace_unified)", "x."),
                ("(SELECT trace_id, explode(u.spans) AS x FROM trace_unified u) q", "x."),
                ("(SELECT trace_id, explode(spans) AS x FROM trace_unified) x", "x."),
                ("(SELECT trace_id, explode(spans) AS x FROM trace_unified) q "
                 f"JOIN (SELECT 'x' AS span_id, {self.map()} AS attributes) x", "x."),
                ("gateway_usage g JOIN spans s USING (trace_id)", "s."),
                (f"{name} s JOIN (SELECT span_id, {self.map()} AS attributes FROM {name}) o "
                 "USING (span_id)", self.rng.choice(("", "s.", "o."))),
                (f"{name} o, LATERAL (SELECT {self.map()} AS attributes) s",
                 self.rng.choice(("", "s.", "o."))),
            )
        )  # fmt: skip

    def statement(self) -> str:
        source, of = self.source()
        value, other, where = self.value(of), self.value(of), self.condition(of)
        lookup = self.lookup(of)
        return self.rng.choice(
            (
                f"SELECT {value} AS v, {other} AS w FROM {source} WHERE {where}",
                f"SELECT {value} FROM {source} WHERE {where}",
                f"SELECT {lookup}, count(*) FROM {source} WHERE {where} GROUP BY 1",
                f"SELECT {lookup} AS k, count({other}) FROM {source} GROUP BY {lookup} "
                f"HAVING {lookup} IS NOT NULL OR count(*) > 1",
                f"SELECT {lookup} AS k, max({value}) FROM {source} GROUP BY k ORDER BY k",
                f"SELECT count(*) FROM {source} WHERE {where}",
                f"SELECT DISTINCT {lookup} FROM {source} ORDER BY {lookup}",
                f"SELECT {lookup} FROM {source} GROUP BY {of}attributes",
                f"SELECT {value} AS attributes FROM {source} ORDER BY {self.lookup('')}",
                f"SELECT {self.map()} AS attributes, count(*) FROM {source} GROUP BY 1 "
                f"HAVING {self.lookup('')} IN ('own', '7')",
                f"SELECT struct({self.map()} AS attributes) AS {of.rstrip('.') or 'n'}, count(*) "
                f"FROM {source} GROUP BY 1 HAVING {lookup} IN ('own', '7')",
                f"WITH c AS (SELECT {lookup} AS k FROM {source}) "
                "SELECT k, count(*) FROM c GROUP BY ALL",
                "WITH c AS (SELECT trace_id, explode(spans) AS x FROM trace_unified) "
                f"SELECT {self.value('x.')}, {self.lookup('x.')} FROM c "
                f"WHERE {self.condition('x.')}",
                "WITH c AS (SELECT trace_id, explode(spans) AS x FROM trace_unified) "
                f"SELECT a.trace_id, {self.lookup('x.')} FROM c a WHERE {self.condition('x.')} "
                f"UNION ALL SELECT a.trace_id, {self.lookup('a.x.')} FROM c a "
                f"JOIN (SELECT struct({self.map()} AS attributes) AS y) b "
                f"WHERE {self.lookup('b.y.')} IS NOT NULL",
                f"SELECT * FROM (SELECT {value}, {of}attributes FROM {source} WHERE {where})",
                f"SELECT *, {lookup} FROM {source}",
                f"SELECT row_number() OVER (PARTITION BY {lookup} ORDER BY {other}, "
                f"{of}attributes) AS n, {lookup} FROM {source}",
                f"SELECT {lookup} FROM {source} UNION SELECT {value} FROM {source}",
                f"SELECT (SELECT max({self.lookup('')}) FROM spans) AS m, {lookup} FROM {source}",
                f"SELECT max({lookup}) FILTER (WHERE {where}) FROM {source}",
            )
        )


class RootQuestions(Questions):
    """Random statements that look up inputs and outputs, most of them those of root spans."""

    def key(self) -> str:
        return f"'{self.rng.choice((*ROOT_KEYS * 2, KEYS[0]))}'"

    def source(self) -> tuple[str, str]:
        return self.rng.choice(
            (
                ("spans", ""),
                ("spans s", "s."),
                ("mlflow.spans S", ""),
                ("spans s JOIN traces t USING (experiment_id, trace_id)", "s."),
                ("traces t LEFT JOIN spans s ON s.trace_id = t.trace_id "
                 f"AND {self.lookup('s.')} IS NOT NULL", "s."),
                ("spans s LEFT JOIN traces t ON t.trace_id = s.trace_id "
                 f"AND {self.lookup('s.')} > 'a'", "s."),
                ("traces t RIGHT JOIN spans s ON s.trace_id = t.trace_id "
                 f"AND {self.lookup('s.')} > 'a'", "s."),
                ("spans o JOIN spans s ON s.trace_id = o.trace_id", "s."),
                ("spans o FULL JOIN spans s ON s.span_id = o.span_id "
                 f"AND {self.lookup('o.')} > 'a'", "s."),
                ("spans s LATERAL VIEW explode(array(1, 2)) l AS parent_span_id", "s."),
                ("(SELECT span_id, parent_span_id, attributes FROM spans) s", "s."),
            )
        )  # fmt: skip

    def condition(self, of: str) -> str:
        parent = f"{of}{self.rng.choice(('parent_span_id', 'PARENT_SPAN_ID'))}"
        further = super().condition(of)
        is_root = self.rng.choice(
            (
                *(f"{parent} IS NULL",) * 3,
                f"({parent} IS NULL OR {parent} = '')",
                f"{parent} = ''",
                f"({parent} = '' OR {parent} IS NULL OR {further})",
                f"NOT {parent} IS NULL",
                f"{parent} IS NULL IS NULL",
            )
        )
        return self.rng.choice((is_root, f"{is_root} AND {further}", f"{further} AND ({is_root})"))

    def statement(self) -> str:
        source, of = self.source()
        value, where, lookup = self.value(of), self.condition(of), self.lookup(of)
        return self.rng.choice(
            (
                f"SELECT {value} AS v, {lookup} AS w FROM {source} WHERE {where}",
                f"SELECT {lookup}, count(*) FROM {source} WHERE {where} GROUP BY 1",
                f"SELECT {lookup} AS k, max({value}) FROM {source} WHERE {where} GROUP BY k "
                f"HAVING {lookup} IS NOT NULL OR count(*) > 1",
                f"SELECT count(*), count({lookup}) FROM {source} WHERE {where}",
                f"SELECT max({lookup}) FILTER (WHERE {where}), min({lookup}) FROM {source}",
                f"SELECT (SELECT max({self.lookup('')}) FROM spans) AS m, {lookup} FROM {source} "
                f"WHERE {where}",
                f"SELECT {lookup} FROM {source} WHERE {where} UNION ALL "
                f"SELECT {lookup} FROM {source}",
                f"SELECT * FROM (SELECT {value} AS v FROM {source} WHERE {where}) WHERE v > 'a'",
            )
        )
