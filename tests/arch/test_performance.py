"""What the project says about its speed, and the files that it is made from."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import memory_sizes
from bench.__main__ import write
from bench.bill.usage import WHOLE_MB
from bench.memory_sizes import Call
from bench.performance_page import page
from bench.results import RESULTS, Cost, Figure, Results, Server, Work
from tests.arch import project

DOCS = project.ROOT / "docs"


def _work(name: str, ours: Figure, fast: Figure, unit: str = "ms") -> Work:
    away = Figure(reason="does not install")
    return Work(name, unit, {"ours": ours, "fast": fast, "away": away})


def _results(*works: Work) -> Results:
    servers = [
        Server("ours", "Ours", "this", ""),
        Server("fast", "Fast", "another", ""),
        Server("away", "Away", "a third", "does not install"),
    ]
    return Results({"cores": "2 cores"}, "small", 4.0, servers, list(works))


def test_the_page_and_its_chart_are_of_the_results_beside_them(tmp_path: Path) -> None:
    """`.venv/bin/python -m bench --from-results` writes them anew."""
    write(Results.read(RESULTS), tmp_path)
    for made in tmp_path.iterdir():
        assert made.read_text() == (DOCS / made.name).read_text(), made.name


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    work = _work("get", Figure(2.0, 3.0, 10), Figure(1.0, 1.5, 10))
    results = _results(work._replace(cost=Cost(2, 1, 0.5, 0), delayed=6.5))
    results.write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == results


def test_the_page_says_where_a_peer_is_better() -> None:
    text = page(
        _results(
            _work("get", Figure(3.0, 4.0, 10), Figure(1.5, 2.0, 10)),
            _work("search", Figure(3.0, 4.0, 10), Figure(30.0, 31.0, 10)),
            _work("writing", Figure(1_000.0), Figure(4_000.0), "metrics/s"),
            _work("traces", Figure(3.0, 4.0, 10), Figure(reason="404 no such call")),
        )
    )
    assert "- **Fast** is better in 2 of 3: writing (4.0 times); get (2.0 times)." in text
    assert "| get | 3.0 / 4.0 | 1.5 / 2.0 (0.50) | – |" in text
    assert "| search | 3.0 / 4.0 | 30.0 / 31.0 (10.0) | – |" in text
    assert "| writing | 1,000 metrics/s | 4,000 metrics/s (0.25) | – |" in text
    assert "- traces, Fast: 404 no such call" in text
    assert "| Away | a third (not measured: does not install) |" in text
    assert "**Away** is" not in text


def test_the_page_says_when_no_peer_is_better(tmp_path: Path) -> None:
    results = _results(_work("get", Figure(1.0, 2.0, 10), Figure(1.04, 2.0, 10)))
    assert "- **Fast** is better in nothing." in page(results)
    write(results, tmp_path)
    chart = ElementTree.parse(tmp_path / "performance.svg").getroot()
    circles = chart.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 2 + 2  # the legend without the one that was not measured, and two dots


def test_the_book_quotes_the_memory_sizes_as_measured() -> None:
    """`python -m bench.memory_sizes --write` measures and renews them."""
    book = memory_sizes.BOOK.read_text()
    assert memory_sizes.quoted(book) == book


def test_less_memory_costs_less_and_takes_longer() -> None:
    call = Call("get", 2.0, 2)
    assert call.ms(WHOLE_MB) == pytest.approx(2 + 12)
    assert call.ms(2 * WHOLE_MB) == call.ms(WHOLE_MB)  # one thread has no use for a second vCPU
    assert call.ms(512) > call.ms(1024) > call.ms(WHOLE_MB)
    assert call.dollars(512) < call.dollars(1024) < call.dollars(WHOLE_MB)
