"use strict";

const root = document.documentElement;
const status = document.getElementById("status");
root.classList.remove("without-scripts");

/* Light, dark, or as the system has it.  A file's storage may be closed to it. */

const themes = ["auto", "light", "dark"];
const themeButton = document.getElementById("theme");

function remembered() {
  try {
    return localStorage.getItem("bnca-theme");
  } catch {
    return null;
  }
}

function setTheme(name) {
  const theme = themes.includes(name) ? name : "auto";
  root.dataset.theme = theme;
  themeButton.textContent = `Theme: ${theme}`;
  try {
    localStorage.setItem("bnca-theme", theme);
  } catch {
    /* not remembered, then */
  }
}

themeButton.addEventListener("click", () => {
  setTheme(themes[(themes.indexOf(root.dataset.theme) + 1) % themes.length]);
});
setTheme(remembered());

/* Tables: up, down, as they came.  Empty fields are last in both directions. */

function compare(a, b, numeric) {
  return numeric ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true });
}

function sortBy(header) {
  const table = header.closest("table");
  const body = table.tBodies[0];
  const column = header.cellIndex;
  const next = { none: "ascending", ascending: "descending", descending: "none" };
  const order = next[header.getAttribute("aria-sort")];
  const numeric = header.dataset.kind === "number";
  const sign = order === "descending" ? -1 : 1;
  const key = (row) => row.cells[column].dataset.sort;
  const place = (row) => Number(row.dataset.place);
  const rows = Array.from(body.rows);
  rows.sort((a, b) => {
    if (order === "none") return place(a) - place(b);
    if (key(a) === "" || key(b) === "") {
      return (key(a) === "") - (key(b) === "") || place(a) - place(b);
    }
    return sign * compare(key(a), key(b), numeric) || place(a) - place(b);
  });
  body.append(...rows);
  for (const other of header.parentElement.cells) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", order);
  const name = header.querySelector("button span").firstChild.textContent;
  status.textContent =
    order === "none" ? "Rows in their first order" : `Sorted by ${name}, ${order}`;
}

for (const table of document.querySelectorAll("table.sortable")) {
  Array.from(table.tBodies[0].rows).forEach((row, place) => {
    row.dataset.place = place;
  });
  for (const button of table.querySelectorAll("button.sort")) {
    button.addEventListener("click", () => sortBy(button.closest("th")));
  }
}

/* What tables show. */

for (const box of document.querySelectorAll("input[data-shows]")) {
  const update = () => root.classList.toggle(`without-${box.dataset.shows}`, !box.checked);
  box.addEventListener("change", update);
  update();
}

/* Commands to copy.  Where the clipboard is closed to a file, the old way, then selecting. */

async function copied(text, near) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    near.append(field); /* within an open dialog nothing outside it can be selected */
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const done = await copied(button.dataset.copy, button.parentElement);
  if (!done) getSelection().selectAllChildren(button.parentElement.querySelector("code"));
  button.focus({ preventScroll: true });
  const label = button.firstChild;
  label.textContent = done ? "Copied" : "Selected";
  status.textContent = done ? "Command copied" : "Command selected";
  setTimeout(() => {
    label.textContent = "Copy";
  }, 1600);
});

/* A click on a number says where it is from. */

const dialog = document.getElementById("provenance");

function named(text, value) {
  const pair = document.createElement("div");
  pair.append(document.createElement("dt"), document.createElement("dd"));
  pair.firstChild.textContent = text;
  pair.lastChild.textContent = value;
  return pair;
}

function headerOf(cell) {
  const heading = cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
  return heading.querySelector("button span");
}

function rowFacts(row) {
  const out = [];
  for (const cell of row.cells) {
    if (cell.querySelector(".value") || cell.tagName === "TH") continue;
    out.push(named(headerOf(cell).innerText, cell.innerText));
  }
  return out;
}

function explain(link) {
  const cell = link.closest("td");
  const row = cell.parentElement;
  const title = cell.closest("section").querySelector("h2, h3").textContent;
  const heading = document.createElement("p");
  heading.className = "what";
  const rowName = row.cells[0].cloneNode(true);
  rowName.querySelector("sup")?.remove();
  heading.textContent = `${headerOf(cell).firstChild.textContent} · ${rowName.textContent}`;
  const list = document.createElement("dl");
  list.className = "facts";
  list.append(named("Table", title), ...rowFacts(row), named("Value", link.textContent));
  const parts = { interval: "95 % interval", published: "Published" };
  for (const [part, said] of Object.entries(parts)) {
    const found = cell.querySelector(`.${part}`);
    if (found) list.append(named(said, found.textContent.replace(" to –", " to ").replace("paper ", "")));
  }
  const made = document.querySelector(link.getAttribute("href")).cloneNode(true);
  made.removeAttribute("id");
  dialog.querySelector(".said").replaceChildren(heading, list);
  dialog.querySelector(".made").replaceChildren(made);
  dialog.showModal();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a.number");
  if (link && !(event.ctrlKey || event.metaKey || event.shiftKey)) {
    event.preventDefault();
    explain(link);
  }
});
dialog.addEventListener("click", (event) => {
  if (event.target === dialog || event.target.closest(".close")) dialog.close();
});

/* On paper nothing is folded away. */

let folded = [];
addEventListener("beforeprint", () => {
  folded = Array.from(document.querySelectorAll("details:not([open])"));
  for (const part of folded) part.open = true;
});
addEventListener("afterprint", () => {
  for (const part of folded) part.open = false;
});
