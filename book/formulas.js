// Draws formulas once, when the book is built, so that pages need neither a script nor a network.
// node formulas.js FOLDER < formulas.json: FOLDER has MathJax's components; each formula is
// [TeX, whether it stands on a line of its own]. Prints {style, drawn}, one HTML for each.
const path = require("path");
const {readFileSync} = require("fs");

const settings = {
  loader: {
    paths: {mathjax: path.resolve(process.argv[2])},
    require,
    load: ["input/tex-full", "output/svg", "a11y/assistive-mml", "adaptors/liteDOM"],
  },
  svg: {fontCache: "none"}, // no ids, so that a formula may stand on a page twice
};

async function main() {
  const MathJax = await require(path.resolve(process.argv[2], "node-main.js")).init(settings);
  const page = MathJax.startup.adaptor;
  const drawn = [];
  for (const [tex, display] of JSON.parse(readFileSync(0, "utf8")))
    drawn.push(page.outerHTML(await MathJax.tex2svgPromise(tex, {display})));
  return {style: page.textContent(MathJax.svgStylesheet()), drawn};
}

main().then(
  (found) => process.stdout.write(JSON.stringify(found)),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
