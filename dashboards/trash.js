// Lists what is deleted in an experiment, restores it, or removes it for good after a dry run; and
// moves runs to another experiment. The server decides what the user may do.
"use strict";

(() => {
  const TRASH = "/ajax-api/3.0/mlflow-serverless/trash";
  const EXPERIMENTS = "/ajax-api/2.0/mlflow/experiments/search";
  const MOVE = "/ajax-api/3.0/mlflow-serverless/runs/move";
  const PAGE = 1000;
  const MOVED_TOGETHER = 20;
  const KINDS = { experiment: "experiments", run: "runs", logged_model: "logged models" };
  const { html, time } = Format;
  const find = (id) => document.getElementById(id);
  const asked = new URLSearchParams(location.search);
  const workspace = asked.get("workspace");
  let next = ""; // the token of the next page of the list

  const boxes = () => [...document.querySelectorAll("#list input")];
  const call = (method, path, body) => Asking.call(method, path, body, workspace);

  async function experiments(view) {
    const found = [];
    for (let token = ""; ;) {
      const answer = await call("POST", EXPERIMENTS, { view_type: view, max_results: PAGE, ...(token ? { page_token: token } : {}) });
      found.push(...(answer.experiments ?? []));
      token = answer.next_page_token ?? "";
      if (!token) return found;
    }
  }

  /** Lists the experiments, the deleted ones first; keeps the chosen one. */
  async function listExperiments() {
    const chosen = find("experiment").value || asked.get("experiment");
    const [deleted, active] = [await experiments("DELETED_ONLY"), await experiments("ACTIVE_ONLY")];
    const option = (one, mark) => html("option", { value: one.experiment_id }, `${one.name}${mark}`);
    find("experiment").replaceChildren(...deleted.map((one) => option(one, " (deleted)")), ...active.map((one) => option(one, "")));
    if ([...deleted, ...active].some((one) => one.experiment_id === chosen)) find("experiment").value = chosen;
    const target = find("target").value;
    find("target").replaceChildren(...active.map((one) => option(one, "")));
    if (active.some((one) => one.experiment_id === target)) find("target").value = target;
  }

  function row(item) {
    const box = html("input", { type: "checkbox", "aria-label": `${item.kind} ${item.name || item.id}`, autocomplete: "off" });
    [box.dataset.kind, box.dataset.id] = [item.kind, item.id];
    box.addEventListener("change", choose);
    const texts = [item.kind, item.name ?? "", item.id, item.deleted_time === undefined ? "" : time(item.deleted_time)];
    return html("tr", {}, html("td", {}, box), ...texts.map((text) => html("td", {}, text)));
  }

  async function listTrash(token) {
    const query = new URLSearchParams({ experiment_id: find("experiment").value, ...(token ? { page_token: token } : {}) });
    const answer = find("experiment").value ? await call("GET", `${TRASH}?${query}`) : { items: [] };
    if (!token) find("list").replaceChildren();
    find("list").append(...answer.items.map(row));
    next = answer.next_page_token ?? "";
    find("more").hidden = !next;
    find("none").hidden = boxes().length > 0;
    find("all").checked = false;
  }

  function choose() {
    const some = boxes().some((box) => box.checked);
    find("restore").disabled = find("remove").disabled = !some;
  }

  /** The request for what is chosen. A deleted experiment goes as a whole, which is said by no ids. */
  function chosen() {
    const of = (kind) => boxes().filter((box) => box.checked && box.dataset.kind === kind).map((box) => box.dataset.id);
    const [runs, models] = [of("run"), of("logged_model")];
    return { experiment_id: find("experiment").value, ...(runs.length ? { run_ids: runs } : {}), ...(models.length ? { model_ids: models } : {}) };
  }

  const counted = (items) => Object.entries(KINDS)
    .map(([kind, name]) => [items.filter((item) => item.kind === kind).length, name])
    .filter(([count]) => count)
    .map(([count, name]) => `${count} ${name}`)
    .join(", ") || "nothing";

  /** Does something, and lists again, also after a failure. */
  async function act(work, relist = true) {
    let said = "";
    document.body.dataset.state = "waiting";
    find("problem").hidden = true;
    for (const fields of document.querySelectorAll("fieldset")) fields.disabled = true;
    try {
      await work();
    } catch (error) {
      said = error.message;
    }
    try {
      if (relist) {
        await listExperiments();
        await listTrash();
      }
    } catch (error) {
      said ||= error.message;
    }
    for (const fields of document.querySelectorAll("fieldset")) fields.disabled = false;
    choose();
    find("problem").textContent = said;
    find("problem").hidden = !said;
    document.body.dataset.state = said ? "failed" : "drawn";
  }

  async function restore() {
    const { items } = await call("POST", `${TRASH}/restore`, chosen());
    find("done").textContent = `Restored: ${counted(items)}.`;
  }

  /** Asks the server what would be removed, and the user whether that is meant. */
  async function ask() {
    const request = chosen();
    const { items } = await call("POST", `${TRASH}/purge`, { ...request, dry_run: true });
    find("asked").textContent = `Remove ${counted(items)} for good?`;
    find("named").replaceChildren(...items.map((item) => html("li", {}, `${item.kind} ${item.name ?? ""} ${item.id}`)));
    find("sure").onclick = () => {
      find("question").close();
      act(() => remove(request));
    };
    find("question").showModal();
  }

  /** The server works for some seconds at a time, and says whether it has finished. */
  async function remove(request) {
    const [removed, kept] = [[], []];
    for (let finished = false; !finished;) {
      const answer = await call("POST", `${TRASH}/purge`, { ...request, dry_run: false });
      removed.push(...answer.items);
      kept.push(...answer.files_kept);
      finished = answer.finished;
      find("done").textContent = `Removed: ${counted(removed)}.${kept.length ? ` Files of ${kept.length} stay, because something else may refer to them.` : ""}`;
    }
  }

  /** Moves the named runs, a few in each request. The server moves a request's runs one by one. */
  async function move() {
    const ids = [...new Set(find("run-ids").value.split(/[\s,]+/).filter(Boolean))];
    find("moved").textContent = "";
    for (let at = 0; at < ids.length; at += MOVED_TOGETHER) {
      const run_ids = ids.slice(at, at + MOVED_TOGETHER);
      await call("POST", MOVE, { run_ids, experiment_id: find("target").value });
      find("moved").textContent = `Moved: ${at + run_ids.length} of ${ids.length} runs.`;
    }
  }

  find("move").addEventListener("click", () => act(move));
  find("experiment").addEventListener("change", () => {
    find("done").textContent = "";
    act(() => listTrash(), false);
  });
  find("all").addEventListener("change", () => {
    for (const box of boxes()) box.checked = find("all").checked;
    choose();
  });
  find("more").addEventListener("click", () => act(() => listTrash(next), false));
  find("restore").addEventListener("click", () => act(restore));
  find("remove").addEventListener("click", () => act(ask, false));
  find("cancel").addEventListener("click", () => find("question").close());
  Theme.dress(() => {});
  act(async () => {});
})();
