/* The rule of lgfed_core.evidence (verdict, worth), stated again for a reader who moves its numbers.
   tests/test_judge.py holds both against each other on all stored cells. */
"use strict";
const lgfed = (() => {
  const FEWEST = 2; // seeds: the first of a claim's p-values
  const SEEDS = [3, 5, 10, 20, 50, 100];
  const LAST = 10; // the last step in which seeds are run
  const BOOKS = { margin: 1, confidence: 0.95, most: Infinity };
  const mean = v => v.reduce((a, b) => a + b, 0) / v.length;
  const variance = v => v.reduce((s, x) => s + (x - mean(v)) ** 2, 0) / (v.length - 1);

  function logGamma(x) { // Stirling's series, from 15 on
    let shift = 0;
    for (; x < 15; x++) shift += Math.log(x);
    const y = 1 / (x * x), series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y / 1680))) / x;
    return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - shift;
  }

  function beta(x, a, b) { // the regularised incomplete beta function, as a continued fraction
    if (x > (a + 1) / (a + b + 2)) return 1 - beta(1 - x, b, a);
    let up = Infinity, down = 1, value = 1;
    for (let i = 1; i < 400; i++) {
      const m = i >> 1;
      const term = i % 2
        ? -((a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1))
        : (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
      down = 1 / (1 + term * down);
      up = 1 + term / up;
      value *= up * down;
      if (Math.abs(up * down - 1) < 1e-15) break;
    }
    const front = logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x);
    return (Math.exp(front) / a) * value;
  }

  const known = new Map();
  function quantile(df, confidence) { // Student's t: this share of it lies between plus and minus
    const key = `${df} ${confidence}`;
    if (!known.has(key)) {
      const beyond = t => beta(df / (df + t * t), df / 2, 0.5);
      let low = 0, high = 1;
      while (beyond(high) > 1 - confidence) high *= 2;
      for (let i = 0; i < 100; i++) {
        const middle = (low + high) / 2;
        if (beyond(middle) > 1 - confidence) low = middle; else high = middle;
      }
      known.set(key, (low + high) / 2);
    }
    return known.get(key);
  }

  function welch(difference, parts, confidence) { // parts: [squared standard error, degrees], two
    const total = parts[0][0] + parts[1][0];
    if (!(total > 0)) return [difference, difference];
    const df = total ** 2 / parts.reduce((s, [v, n]) => s + v ** 2 / n, 0);
    const reach = quantile(df, confidence) * Math.sqrt(total);
    return [difference - reach, difference + reach];
  }

  const byChance = v => v.length === 2 && variance(v) < 1e-18; // two runs may be alike
  const spread = ([, sd, runs]) => sd !== null && runs > 1;
  const theirs = print => (spread(print) ? [print[1] ** 2 / (print[2] - 1), print[2] - 1] : [0, 1]);
  const first = (cell, most) => cell.values.slice(0, most);

  function cell(c, { margin: factor, confidence, most }) {
    const ours = first(c, most), alone = ours.length < 2, [printed, sd, runs] = c.print;
    const margin = deviation => factor * Math.max(2 * (deviation ?? 0), c.least);
    const said = (print, n) => { // of n runs that scatter as ours do
      const parts = [theirs(print), [variance(ours) / n, n - 1]], far = margin(print[1]);
      const [low, high] = welch(mean(ours) - printed, parts, confidence);
      if (-far <= low && high <= far) return "reproduced";
      return high < -far || low > far ? "differs" : "inconclusive";
    };
    const found = alone || byChance(ours) ? "inconclusive" : said(c.print, ours.length);
    const devices = [printed, sd / Math.sqrt(c.pooled ?? 1), runs]; // a deviation over these, too
    const vague = c.pooled && !alone && said(devices, ours.length) !== found;
    if (found !== "inconclusive" && !vague) return found;
    if (spread(c.print) && !reachable(c.print, margin(sd), confidence)) return "out of reach";
    if (vague) return "inconclusive (depends on what the paper's deviation is over)";
    if (alone) return "inconclusive (one seed)";
    const enough = SEEDS.find(n => n > ours.length && said(c.print, n) !== "inconclusive");
    return `inconclusive (${enough ? `underpowered, ${enough} seeds would do` : "truly between"})`;
  }

  function reachable(print, margin, confidence) { // by ten runs, whatever they scatter
    const [error, df] = theirs(print);
    const reach = i => welch(0, [[error, df], [(error * i) / 20, LAST - 1]], confidence)[1];
    return Array.from({ length: 161 }, (_, i) => i).some(i => reach(i) <= margin);
  }

  // Variances shared within a family (Smyth 2004; moderated.py): derivatives of log gamma, from 15 on.
  const series = (x, term, end) => { let sum = 0; for (; x < 15; x++) sum += term(x); return sum + end(x); };
  const digamma = v => series(v, x => -1 / x, x => {
    const y = 1 / (x * x);
    return Math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)));
  });
  const trigamma = v => series(v, x => 1 / (x * x), x => {
    const y = 1 / (x * x);
    return 1 / x + y / 2 + (y / x) * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)));
  });
  const tetragamma = v => series(v, x => -2 / x ** 3, x => {
    const y = 1 / (x * x);
    return -y - y / x - y * y * (1 / 2 - y * (1 / 6 - y * (1 / 6 - (3 * y) / 10)));
  });

  function prior(shifts) { // [variance, degrees] of a family's paired differences; null of too few
    const some = shifts.filter(v => v && v.length > 1 && variance(v) > 1e-18);
    if (some.length < 3) return null;
    const half = some.map(v => (v.length - 1) / 2);
    const e = some.map((v, i) => Math.log(variance(v)) - digamma(half[i]) + Math.log(half[i]));
    const excess = variance(e) - mean(half.map(trigamma));
    if (excess <= 0) return [Math.exp(mean(e)), Infinity];
    let x = 0.5 + 1 / excess;
    for (let i = 0; i < 50; i++) {
      const now = trigamma(x), step = (now * (1 - now / excess)) / tetragamma(x);
      x += step;
      if (-step / x < 1e-10) break;
    }
    return [Math.exp(mean(e) + digamma(x) - Math.log(x)), 2 * x];
  }

  function priors(contrasts, cells, most) { // by family
    const found = new Map();
    for (const k of contrasts) {
      if (!found.has(k.family)) found.set(k.family, []);
      found.get(k.family).push(paired(...k.of.map(i => cells[i]), most));
    }
    return new Map([...found].map(([family, shifts]) => [family, prior(shifts)]));
  }

  function paired(a, b, most) { // differences over the seeds of both
    const seeds = [a, b].map(c => c.seeds.slice(0, most));
    const there = seeds[0].map(seed => seeds[1].indexOf(seed));
    return there.flatMap((j, i) => (j < 0 ? [] : [a.values[i] - b.values[j]]));
  }

  function contrast(k, cells, { margin: factor, confidence, most }, known) {
    const [a, b] = k.of.map(i => cells[i]), printed = a.print[0] - b.print[0];
    const ours = difference(a, b, most, confidence, known.get(k.family));
    const said = share => { // where printed deviations are over so many devices, too
      const prints = [a, b].map(({ print: [m, sd, n] }) => [m, sd && sd / Math.sqrt(share), n]);
      const print = prints.every(spread)
        ? welch(printed, prints.map(theirs), confidence)
        : [printed - k.floor, printed + k.floor];
      if (print[0] <= 0 && print[1] >= 0) return "the print leaves it open";
      if (!ours) return "inconclusive";
      const [low, high] = [printed / (1 + factor), printed * (1 + factor)].sort((x, y) => x - y);
      if (low <= ours[0] && ours[1] <= high) return "reproduced";
      return ours[1] < low || ours[0] > high ? "differs" : "inconclusive";
    };
    const found = said(1);
    return said(a.pooled ?? 1) === found ? found : "inconclusive";
  }

  function difference(a, b, most, confidence, prior) { // over the seeds of both; of none, by Welch
    const shifts = paired(a, b, most);
    if (!shifts.length) return apart(first(a, most), first(b, most), confidence);
    if (shifts.length < 2 || byChance(shifts)) return null;
    let [scatter, df] = [variance(shifts), shifts.length - 1];
    if (prior && scatter > 1e-18) {
      const more = Math.min(prior[1], df); // a prior counts at most as much as the runs
      scatter = (more * prior[0] + df * scatter) / (more + df);
      df += more;
    }
    const reach = quantile(df, confidence) * Math.sqrt(scatter / shifts.length);
    return [mean(shifts) - reach, mean(shifts) + reach];
  }

  function apart(a, b, confidence) {
    if (Math.min(a.length, b.length) < 2) return null;
    const parts = [a, b].map(v => [variance(v) / v.length, v.length - 1]);
    return welch(mean(a) - mean(b), parts, confidence);
  }

  function claim(c, { confidence, most }) { // p-values for and against, after Holm's correction
    const [p, against] = c.first[most - FEWEST] ?? c.p, alpha = 1 - confidence;
    return p < alpha ? "confirmed" : against < alpha ? "refuted" : "inconclusive";
  }

  function judged(data, knobs) { // all verdicts, in the order of ``data``
    const known = priors(data.contrasts, data.cells, knobs.most);
    return {
      cells: data.cells.map(c => c.fixed ?? cell(c, knobs)),
      contrasts: data.contrasts.map(k => k.fixed ?? contrast(k, data.cells, knobs, known)),
      claims: data.claims.map(c => c.fixed ?? claim(c, knobs)),
    };
  }

  return { judged, quantile, BOOKS, FEWEST };
})();

/* The page: three controls over the table that stands there without them. */
document.addEventListener("DOMContentLoaded", () => {
  const source = document.getElementById("judge-data"), place = document.getElementById("judge-knobs");
  if (!source || !place) return;
  const data = JSON.parse(source.textContent), books = lgfed.judged(data, lgfed.BOOKS);
  const knobs = {
    margin: ["Margin, times the book's", 0.25, 4, 0.25, 1, v => `${v} times`],
    confidence: ["Confidence of an interval, and of a claim", 80, 99.5, 0.5, 95, v => `${v} %`],
    most: ["Seeds, at most", lgfed.FEWEST, 10, 1, 10, v => (v < 10 ? `${v}` : "all")],
  };
  const form = document.createElement("form");
  form.className = "knobs";
  for (const [name, [words, min, max, step, value]] of Object.entries(knobs))
    form.insertAdjacentHTML("beforeend",
      `<label for="knob-${name}">${words}</label><input type="range" id="knob-${name}" name="${name}"
        min="${min}" max="${max}" step="${step}" value="${value}"><output for="knob-${name}"></output>`);
  form.insertAdjacentHTML("beforeend", '<button type="reset">The book\'s rule</button>');
  place.append(form);

  const rows = { cells: "cell", contrasts: "contrast", claims: "claim" };
  const kind = said => (said.startsWith("suggested") ? "suggested" : said.replace(/ \(.*/, ""));
  function show() {
    for (const [name, [, , , , , said]] of Object.entries(knobs)) {
      const text = said(Number(form.elements[name].value));
      form.elements[name].nextElementSibling.textContent = text;
      form.elements[name].setAttribute("aria-valuetext", text);
    }
    const [margin, confidence, most] = Object.keys(knobs).map(name => Number(form.elements[name].value));
    const now = lgfed.judged(data, { margin, confidence: confidence / 100, most: most < 10 ? most : Infinity });
    const counts = {};
    for (const [part, name] of Object.entries(rows))
      now[part].forEach((said, i) => {
        const row = document.querySelector(`tr[data-${name}="${i}"]`), plain = kind(said);
        const changed = plain !== kind(books[part][i]);
        row.lastElementChild.textContent = said + (changed ? `; by the book's rule ${books[part][i]}` : "");
        row.classList.toggle("changed", changed);
        const key = `${row.dataset.count}: ${plain}`;
        counts[key] = (counts[key] ?? 0) + 1;
      });
    for (const at of document.querySelectorAll("td[data-counts]")) at.textContent = counts[at.dataset.counts] ?? 0;
    document.dispatchEvent(new Event("lgfed-judged"));
  }
  form.addEventListener("input", show);
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(show));
  show();
});
