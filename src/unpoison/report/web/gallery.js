// The samples as cards: filtered, sorted, a page at a time, and marked with mouse or keyboard.

const CARDS_A_PAGE = 24;

const SETS = {
  removed: (sample) => !sample.runKeep,
  kept: (sample) => sample.runKeep,
  marked: (sample) => marks.get(sample.id) !== undefined,
  reviewed: (sample) => sample.reviewed,
};

const ORDERS = {
  most: (a, b) => b.suspicion - a.suspicion,
  least: (a, b) => a.suspicion - b.suspicion,
  id: (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0),
};

const control = (name) => document.getElementById(`choose-${name}`);
const list = document.getElementById("cards");
const marks = new Marks(() => showMarks());

let chosen = [];
let pageNumber = 0;

function choose() {
  const set = samples.filter(SETS[control("set").value]);
  fillClasses(control("label"), set, (sample) => sample.label, "any label");
  const label = control("label").value;
  const labelled = set.filter((sample) => label === "" || sample.label === Number(label));
  fillClasses(control("called"), labelled, (sample) => sample.called, "anything");
  const called = control("called").value;
  chosen = labelled.filter((sample) => called === "" || sample.called === Number(called));
  chosen.sort(ORDERS[control("order").value]);
  showPage(0);
}

function chooseAgain() {
  control("label").value = "";
  control("called").value = "";
  choose();
}

// The classes that occur, with how often; the choice stays where it is still possible.
function fillClasses(select, set, classOf, any) {
  const counts = new Map();
  for (const sample of set) counts.set(classOf(sample), (counts.get(classOf(sample)) || 0) + 1);
  const before = select.value;
  const options = [...counts].sort(([a], [b]) => a - b).map(
    ([label, n]) => make("option", { value: label }, `${className(label)} (${n.toLocaleString("en")})`));
  select.replaceChildren(make("option", { value: "" }, any), ...options);
  select.value = counts.has(Number(before)) && before !== "" ? before : "";
}

function pageCount() {
  return Math.max(1, Math.ceil(chosen.length / CARDS_A_PAGE));
}

function showPage(number, focus) {
  pageNumber = Math.min(Math.max(number, 0), pageCount() - 1);
  const start = pageNumber * CARDS_A_PAGE;
  const shown = chosen.slice(start, start + CARDS_A_PAGE);
  list.replaceChildren(...shown.map(card));
  list.setAttribute("aria-label", `Samples, page ${pageNumber + 1} of ${pageCount()}`);
  document.getElementById("page-of").textContent = `of ${pageCount().toLocaleString("en")}`;
  const input = document.getElementById("page-number");
  input.max = pageCount();
  input.value = pageNumber + 1;
  document.getElementById("previous").disabled = pageNumber === 0;
  document.getElementById("next").disabled = pageNumber === pageCount() - 1;
  document.getElementById("none-chosen").hidden = shown.length > 0;
  for (const button of document.querySelectorAll("[data-all]")) {
    button.disabled = shown.length === 0;
    button.querySelector("span").textContent = chosen.length.toLocaleString("en");
  }
  if (list.firstChild) list.firstChild.tabIndex = 0;
  if (focus) focusCard(focus === "last" ? shown.length - 1 : 0);
}

function card(sample) {
  const node = make("li", { class: "card", tabindex: "-1" });
  const decide = make("div", { class: "decide" },
    make("button", { type: "button", "data-keep": "true", "aria-label": `Keep ${sample.shown}` }, "Keep"),
    make("button", { type: "button", "data-keep": "false", "aria-label": `Remove ${sample.shown}` }, "Remove"));
  node.append(
    look(sample),
    make("p", { class: "what" }, make("bdi", {}, className(sample.label)),
      make("span", { class: "soft" }, " → "), make("bdi", {}, className(sample.called))),
    make("p", { class: "soft id" }, make("bdi", { title: sample.shown }, sample.shown)),
    make("p", { class: "soft state" }), decide);
  node.sample = sample;
  showState(node);
  return node;
}

function look(sample) {
  if (page.kind === "rows" && Array.isArray(sample.content)) return rowsTable(sample);
  const near = sample.near.map(([label, [id, content]]) => make("figure", {},
    seen(content, `Sample ${id}`),
    make("figcaption", {}, make("span", page.kind === "image" ? { class: "hidden" } : {}, "nearest "), "kept ",
      make("bdi", { title: className(label) }, className(label)))));
  return make("div", { class: page.kind === "image" ? "look pictures" : "look texts" },
    make("figure", { class: "sample" }, seen(sample.content, `Sample ${sample.shown}`)),
    make("div", { class: "near" }, ...near));
}

function seen(content, name) {
  if (typeof content === "number") {
    const attributes = { src: picture(content), alt: name, title: name };
    return make("img", page.tiny ? { ...attributes, class: "tiny" } : attributes);
  }
  if (typeof content === "string") return make("blockquote", {}, make("bdi", {}, content));
  return make("p", { class: "soft missing" }, "cannot be shown");
}

function rowsTable(sample) {
  const columns = [["this sample", sample.content],
    ...sample.near.map(([label, [, content]]) => [`nearest kept ${className(label)}`, content || []])];
  const head = make("tr", {}, make("th", { scope: "col" }, "column"),
    ...columns.map(([name]) => make("th", { scope: "col" }, name)));
  const rows = page.columns.map((column, i) => make("tr", {}, make("th", { scope: "row" }, column),
    ...columns.map(([, cells]) => make("td", {}, make("bdi", {}, cells[i] === undefined ? "" : cells[i])))));
  return make("div", { class: "look rows scroll" },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

// What the run and the reader say about a card's sample; only this changes while the card is shown.
function showState(node) {
  const { sample } = node;
  const mark = marks.get(sample.id);
  const keep = mark === undefined ? sample.keep : mark;
  const run = sample.runKeep ? "kept by the run" : "removed by the run";
  const reviewed = sample.reviewed ? `, ${sample.keep ? "kept" : "removed"} in a review` : "";
  node.querySelector(".state").textContent = `suspicion ${sample.suspicion.toFixed(3)}, ${run}${reviewed}`;
  node.classList.toggle("marked", mark !== undefined);
  node.classList.toggle("bad", !keep);
  for (const button of node.querySelectorAll("[data-keep]")) {
    button.setAttribute("aria-pressed", String(mark !== undefined && String(mark) === button.dataset.keep));
  }
  node.setAttribute("aria-label", `${sample.shown}: labelled ${className(sample.label)}, `
    + `called ${className(sample.called)}, ${run}${mark === undefined ? "" : keep ? ", marked keep" : ", marked remove"}`);
}

function showMarks() {
  for (const node of list.children) showState(node);
  let kept = 0;
  for (const keep of marks.keep.values()) kept += keep ? 1 : 0;
  const removed = marks.keep.size - kept;
  document.getElementById("marked-count").textContent =
    `${kept.toLocaleString("en")} to keep, ${removed.toLocaleString("en")} to remove`;
  document.getElementById("save").disabled = marks.keep.size === 0;
  document.getElementById("undo").disabled = marks.past.length === 0;
}

function mark(node, keep) {
  const { sample } = node;
  const undone = marks.get(sample.id) === keep;
  marks.set([sample.id], undone ? undefined : keep);
  say(`${sample.shown}: ${undone ? "no longer marked" : keep ? "marked keep" : "marked remove"}`);
}

function markAll(keep) {
  marks.set(chosen.map((sample) => sample.id), keep);
  const what = keep === undefined ? "no longer marked" : keep ? "marked keep" : "marked remove";
  say(`${chosen.length.toLocaleString("en")} samples ${what}`);
}

function say(words) {
  document.getElementById("status").textContent = words;
}

function focusCard(place) {
  const node = list.children[place];
  if (!node) return;
  for (const other of list.children) other.tabIndex = other === node ? 0 : -1;
  node.focus();
}

function step(node, by) {
  const place = [...list.children].indexOf(node) + by;
  if (place < 0 && pageNumber > 0) showPage(pageNumber - 1, "last");
  else if (place >= list.children.length && pageNumber < pageCount() - 1) showPage(pageNumber + 1, "first");
  else focusCard(place);
}

// Up and down go by rows, as the cards lie on this screen.
function stepRow(node, by) {
  const nodes = [...list.children];
  const columns = nodes.filter((other) => other.offsetTop === nodes[0].offsetTop).length;
  const row = (place) => Math.floor(place / columns);
  const place = nodes.indexOf(node);
  const isShort = row(place) < row(nodes.length - 1) && place + by * columns >= nodes.length;
  if (isShort) focusCard(nodes.length - 1);
  else step(node, by * columns);
}

// The keys work on the card that has the focus; docs/report.md lists them.
const KEYS = {
  k: (node) => { mark(node, true); step(node, 1); },
  r: (node) => { mark(node, false); step(node, 1); },
  u: () => undo(),
  n: () => showPage(pageNumber + 1, "first"),
  p: () => showPage(pageNumber - 1, "first"),
  ArrowRight: (node) => step(node, 1),
  ArrowLeft: (node) => step(node, -1),
  ArrowDown: (node) => stepRow(node, 1),
  ArrowUp: (node) => stepRow(node, -1),
  Home: () => focusCard(0),
  End: () => focusCard(list.children.length - 1),
};

function undo() {
  say(marks.undo() ? "the last change is undone" : "there is nothing to undo");
}

list.addEventListener("keydown", (event) => {
  const node = event.target.closest(".card");
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key; // with Caps Lock it is K
  const action = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
  if (!node || !action || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  action(node);
});

list.addEventListener("click", (event) => {
  const button = event.target.closest("[data-keep]");
  if (button) mark(button.closest(".card"), button.dataset.keep === "true");
});
