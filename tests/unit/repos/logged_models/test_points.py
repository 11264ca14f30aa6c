from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.entities.logged_models import ModelMetric
from mlcore.models.logged_models import LoggedModel
from mlcore.repos.logged_models import points

POINT = st.builds(
    ModelMetric,
    st.sampled_from(["a", "é b"]),
    st.sampled_from([0.0, 1.5, -1e308]),
    st.integers(0, 2),
    st.integers(-1, 1),
    st.sampled_from(["r", "s"]),
    st.none() | st.just("d"),
    st.none() | st.just("1"),
)


def item(packs: list[list[ModelMetric]]) -> dict[str, object]:
    made = [points._pack(pack) for pack in packs]
    return {"points": {"M": {pack.suffix: {"S": pack.text} for pack in made}}}


def identity(point: ModelMetric) -> object:
    return point.key, point.timestamp, point.step, point.run_id


@given(st.lists(st.lists(POINT, min_size=1, max_size=4), max_size=4))
def test_each_point_is_shown_once(packs: list[list[ModelMetric]]) -> None:
    shown = points.read(LoggedModel.of(item(packs)))
    sent = [point for pack in packs for point in pack]
    assert len({identity(point) for point in shown}) == len(shown)
    assert {identity(point) for point in shown} == {identity(point) for point in sent}
    assert set(shown) <= set(sent)


@given(st.lists(POINT, max_size=4), st.lists(POINT, max_size=6))
def test_only_new_points_are_written(known: list[ModelMetric], sent: list[ModelMetric]) -> None:
    held = item([known] if known else [])
    shown = {identity(point): point for point in points.read(LoggedModel.of(held))}
    values: dict[object, set[ModelMetric]] = {key: {point} for key, point in shown.items()}
    for point in sent:
        values.setdefault(identity(point), set()).add(point)
    if any(len(values[identity(point)]) > 1 for point in sent):
        with pytest.raises(points.Conflict):
            points.new_points(held, sent)
        return
    new = points.new_points(held, sent)
    assert len(set(new)) == len(new)
    assert set(new) == set(sent) - set(shown.values())


def test_equal_points_make_equal_packs() -> None:
    made = [ModelMetric("a", 1.0, 1, 0, "r", "d", "x")]
    assert points._pack(made).suffix == points._pack(list(made)).suffix
