"""Reads from the page of the dashboards what its cards show."""

from __future__ import annotations

SHOWN = """() => {
  const cells = (card, where) => [...card.querySelectorAll(`${where} tbody tr`)].map(
    (row) => [...row.cells].map((cell) => cell.dataset.value).filter((one) => one !== undefined));
  const drawn = (card) => {
    const chart = echarts.getInstanceByDom(card.querySelector(".drawing"));
    return chart ? chart.getOption().series.map(({name, data}) => [name, data]) : [];
  };
  return Object.fromEntries([...document.querySelectorAll("main > section")].map((one) => [one.id, {
    sql: one.querySelector("pre").textContent,
    cells: cells(one, ".numbers"),
    rows: cells(one, ".drawing"),
    series: Object.fromEntries(drawn(one)),
    none: one.querySelector(".none")?.textContent ?? "",
    alert: one.querySelector("[role=alert]")?.textContent ?? "",
  }]));
}"""
"""A function of JavaScript that returns what each card shows, by its id."""
