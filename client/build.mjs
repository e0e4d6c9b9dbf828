// Bundles the page into the folder that is named, and beside it pages.json: each page and the state it begins with.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { brotliCompressSync } from "node:zlib";
import { options, source, trims } from "./options.mjs";

const out = process.argv[2];
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const name of ["index.html", "icon.svg"]) copyFileSync(join(source, name), join(out, name));

// Each page is a file that is fetched when it is opened. What several need is one file, core.js, but for what is large and
// not needed by all; left alone, esbuild makes a file for each set of pages that share something.
const APART = ["chart.tsx", "formula.tsx", "report.tsx", "words.tsx"];
const pages = readdirSync(join(source, "pages"), { withFileTypes: true }).filter((one) => one.isDirectory()).map((one) => one.name);
const core = readdirSync(join(source, "core")).filter((name) => /\.tsx?$/.test(name) && !APART.includes(name));
const together = [...core.map((name) => join(source, "core", name)), ...pages.map((name) => join(source, "pages", name, "state.ts"))];
const shared = {
  name: "shared",
  setup(bundler) {
    bundler.onLoad({ filter: /(\/main|\/pages\/\w+\/page)\.tsx$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8") + together.map((file) => `import ${JSON.stringify(file)};`).join("\n"),
      loader: "tsx",
    }));
  },
};
const main = { app: join(source, "main.tsx") };
const entryPoints = { ...main, ...Object.fromEntries(pages.map((name) => [name, join(source, "pages", name, "page.tsx")])) };
const loader = { ...options.loader, ".css": "empty" };
const split = await build({ ...options, loader, entryPoints, outdir: out, write: false, splitting: true, metafile: true, plugins: [trims, shared] });
const names = new Map(); // of the files that several pages share, after the largest of our own in them
for (const [path, { entryPoint, inputs }] of Object.entries(split.metafile.outputs)) {
  if (entryPoint) continue;
  const own = Object.keys(inputs).filter((name) => name.startsWith("src/")).sort((one, other) => inputs[other].bytesInOutput - inputs[one].bytesInOutput);
  names.set(basename(path), own.includes("src/core/state.ts") ? "core.js" : basename(own[0], extname(own[0])) + ".js");
}
const scripts = split.outputFiles.map(({ path, text }) => [names.get(basename(path)) ?? basename(path), text.replace(/chunk-\w+\.js/g, (name) => names.get(name) ?? name)]);
// The style of all pages is one small file
const styled = await build({ ...options, entryPoints: main, outdir: out, write: false });
const style = styled.outputFiles.find(({ path }) => path.endsWith("app.css")).text;
for (const [name, text] of [...scripts, ["app.css", style]]) {
  writeFileSync(join(out, name), text);
  writeFileSync(join(out, `${name}.br`), brotliCompressSync(text));
}

// What the bundle holds of others, and under which licences
const bundled = ["preact", "@preact/signals", "@preact/signals-core", "temml", "uplot"].map((name) => {
  const folder = new URL(`node_modules/${name}/`, import.meta.url).pathname;
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()}\n`;
});
writeFileSync(join(out, "licences.txt"), bundled.join(`\n${"-".repeat(72)}\n\n`));

// How each page begins: the list of pages without what they show
const unseen = { name: "unseen", setup: (bundler) => bundler.onResolve({ filter: /\/page$/ }, ({ kind }) => (kind === "dynamic-import" ? { external: true } : null)) };
const list = await build({ ...options, entryPoints: [join(source, "pages/index.ts")], write: false, plugins: [unseen] });
const { PAGES } = await import(`data:text/javascript,${encodeURIComponent(list.outputFiles[0].text)}`);
writeFileSync(join(out, "pages.json"), JSON.stringify(PAGES.map(({ name, title, state }) => ({ name, title, state })), null, 1) + "\n");
