// Details of one state: its picture or numbers, the actions tried there, its value.
const TILE = 8;

function stateName(data, state) {
  const flags = data.flags[state];
  const kind = flags & TERMINAL ? "end" : flags & START ? "start" : "state";
  return `${kind[0].toUpperCase()}${kind.slice(1)} ${data.vertex[state]}`;
}

function actionName(action) {
  return words.actions && words.actions[action] !== undefined ? words.actions[action] : String(action);
}

// A canvas with a state's picture, made of tiles; null if the state has none.
function drawPicture(tiles, numbers, size) {
  if (!numbers[0]) return null;
  const columns = Math.ceil(size.width / TILE), canvas = element("canvas", { ...size, className: "picture" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "the observation");
  const context = canvas.getContext("2d"), image = context.createImageData(size.width, size.height);
  for (let y = 0; y < size.height; y++) {
    for (let x = 0; x < size.width; x++) {
      const tile = numbers[Math.floor(y / TILE) * columns + Math.floor(x / TILE)];
      const from = ((tile * TILE + y % TILE) * TILE + x % TILE) * 3, to = (y * size.width + x) * 4;
      image.data[to] = tiles[from]; image.data[to + 1] = tiles[from + 1]; image.data[to + 2] = tiles[from + 2];
      image.data[to + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

function pictureOf(data, state) {
  if (!words.picture) return null;
  const each = data.picture.shape[1];
  return drawPicture(data.tiles, data.picture.subarray(state * each, (state + 1) * each),
    { width: words.picture.width, height: words.picture.height });
}

function numbersOf(data, state) {
  if (!data.numbers) return null;
  const each = data.numbers.shape[1], shown = [...data.numbers.subarray(state * each, (state + 1) * each)];
  if (shown.every(Number.isNaN)) return "never observed";
  return shown.map(plain).join("  ") + (words.numbers > each ? ` \u2026 (${words.numbers} numbers)` : "");
}

function facts(data, state) {
  const list = element("dl"), add = (name, value) => list.append(element("dt", {}, name), element("dd", {}, value));
  const numbers = numbersOf(data, state);
  if (numbers !== null) add(words.numbers === 1 ? "observation" : "observed", numbers);
  add("value", words.planned ? plain(data.value[state]) : "not planned");
  add("steps to an end", data.distance[state] < 0 ? "no way seen" : plain(data.distance[state]));
  add("visits", plain(data.visits[state]));
  add("age", `${plain(data.age[state])} rows`);
  add("draws", plain(data.draws[state]));
  return list;
}

function pairsOf(data, state) {
  const pairs = [];
  for (let i = data.pair_first[state]; i < data.pair_first[state + 1]; i++) {
    pairs.push({ action: data.pair_action[i], times: data.pair_times[i], reward: data.pair_reward[i],
      target: data.pair_target[i], value: data.pair_value[i] });
  }
  return pairs;
}

function actionTable(data, state, go) {
  const pairs = pairsOf(data, state);
  if (!pairs.length) return element("p", {}, "Nothing was tried here.");
  const best = Math.max(...pairs.map((pair) => pair.value));
  const heads = ["action", "times", "reward", ...(words.planned ? ["value"] : []), "to"];
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", {}, head)))));
  const body = element("tbody");
  for (const pair of pairs) {
    const target = pair.target === NONE ? "not shown"
      : pair.target === state ? "itself" : element("button", { onclick: () => go(pair.target) }, String(data.vertex[pair.target]));
    const cells = [words.discreteActions ? actionName(pair.action) : "any", plain(pair.times), plain(pair.reward),
      ...(words.planned ? [plain(pair.value)] : []), target];
    body.append(element("tr", { className: pair.value === best ? "best" : "" }, ...cells.map((cell) => element("td", {}, cell))));
  }
  table.append(body);
  return table;
}

const MOST_PREDECESSORS = 12;

function predecessors(data, state, incoming, go) {
  const places = incoming.places.subarray(incoming.first[state], incoming.first[state + 1]);
  const holder = element("div", { className: "near" }, places.length ? `Reached from ${plain(places.length)}:` : "Never entered.");
  for (const place of places.subarray(0, MOST_PREDECESSORS)) {
    const source = data.edge[2 * place];
    holder.append(element("button", { onclick: () => go(source) }, String(data.vertex[source])));
  }
  if (places.length > MOST_PREDECESSORS) holder.append("\u2026");
  return holder;
}

function showDetails(panel, data, state, incoming, go, close) {
  const shut = element("button", { onclick: close, "aria-label": "Close" }, "\u00d7");
  const parts = [element("header", {}, element("h2", {}, stateName(data, state)), shut)];
  const picture = pictureOf(data, state);
  if (picture) parts.push(picture);
  parts.push(facts(data, state), actionTable(data, state, go), predecessors(data, state, incoming, go));
  panel.replaceChildren(...parts);
  panel.hidden = false;
}

function showTip(tip, data, state, x, y) {
  const pairs = pairsOf(data, state), picture = pictureOf(data, state), parts = [element("strong", {}, stateName(data, state))];
  if (picture) parts.push(picture);
  const numbers = numbersOf(data, state);
  if (numbers !== null) parts.push(element("div", {}, numbers));
  const values = words.planned ? `value ${plain(data.value[state])}, ` : "";
  parts.push(element("div", {}, `${values}${plain(data.visits[state])} visits`));
  const tried = pairs.map((pair) => actionName(pair.action) + (words.planned ? ` ${plain(pair.value)}` : ` \u00d7${pair.times}`));
  if (words.discreteActions && tried.length) parts.push(element("div", {}, tried.slice(0, 7).join(", ")));
  tip.replaceChildren(...parts);
  tip.hidden = false;
  const left = x + 18 + tip.offsetWidth > innerWidth ? x - 18 - tip.offsetWidth : x + 18;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 12, innerHeight - tip.offsetHeight - 8))}px`;
}
