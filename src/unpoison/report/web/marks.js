// What the reader decides: remembered in this browser where that is allowed, saved as overrides.json.

const OVERRIDES_VERSION = 1;

class Marks {
  constructor(changed) {
    this.keep = new Map(); // id -> true to keep, false to remove
    this.past = []; // for each change the marks it replaced
    this.changed = changed;
    this.place = `unpoison:${page.fingerprint}`;
    try {
      this.keep = this.read(window.localStorage.getItem(this.place) || "null") || this.keep;
    } catch {
      // no storage here, or what it held was of no use: begin with no marks
    }
  }

  get(id) {
    return this.keep.get(id);
  }

  // keep is true, false, or undefined to take marks away
  set(ids, keep) {
    this.change(ids.map((id) => [id, keep]));
  }

  change(marks) {
    this.past.push(marks.map(([id]) => [id, this.keep.get(id)]));
    this.put(marks);
  }

  undo() {
    if (this.past.length === 0) return false;
    this.put(this.past.pop());
    return true;
  }

  put(marks) {
    for (const [id, keep] of marks) {
      if (keep === undefined) this.keep.delete(id);
      else this.keep.set(id, keep);
    }
    this.remember();
  }

  remember() {
    try {
      window.localStorage.setItem(this.place, this.write());
    } catch {
      // full or forbidden: the marks still count until the page is closed
    }
    this.changed();
  }

  write() {
    const of = (wanted) => [...this.keep].filter(([, keep]) => keep === wanted).map(([id]) => id).sort();
    const overrides = {
      unpoison_overrides: OVERRIDES_VERSION,
      fingerprint: page.fingerprint,
      keep: of(true),
      remove: of(false),
    };
    return JSON.stringify(overrides, null, 2) + "\n";
  }

  // The marks that a text holds, or null where it holds none; what is wrong with it is thrown.
  read(text) {
    const found = JSON.parse(text);
    if (found === null) return null;
    if (found.unpoison_overrides !== OVERRIDES_VERSION) {
      throw new Error("this file does not hold overrides that this page understands");
    }
    if (found.fingerprint !== page.fingerprint) {
      throw new Error("these overrides are for other data: the fingerprint differs");
    }
    const marks = new Map();
    for (const [ids, keep] of [[found.keep, true], [found.remove, false]]) {
      if (!Array.isArray(ids) || ids.some((id) => typeof id !== "string")) {
        throw new Error("keep and remove must be lists of ids");
      }
      for (const id of ids) marks.set(id, keep);
    }
    return marks;
  }

  load(text) {
    const found = this.read(text);
    if (found === null) throw new Error("the file is empty");
    this.change([...found]);
    return found.size;
  }

  save() {
    const address = URL.createObjectURL(new Blob([this.write()], { type: "application/json" }));
    const link = make("a", { href: address, download: "overrides.json" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 60000); // some browsers read it a little later
  }
}
