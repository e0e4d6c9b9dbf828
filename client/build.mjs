// Bundles the page into src/lattend/web/static, where the package finds it. `--watch` builds on every change.
import { build, context } from "esbuild";
import { copyFileSync, mkdirSync } from "node:fs";

const out = new URL("../src/lattend/web/static/", import.meta.url).pathname;
mkdirSync(out, { recursive: true });
for (const name of ["index.html", "icon.svg"]) copyFileSync(new URL(`src/${name}`, import.meta.url).pathname, out + name);

const options = {
  entryPoints: { app: new URL("src/main.tsx", import.meta.url).pathname },
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
  logLevel: "info",
};
if (process.argv.includes("--watch")) await (await context(options)).watch();
else await build(options);
