// Print the first result of each query, by the search of the built site: node search.js SITE QUERY...
const fs = require("node:fs");
const vm = require("node:vm");

const [site, ...queries] = process.argv.slice(2);
const globals = {
  addEventListener() {},
  document: {
    addEventListener() {},
    documentElement: { dataset: { content_root: "./" } },
    getElementById: () => ({}),
    querySelectorAll: () => [],
  },
  DOCUMENTATION_OPTIONS: { BUILDER: "html", FILE_SUFFIX: ".html", LINK_SUFFIX: ".html" },
  localStorage: { setItem() {} },
  queries,
  SPHINX_HIGHLIGHT_ENABLED: false,
  URLSearchParams,
  _: (text) => text,
  _ready() {},
};
globals.window = globals;
const context = vm.createContext(globals);
for (const name of ["_static/language_data.js", "_static/searchtools.js", "searchindex.js"])
  vm.runInContext(fs.readFileSync(`${site}/${name}`, "utf8"), context);
const search = "queries.map((query) => Search._performSearch(...Search._parseQuery(query)).at(-1)?.[0] ?? '')";
console.log(JSON.stringify([...vm.runInContext(search, context)]));
