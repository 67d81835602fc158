/* A table far wider than a phone becomes lines there: under a row's name, a line per cell, which
   names its column. On wider screens, and where no script runs, it stays as it is. */
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const narrow = matchMedia("(max-width: 576px)"), MOST = 1.5; // columns of text

  /* Cells by row and column, each at every place that it spans. */
  function grid(rows) {
    const at = rows.map(() => []);
    rows.forEach((row, r) => {
      let c = 0;
      for (const cell of row.cells) {
        while (at[r][c]) c++;
        for (let down = 0; down < cell.rowSpan && r + down < rows.length; down++)
          for (let along = 0; along < cell.colSpan; along++) at[r + down][c + along] = cell;
        c += cell.colSpan;
      }
    });
    return at;
  }
  const said = cell => (cell ? cell.textContent.trim() : "");

  function name(table) {
    const heads = grid([...(table.tHead ? table.tHead.rows : [])]);
    const rows = [...table.tBodies].flatMap(body => [...body.rows]);
    grid(rows).forEach((cells, r) => {
      const spanning = []; // names of rows above, each to be said again, in their order
      cells.forEach((cell, c) => {
        const over = [...new Set(heads.map(head => said(head[c])).filter(Boolean))];
        const column = cell.tagName === "TH" ? over.pop() || "" : over.join(", "); // pandas puts the columns' name over a row's
        if (cell.parentElement !== rows[r]) {
          const again = document.createElement(cell.tagName);
          again.className = "again";
          again.textContent = cell.textContent;
          if (c > 0) again.dataset.name = column;
          spanning.push(again);
        } else if (cell.tagName === "TD" || c > 0) {
          cell.dataset.name = column;
        }
      });
      rows[r].prepend(...spanning);
    });
    table.classList.add("lines");
  }

  function look() {
    if (!narrow.matches) return;
    for (const table of document.querySelectorAll("article table:not(.lines)")) {
      const column = table.closest("article p, article section, article details") || table.parentElement;
      if (!table.matches(".judged table.lgfed") && table.scrollWidth > MOST * column.clientWidth) name(table);
    }
  }
  narrow.addEventListener("change", look);
  document.addEventListener("toggle", look, true); // what was folded had no width
  look();
});
