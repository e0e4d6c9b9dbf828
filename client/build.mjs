// Bundles the page into the folder that is named.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const source = new URL("src/", import.meta.url).pathname;
const out = process.argv[2];
mkdirSync(out, { recursive: true });
for (const name of ["index.html", "icon.svg"]) copyFileSync(join(source, name), join(out, name));
// Temml as a module has chemistry in it, a fifth of its size; as a script it has not
const temml = {
  name: "temml",
  setup(bundler) {
    bundler.onLoad({ filter: /temml\.mjs$/ }, ({ path }) => ({
      contents: readFileSync(path.replace(".mjs", ".min.js"), "utf8") + "\nexport default temml;",
    }));
  },
};

await build({
  entryPoints: { app: join(source, "main.tsx") },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "eof",
  loader: { ".woff2": "empty" },
  preserveSymlinks: true,
  plugins: [temml],
  logLevel: "warning",
});
