// Bundles the explorer of notebooks into the file that is named: one module, its style inside.
import { build } from "esbuild";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { options, source, trims } from "./options.mjs";

// What is the page's own: its server, its theme, and problems that change its state
const INSTEAD = { batch: "channel.ts", theme: "theme.ts", panel: "problem.tsx" };
const instead = {
  name: "instead",
  setup(bundler) {
    bundler.onResolve({ filter: /(^\.|core)\/(batch|theme|panel)$/ }, ({ path, importer }) => {
      if (importer.includes("/notebook/")) return null;
      return { path: join(source, "notebook", INSTEAD[path.split("/").at(-1)]) };
    });
  },
};
const entryPoints = { explorer: join(source, "notebook", "main.tsx") };
const common = { ...options, entryPoints, outdir: "out", write: false, plugins: [trims, instead] };

// In a shadow tree the element around it is the root
const styled = await build({ ...common, define: { STYLE: '""' } });
const style = styled.outputFiles.find(({ path }) => path.endsWith(".css")).text;
const inside = style.replace(/:root(\[[^\]]*\])/g, ":host($1)").replace(/:root\b/g, ":host").replace(/(^|\})html\{/g, "$1:host{");
const loader = { ...options.loader, ".css": "empty" };
const banner = { js: "/* Lattend's rule explorer, built from client/src/notebook. It holds preact, @preact/signals and temml (MIT): see web/static/licences.txt */" };
const { outputFiles } = await build({ ...common, loader, banner, define: { STYLE: JSON.stringify(inside) } });
writeFileSync(process.argv[2], outputFiles.find(({ path }) => path.endsWith(".js")).text);
