// The dashboards: asks SQL of the system tables, or of the answers that a report carries, and has
// them drawn. What is chosen stands in the address, so that it can be sent to somebody.
"use strict";

(() => {
  const SQL = "/ajax-api/3.0/mlflow-serverless/sql";
  const TOGETHER = 2; // each query is a process on a laptop
  const PATIENCE = 30; // times that a query comes again
  const BEGINNING = "0001-01-01";
  const END = "9999-12-31";
  const CHOSEN = ["experiment", "user", "since", "until", "metric", "order", "run", "minutes"];
  const { html } = Drawing;

  const find = (id) => document.getElementById(id);
  const embedded = find("report");
  const report = embedded ? JSON.parse(embedded.textContent) : null;
  const address = new URLSearchParams(report ? "" : location.search);
  const chosen = { order: "lowest", minutes: "60", ...Object.fromEntries(CHOSEN.filter((one) => address.has(one)).map((one) => [one, address.get(one)])), ...report?.chosen };
  const cards = new Map();
  let book = null;
  let turn = 0; // answers to what was asked before are dropped

  // ------------------------------------------------------------------ asking

  const waiting = [];
  let busy = 0;

  function free() {
    busy -= 1;
    waiting.shift()?.();
  }

  // Others ask, too: the server runs a few queries at a time and says when to come again.
  async function patient(call) {
    for (let left = PATIENCE; ; left -= 1) {
      const reply = await call();
      if (reply.status !== 429 || left <= 0) return reply;
      const seconds = Number(reply.headers.get("Retry-After")) || 1;
      await new Promise((go) => { setTimeout(go, 1000 * seconds); });
    }
  }

  async function send(body) {
    if (busy >= TOGETHER) await new Promise((go) => { waiting.push(go); });
    busy += 1;
    try {
      const headers = { "Content-Type": "application/json" };
      const workspace = address.get("workspace");
      if (workspace) headers["X-MLFLOW-WORKSPACE"] = workspace;
      const reply = await patient(() => fetch(SQL, { method: "POST", headers, body: JSON.stringify(body) }));
      const text = await reply.text();
      if (reply.ok) return JSON.parse(text);
      let said = text;
      try { said = JSON.parse(text).message ?? text; } catch { /* no JSON: the text itself */ }
      throw new Error(reply.status === 403 ? "You may not read the system tables. An administrator grants that with the setting system_tables_readers." : said || `The server answered ${reply.status}.`);
    } finally {
      free();
    }
  }

  async function ask(name, lines) {
    if (report) return report.answers[name];
    const sql = statement(lines);
    return send({ sql, parameters: parametersOf(sql) });
  }

  const statement = (lines) => lines.join("\n").replaceAll("{filter}", () => book.filter.join("\n"));

  function values() {
    return {
      experiment: chosen.experiment ?? "", user: chosen.user ?? "",
      since: chosen.since || BEGINNING, until: dayAfter(chosen.until) ?? END,
      metric: chosen.metric ?? "", order: chosen.order, run: chosen.run ?? "", minutes: chosen.minutes,
    };
  }

  function dayAfter(day) {
    const time = Date.parse(`${day}T00:00:00Z`);
    return Number.isNaN(time) ? null : new Date(time + 86400000).toISOString().slice(0, 10);
  }

  function parametersOf(sql) {
    const all = values();
    return Object.fromEntries(Object.entries(all).filter(([name]) => new RegExp(`:${name}\\b`).test(sql)));
  }

  /** The statement with its parameters' values, to be run anywhere. */
  function complete(lines) {
    const all = values();
    return statement(lines).replace(/:([a-z]+)\b/g, (text, name) => (name in all ? literal(all[name]) : text));
  }

  const literal = (value) => `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

  // ------------------------------------------------------------------ cards

  function card(chart) {
    const section = html("section", { id: chart.name, ...(chart.wide ? { class: "wide" } : {}) });
    const drawing = html("div", { class: "drawing waiting" });
    section.append(html("h2", {}, chart.title), html("p", { class: "faint" }, chart.about));
    if (chart.settings) section.append(settings(chart));
    section.append(drawing);
    const numbers = html("details", { class: "numbers" });
    const scroll = html("div", { class: "scroll" });
    numbers.append(html("summary", {}, "Numbers"), scroll);
    const sql = html("details", { class: "sql" });
    const text = html("pre");
    const copy = html("button", { type: "button" }, "Copy");
    copy.addEventListener("click", () => copied(copy, text));
    sql.append(html("summary", {}, "SQL"), text, copy);
    section.append(numbers, sql);
    find("charts").append(section);
    cards.set(chart.name, { chart, section, drawing, scroll, text, answer: null });
  }

  async function copied(button, text) {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      // Where pages may not write to the clipboard the text is selected for the keyboard.
      getSelection().selectAllChildren(text);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  function settings(chart) {
    const group = html("div", { class: "settings" });
    const made = {
      metric: () => select("metric", "Metric"),
      run: () => select("run", "Run"),
      order: () => select("order", "Best is", [["lowest", "lowest"], ["highest", "highest"]]),
      minutes: () => {
        const label = html("label", {}, "Minutes of silence ");
        const input = html("input", { type: "number", min: "0", name: "minutes", value: chosen.minutes });
        input.disabled = Boolean(report);
        input.addEventListener("change", () => change("minutes", String(Math.max(0, Math.floor(Number(input.value) || 0)))));
        label.append(input);
        return label;
      },
    };
    group.append(...chart.settings.map((name) => made[name]()));
    return group;
  }

  function select(name, title, options = []) {
    const label = html("label", {}, `${title} `);
    const element = html("select", { name });
    fill(element, options, chosen[name]);
    element.disabled = Boolean(report);
    element.addEventListener("change", () => change(name, element.value));
    label.append(element);
    return label;
  }

  function fill(element, options, value, all = false) {
    const known = options.some(([one]) => one === value);
    const listed = value && !known ? [[value, value], ...options] : options;
    element.replaceChildren(...(all ? [new Option("All", "")] : []), ...listed.map(([one, label]) => new Option(label, one)));
    element.value = value ?? "";
  }

  function show(one, problem = null) {
    one.drawing.classList.remove("waiting");
    one.text.textContent = complete(one.chart.sql);
    if (problem) {
      one.answer = null;
      one.drawing.replaceChildren(html("p", { role: "alert" }, problem.message));
      one.scroll.replaceChildren();
      return;
    }
    one.scroll.replaceChildren(Drawing.table(one.answer));
    redraw(one);
  }

  function redraw(one) {
    if (one.answer) one.drawing.replaceChildren(...Drawing.draw(one.chart, one.answer, one.drawing.clientWidth));
  }

  // ------------------------------------------------------------------ the page

  /** Asks for what a change touches; for everything when nothing particular has changed. */
  async function load(changed) {
    turn += 1;
    const mine = turn;
    const touched = (lines) => !changed || changed in parametersOf(statement(lines));
    const waits = [...cards.values()].filter((one) => touched(one.chart.sql) || one.drawing.classList.contains("waiting"));
    waits.forEach((one) => one.drawing.classList.add("waiting"));
    if (!changed) await choices(mine);
    if (mine === turn && touched(book.choices.runs)) {
      const before = chosen.run;
      await runs(mine);
      if (chosen.run !== before) waits.push(...[...cards.values()].filter((one) => !waits.includes(one) && "run" in parametersOf(statement(one.chart.sql))));
    }
    if (mine !== turn) return;
    await Promise.all(waits.map(async (one) => {
      one.drawing.classList.add("waiting");
      try {
        const answer = await ask(one.chart.name, one.chart.sql);
        if (mine !== turn) return;
        one.answer = answer;
        show(one);
      } catch (error) {
        if (mine === turn) show(one, error);
      }
    }));
    if (mine === turn) document.body.dataset.state = "drawn";
  }

  async function choices(mine) {
    const answer = await ask("filters", book.choices.filters);
    if (mine !== turn) return;
    const of = (kind) => answer.rows.filter((row) => row[0] === kind).map((row) => [row[1], row[2]]);
    fill(find("experiment"), of("experiment"), chosen.experiment, true);
    fill(find("user"), of("user"), chosen.user, true);
    const metrics = of("metric");
    chosen.metric ??= metrics[0]?.[0];
    for (const element of document.querySelectorAll("select[name=metric]")) fill(element, metrics, chosen.metric);
  }

  /** The runs that have the metric; the newest is shown until one is chosen that is among them. */
  async function runs(mine) {
    const answer = await ask("runs", book.choices.runs);
    if (mine !== turn) return;
    const found = answer.rows.map((row) => [row[1], row[2]]);
    if (!report && !address.has("run") && !found.some(([one]) => one === chosen.run)) chosen.run = found[0]?.[0];
    for (const element of document.querySelectorAll("select[name=run]")) fill(element, found, chosen.run);
  }

  function change(name, value) {
    chosen[name] = value;
    if (name !== "run") address.delete("run");
    if (value) address.set(name, value);
    else address.delete(name);
    const text = address.toString();
    history.replaceState(null, "", text ? `?${text}` : location.pathname);
    for (const element of document.querySelectorAll(`[name=${name}]`)) element.value = value;
    begin(name);
  }

  async function begin(changed) {
    document.body.dataset.state = "waiting";
    find("problem").hidden = true;
    try {
      await load(changed);
    } catch (error) {
      for (const one of cards.values()) one.drawing.classList.remove("waiting");
      find("problem").textContent = error.message;
      find("problem").hidden = false;
      document.body.dataset.state = "failed";
    }
    find("moment").textContent = `as of ${report ? report.made : new Date().toISOString().slice(0, 19).replace("T", " ")} UTC`;
  }

  /** Publishes first where the server does that; elsewhere its schedule is waited for. */
  async function refresh() {
    find("refresh").disabled = true;
    try {
      if (!sessionStorage.getItem("scheduled")) await send({ sql: "SELECT 1", fresh: true });
    } catch {
      sessionStorage.setItem("scheduled", "true");
    }
    await begin();
    find("refresh").disabled = false;
  }

  function dress() {
    const kept = localStorage.getItem("mlflow-serverless.theme");
    if (kept) document.documentElement.dataset.theme = kept;
    find("theme").addEventListener("click", () => {
      const dark = document.documentElement.dataset.theme
        ? document.documentElement.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
      document.documentElement.dataset.theme = dark ? "light" : "dark";
      localStorage.setItem("mlflow-serverless.theme", document.documentElement.dataset.theme);
    });
  }

  async function main() {
    book = report ? report.book : await (await fetch("/static-files/dashboards/charts.json")).json();
    book.charts.forEach(card);
    for (const name of ["experiment", "user", "since", "until"]) {
      const element = find(name);
      element.value = chosen[name] ?? "";
      element.disabled = Boolean(report);
      element.addEventListener("change", () => change(name, element.value));
    }
    if (report) find("refresh").hidden = true;
    find("filters").addEventListener("submit", (event) => event.preventDefault());
    find("refresh").addEventListener("click", refresh);
    let width = 0;
    new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width === width) return;
      width = contentRect.width;
      requestAnimationFrame(() => cards.forEach(redraw));
    }).observe(find("charts"));
    await begin();
  }

  try { dress(); } catch { /* a page from a file may have no storage */ }
  main();
})();
