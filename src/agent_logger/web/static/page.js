// What every page does: theme, keys, search as you type, copying, live lists. Without it the pages still work.
import { startSearch } from "./search.js";
import { startKeys } from "./keys.js";
import { startLists, startParts } from "./lists.js";
import { startCharts } from "./charts.js";
import { startPalette } from "./palette.js";

const root = document.documentElement;
const themeCookie = "agent_logger_theme";

export function switchTheme() {
  const dark = root.dataset.theme === "auto"
    ? matchMedia("(prefers-color-scheme: dark)").matches
    : root.dataset.theme === "dark";
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `${themeCookie}=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
}

async function post(button) {
  const status = button.parentElement.querySelector("[data-status]");
  button.disabled = true;
  if (status) status.textContent = "Recording …";
  const answer = await fetch(button.dataset.post, { method: "POST", headers: { "x-agent-logger": "1" } });
  if (answer.ok) location.assign(button.dataset.then || location.href);
  else {
    if (status) status.textContent = `The request failed (status ${answer.status}).`;
    button.disabled = false;
  }
}

async function copy(button) {
  let text = button.dataset.copy;
  if (button.dataset.copyFrom) {
    const answer = await fetch(button.dataset.copyFrom);
    if (!answer.ok) return;
    text = await answer.text();
  }
  await navigator.clipboard.writeText(text);
  const was = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = was; }, 1200);
}

document.addEventListener("click", event => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("themeSwitch" in button.dataset) switchTheme();
  if ("help" in button.dataset) document.getElementById("help").showModal();
  if (button.dataset.copy !== undefined || button.dataset.copyFrom) copy(button);
  if (button.dataset.post) post(button);
});

// What lies over the page closes when one looks elsewhere.
const panels = "details.more-filters[open], details.peek[open], details.menu[open]";
document.addEventListener("click", event => {
  for (const panel of document.querySelectorAll(panels)) if (!panel.contains(event.target)) panel.open = false;
});
document.addEventListener("keydown", event => {
  if (event.key !== "Escape") return;
  for (const panel of document.querySelectorAll(panels)) { panel.open = false; panel.querySelector("summary").focus(); }
});

document.addEventListener("change", event => { event.target.form?.matches("[data-submit]") && event.target.form.requestSubmit(); });

if (document.querySelector(".top nav")) { // else nobody has signed in: there is nothing to search or go to
  startSearch();
  startKeys(switchTheme);
  startPalette();
}
startLists();
startParts();
startCharts();
