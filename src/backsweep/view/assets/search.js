// Searching states: a number, "end", "start", or comparisons such as "value > 0.5 visits >= 10".
const COMPARE = {
  "=": (a, b) => a === b, "==": (a, b) => a === b, ">": (a, b) => a > b, "<": (a, b) => a < b,
  ">=": (a, b) => a >= b, "<=": (a, b) => a <= b,
};
const FIELDS = ["value", "visits", "age", "draws", "distance"];

// Returns a function that tells whether a state matches, or an error message.
function parseSearch(text, data) {
  const tests = [];
  let rest = text.trim().toLowerCase();
  while (rest) {
    let match;
    if ((match = rest.match(/^(?:state\s*|#)?(\d+)(?=\s|$)/))) {
      const number = Number(match[1]);
      tests.push((state) => data.vertex[state] === number);
    } else if ((match = rest.match(/^(ends?|starts?)(?=\s|$)/))) {
      const flag = match[1].startsWith("end") ? TERMINAL : START;
      tests.push((state) => data.flags[state] & flag);
    } else if ((match = rest.match(/^([a-z]+)\s*(>=|<=|==|=|>|<)\s*(-?[\d.]+(?:e-?\d+)?)(?=\s|$)/)) && FIELDS.includes(match[1])) {
      const [, field, sign, number] = match, values = data[field], compare = COMPARE[sign], wanted = Number(number);
      const known = field === "distance" ? (x) => x >= 0 : (x) => !Number.isNaN(x);
      tests.push((state) => known(values[state]) && compare(values[state], wanted));
    } else if ((match = rest.match(/^(and|,)(?=\s|$)/))) {
      // Words between two conditions.
    } else {
      return `Try a state\u2019s number, end, start, or ${FIELDS.join(", ")} with <, > or =`;
    }
    rest = rest.slice(match[0].length).trim();
  }
  return (state) => tests.every((test) => test(state));
}

function findStates(text, data, count) {
  const fits = parseSearch(text, data);
  if (typeof fits === "string") return { problem: fits, states: [] };
  const states = [];
  for (let state = 0; state < count; state++) if (fits(state)) states.push(state);
  return { states };
}
