// Every JavaScript source of the repository: does it parse, does each name that it imports exist, and is it used? Nothing of
// it is run.
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import vm from "node:vm";

const { wrap } = createRequire(import.meta.url)("node:module");
const repository = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
const modules = new Map();
let wrong = 0;

const complain = (file, what) => {
  console.log(`${file}: ${what}`);
  wrong += 1;
};

function sources(folder) {
  return readdirSync(join(repository, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : sources(path);
    return /\.m?js$/.test(entry.name) ? [path] : [];
  });
}

/** The module of a file, once; its imports are still to be linked. */
function moduleOf(path) {
  if (!modules.has(path)) {
    const text = readFileSync(path, "utf8");
    modules.set(path, new vm.SourceTextModule(text, { identifier: path, importModuleDynamically: () => null }));
  }
  return modules.get(path);
}

async function link(specifier, from) {
  if (specifier.startsWith(".")) return moduleOf(resolve(dirname(from.identifier), specifier));
  const names = Object.keys(await import(specifier));
  return new vm.SyntheticModule(names, () => {}, { identifier: specifier });
}

/** Names of import declarations that stand nowhere else. */
function unused(text) {
  const names = [...text.matchAll(/^import\s+([^"']*?)\s+from\b/gm)].flatMap(([, clause]) =>
    clause.replace(/[{}]/g, "").split(",").map((part) => part.trim().split(/\s+as\s+/).pop()).filter(Boolean));
  return names.filter((name) => text.split(new RegExp(`(?<![\\w$])${name.replaceAll("$", "\\$")}(?![\\w$])`)).length === 2);
}

const files = ["exporter", "tests", "deploy", "grafana"].flatMap(sources);
for (const file of files) {
  const path = join(repository, file);
  const text = readFileSync(path, "utf8");
  try {
    if (/^(import|export)\b/m.test(text)) {
      const module = moduleOf(path);
      if (module.status === "unlinked") await module.link(link);
      unused(text).forEach((name) => complain(file, `${name} is imported and not used`));
    } else {
      new vm.Script(wrap(text), { filename: path });
    }
  } catch (error) {
    complain(file, `${error.name}: ${error.message} ${(error.stack.match(/:\d+$/m) ?? [""])[0]}`);
  }
}
if (!files.length) complain("tests/support/lint/javascript", "found no sources");
process.exitCode = wrong ? 1 : 0;
