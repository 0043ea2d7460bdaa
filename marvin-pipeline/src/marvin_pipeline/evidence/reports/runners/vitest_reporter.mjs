// Reports what Vitest does, from version 3 on, as JSON lines: https://vitest.dev/api/advanced/reporters
import { appendFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { told, below } = createRequire(import.meta.url)('./node_told.cjs');
const write = (line) => appendFileSync(process.env.MARVIN_REPORT, JSON.stringify(line) + '\n', { mode: 0o600 });

export default class Reporter {
  onTestRunEnd(modules, unhandled) {
    let count = 0;
    let failed = unhandled.length > 0;
    const report = (name, file, outcome, error) => {
      count += 1;
      failed ||= outcome === 'failed' || outcome === 'error';
      write({ event: 'test', name, file, outcome, ...told(error) });
    };
    for (const module of modules) {
      const file = below(module.moduleId);
      for (const error of module.errors().slice(0, 1)) report(file, file, 'error', error);
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result();
        const outcome = state === 'passed' || state === 'failed' ? state : state === 'skipped' ? 'skipped' : 'error';
        report(`${file} > ${test.fullName}`, file, outcome, outcome === 'failed' ? (errors?.[0] ?? null) : null);
      }
    }
    write({ event: 'end', exit_code: failed ? 1 : 0, count });
  }
}
