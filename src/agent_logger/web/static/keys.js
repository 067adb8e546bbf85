// Moving by keyboard through whatever the page lists: rows, results, turns.
const places = { h: "/", s: "/sessions", l: "/live" };

const visible = element => element.checkVisibility?.() ?? element.offsetParent !== null;
const listed = () => [...document.querySelectorAll("[data-keys] > *")].filter(visible);
const turns = () => [...document.querySelectorAll(".turn, .exchange > header")].filter(visible);

function move(step) {
  const rows = listed();
  if (rows.length) return moveRow(rows, step);
  moveTo(turns(), step);
}

function moveRow(rows, step) {
  const now = rows.findIndex(row => row.classList.contains("at"));
  rows[now]?.classList.remove("at");
  const row = rows[Math.min(Math.max(now + step, 0), rows.length - 1)];
  row.classList.add("at");
  row.scrollIntoView({ block: "nearest" });
}

export function moveTo(elements, step) {
  const line = 130; // below what stays at the top
  const tops = elements.map(element => element.getBoundingClientRect().top);
  const next = step > 0
    ? elements.find((_, i) => tops[i] > line)
    : elements.findLast((_, i) => tops[i] < line - 25);
  next?.scrollIntoView({ block: "start" });
}

function foldAll() {
  const all = [...document.querySelectorAll("main details")].filter(it => {
    const box = it.getBoundingClientRect();
    return box.bottom > 0 && box.top < innerHeight;
  });
  const open = !all.every(it => it.open);
  for (const it of all) it.open = open;
}

export function startKeys(switchTheme) {
  let waiting = false; // for the second key of g h, g s
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, dialog")) return;
    const went = waiting && places[event.key];
    waiting = false;
    if (went) location.assign(went);
    else if (event.key === "g") waiting = true;
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "J") moveTo([...document.querySelectorAll(".exchange")], 1);
    else if (event.key === "K") moveTo([...document.querySelectorAll(".exchange")], -1);
    else if (event.key === "Enter") document.querySelector("[data-keys] > .at a")?.click();
    else if (event.key === "t") switchTheme();
    else if (event.key === "o") foldAll();
    else if (event.key === "?") document.getElementById("help").showModal();
    else if (event.key === "/") { document.querySelector(".search input").focus(); event.preventDefault(); }
    else if (event.key === "f") {
      const find = document.querySelector("[data-find]");
      if (find) { find.focus(); event.preventDefault(); }
    }
  });
}
