// Results below the search field while one types. Only the newest question counts.
const pause = 60; // ms without a key

export function startSearch() {
  const form = document.querySelector(".search");
  const [input, panel] = [form.querySelector("input"), document.getElementById("found")];
  const hits = document.getElementById("hits"); // the search page shows them in full
  let timer, asking;

  async function ask() {
    const words = input.value.trim();
    asking?.abort();
    if (!words) { panel.hidden = true; return; }
    asking = new AbortController();
    try {
      const answer = await fetch(`/search?part=1&q=${encodeURIComponent(words)}`, { signal: asking.signal });
      const html = await answer.text();
      (hits || panel).innerHTML = html; // made and escaped by the server
      panel.hidden = Boolean(hits);
      if (hits) history.replaceState(null, "", `/search?q=${encodeURIComponent(words)}`);
    } catch (error) {
      if (error.name !== "AbortError") panel.hidden = true;
    }
  }

  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, pause); });
  input.addEventListener("focus", () => { if (input.value.trim() && !hits && panel.innerHTML) panel.hidden = false; });
  input.addEventListener("keydown", event => {
    if (event.key === "Escape") { panel.hidden = true; input.blur(); }
    if (event.key === "ArrowDown") { (hits || panel).querySelector("a")?.focus(); event.preventDefault(); }
  });
  document.addEventListener("click", event => { if (!form.contains(event.target)) panel.hidden = true; });
}
