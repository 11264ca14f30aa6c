// Shows the rows of a query result as a table: with all columns, or with the columns of a chart, links
// to MLflow's UI and bars. Also writes them as CSV.
"use strict";

const Tables = (() => {
  const { number, finite, shown, time, visible, html } = Format;
  const NUMERIC = /^(bigint|double|float|int|decimal|hugeint|smallint|tinyint)/i;
  const FORMULA = /^[=+\-@\t\r]/;

  const places = (answer) => Object.fromEntries(answer.columns.map((name, place) => [name, place]));
  const numeric = (answer) => answer.types.map((type) => NUMERIC.test(type));

  /** Of each kind of link the column that names its page, and the page's part of the address below the experiment. */
  const PAGES = {
    experiment: ["experiment_id", ""], run: ["run_id", "/runs/"], trace: ["trace_id", "/traces/"],
    session: ["session_id", "/chat-sessions/"], model: ["model_id", "/models/"], endpoint: ["endpoint_id", null],
  };

  /** The address of an experiment, of a part of it, or of an endpoint, in MLflow's UI. */
  function address(site, kind, experiment, id, workspace) {
    const below = PAGES[kind][1];
    const path = below === null ? `/gateway/endpoints/${encodeURIComponent(id)}` : `/experiments/${encodeURIComponent(experiment)}${below && `${below}${encodeURIComponent(id)}`}`;
    return `${site.server}/#${path}${site.workspaces && workspace ? `?workspace=${encodeURIComponent(workspace)}` : ""}`;
  }

  /** A table of all columns of a result. */
  function whole(answer) {
    const numbers = numeric(answer);
    const element = html("table");
    const head = element.createTHead().insertRow();
    answer.columns.forEach((name, place) => head.append(html("th", numbers[place] ? { class: "number" } : {}, name.replaceAll("_", " "))));
    const body = element.createTBody();
    for (const row of answer.rows) {
      const line = body.insertRow();
      row.forEach((value, place) => {
        const cell = line.insertCell();
        if (numbers[place]) cell.className = "number";
        cell.dataset.value = value === null ? "" : String(value);
        cell.textContent = value === null ? "" : typeof value === "number" ? shown(value, "value") : visible(String(value));
      });
    }
    return element;
  }

  /** A table of the columns that the chart lists. */
  function list(chart, answer, site) {
    const at = places(answer);
    const numbers = numeric(answer);
    const element = html("table", { class: "list" });
    const head = element.createTHead().insertRow();
    for (const column of chart.columns) {
      const name = column.title ?? column.name.replaceAll("_", " ");
      head.append(html("th", column.bar ? { class: "bar", colspan: "2" } : { class: kind(column, numbers[at[column.name]]) }, name));
    }
    const largest = Object.fromEntries(chart.columns.filter((column) => column.bar).map((column) => [column.name, top(column, answer, at)]));
    const body = element.createTBody();
    for (const row of answer.rows) {
      const line = body.insertRow();
      for (const column of chart.columns) {
        const value = row[at[column.name]];
        const cell = line.insertCell();
        cell.dataset.value = value === null ? "" : String(value);
        const text = words(column, value, row, at, numbers[at[column.name]], site.zone);
        if (column.bar) {
          cell.className = "bar";
          cell.append(bar(column, number(value), largest[column.name], row, at));
          line.append(html("td", { class: "number" }, text));
        } else if (column.link && row[at[PAGES[column.link][0]]] !== null) {
          const id = row[at[PAGES[column.link][0]]];
          const link = html("a", { href: address(site, column.link, row[at.experiment_id], id, row[at.workspace_id]), title: text }, text || "(no name)");
          cell.className = "text";
          cell.append(link);
        } else {
          cell.className = kind(column, numbers[at[column.name]]);
          cell.title = text;
          cell.append(text);
        }
      }
    }
    return element;
  }

  const kind = (column, isNumber) => (isNumber ? "number" : column.unit === "time" || column.name === "status" ? "short" : "text");

  function words(column, value, row, at, isNumber, zone) {
    if (value === null) return "";
    if (column.of) return `${shown(number(value), "count")} of ${shown(number(row[at[column.of]]), "count")}`;
    if (column.unit === "time") return time(Zone.wall(Date.parse(value), zone));
    return isNumber ? shown(number(value), column.unit ?? "count") : visible(String(value));
  }

  /** The value at which a column's bars are full. */
  function top(column, answer, at) {
    if (column.bar.whole) return column.bar.whole;
    const source = at[column.bar.of ?? column.name];
    return Math.max(0, ...answer.rows.map((row) => Math.abs(number(row[source]))).filter(finite)) || 1;
  }

  /** A bar from 0 to the value. Behind it a bar of the whole, over it the range of values, if the column has them. */
  function bar(column, value, largest, row, at) {
    const frame = html("div", { class: "track" });
    const piece = (name, from, to) => {
      const element = html("div", { class: name });
      const part = (one) => 100 * Math.min(1, Math.max(0, one / largest));
      element.style.left = `${part(from)}%`;
      element.style.width = `${part(to) - part(from)}%`;
      frame.append(element);
    };
    if (column.bar.of) piece("whole", 0, number(row[at[column.bar.of]]));
    if (finite(value)) piece(value < 0 ? "part below" : "part", 0, Math.abs(value));
    if (column.bar.range) piece("range", ...column.bar.range.map((name) => number(row[at[name]])));
    return frame;
  }

  /**
   * The rows as a file of RFC 4180. A text that a spreadsheet would read as a formula gets an
   * apostrophe in front; numbers stay as they are.
   */
  function csv(answer) {
    const numbers = numeric(answer);
    const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const safe = (text) => quoted(FORMULA.test(text) ? `'${text}` : text);
    const field = (value, place) => (value === null ? "" : numbers[place] ? String(value) : safe(String(value)));
    return [answer.columns.map(safe), ...answer.rows.map((row) => row.map(field))].map((row) => `${row.join(",")}\r\n`).join("");
  }

  return { whole, list, csv, address, places };
})();
