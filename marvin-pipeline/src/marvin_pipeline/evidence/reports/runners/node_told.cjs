// What reports say of an error, for the reporters of Node, Jest and Vitest.
const { relative, resolve, dirname, isAbsolute, sep } = require('node:path');
const { fileURLToPath } = require('node:url');
const { realpathSync } = require('node:fs');

const LONGEST = 1000;
const root = real(process.cwd());

function real(path) {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

// A path relative to the folder that the tests are run in; empty for one elsewhere.
function below(path) {
  if (!path) return '';
  let absolute = String(path);
  if (absolute.startsWith('file:')) {
    try {
      absolute = fileURLToPath(absolute);
    } catch {
      return '';
    }
  }
  const found = relative(root, real(resolve(root, absolute)));
  return found === '' || found === '..' || found.startsWith('..' + sep) || isAbsolute(found) ? '' : found;
}

// What Vite says of a module, and the file that wants it; what Jest and Node say of one that settings lead elsewhere.
const OF_VITE = /Failed to resolve import "([^"]{1,1000})" from "([^"]{1,1000})"/;
const OF_SETTINGS = /Could not locate module (\S{1,1000}) mapped as|Package import specifier "([^"]{1,1000})"/;

// The module that is missing: of a file its path in the project behind `./`, of a package its name.
function missing(error) {
  const message = String(error.message ?? '');
  const ofVite = OF_VITE.exec(message);
  const from = [
    /imported from '?([^'\n]+?)'?$/m.exec(message)?.[1],
    error.requireStack?.[0],
    ofVite && resolve(root, ofVite[2]),
    /^(file:\/\/[^\n]{1,1000}):\d+$/m.exec(String(error.stack ?? ''))?.[1], // of an export that is missing
  ].find(Boolean);
  const base = from ? dirname(from.startsWith('file:') ? fileURLToPath(from) : from) : root;
  const named =
    error.moduleName ??
    (error.url && error.code === 'ERR_MODULE_NOT_FOUND' ? error.url : undefined) ??
    ofVite?.[1] ??
    OF_SETTINGS.exec(message)?.slice(1).find(Boolean) ??
    /Cannot find (?:module|package) '([^']{1,1000})'/.exec(message)?.[1] ??
    /The requested module '([^']{1,1000})' does not provide/.exec(message)?.[1] ??
    /Named export '[^']{1,200}' not found\. The requested module '([^']{1,1000})'/.exec(message)?.[1];
  if (named === undefined) return '';
  if (!named.startsWith('file:') && !isAbsolute(named) && !named.startsWith('.')) return named;
  const inside = below(named.startsWith('.') ? resolve(base, named) : named);
  return inside ? `./${inside}` : named;
}

const MISSING = new Set(['MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND', 'ERR_PACKAGE_PATH_NOT_EXPORTED', 'ERR_UNSUPPORTED_DIR_IMPORT', 'ERR_PACKAGE_IMPORT_NOT_DEFINED']);
const NO_EXPORT = /does not provide an export named|^Named export '/;

function cause(error) {
  if (MISSING.has(error.code)) return 'MODULE_NOT_FOUND';
  if (OF_VITE.test(error.message ?? '') || OF_SETTINGS.test(error.message ?? '')) return 'MODULE_NOT_FOUND';
  // An export that is not there is a SyntaxError to Node; what is wrong is the module, not the test.
  if (error.name === 'SyntaxError' && NO_EXPORT.test(error.message ?? '')) return 'MISSING_EXPORT';
  if (error.code === 'ERR_ASSERTION' || error.name === 'AssertionError' || error.matcherResult) return 'AssertionError';
  // Jest hands on plain objects, whose class only their stack begins with.
  return String(error.name ?? /^(\w{1,100}):/.exec(String(error.stack ?? ''))?.[1] ?? '');
}

// The file that the topmost line of the stack names, if it is one of the project.
function origin(error) {
  const line = String(error.stack ?? '').split('\n').find((one) => /^\s+at /.test(one) && !/\(node:|at node:/.test(one)) ?? '';
  const path = /(?:\(|at |async )(?:async )?((?:file:\/\/)?\/[^()\n]{1,1000}?):\d+:\d+\)?$/.exec(line)?.[1];
  return below(path);
}

function told(error) {
  if (error === null || error === undefined) return { cause: '', missing: '', origin: '', message: '' };
  if (typeof error !== 'object') return { cause: '', missing: '', origin: '', message: String(error).slice(0, LONGEST) };
  const kind = cause(error);
  return {
    cause: kind.slice(0, LONGEST),
    missing: kind === 'MODULE_NOT_FOUND' || kind === 'MISSING_EXPORT' ? missing(error).slice(0, LONGEST) : '',
    origin: origin(error),
    message: String(error.message ?? '').slice(0, LONGEST),
  };
}

module.exports = { told, below };
