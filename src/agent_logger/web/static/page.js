// What every page does: theme, keys, search as you type, copying, live lists. Without it the pages still work.
import { startSearch } from "./search.js";
import { startKeys } from "./keys.js";
import { startLists, startParts } from "./lists.js";

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
  const told = button.parentElement.querySelector("[data-told]");
  button.disabled = true;
  if (told) told.textContent = "working …";
  const answer = await fetch(button.dataset.post, { method: "POST", headers: { "x-agent-logger": "1" } });
  if (answer.ok) location.assign(button.dataset.then || location.href);
  else {
    if (told) told.textContent = `That did not work (${answer.status}).`;
    button.disabled = false;
  }
}

async function copy(button) {
  await navigator.clipboard.writeText(button.dataset.copy);
  const was = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = was; }, 1200);
}

document.addEventListener("click", event => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("themeSwitch" in button.dataset) switchTheme();
  if ("help" in button.dataset) document.getElementById("help").showModal();
  if (button.dataset.copy !== undefined) copy(button);
  if (button.dataset.post) post(button);
});

startSearch();
startKeys(switchTheme);
startLists();
startParts();
