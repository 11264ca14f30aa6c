// Builds the card of a chart: settings, drawing, table of numbers, SQL.
"use strict";

const Cards = (() => {
  const { html } = Format;

  function make(chart, chosen, fixed, change) {
    const section = html("section", { id: chart.name, class: `${chart.size ?? "third"}${chart.tone ? ` ${chart.tone}` : ""}` });
    const drawing = html("div", { class: `drawing waiting${chart.draw === "list" ? " scroll" : ""}`, ...(chart.draw === "list" ? { tabindex: "0", role: "group", "aria-label": chart.title } : {}) });
    const note = html("p", { class: "note faint" });
    const dialog = html("dialog", { "aria-label": `${chart.title}: numbers and SQL` });
    const scroll = html("div", { class: "scroll" });
    const text = html("pre");
    const [copy, close] = [button("Copy SQL"), button("Close")];
    const [numbers, csv] = [button("Numbers and SQL"), button("CSV")];
    const title = html("header", {}, html("h2", {}, chart.title), html("div", { class: "actions" }, numbers, csv));
    section.append(title, html("p", { class: "about faint" }, chart.about));
    if (chart.settings) section.append(settings(chart, chosen, fixed, change));
    section.append(drawing, note, dialog);
    dialog.append(html("header", {}, html("h2", {}, chart.title), html("div", { class: "actions" }, copy, close)), html("div", { class: "numbers" }, scroll), text);
    const card = { chart, section, drawing, note, scroll, text, answer: null };
    numbers.addEventListener("click", () => dialog.showModal());
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    copy.addEventListener("click", () => copied(copy, text));
    csv.addEventListener("click", () => { if (card.answer) save(card); });
    return card;
  }

  const button = (name) => html("button", { type: "button" }, name);

  function save({ chart, answer }) {
    const url = URL.createObjectURL(new Blob([Tables.csv(answer)], { type: "text/csv;charset=utf-8" }));
    html("a", { href: url, download: `mlflow-${chart.name}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }

  async function copied(element, text) {
    try {
      await navigator.clipboard.writeText(text.textContent);
      element.textContent = "Copied";
    } catch {
      // Where pages may not write to the clipboard the text is selected for the keyboard.
      getSelection().selectAllChildren(text);
      element.textContent = "Selected";
    }
    setTimeout(() => { element.textContent = "Copy SQL"; }, 1500);
  }

  function settings(chart, chosen, fixed, change) {
    const group = html("div", { class: "settings" });
    const select = (name, title, options = []) => {
      const element = html("select", { name });
      fill(element, options, chosen[name]);
      element.addEventListener("change", () => change(name, element.value));
      return html("label", {}, `${title} `, element);
    };
    const made = {
      metric: () => select("metric", "Metric"),
      run: () => select("run", "Run"),
      sessions: () => select("sessions", "Greatest by", [["turns", "turns"], ["cost", "cost"], ["time", "time"]]),
      version: () => select("version", "Version is", [["model", "the logged model"], ["prompt", "a version of a prompt"], ["commit", "the git commit"]]),
      order: () => select("order", "Best is", [["lowest", "lowest"], ["highest", "highest"]]),
      minutes: () => {
        const input = html("input", { type: "number", min: "0", name: "minutes", value: chosen.minutes });
        input.addEventListener("change", () => change("minutes", String(Math.max(0, Math.floor(Number(input.value) || 0)))));
        return html("label", {}, "Minutes of silence ", input);
      },
    };
    group.append(...chart.settings.map((name) => made[name]()));
    for (const element of group.querySelectorAll("select, input")) element.disabled = fixed;
    return group;
  }

  function fill(element, options, value, all = false) {
    const known = options.some(([one]) => one === value);
    const listed = value && !known ? [[value, value], ...options] : options;
    element.replaceChildren(...(all ? [new Option("All", "")] : []), ...listed.map(([one, label]) => new Option(Format.visible(label || one), one)));
    element.value = value ?? "";
  }

  /** Shows an answer, or why there is none. */
  function show(card, sql, answer, problem = null) {
    card.drawing.classList.remove("waiting");
    card.text.textContent = sql;
    card.answer = answer;
    card.drawing.classList.toggle("empty", Boolean(problem));
    card.scroll.replaceChildren(...(answer ? [Tables.whole(answer)] : []));
    if (problem) {
      Charts.clear(card.drawing);
      card.note.textContent = "";
      card.drawing.replaceChildren(html("p", { role: "alert" }, problem.message));
    }
  }

  function draw(card, span, site) {
    const { chart, answer, drawing } = card;
    if (!answer) return;
    const notes = answer.truncated ? ["There are more rows than are shown."] : [];
    const none = empty(chart, answer);
    drawing.classList.toggle("empty", Boolean(none));
    if (none || chart.draw === "list" || !window.echarts) {
      Charts.clear(drawing);
      const said = none ? none : "The chart library is not installed: `make setup` or `make local` brings it. The numbers are here:";
      drawing.replaceChildren(...(none || chart.draw !== "list" ? [html("p", { class: "none" }, said)] : []), ...(none ? [] : [chart.draw === "list" ? Tables.list(chart, answer, site) : Tables.whole(answer)]));
    } else {
      if (!echarts.getInstanceByDom(drawing)) drawing.replaceChildren();
      Charts.draw(chart, answer, drawing, span);
      const beside = chart.x === "time" ? Charts.beside(chart, answer, span) : 0;
      if (beside) notes.push(`Not drawn: ${beside} ${beside === 1 ? "row" : "rows"} apart in time. All are in the numbers and the CSV.`);
    }
    card.note.textContent = notes.join(" ");
  }

  /** What is said in place of a drawing if there is nothing to draw: no rows, no finite number or nothing but zeros. */
  function empty(chart, answer) {
    if (chart.draw === "list") return answer.rows.length ? "" : chart.empty;
    const at = Tables.places(answer);
    const names = chart.by ? [chart.value] : [...chart.series, ...(chart.over ?? [])];
    const numbers = answer.rows.flatMap((row) => names.map((name) => Format.number(row[at[name]]))).filter(Format.finite);
    if (!numbers.length && (chart.draw === "lines" || !answer.rows.length)) return chart.empty;
    return chart.zero && numbers.every((value) => value === 0) ? chart.zero : "";
  }

  return { make, fill, show, draw };
})();
