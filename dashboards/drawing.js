// Draws rows of an answer as SVG; asks nobody, and knows no chart by its name.
"use strict";

const Drawing = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const HEIGHT = 230;
  const ROW = 30;
  const INFINITE = 1e300; // stands for infinity in MLflow's tables

  function made(name, attributes = {}, text = null) {
    const element = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== null) element.textContent = text;
    return element;
  }

  function html(name, attributes = {}, text = null) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== null) element.textContent = text;
    return element;
  }

  const number = (value) => (value === null ? NaN : Number(value));
  const drawable = (value) => Number.isFinite(value) && Math.abs(value) < INFINITE;
  const digits = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });

  function shown(value, unit) {
    if (Number.isNaN(value)) return "NaN";
    if (!drawable(value)) return value > 0 ? "∞" : "−∞";
    if (unit === "ratio") return `${digits.format(100 * value)}%`;
    if (unit === "percent") return `${digits.format(value)}%`;
    if (unit === "hours") return `${digits.format(value)} h`;
    if (unit === "seconds") {
      if (value >= 7200) return `${digits.format(value / 3600)} h`;
      return value >= 120 ? `${digits.format(value / 60)} min` : `${digits.format(value)} s`;
    }
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(3);
    return digits.format(value);
  }

  /** Round values that cover a range. */
  function ticks(low, high, wanted = 4) {
    if (low === high) {
      const around = Math.abs(low) || 1;
      [low, high] = low >= 0 ? [0, low + around / 5] : [low - around / 5, 0];
    }
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
    const found = [];
    for (let at = Math.floor(low / step); at <= Math.ceil(high / step); at += 1) found.push(at * step);
    return found;
  }

  function cut(text, room) {
    const most = Math.max(4, Math.floor(room / 6.6));
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
  }

  function canvas(width, height, title) {
    const svg = made("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
    return svg;
  }

  function columns(answer) {
    return Object.fromEntries(answer.columns.map((name, place) => [name, place]));
  }

  /** A horizontal bar for a row: label, value, and what it is a part of. */
  function bars(chart, answer, width) {
    const at = columns(answer);
    const rows = answer.rows.map((row) => ({
      label: String(row[at[chart.label]] ?? ""),
      value: number(row[at[chart.value]]),
      whole: typeof chart.of === "string" ? number(row[at[chart.of]]) : chart.of,
      note: chart.note ? row[at[chart.note]] : null,
    }));
    const finite = rows.flatMap((row) => [row.value, row.whole]).filter((one) => one !== undefined && drawable(one));
    const low = Math.min(0, ...finite);
    const high = Math.max(0, ...finite) || (low < 0 ? 0 : 1);
    const span = high - low || 1;
    const right = 74;
    const room = width - right;
    const place = (value) => ((value - low) / span) * room;
    const svg = canvas(width, rows.length * (ROW + 6) + 4, chart.title);
    rows.forEach((row, index) => {
      const y = index * (ROW + 6);
      const note = typeof row.note === "number" ? `${shown(row.note, chart.note === "gpu_hours" ? "hours" : "count")}${chart.note === "runs" ? " runs" : ""}` : row.note;
      svg.append(made("text", { x: 0, y: y + 13 }, cut(row.label, width - 120)));
      if (note !== null) svg.append(made("text", { x: width, y: y + 13, "text-anchor": "end", class: "faint" }, cut(String(note), 110)));
      if (row.whole !== undefined && drawable(row.whole)) {
        svg.append(made("rect", { class: "track", x: 0, y: y + 18, width: Math.max(0, place(row.whole)), height: 12, rx: 2 }));
      }
      const from = drawable(row.value) ? Math.min(place(0), place(row.value)) : 0;
      const long = drawable(row.value) ? Math.abs(place(row.value) - place(0)) : 0;
      const bar = made("rect", { class: "s0 mark", x: from, y: y + 18, width: Math.max(1, long), height: 12, rx: 2, "data-label": row.label, "data-value": row.value });
      bar.append(made("title", {}, `${row.label}: ${shown(row.value, chart.unit)}`));
      svg.append(bar, made("text", { x: width, y: y + 29, "text-anchor": "end" }, shown(row.value, chart.unit)));
    });
    return [svg];
  }

  function legend(names) {
    const list = html("ul", { class: "legend faint" });
    names.forEach((name, index) => {
      const item = html("li");
      const sample = made("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" });
      sample.append(made("rect", { class: `s${index}`, width: 10, height: 10, rx: 2 }));
      item.append(sample, document.createTextNode(name.replaceAll("_", " ")));
      list.append(item);
    });
    return list;
  }

  /** The frame of a chart with axes: lines of the values, and texts below. */
  function framed(chart, width, values, labels) {
    const finite = values.filter(drawable);
    const base = chart.draw === "stacks" || chart.unit === "percent" ? [0] : [];
    const grid = ticks(Math.min(...base, ...finite), Math.max(...base, ...finite));
    const box = { left: 58, right: width - 8, top: 10, bottom: HEIGHT - 24 };
    const [low, high] = [grid[0], grid[grid.length - 1]];
    const y = (value) => box.bottom - ((value - low) / (high - low)) * (box.bottom - box.top);
    const svg = canvas(width, HEIGHT, chart.title);
    for (const tick of grid) {
      svg.append(made("line", { x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }));
      svg.append(made("text", { x: box.left - 6, y: y(tick) + 4, "text-anchor": "end", class: "faint" }, shown(tick, chart.unit)));
    }
    for (const { x, text, anchor } of labels(box)) {
      svg.append(made("text", { x, y: HEIGHT - 8, "text-anchor": anchor ?? "middle", class: "faint" }, text));
    }
    return { svg, box, y };
  }

  /** Where a row lies: days by their time, all else by its number; and the texts of the ends. */
  function places(chart, answer) {
    const at = columns(answer)[chart.x];
    const days = chart.x === "day";
    const xs = answer.rows.map((row) => (days ? Date.parse(`${row[at]}T00:00:00Z`) : number(row[at])));
    const [first, last] = [Math.min(...xs), Math.max(...xs)];
    const text = (value) => (days ? new Date(value).toISOString().slice(0, 10) : digits.format(value));
    const x = (value, box) => (first === last ? (box.left + box.right) / 2 : box.left + ((value - first) / (last - first)) * (box.right - box.left));
    const labels = (box) => (first === last
      ? [{ x: x(first, box), text: text(first) }]
      : [{ x: box.left, text: text(first), anchor: "start" }, { x: box.right, text: text(last), anchor: "end" }]);
    return { xs, x, labels, text, days };
  }

  function lines(chart, answer, width) {
    const at = columns(answer);
    const where = places(chart, answer);
    const series = chart.series.map((name) => answer.rows.map((row) => number(row[at[name]])));
    // What surrounds the first is drawn only where it is something else.
    const kept = chart.series.map((name, index) => !chart.around?.includes(name) || series[index].some((value, row) => !Object.is(value, series[0][row])));
    const values = series.flat();
    if (!values.some(drawable)) return [html("p", { class: "none" }, "None of the values is a number.")];
    const { svg, box, y } = framed(chart, width, values, where.labels);
    const few = answer.rows.length <= 60;
    for (let index = series.length - 1; index >= 0; index -= 1) {
      if (!kept[index]) continue;
      let path = "";
      let open = false;
      series[index].forEach((value, row) => {
        if (drawable(value)) path += `${open ? "L" : "M"}${where.x(where.xs[row], box).toFixed(2)} ${y(value).toFixed(2)}`;
        open = drawable(value);
      });
      svg.append(made("path", { class: `s${index} mark`, d: path, "data-series": chart.series[index], "data-points": series[index].filter(drawable).length }));
      if (!few) continue;
      series[index].forEach((value, row) => {
        if (!drawable(value)) return;
        const dot = made("circle", { class: `s${index} mark`, cx: where.x(where.xs[row], box), cy: y(value), r: 3, "data-series": chart.series[index], "data-value": value });
        dot.append(made("title", {}, `${where.text(where.xs[row])}: ${shown(value, chart.unit)}`));
        svg.append(dot);
      });
    }
    const names = chart.series.filter((_, index) => kept[index]);
    return names.length > 1 ? [svg, legend(names)] : [svg];
  }

  /** A column for a day, one part on the other. */
  function stacks(chart, answer, width) {
    const at = columns(answer);
    const where = places(chart, answer);
    const parts = answer.rows.map((row) => chart.series.map((name) => number(row[at[name]])));
    const { svg, box, y } = framed(chart, width, parts.map((row) => row.reduce((a, b) => a + b, 0)), where.labels);
    const span = where.days ? Math.max(1, (Math.max(...where.xs) - Math.min(...where.xs)) / 86400000 + 1) : parts.length;
    const thick = Math.max(1.5, Math.min(40, (box.right - box.left) / span - 2));
    parts.forEach((row, index) => {
      const inner = { left: box.left + thick / 2, right: box.right - thick / 2 };
      const x = where.x(where.xs[index], inner) - thick / 2;
      let base = 0;
      row.forEach((value, part) => {
        if (value > 0) {
          const mark = made("rect", { class: `s${[3, 1, 2][part] ?? part} mark`, x, width: thick, y: y(base + value), height: y(base) - y(base + value), "data-series": chart.series[part], "data-value": value });
          mark.append(made("title", {}, `${where.text(where.xs[index])}: ${value} ${chart.series[part]}`));
          svg.append(mark);
        }
        base += value;
      });
    });
    const names = legend(chart.series);
    names.querySelectorAll("rect").forEach((sample, part) => sample.setAttribute("class", `s${[3, 1, 2][part] ?? part}`));
    return [svg, names];
  }

  /** All values as they came, in a table. */
  function table(answer) {
    const element = html("table");
    const numeric = answer.types.map((type) => /^(bigint|double|float|int|decimal|hugeint|smallint|tinyint)/.test(type));
    const head = element.createTHead().insertRow();
    answer.columns.forEach((name, place) => head.append(html("th", numeric[place] ? { class: "number" } : {}, name.replaceAll("_", " "))));
    const body = element.createTBody();
    for (const row of answer.rows) {
      const line = body.insertRow();
      row.forEach((value, place) => {
        const cell = line.insertCell();
        if (numeric[place]) cell.className = "number";
        cell.dataset.value = value === null ? "" : String(value);
        cell.textContent = value === null ? "" : typeof value === "number" ? shown(value, "value") : String(value);
      });
    }
    return element;
  }

  function rows(chart, answer) {
    const scroll = html("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": chart.title });
    scroll.append(table(answer));
    return [scroll];
  }

  const kinds = { bars, lines, stacks, rows };

  /** What shows an answer, in so many pixels of width. */
  function draw(chart, answer, width) {
    if (!answer.rows.length) return [html("p", { class: "none" }, "There is nothing to show.")];
    return kinds[chart.draw](chart, answer, Math.max(240, Math.floor(width)));
  }

  return { draw, table, html };
})();
