// Charts over time and steps, drawn by ECharts. Texts from users are never set as HTML: labels
// are SVG texts, and tooltips are elements.
"use strict";

const Charts = (() => {
  const { number, finite, shown, plain, axisUnit, time, html } = Format;
  const HOUR = 3600000;
  const LENGTHS = { hour: HOUR, day: 24 * HOUR, week: 7 * 24 * HOUR, month: 30 * 24 * HOUR };
  const COLORS = { finished: "--c3", failed: "--c1", killed: "--c2" };
  const FEW = 60; // points that are drawn each

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** Draws a query result into an element and replaces an earlier drawing. */
  function draw(chart, answer, element, span) {
    const option = chart.draw === "stacks" ? stacks(chart, answer, element, span) : lines(chart, answer, span);
    const drawing = echarts.getInstanceByDom(element) ?? echarts.init(element, null, { renderer: "svg" });
    if (drawing.getWidth() !== element.clientWidth || drawing.getHeight() !== element.clientHeight) drawing.resize();
    drawing.setOption(option, { notMerge: true });
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", chart.title);
  }

  function clear(element) {
    if (window.echarts) echarts.getInstanceByDom(element)?.dispose();
    element.removeAttribute("role");
    element.removeAttribute("aria-label");
  }

  /** The position of each row on the axis, or NaN outside of it. A time is placed in the middle of its bucket. */
  function positions(chart, answer, span) {
    const at = Tables.places(answer)[chart.x];
    if (chart.x !== "time") return answer.rows.map((row) => number(row[at]));
    return answer.rows.map((row) => {
      const [from, length] = [Date.parse(row[at]), LENGTHS[span.grain]];
      if (from <= span.from - length || from >= span.to) return NaN;
      return Math.min(span.to, Math.max(span.from, from + length / 2));
    });
  }

  /** The number of rows outside of the axis. */
  const beside = (chart, answer, span) => positions(chart, answer, span).filter(Number.isNaN).length;

  function lines(chart, answer, span) {
    const at = Tables.places(answer);
    const xs = positions(chart, answer, span);
    const read = (name) => answer.rows.map((row) => number(row[at[name]]));
    // What surrounds the first series is drawn only where it is something else.
    const first = read(chart.series[0]);
    const kept = chart.series.filter((name) => !chart.around?.includes(name) || read(name).some((value, row) => !Object.is(value, first[row])));
    const highest = Math.max(0, ...kept.flatMap(read).filter((value, place) => finite(value) && !Number.isNaN(xs[place % xs.length])));
    const unit = axisUnit(chart.unit, highest);
    const series = kept.map((name, index) => {
      const values = read(name);
      const color = style(chart.around?.includes(name) ? "--faint" : `--c${[0, 4][index]}`);
      return {
        name, type: "line", data: xs.map((x, row) => [x, finite(values[row]) ? values[row] / unit.size : null]).filter(([x]) => !Number.isNaN(x)),
        showSymbol: xs.length <= FEW, symbol: "circle", symbolSize: 5, color, z: 10 - index,
        lineStyle: { width: chart.around?.includes(name) ? 1 : 2 },
      };
    });
    return framed(chart, answer, span, unit, series, xs);
  }

  function stacks(chart, answer, element, span) {
    const at = Tables.places(answer);
    const xs = positions(chart, answer, span);
    const room = Math.max(100, element.clientWidth - 70) * LENGTHS[span.grain] / (span.to - span.from);
    const series = chart.series.map((name) => ({
      name, type: "bar", stack: "all", color: style(COLORS[name] ?? "--c0"),
      barWidth: Math.max(1.5, Math.min(30, 0.8 * room)),
      data: xs.map((x, row) => [x, number(answer.rows[row][at[name]])]).filter(([x]) => !Number.isNaN(x)),
    }));
    return framed(chart, answer, span, axisUnit(chart.unit, 0), series, xs);
  }

  /** Axes, legend and tooltip around the series. */
  function framed(chart, answer, span, unit, series, xs) {
    const faint = style("--faint");
    const line = { lineStyle: { color: style("--line") } };
    const days = chart.x === "time";
    const bounds = days ? { min: span.from, max: span.to } : { min: "dataMin", max: "dataMax" };
    return {
      animation: false, useUTC: true,
      textStyle: { fontFamily: "system-ui, sans-serif" },
      grid: { left: 52, right: 18, top: series.length > 1 ? 34 : 18, bottom: 26 },
      legend: { show: series.length > 1, top: 0, right: 8, itemWidth: 12, itemHeight: 8, icon: "roundRect", textStyle: { color: faint }, inactiveColor: style("--line") },
      xAxis: {
        type: days ? "time" : "value", ...bounds, axisLine: line, axisTick: line, splitLine: { show: false }, splitNumber: 5, containShape: false,
        axisLabel: { color: faint, hideOverlap: true, ...(days ? { formatter: tick(span), showMinLabel: false, showMaxLabel: false } : {}) },
        ...(days ? {} : { name: chart.x, nameLocation: "middle", nameGap: 22, nameTextStyle: { color: faint }, minInterval: 1 }),
      },
      yAxis: {
        type: "value", splitNumber: 4, splitLine: line, axisLine: { show: false }, axisTick: { show: false },
        axisLabel: { color: faint, formatter: (value) => `${plain(value)}${unit.name && value ? ` ${unit.name}` : ""}` },
        ...(chart.unit === "value" ? { scale: true } : { min: 0 }),
        ...(chart.unit === "percent" ? { max: 100, interval: 25 } : {}),
        ...(chart.unit === "count" ? { minInterval: 1 } : {}),
      },
      tooltip: {
        trigger: "axis", confine: true, transitionDuration: 0, className: "tip",
        backgroundColor: style("--card"), borderColor: style("--line"), padding: 8,
        axisPointer: { type: chart.draw === "stacks" ? "shadow" : "line", lineStyle: { color: faint }, shadowStyle: { opacity: 0.4 } },
        formatter: (points) => tip(chart, answer, span, xs, points),
      },
      series,
    };
  }

  /** Labels of a time axis: the hour within a day, else the day; the year where it begins. */
  function tick(span) {
    const long = span.to - span.from > 330 * 24 * HOUR; // else no day comes twice
    const of = (options) => new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options });
    const [hour, day, month, year] = [of({ hour: "2-digit", minute: "2-digit" }), of({ day: "numeric", month: "short" }), of({ month: "short", year: "numeric" }), of({ year: "numeric" })];
    return (value) => {
      const at = new Date(value);
      if (at.getUTCHours() || at.getUTCMinutes()) return hour.format(at);
      if (long && at.getUTCDate() === 1) return (at.getUTCMonth() ? month : year).format(at);
      return day.format(at);
    };
  }

  /** The values of a row, each formatted in its unit. */
  function tip(chart, answer, span, xs, points) {
    const at = Tables.places(answer);
    const row = answer.rows[xs.indexOf(points[0].value[0])];
    if (!row) return "";
    const title = chart.x === "time" ? time(row[at.time], span.grain) + (span.grain === "week" ? " (week)" : "") : `${chart.x} ${plain(number(row[at[chart.x]]))}`;
    const told = html("div", {}, html("strong", {}, title));
    for (const point of points) {
      const sample = html("i");
      sample.style.background = point.color;
      told.append(html("p", {}, sample, `${point.seriesName} `, html("b", {}, shown(number(row[at[point.seriesName]]), chart.unit))));
    }
    for (const name of chart.also ?? []) told.append(html("p", { class: "faint" }, `${shown(number(row[at[name]]), "count")} ${name}`));
    return told;
  }

  return { draw, clear, beside, LENGTHS };
})();
