// A list of sessions that stays true while sessions go on, and filters that need no button.
import { listen } from "./events.js";
import { say } from "./words.js";

export function startLists() {
  const rows = document.querySelector("[data-rows]");
  const filters = document.querySelector("[data-filters]");
  if (filters) {
    const { period, since, until } = filters.elements;
    filters.addEventListener("change", event => {
      if (event.target === since || event.target === until) period.value = "any";
      if (event.target === period) since.value = until.value = "";
      filters.requestSubmit();
    });
    filters.addEventListener("submit", event => {
      event.preventDefault(); // what is not said stays out of the address
      const usual = { period: "any", order: "active" };
      const said = [...new FormData(filters)].filter(([name, value]) => value && value !== usual[name]);
      location.assign("/sessions" + (said.length ? `?${new URLSearchParams(said)}` : ""));
    });
  }
  const live = document.querySelector("[data-live]");
  if (!live) return startHead();
  let queue = Promise.resolve();
  const then = step => { queue = queue.then(step).catch(() => {}); };
  listen(live.dataset.events, { // since the page was made
    changed: () => then(() => (rows ? renewRows(rows) : renewParts())),
    words: event => then(() => {
      const { session, html } = JSON.parse(event.data);
      const place = document.querySelector(`[data-words="${CSS.escape(session)}"]`);
      if (place) say(place, html);
    }),
  });
}

// Beside the conversation, which renews its own, the head of a session says whether the session is live.
function startHead() {
  const head = document.querySelector("[data-head]");
  if (!head || document.querySelector("[data-session]") || !head.querySelector(".live-mark")) return;
  const tab = location.pathname.split("/")[3] ?? "";
  const renew = async () => {
    const answer = await fetch(`${head.dataset.head}/head?tab=${tab}`);
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("session-head");
    document.getElementById("session-head").replaceWith(fresh);
  };
  listen(`${head.dataset.head}/events`, { changed: renew, live: renew, ended: renew });
}

async function renewRows(rows) {
  const url = new URL(rows.dataset.rows, location);
  url.searchParams.set("part", "1");
  const answer = await fetch(url);
  if (!answer.ok) return;
  const at = rows.querySelector(".at a")?.getAttribute("href");
  const open = rows.querySelector(".peek[open]")?.closest("tr").querySelector("a").getAttribute("href");
  rows.innerHTML = await answer.text(); // made and escaped by the server
  if (at) rows.querySelector(`a[href="${CSS.escape(at)}"]`)?.closest("tr").classList.add("at");
  const peek = open && rows.querySelector(`a[href="${CSS.escape(open)}"]`)?.closest("tr").querySelector(".peek");
  if (peek) peek.open = true;
}

async function renewParts() {
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  if (document.querySelector("[data-whole]")) return location.reload();
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const parts = fresh.querySelectorAll("[data-live]");
  for (const place of fresh.querySelectorAll("[data-words]")) {
    const old = document.querySelector(`[data-words="${CSS.escape(place.dataset.words)}"]`);
    if (old) place.replaceChildren(...old.childNodes);
  }
  document.querySelectorAll("[data-live]").forEach((old, number) => { if (parts[number]) old.replaceWith(parts[number]); });
}

// ---- a part that is not ready yet
export function startParts() {
  if (document.querySelector("[data-reload]")) setTimeout(() => location.reload(), 1000);
  const part = document.querySelector("[data-part][data-again]");
  if (!part) return;
  const timer = setInterval(async () => {
    const answer = await fetch(part.dataset.part);
    if (!answer.ok) return;
    part.innerHTML = await answer.text(); // made and escaped by the server
    if (!part.querySelector("[data-running]")) clearInterval(timer);
  }, 1000);
}
