// The page's data: the samples, and their pictures, which are decoded only when one of them is wanted.

const page = JSON.parse(document.getElementById("page-data").textContent);

// The order is that of Card.row in samples.py.
const samples = page.samples.map(
  ([id, shown, label, called, suspicion, runKeep, keep, reviewed, content, nearLabel, nearCalled]) => ({
    id, shown: shown === null ? id : shown, label, called, suspicion,
    runKeep: runKeep === 1, keep: keep === 1, reviewed: reviewed === 1, content,
    near: [[label, nearLabel], [called, nearCalled]].filter(([, found]) => found !== null),
  }));

const chunks = new Map();

function picture(number) {
  const chunk = Math.floor(number / page.picturesInChunk);
  if (!chunks.has(chunk)) {
    chunks.set(chunk, JSON.parse(document.getElementById(`pictures-${chunk}`).textContent));
  }
  return "data:image/" + chunks.get(chunk)[number % page.picturesInChunk];
}

function className(label) {
  return label < 0 ? "no vote" : page.classes[label];
}

// Text becomes text, never markup: nodes are made one by one, and strings are appended as they are.
function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}
