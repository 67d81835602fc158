/* Lists of verdicts by paper, verdict and protocol. Where no script runs they open all the same.

   A list is a <details> of class "judged", and "paper-..." beside it; a chosen verdict opens it. A
   row's verdict is what its cells with data-verdict say, or else its last cell; data-protocol is of
   a cell, or of a row. */
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("verdict-filters");
  if (!place) return;
  const { papers, kinds, protocols } = JSON.parse(place.dataset.choices);
  const form = document.createElement("form");
  form.className = "knobs";
  const choice = (name, words, options) => form.insertAdjacentHTML("beforeend",
    `<label for="filter-${name}">${words}</label><select id="filter-${name}" name="${name}">
     <option value="">all</option>${Object.entries(options).map(([value, text]) =>
       `<option value="${value}">${text}</option>`).join("")}</select>`);
  choice("paper", "Paper", papers);
  const of = said => Object.entries(kinds)
    .flatMap(([name, starts]) => starts.filter(start => said.startsWith(start)).map(start => [start.length, name]))
    .sort((a, b) => b[0] - a[0])[0]?.[1];
  choice("kind", "Verdict", Object.fromEntries(Object.entries(kinds).map(([k, words]) => [k, words.join(", ")])));
  choice("protocol", "Protocol of numbers", protocols);
  form.insertAdjacentHTML("beforeend", '<button type="reset">Reset</button><output aria-live="polite"></output>');
  place.append(form);

  function apply() {
    const [paper, kind, protocol] = ["paper", "kind", "protocol"].map(name => form.elements[name].value);
    const fits = said => !kind || of(said) === kind;
    const mine = at => !protocol || !at.dataset.protocol || at.dataset.protocol === protocol;
    let shown = 0, all = 0;
    for (const list of document.querySelectorAll(".judged")) {
      for (const table of list.querySelectorAll("table")) {
        for (const at of table.querySelectorAll("td[data-protocol], th[data-protocol]")) at.hidden = !mine(at);
        const rows = [...table.querySelectorAll("tbody tr")];
        for (const row of rows) {
          const cells = [...row.querySelectorAll("td[data-verdict]")].filter(mine);
          const own = cells.map(cell => cell.dataset.verdict);
          if (!row.querySelector("td[data-verdict]")) own.push(row.lastElementChild.textContent.trim());
          row.hidden = !(mine(row) && own.some(fits) && (!paper || list.classList.contains(`paper-${paper}`)));
        }
        const left = rows.filter(row => !row.hidden).length;
        table.hidden = !left;
        shown += left;
        all += rows.length;
      }
      list.hidden = ![...list.querySelectorAll("table")].some(table => !table.hidden);
      if (kind) list.open = true;
    }
    form.querySelector("output").textContent = shown < all ? `${shown} of ${all} lines` : `all ${all} lines`;
  }
  form.addEventListener("change", apply);
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", () => {
    for (const list of document.querySelectorAll(".judged")) list.open = false;
    setTimeout(apply);
  });
  apply();
});
