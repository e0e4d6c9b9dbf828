// The libraries of the page without what it does not use; the rest esbuild leaves out by itself.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

const GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi psi omega";
const SYMPY = "cases array matrix pmatrix log exp sin max hat bar left right mathbb mathcal circ ell in notin cup cap emptyset ll gg prime langle rangle";
const DOCUMENTS = "color definecolor def newcommand global rule hbox '"; // only whole documents have these, by the first of their names
const COMMAND = /(?:\\+|begin\{+)([a-zA-Z@]{2,})/g; // and the names of environments
const LOOKED_UP = /macros\.get\("\\\\([a-zA-Z@]+)"\)/g; // by Temml itself, such as the distance of rows
const UNUSED = /\b(mhchemParser|texify)\b|^\s*export |\bvar temml\$1 = /; // chemistry, and ways to render that are not asked for
const TABLES = /\b(xcolors|unicodeSymbols) = [^]*/; // of names of colours and of accented letters: no formula here has them
const DEFINE = /^define(Symbol|Macro|Function|Environment)$/;

/** Temml as `render` alone, without the commands that no formula here has, in all a third: of its symbols, macros, functions
 * and environments those stay that are written in these folders, those that sympy writes, and what these are made of. */
export function trimmedTemml(file, folders) {
  const text = readFileSync(file, "utf8");
  const greek = GREEK.split(" ").flatMap((name) => [name, `var${name}`, name[0].toUpperCase() + name.slice(1)]);
  const wanted = new Set([...greek, ...SYMPY.split(" ")]);
  for (const folder of folders) for (const written of sources(folder)) for (const name of commandsIn(written)) wanted.add(name);
  const unwanted = new Set(DOCUMENTS.split(" "));
  const statements = ts.createSourceFile(file, text, ts.ScriptTarget.Latest).statements.map((node) => ({ text: text.slice(node.pos, node.end), names: namesOf(node) }));
  const kept = new Set(statements.filter(({ text, names }) => names === null && !UNUSED.test(text)));
  for (const { text } of kept) for (const [, name] of text.matchAll(LOOKED_UP)) wanted.add(name);
  for (let before = -1; before < kept.size; ) {
    before = kept.size;
    for (const one of statements)
      if (!kept.has(one) && one.names && !unwanted.has(one.names[0]) && one.names.some((name) => wanted.has(name) || !/^[a-zA-Z@]+$/.test(name))) {
        kept.add(one);
        for (const name of commandsIn(one.text)) wanted.add(name);
      }
  }
  return statements.filter((one) => kept.has(one)).map((one) => one.text.replace(TABLES, "$1 = {};")).join("") + "\nexport default { render };\n";
}

/** Temml's style, without the rules of what is crossed out, boxed, stretched or numbered. */
export function trimmedStyle(file) {
  return readFileSync(file, "utf8").replace(/[^{}]*(menclose|cancel|strike|sout|longdiv|phasor|fbox|circle|actuarial|tilde-|hat-|Eqn|eqn|shift-left|ff-)[^{}]*\{[^{}]*\}/g, "");
}

/** uPlot with straight lines only, without dates of other zones, and with English numbers: where a browser's language is
 * "en-US@posix", which none but it knows, uPlot would fail as it is loaded. */
export function trimmedPlot(file) {
  return readFileSync(file, "utf8").replace("domEnv ? nav.language : 'en-US'", "'en'").replace(/^\t(\(paths\.(stepped|bars|spline)|uPlot\.(join|fmtDate|tzDate)) .*$/gm, "");
}

const commandsIn = (text) => [...text.matchAll(COMMAND)].map(([, name]) => name);

function sources(folder) {
  return readdirSync(folder, { recursive: true }).filter((name) => /\.(py|tsx?)$/.test(name)).map((name) => readFileSync(join(folder, name), "utf8"));
}

/** Of a statement that defines commands or environments, their names; null of any other. */
function namesOf(node) {
  const call = ts.isExpressionStatement(node) && ts.isCallExpression(node.expression) ? node.expression : null;
  if (!call || !ts.isIdentifier(call.expression) || !DEFINE.test(call.expression.text)) return null;
  const names = call.arguments.find(ts.isObjectLiteralExpression)?.properties.find((one) => one.name?.text === "names")?.initializer;
  const [first, , sign, name] = call.arguments;
  const texts = names ? (names.elements ?? [names]) : !name ? [first] : /^[ -~]$/.test(sign.text) ? [name, sign] : [name];
  return texts.every(ts.isStringLiteral) ? texts.map((one) => one.text.replace(/^\\+/, "")) : null;
}
