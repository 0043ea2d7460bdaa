// Reports what Node's own test runner does, as JSON lines, and prints one line a test for people.
import { appendFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { told, below } = createRequire(import.meta.url)('./node_told.cjs');
const place = process.env.MARVIN_REPORT;

const write = (line) => appendFileSync(place, JSON.stringify(line) + '\n', { mode: 0o600 });

export default async function* report(source) {
  const names = [];
  let count = 0;
  let failed = false;
  for await (const { type, data } of source) {
    if (type === 'test:start') names[data.nesting] = data.name;
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const isFailed = type === 'test:fail';
    failed ||= isFailed;
    const error = data.details?.error;
    // A suite tells of nothing that its tests do not tell, unless something of its own failed.
    if (data.details?.type === 'suite' && (!isFailed || error?.failureType === 'subtestsFailed')) continue;
    if (isFailed && error?.failureType === 'subtestsFailed') continue;
    const file = below(data.file ?? '');
    const isFile = data.nesting === 0 && Boolean(data.file) && below(data.name) === file;
    const path = [...names.slice(0, data.nesting), data.name].join(' > ');
    let outcome = isFailed ? 'failed' : 'passed';
    if (data.skip !== undefined && data.skip !== false) outcome = 'skipped';
    else if (data.todo !== undefined && data.todo !== false) outcome = isFailed ? 'expected_failure' : 'passed';
    else if (isFailed && (isFile || error?.failureType === 'hookFailed')) outcome = 'error';
    else if (isFile) continue; // a file that holds no tests passes as a test
    count += 1;
    write({ event: 'test', name: isFile ? file : `${file} > ${path}`, file, outcome, ...told(isFailed ? (error?.cause ?? error) : null) });
    yield `${isFailed ? 'not ok' : 'ok'} ${count} - ${path}\n`;
  }
  write({ event: 'end', exit_code: failed ? 1 : 0, count });
}
