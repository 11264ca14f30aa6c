// Adds a bar to MLflow's page with links to the pages that MLflow does not know; on a server without runs also the
// commands that log the first one. The bar takes room above MLflow and covers none of it; hidden, it stays hidden.
"use strict";

(() => {
  const HIDDEN = "mlflow-serverless.bar.hidden";
  const HAS_RUNS = "mlflow-serverless.bar.has-runs";
  const LINKS = [
    ["/dashboards", "Dashboards"],
    ["/dashboards/start", "First commands"],
    ["/dashboards/trash", "Trash"],
  ];
  const COMMANDS = [
    "pip install mlflow-skinny",
    `export MLFLOW_TRACKING_URI=${location.origin}`,
    "python -c \"import mlflow; mlflow.start_run(); mlflow.log_metric('loss', 0.5)\"",
  ];
  const API = "ajax-api/2.0/mlflow";

  function isNoted(name) {
    try { return localStorage.getItem(name) === "true"; } catch { return false; } // a browser without storage
  }

  function note(name) {
    try { localStorage.setItem(name, "true"); } catch { /* then it holds until the page is loaded again */ }
  }

  function element(name, text, parent) {
    const made = document.createElement(name);
    made.textContent = text;
    parent.append(made);
    return made;
  }

  function button(text, parent, pressed) {
    const made = element("button", text, parent);
    made.type = "button";
    made.addEventListener("click", pressed);
    return made;
  }

  function hide(bar) {
    note(HIDDEN);
    bar.remove();
    delete document.body.dataset.serverlessBar;
  }

  // Resolves to true if the experiment Default is the only one that the user sees and has never had a run. Rejects if
  // the server refuses or fails; then nobody is greeted.
  async function isFresh() {
    const listed = await fetch(`${API}/experiments/search?max_results=2&view_type=ALL`);
    if (!listed.ok) throw new Error("The server refuses to list experiments.");
    const { experiments = [] } = await listed.json();
    if (experiments.length !== 1 || experiments[0].experiment_id !== "0") return false;
    const searched = await fetch(`${API}/runs/search`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ experiment_ids: ["0"], max_results: 1, run_view_type: "ALL" }),
    });
    if (!searched.ok) throw new Error("The server refuses to search runs.");
    return !(await searched.json()).runs?.length;
  }

  function greet(bar) {
    const greeting = element("div", "", bar);
    greeting.className = "greeting";
    element("p", "This server has no runs yet. These commands log the first one:", greeting);
    const copied = element("p", "", bar);
    copied.setAttribute("role", "status");
    for (const command of COMMANDS) {
      const line = element("p", "", greeting);
      const code = element("code", command, line);
      button("Copy", line, async () => {
        try {
          await navigator.clipboard.writeText(command);
          copied.textContent = "Copied.";
        } catch { // browsers have no clipboard for pages by HTTP of other machines
          getSelection().selectAllChildren(code);
          copied.textContent = "Selected: copy it with the keyboard.";
        }
      });
    }
  }

  async function show() {
    const bar = document.createElement("nav");
    bar.id = "serverless-bar";
    bar.setAttribute("aria-label", "Pages of this server");
    for (const [address, name] of LINKS) element("a", name, bar).href = address;
    button("Hide", bar, () => hide(bar)).title = "Hide this bar for good in this browser";
    document.body.prepend(bar);
    document.body.dataset.serverlessBar = "shown";
    try {
      // A server that has runs is not asked again: that would be a request for each page.
      if (!isNoted(HAS_RUNS)) {
        if (await isFresh()) greet(bar);
        else note(HAS_RUNS);
      }
    } catch { /* no answer: no greeting, and the next page asks again */ }
    bar.dataset.state = "drawn";
  }

  if (!isNoted(HIDDEN) && window.top === window) show();
})();
