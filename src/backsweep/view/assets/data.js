// The data of the page: facts as JSON, arrays as compressed bytes.
const byId = (name) => document.getElementById(name);
const words = JSON.parse(byId("words").textContent);
const TYPES = { Float32Array, Uint32Array, Int32Array, Uint16Array, Uint8Array };

async function readArrays(buffer, table) {
  const arrays = {};
  for (const [name, entry] of Object.entries(table)) {
    arrays[name] = new TYPES[entry.type](buffer, entry.at, entry.shape.reduce((a, b) => a * b, 1));
    arrays[name].shape = entry.shape;
  }
  return arrays;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function readData() {
  const text = atob(byId("data").textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return readArrays(await inflate(bytes), words.arrays);
}

const TERMINAL = 1, START = 2, REACHES_END = 4, NONE = 0xffffffff;

// Numbers as text.
function plain(number) {
  if (!Number.isFinite(number)) return "\u2013";
  if (Number.isInteger(number)) return number.toLocaleString("en");
  const size = Math.abs(number);
  return size >= 1e5 || size < 1e-4 ? number.toExponential(2) : String(Number(number.toPrecision(4)));
}

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-")) made.setAttribute(key, value); else made[key] = value;
  }
  made.append(...children);
  return made;
}

// For each of `count` states, the places of the edges that have it in column `column`.
function groupEdges(edge, count, column) {
  const first = new Uint32Array(count + 1), places = new Uint32Array(edge.length / 2);
  for (let i = column; i < edge.length; i += 2) first[edge[i] + 1]++;
  for (let i = 0; i < count; i++) first[i + 1] += first[i];
  const next = first.slice();
  for (let i = column; i < edge.length; i += 2) places[next[edge[i]]++] = i >> 1;
  return { first, places };
}
