// How everything is bundled: the page, and the explorer of notebooks.
import { trimmedPlot, trimmedStyle, trimmedTemml } from "./trim.mjs";

export const source = new URL("src/", import.meta.url).pathname;
const library = new URL("../src/lattend/", import.meta.url).pathname;
let formulas = "";
export const trims = {
  name: "trims",
  setup(bundler) {
    bundler.onLoad({ filter: /temml\.mjs$/ }, ({ path }) => ({ contents: (formulas ||= trimmedTemml(path, [library, source])) }));
    bundler.onLoad({ filter: /Temml-Local\.css$/ }, ({ path }) => ({ contents: trimmedStyle(path), loader: "default" }));
    bundler.onLoad({ filter: /uPlot\.esm\.js$/ }, ({ path }) => ({ contents: trimmedPlot(path) }));
  },
};
export const options = {
  absWorkingDir: new URL(".", import.meta.url).pathname,
  bundle: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".woff2": "empty" },
  preserveSymlinks: true,
  plugins: [trims],
  minify: true,
  charset: "utf8",
  legalComments: "eof",
  logLevel: "warning",
};
