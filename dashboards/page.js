// The dashboards page: reads the filters, runs the queries and draws the cards. The filters are kept in
// the address, so that a user can share them as a link.
"use strict";

(() => {
  const CHOSEN = ["experiment", "user", "window", "since", "until", "metric", "order", "run", "minutes"];
  const OF_TIME = ["window", "since", "until"];
  const { html, shown, number, time } = Format;

  const find = (id) => document.getElementById(id);
  const embedded = find("report");
  const report = embedded ? JSON.parse(embedded.textContent) : null;
  const address = new URLSearchParams(report ? "" : location.search);
  const chosen = { order: "lowest", minutes: "60", ...Object.fromEntries(CHOSEN.filter((one) => address.has(one)).map((one) => [one, address.get(one)])), ...report?.chosen };
  const site = { server: report?.server ?? "", workspaces: Boolean(report) && inWorkspaces(report.answers) };
  const cards = new Map();
  let book = null;
  let span = null;
  let turn = 0; // answers to what was asked before are dropped

  /** Whether rows of a report are of other workspaces than the default one. */
  function inWorkspaces(answers) {
    return Object.values(answers).some((answer) => {
      const at = Tables.places(answer).workspace_id;
      return at !== undefined && answer.rows.some((row) => row[at] !== "default");
    });
  }

  const moment = () => (report ? Date.parse(`${report.made.replace(" ", "T")}Z`) : Date.now());

  function values() {
    return {
      experiment: chosen.experiment ?? "", user: chosen.user ?? "",
      since: span?.since ?? Window.BEGINNING, until: span?.until ?? Window.END,
      metric: chosen.metric ?? "", order: chosen.order, run: chosen.run ?? "", minutes: chosen.minutes,
    };
  }

  const statement = (lines) => Asking.statement(lines, book.filter, span?.grain ?? "day");

  async function ask(name, lines) {
    if (report) return report.answers[name];
    const sql = statement(lines);
    return Asking.query({ sql, parameters: Asking.parameters(sql, values()) }, address.get("workspace"));
  }

  // ------------------------------------------------------------------ queries

  /** Runs the queries that a change affects, or all queries without a particular change. */
  async function load(changed) {
    turn += 1;
    const mine = turn;
    const names = OF_TIME.includes(changed) ? "since" : changed;
    const touched = (lines) => !changed || new RegExp(`:${names}\\b`).test(statement(lines));
    const waits = [...cards.values()].filter((card) => touched(card.chart.sql) || card.drawing.classList.contains("waiting"));
    waits.forEach((card) => card.drawing.classList.add("waiting"));
    if (!changed) await choices();
    if (touched(book.choices.span) || OF_TIME.includes(changed)) {
      const answer = await ask("span", book.choices.span);
      if (mine !== turn) return;
      span = Window.of(chosen, answer, moment(), report?.grain);
    }
    if (touched(book.choices.runs)) {
      const before = chosen.run;
      await runs(mine);
      if (mine !== turn) return;
      if (chosen.run !== before) waits.push(...[...cards.values()].filter((card) => !waits.includes(card) && /:run\b/.test(statement(card.chart.sql))));
    }
    await Promise.all([...(touched(book.choices.totals) ? [totals(mine)] : []), ...waits.map((card) => answered(card, mine))]);
    if (mine === turn) document.body.dataset.state = "drawn";
  }

  async function answered(card, mine) {
    card.drawing.classList.add("waiting");
    const sql = Asking.complete(statement(card.chart.sql), values());
    try {
      const answer = await ask(card.chart.name, card.chart.sql);
      if (mine !== turn) return;
      Cards.show(card, sql, answer);
      Cards.draw(card, span, site);
    } catch (error) {
      if (mine === turn) Cards.show(card, sql, null, error);
    }
  }

  async function choices() {
    const answer = await ask("filters", book.choices.filters);
    const of = (kind) => answer.rows.filter((row) => row[0] === kind).map((row) => [row[1], row[2]]);
    Cards.fill(find("experiment"), of("experiment"), chosen.experiment, true);
    Cards.fill(find("user"), of("user"), chosen.user, true);
    const metrics = of("metric");
    chosen.metric ??= metrics[0]?.[0];
    for (const element of document.querySelectorAll("select[name=metric]")) Cards.fill(element, metrics, chosen.metric);
  }

  /** Lists the runs that have the metric. Selects the newest unless the chosen run is among them. */
  async function runs(mine) {
    const answer = await ask("runs", book.choices.runs);
    if (mine !== turn) return;
    const at = Tables.places(answer);
    const found = answer.rows.map((row) => [row[at.value], row[at.label]]);
    if (!report && !address.has("run") && !found.some(([one]) => one === chosen.run)) chosen.run = found[0]?.[0];
    for (const element of document.querySelectorAll("select[name=run]")) Cards.fill(element, found, chosen.run);
    const row = answer.rows.find((one) => one[at.value] === chosen.run);
    const link = row && html("a", { href: Tables.address(site, row[at.experiment_id], row[at.value], row[at.workspace_id]), class: "open" }, "Open in MLflow");
    document.querySelectorAll(".open").forEach((one) => one.remove());
    if (link) document.querySelector("select[name=run]")?.closest(".settings").append(link);
  }

  // ------------------------------------------------------------------ above the charts

  async function totals(mine) {
    const answer = await ask("totals", book.choices.totals);
    if (mine !== turn) return;
    const at = Tables.places(answer);
    const of = (name) => number(answer.rows[0]?.[at[name]] ?? 0);
    const rate = of("ended") ? shown(of("failed") / of("ended"), "ratio") : "–";
    const median = answer.rows[0]?.[at.median];
    find("totals").replaceChildren(...[
      ["Runs", shown(of("runs"), "count")],
      ["Running", shown(of("running"), "count")],
      ["Failed or killed", rate, `${shown(of("failed"), "count")} of ${shown(of("ended"), "count")} ended`],
      ["Median length", median === null || median === undefined ? "–" : shown(number(median), "seconds")],
      ["Experiments", shown(of("experiments"), "count")],
      ["Users", shown(of("people"), "count")],
    ].map(([name, value, more]) => html("div", {}, html("dt", {}, name), html("dd", {}, value), more ? html("dd", { class: "faint" }, more) : null)));
    told(of("runs"));
  }

  /** Shows the range of time and the outlying runs. */
  function told(count) {
    const day = (at) => time(at, "day");
    const shownTime = span.grain === "hour" ? [time(span.from), time(span.to)] : [day(span.from), day(span.to - 1)];
    const parts = [`${shownTime.join(" to ")} (UTC), a point for each ${span.grain}.`];
    const apart = span.apart.reduce((sum, one) => sum + one.runs, 0);
    const times = span.apart.flatMap(({ from, to }) => (day(from) === day(to) ? [day(from)] : [`${day(from)} to ${day(to)}`])).join(", ");
    const one = apart === 1;
    if (apart && span.name === "all") parts.push(`${one ? "1 run starts" : `${apart} runs start`} far from all others (${times}): the charts over time leave ${one ? "it" : "them"} out, all else counts ${one ? "it" : "them"}.`);
    else if (count < span.total) parts.push(`${shown(count, "count")} of ${shown(span.total, "count")} runs started then${apart ? `; ${apart} of the others far from all others (${times})` : ""}.`);
    find("told").textContent = parts.join(" ");
    for (const element of document.querySelectorAll("#presets button")) element.setAttribute("aria-pressed", String(element.value === span.name));
  }

  function change(name, value) {
    if (name === "window") ["since", "until"].forEach((one) => set(one, ""));
    if (name === "since" || name === "until") set("window", "");
    if (name !== "run") address.delete("run");
    set(name, value);
    const text = address.toString();
    history.replaceState(null, "", text ? `?${text}` : location.pathname);
    begin(name);
  }

  function set(name, value) {
    chosen[name] = value;
    if (value) address.set(name, value);
    else address.delete(name);
    for (const element of document.querySelectorAll(`[name=${name}]`)) element.value = value;
  }

  async function begin(changed) {
    document.body.dataset.state = "waiting";
    find("problem").hidden = true;
    try {
      await load(changed);
    } catch (error) {
      for (const card of cards.values()) card.drawing.classList.remove("waiting");
      find("problem").textContent = error.message;
      find("problem").hidden = false;
      document.body.dataset.state = "failed";
    }
    find("moment").textContent = `as of ${report ? report.made : new Date().toISOString().slice(0, 19).replace("T", " ")} UTC`;
  }

  /** Publishes first if the server offers it. Otherwise new rows appear on the publisher's schedule. */
  async function refresh() {
    find("refresh").disabled = true;
    try {
      if (!sessionStorage.getItem("scheduled")) await Asking.query({ sql: "SELECT 1", fresh: true }, address.get("workspace"));
    } catch {
      sessionStorage.setItem("scheduled", "true");
    }
    await begin();
    find("refresh").disabled = false;
  }

  function redraw() {
    if (span) cards.forEach((card) => Cards.draw(card, span, site));
  }

  async function main() {
    Theme.dress(redraw);
    book = report ? report.book : await (await fetch("/static-files/dashboards/charts.json")).json();
    for (const chart of book.charts) {
      const card = Cards.make(chart, chosen, Boolean(report), change);
      cards.set(chart.name, card);
      find("charts").append(card.section);
    }
    for (const name of ["experiment", "user", "since", "until"]) {
      const element = find(name);
      element.value = chosen[name] ?? "";
      element.disabled = Boolean(report);
      element.addEventListener("change", () => change(name, element.value));
    }
    for (const element of document.querySelectorAll("#presets button")) {
      element.disabled = Boolean(report);
      element.addEventListener("click", () => change("window", element.value));
    }
    find("filters").addEventListener("submit", (event) => event.preventDefault());
    find("refresh").addEventListener("click", refresh);
    find("refresh").hidden = Boolean(report);
    const resized = new ResizeObserver((entries) => requestAnimationFrame(() => {
      for (const { target } of entries) if (span) Cards.draw(cards.get(target.parentElement.id), span, site);
    }));
    cards.forEach((card) => { if (card.chart.draw !== "list") resized.observe(card.drawing); });
    if (!report) site.workspaces = await Asking.call("GET", "/ajax-api/3.0/mlflow/server-info").then((info) => info.workspaces_enabled, () => false);
    await begin();
  }

  main();
})();
