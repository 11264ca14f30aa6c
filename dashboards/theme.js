// Dark or light theme: follows the browser until the user presses the button.
"use strict";

const Theme = (() => {
  const KEPT = "mlflow-serverless.theme";
  const DARK = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;

  function dress(changed) {
    try { root.dataset.theme = localStorage.getItem(KEPT) ?? ""; } catch { /* a page from a file may have no storage */ }
    DARK.addEventListener("change", changed);
    document.getElementById("theme").addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : DARK.matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem(KEPT, root.dataset.theme); } catch { /* as above */ }
      changed();
    });
  }

  return { dress };
})();
