// Puts the parts together once the page is there.

const THEME = "unpoison:theme";

function stored(name) {
  try {
    return window.localStorage.getItem(name);
  } catch {
    return null;
  }
}

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}

function setTheme(theme) {
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  document.getElementById("theme").setAttribute("aria-pressed", String(isDark()));
}

function on(id, event, action) {
  document.getElementById(id).addEventListener(event, action);
}

on("theme", "click", () => {
  setTheme(isDark() ? "light" : "dark");
  try {
    window.localStorage.setItem(THEME, isDark() ? "dark" : "light");
  } catch {
    // then the choice holds until the page is closed
  }
});

// A number in the table of the removed chooses the samples it counts.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-label]");
  if (!link) return;
  control("set").value = "removed";
  chooseAgain();
  control("label").value = link.dataset.label;
  control("called").value = link.dataset.called || "";
  choose();
});

on("choose-set", "change", () => chooseAgain());
for (const name of ["label", "called", "order"]) on(`choose-${name}`, "change", () => choose());
on("previous", "click", () => showPage(pageNumber - 1));
on("next", "click", () => showPage(pageNumber + 1));
on("page-number", "change", (event) => showPage(Math.round(Number(event.target.value)) - 1 || 0));
on("undo", "click", () => undo());
on("save", "click", () => {
  marks.save();
  say("saved as overrides.json, in the folder for downloads");
});
on("load", "change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  try {
    say(`${marks.load(await file.text())} decisions loaded`);
  } catch (error) {
    say(`not loaded: ${error.message}`);
  }
  event.target.value = "";
});
for (const button of document.querySelectorAll("[data-all]")) {
  const keep = { keep: true, remove: false }[button.dataset.all];
  button.addEventListener("click", () => markAll(keep));
}

setTheme(stored(THEME));
document.documentElement.classList.add("scripted");
if (!samples.some(SETS.removed)) control("set").value = "kept";
choose();
showMarks();
