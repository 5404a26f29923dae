// A folder in transformers.js: node transformers_js.mjs PACKAGES FOLDER TASK DTYPE TEXT...
// PACKAGES is the node_modules that holds @huggingface/transformers. Prints one JSON list.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [packages, folder, task, dtype, ...texts] = process.argv.slice(2);
const found = createRequire(path.join(packages, 'any.js')).resolve('@huggingface/transformers');
const { env, pipeline } = await import(pathToFileURL(found));
env.allowRemoteModels = false;
env.localModelPath = path.dirname(folder);
const run = await pipeline(task, path.basename(folder), { dtype });
const options = task === 'feature-extraction' ? { pooling: 'mean', normalize: true } : {};
const answer = await run(texts, options);
console.log(JSON.stringify(task === 'feature-extraction' ? answer.tolist() : answer));
