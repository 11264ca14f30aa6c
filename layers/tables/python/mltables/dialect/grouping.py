"""Finds and rewrites the expressions by which a SELECT groups."""

from __future__ import annotations

from sqlglot import exp

from mltables.dialect import allowed_syntax


def move_into_rollup(group: exp.Group) -> None:
    """Makes ``GROUP BY ROLLUP (a, b)`` of ``GROUP BY a, b WITH ROLLUP``, in place; likewise for
    CUBE."""
    for kind in ("rollup", "cube"):
        for part in group.args.get(kind) or []:
            if not part.expressions:
                selected = getattr(group.parent, "selects", [])
                chosen = [_selected(by, selected) for by in group.expressions]
                allowed_syntax.check_copies((1, by) for by in chosen)
                part.set("expressions", [by.copy() for by in chosen])
                group.set("expressions", [])


def expressions_of(group: exp.Group) -> list[exp.Expr]:
    """Returns the expressions by which a SELECT groups, also those in ROLLUP and CUBE, but GROUPING
    SETS as one node. In place of a number, returns the column of the SELECT at this position."""
    kinds = ("rollup", "cube", "grouping_sets")
    parts = [*group.expressions, *(part for kind in kinds for part in group.args.get(kind) or [])]
    selected = getattr(group.parent, "selects", [])
    return [
        _selected(expression, selected)
        for part in parts
        for expression in (part.expressions if isinstance(part, exp.Rollup | exp.Cube) else [part])
    ]


def _selected(by: exp.Expr, selected: list[exp.Expr]) -> exp.Expr:
    """Returns the column of the SELECT whose number an expression of GROUP BY is, or else the
    expression itself."""
    place = int(by.name) if isinstance(by, exp.Literal) and by.is_int else 0
    return selected[place - 1].unalias() if 0 < place <= len(selected) else by
