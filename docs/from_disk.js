// Browsers let no page that was opened from disk load the index of the search, so there it has no search.
if (location.protocol === "file:") {
  window.Worker = class { postMessage() {} };
  document.querySelector('[role="search"]')?.remove();
}
