// Bundles the page into the folder that is named.
import { build } from "esbuild";
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";

const source = new URL("src/", import.meta.url).pathname;
const out = process.argv[2];
mkdirSync(out, { recursive: true });
for (const name of ["index.html", "icon.svg"]) copyFileSync(join(source, name), join(out, name));
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
  logLevel: "warning",
});
