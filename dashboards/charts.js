// Charts over time and steps, drawn by ECharts. Texts from users are never set as HTML: labels
// are SVG texts, and tooltips are elements.
"use strict";

const Charts = (() => {
  const { number, finite, shown, plain, axisUnit, tick, visible, short, moment, time, html } = Format;
  const HOUR = 3600000;
  const LENGTHS = { hour: HOUR, day: 24 * HOUR, week: 7 * 24 * HOUR, month: 30 * 24 * HOUR };
  const COLORS = { finished: "--c3", ok: "--c3", failed: "--c1", error: "--c1", errors: "--c1", killed: "--c2", unfinished: "--c2", cached: "--c2" };
  const STACK = ["--c0", "--c3", "--c2", "--c4", "--c1", "--c5", "--c6", "--c7", "--c8", "--c9"];
  const OTHERS = "(others)"; // the series of all that are not among the first
  const FEW = 60; // points that are drawn each
  const LEGEND = 22; // characters of a name in the legend

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** Draws a query result into an element and replaces an earlier drawing. */
  function draw(chart, answer, element, span) {
    const option = framed(chart, span, element, seriesOf(chart, answer, span));
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
      const [from, length] = [moment(row[at]), LENGTHS[span.grain]];
      if (from <= span.from - length || from >= span.to) return NaN;
      return Math.min(span.to, Math.max(span.from, from + length / 2));
    });
  }

  /** The number of rows outside of the axis. */
  const beside = (chart, answer, span) => positions(chart, answer, span).filter(Number.isNaN).length;

  /**
   * The series of a chart, each {name, points, around, over}, with points {x, value, row}. They are columns of the
   * result, or with "by" the values of a column: those with the greatest sum first, all others last.
   */
  function seriesOf(chart, answer, span) {
    const at = Tables.places(answer);
    const xs = positions(chart, answer, span);
    const points = (name, rows) => rows.filter((index) => !Number.isNaN(xs[index])).map((index) => ({ x: xs[index], value: number(answer.rows[index][at[name]]), row: answer.rows[index] }));
    const all = answer.rows.map((_, index) => index);
    if (chart.by) {
      const groups = new Map();
      for (const index of all) {
        const name = String(answer.rows[index][at[chart.by]]);
        groups.set(name, [...(groups.get(name) ?? []), index]);
      }
      const size = (indexes) => indexes.reduce((sum, index) => sum + (chart.draw === "lines" ? 1 : number(answer.rows[index][at[chart.value]])), 0);
      const last = (name) => (name === OTHERS ? 1 : 0);
      const sorted = [...groups].sort(([nameA, indexesA], [nameB, indexesB]) => last(nameA) - last(nameB) || size(indexesB) - size(indexesA) || (nameA < nameB ? -1 : 1));
      return { at, series: sorted.map(([name, indexes]) => ({ name, points: points(chart.value, indexes) })) };
    }
    const columns = chart.series.map((name) => ({ name, points: points(name, all), around: chart.around?.includes(name) ?? false }));
    // What surrounds the first series is drawn only where it is something else.
    const kept = columns.filter((column) => !column.around || column.points.some(({ value }, index) => !Object.is(value, columns[0].points[index].value)));
    return { at, series: [...kept, ...(chart.over ?? []).map((name) => ({ name, points: points(name, all), over: true }))] };
  }

  const colorOf = (chart, { name, around }, index) => {
    if (around) return style("--faint");
    if (chart.by) return name === OTHERS ? style("--faint") : style(STACK[index % STACK.length]);
    return style(COLORS[name] ?? (chart.draw === "lines" ? ["--c0", "--c4"] : STACK)[index] ?? "--c0");
  };

  function line(column, color, unit, index, many) {
    return {
      name: column.name, type: "line", data: column.points.map(({ x, value }) => [x, finite(value) ? value / unit.size : null]),
      sampling: "lttb", showSymbol: column.points.length <= FEW, symbol: "circle", symbolSize: many ? 4 : 5, color, z: 20 - index,
      lineStyle: { width: column.around ? 1 : 2 },
    };
  }

  /** The library stacks what has the same place in the data, so each series gets a value for each position. */
  function bars(column, color, width, all) {
    const values = new Map(column.points.map(({ x, value }) => [x, value]));
    return { name: column.name, type: "bar", stack: "all", color, barWidth: width, data: all.map((x) => [x, values.get(x) ?? 0]) };
  }

  /** Axes, legend and tooltip around the series. */
  function framed(chart, span, element, { at, series }) {
    const faint = style("--faint");
    const thin = { lineStyle: { color: style("--line") } };
    const days = chart.x === "time";
    const bounds = days ? { min: span.from, max: span.to } : { min: "dataMin", max: "dataMax" };
    const drawn = series.flatMap(({ points }) => points.map(({ value }) => value)).filter(finite);
    const most = drawn.reduce((greatest, value) => Math.max(greatest, value), 0);
    const unit = axisUnit(chart.unit, chart.draw === "lines" ? most : 0);
    const room = days ? Math.max(100, element.clientWidth - 70) * LENGTHS[span.grain] / (span.to - span.from) : 0;
    const width = Math.max(1.5, Math.min(30, 0.8 * room));
    const all = [...new Set(series.flatMap(({ points }) => points.map(({ x }) => x)))].sort((a, b) => a - b);
    const named = Boolean(chart.axis);
    const legend = series.length > 1 || Boolean(chart.by);
    return {
      animation: false, useUTC: true,
      textStyle: { fontFamily: "system-ui, sans-serif" },
      grid: { left: 52, right: 18, top: (legend ? 34 : 18) + (named ? 14 : 0), bottom: 26 },
      legend: {
        show: legend, top: 0, right: 8, itemWidth: 12, itemHeight: 8, icon: "roundRect", textStyle: { color: faint }, inactiveColor: style("--line"),
        formatter: (name) => (chart.by ? isolated(short(visible(name), LEGEND)) : label(name)),
        ...(chart.by ? { type: "scroll", left: 8, pageIconColor: faint, pageIconInactiveColor: style("--line"), pageTextStyle: { color: faint }, pageIconSize: 10 } : {}),
      },
      xAxis: {
        type: days ? "time" : "value", ...bounds, axisLine: thin, axisTick: thin, splitLine: { show: false }, splitNumber: 5, containShape: false,
        axisLabel: { color: faint, hideOverlap: true, ...(days ? { formatter: ticks(span), showMinLabel: false, showMaxLabel: false } : {}) },
        ...(days ? {} : { name: chart.x, nameLocation: "middle", nameGap: 22, nameTextStyle: { color: faint }, minInterval: 1 }),
      },
      yAxis: {
        type: "value", splitNumber: 4, splitLine: thin, axisLine: { show: false }, axisTick: { show: false },
        axisLabel: { color: faint, formatter: (value) => `${tick(value, chart.unit)}${unit.name && value ? ` ${unit.name}` : ""}` },
        ...(named ? { name: chart.axis, nameLocation: "end", nameGap: 10, nameTextStyle: { color: faint, align: "left", padding: [0, 0, 0, -40] } } : {}),
        ...(chart.unit === "value" ? { scale: true } : { min: 0 }),
        ...(chart.unit === "percent" ? { max: 100, interval: 25 } : {}),
        ...(chart.unit === "ratio" && (most === 0 || most > 0.75) ? { max: 100, interval: 25 } : {}),
        ...(chart.unit === "count" ? { minInterval: 1 } : {}),
      },
      tooltip: {
        trigger: "axis", confine: true, transitionDuration: 0, className: "tip",
        backgroundColor: style("--card"), borderColor: style("--line"), padding: 8,
        axisPointer: { type: chart.draw === "stacks" ? "shadow" : "line", lineStyle: { color: faint }, shadowStyle: { opacity: 0.4 } },
        formatter: (points) => tip(chart, span, at, series, points),
      },
      series: series.map((column, index) => {
        const color = colorOf(chart, column, index);
        return chart.draw === "stacks" && !column.over ? bars(column, color, width, all) : line(column, color, unit, index, Boolean(chart.by));
      }),
    };
  }

  /** Labels of a time axis: the hour within a day, else the day; the year where it begins. */
  function ticks(span) {
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

  const label = (name) => name.replaceAll("_", " ");

  /** A text of users between marks that end what it says about the direction of writing. */
  const isolated = (text) => `\u2068${text}\u2069`;

  /** What is drawn at a place of the axis, each value formatted in its unit; of values of a column the greatest first. */
  function tip(chart, span, at, series, points) {
    const x = points[0].value[0];
    const entries = points.map(({ seriesIndex, color }) => ({ name: series[seriesIndex].name, color, point: series[seriesIndex].points.find((point) => point.x === x) })).filter(({ point }) => point);
    if (!entries.length) return "";
    const { row } = entries[0].point;
    const title = chart.x === "time" ? time(row[at.time], span.grain) + (span.grain === "week" ? " (week)" : "") : `${chart.x} ${plain(number(row[at[chart.x]]))}`;
    const element = html("div", {}, html("strong", {}, title));
    if (chart.by) entries.sort((a, b) => b.point.value - a.point.value);
    for (const { name: nameOfSeries, color, point } of entries) {
      const sample = html("i");
      sample.style.background = color;
      const more = chart.by ? (chart.also ?? []).map((name) => html("span", { class: "faint" }, ` ${shown(number(point.row[at[name]]), "count")} ${label(name)}`)) : [];
      element.append(html("p", {}, sample, html("bdi", {}, short(chart.by ? visible(nameOfSeries) : label(nameOfSeries))), " ", html("b", {}, shown(point.value, chart.unit)), ...more));
    }
    if (chart.by && chart.draw === "stacks") element.append(html("p", { class: "faint" }, `${shown(entries.reduce((sum, { point }) => sum + point.value, 0), chart.unit)} together`));
    if (!chart.by) for (const name of chart.also ?? []) element.append(html("p", { class: "faint" }, `${shown(number(row[at[name]]), "count")} ${label(name)}`));
    return element;
  }

  return { draw, clear, beside, LENGTHS };
})();
