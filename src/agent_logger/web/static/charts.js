// The values of a chart at the pointer, from the table behind it; or the label of the shape, where there is no table.
export function startCharts() {
  for (const figure of document.querySelectorAll("[data-chart]")) {
    for (const title of figure.querySelectorAll("svg title")) title.remove(); // the browser would show them, too
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    document.body.append(tip);
    figure.addEventListener("pointerover", event => {
      const shape = event.target.closest("svg a");
      tip.hidden = !shape;
      if (shape) { tip.replaceChildren(...lines(figure, shape)); place(tip, shape); }
    });
    figure.addEventListener("pointerleave", () => { tip.hidden = true; });
  }
}

function lines(figure, shape) {
  const table = document.getElementById(figure.dataset.chart);
  const row = table?.querySelector(`tr[data-column="${shape.dataset.column}"]`);
  const [label, value] = split(shape.getAttribute("aria-label"));
  const first = line(label, value);
  if (!row) return [first];
  const heads = [...table.querySelectorAll("th")];
  const named = [...row.cells].map((cell, number) => [heads[number], cell.textContent]);
  return [first, ...named.filter(([head, text]) => head.dataset.series && text).reverse().map(([head, text]) => line(head.textContent, text, head.dataset.series))];
}

function split(label) {
  const at = label.indexOf(": ");
  return [label.slice(0, at), label.slice(at + 2)];
}

function line(name, value, series) {
  const [row, left, right] = ["p", "span", "span"].map(tag => document.createElement(tag));
  left.append(name);
  if (series) {
    const swatch = document.createElement("span");
    swatch.className = `swatch series-${series}`;
    left.prepend(swatch);
  }
  right.append(value);
  row.append(left, right);
  return row;
}

function place(tip, shape) {
  const box = shape.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left + box.width / 2 - tip.offsetWidth / 2), document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = `${left + scrollX}px`;
  tip.style.top = `${box.top + scrollY - tip.offsetHeight - 6}px`;
}
