// Bundles the page into the folder that is named, and beside it pages.json: each page and the state it begins with.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { brotliCompressSync } from "node:zlib";

const source = new URL("src/", import.meta.url).pathname;
const out = process.argv[2];
// Temml as a module has chemistry in it, a fifth of its size; as a script it has not
const temml = {
  name: "temml",
  setup(bundler) {
    bundler.onLoad({ filter: /temml\.mjs$/ }, ({ path }) => ({
      contents: readFileSync(path.replace(".mjs", ".min.js"), "utf8") + "\nexport default temml;",
    }));
  },
};
const options = {
  bundle: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".woff2": "empty" },
  preserveSymlinks: true,
  plugins: [temml],
  logLevel: "warning",
};
mkdirSync(out, { recursive: true });
for (const name of ["index.html", "icon.svg"]) copyFileSync(join(source, name), join(out, name));
await build({ ...options, entryPoints: { app: join(source, "main.tsx") }, outdir: out, minify: true, legalComments: "eof" });
// What the bundle holds of others, and under which licences
const bundled = ["preact", "@preact/signals", "@preact/signals-core", "temml", "uplot"].map((name) => {
  const folder = new URL(`node_modules/${name}/`, import.meta.url).pathname;
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()}\n`;
});
writeFileSync(join(out, "licences.txt"), bundled.join(`\n${"-".repeat(72)}\n\n`));
for (const name of ["app.js", "app.css"]) writeFileSync(join(out, `${name}.br`), brotliCompressSync(readFileSync(join(out, name))));

// The pages are read here, where there is no browser: whatever they ask of it gives nothing
const nothing = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : nothing),
  set: () => true,
  apply: () => nothing,
  construct: () => nothing,
});
const browser = new Proxy({ console: nothing }, { has: () => true, get: (own, name) => own[name] ?? globalThis[name] ?? nothing });
const loader = { ...options.loader, ".css": "empty" };
const entryPoints = [join(source, "pages/index.ts")];
const built = await build({ ...options, loader, entryPoints, write: false, outdir: out, format: "iife", globalName: "found" });
const { PAGES } = runInNewContext(`${built.outputFiles[0].text}; found`, browser);
const begins = PAGES.map(({ name, title, state }) => ({ name, title, state }));
writeFileSync(join(out, "pages.json"), JSON.stringify(begins, null, 1) + "\n");
