// Loaded first into each file of tests: tells the report why one ended before its tests, as where an import fails.
// Node's runner itself tells no more of that than an exit code.
if (process.env.MARVIN_REPORT && process.env.NODE_TEST_CONTEXT && process.argv[1]) {
  const { appendFileSync } = require('node:fs');
  const { told, below } = require('./node_told.cjs');
  const file = below(process.argv[1]);
  process.on('uncaughtExceptionMonitor', (error) => {
    try {
      const line = { event: 'uncaught', file, ...told(error) };
      appendFileSync(process.env.MARVIN_REPORT, JSON.stringify(line) + '\n', { mode: 0o600 });
    } catch {
      // the report then lacks the reason, and that is how it is read
    }
  });
}
