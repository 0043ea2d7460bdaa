// Reports what Jest does, as JSON lines: https://jestjs.io/docs/configuration#custom-reporters
const { appendFileSync } = require('node:fs');
const { told, below } = require('./node_told.cjs');

const OUTCOMES = { passed: 'passed', failed: 'failed', pending: 'skipped', todo: 'skipped', disabled: 'skipped', skipped: 'skipped' };
const write = (line) => appendFileSync(process.env.MARVIN_REPORT, JSON.stringify(line) + '\n', { mode: 0o600 });

class Reporter {
  constructor() {
    this.count = 0;
  }

  onTestResult(test, result) {
    const file = below(result.testFilePath);
    if (result.testExecError) this.report(file, file, 'error', told(result.testExecError));
    for (const one of result.testResults ?? []) {
      const name = [file, ...one.ancestorTitles, one.title].join(' > ');
      const error = one.status === 'failed' ? (one.failureDetails?.[0] ?? null) : null;
      this.report(name, file, OUTCOMES[one.status] ?? 'error', told(error?.error ?? error));
    }
  }

  onRunComplete(contexts, results) {
    write({ event: 'end', exit_code: results.success ? 0 : 1, count: this.count });
  }

  report(name, file, outcome, reason) {
    this.count += 1;
    write({ event: 'test', name, file, outcome, ...reason });
  }
}

module.exports = Reporter;
