// The command palette: type a part of a name, move with the arrows, open with Enter.
export function startPalette() {
  const dialog = document.getElementById("palette");
  const [input, list, status] = [dialog.querySelector("input"), document.getElementById("palette-list"), dialog.querySelector("[role=status]")];
  let asking;

  const options = () => [...list.querySelectorAll("[role=option]")];

  function select(option) {
    for (const other of options()) other.setAttribute("aria-selected", String(other === option));
    if (!option) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  function move(step) {
    const all = options();
    const at = all.findIndex(option => option.getAttribute("aria-selected") === "true");
    select(all[(at + step + all.length) % all.length]);
  }

  async function ask() {
    asking?.abort();
    asking = new AbortController();
    try {
      const answer = await fetch(`/palette?q=${encodeURIComponent(input.value)}`, { signal: asking.signal });
      if (!answer.ok) return;
      list.innerHTML = await answer.text(); // made and escaped by the server
      select(options()[0]);
      status.textContent = `${options().length} results`;
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  }

  function open() {
    if (dialog.open) return dialog.close();
    input.value = "";
    dialog.showModal();
    ask();
  }

  input.addEventListener("input", ask);
  input.addEventListener("keydown", event => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (steps[event.key]) { move(steps[event.key]); event.preventDefault(); }
    if (event.key === "Enter") { list.querySelector("[aria-selected=true]")?.click(); event.preventDefault(); }
  });
  dialog.addEventListener("click", event => {
    if (event.target === dialog || event.target.closest("a")) dialog.close(); // beside it, or a link on this page
  });
  document.addEventListener("keydown", event => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") { open(); event.preventDefault(); }
  });
  document.querySelector("[data-palette]").addEventListener("click", open);
}
