// Shows the commands that log the first run to this server, and copies them.
"use strict";

(() => {
  const find = (id) => document.getElementById(id);
  find("server").textContent = `export MLFLOW_TRACKING_URI=${location.origin}`;
  for (const line of document.querySelectorAll(".command")) {
    line.querySelector("button").addEventListener("click", async () => {
      const code = line.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        find("copied").textContent = "Copied.";
      } catch { // browsers have no clipboard for pages by HTTP of other machines
        getSelection().selectAllChildren(code);
        find("copied").textContent = "Selected: copy it with the keyboard.";
      }
    });
  }
  Theme.dress(() => {});
  document.body.dataset.state = "drawn";
})();
