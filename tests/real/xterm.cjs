// xterm.js without a browser: takes what a program writes, tells what a person would see.
// Lines of JSON come on standard input: {"write": BASE64}, {"resize": [COLUMNS, ROWS]}, {"look": true};
// lines of JSON go out: {"reply": TEXT}, which a terminal would send back, and one object for each look.
const readline = require("node:readline");

const [, , headless, columns, rows] = process.argv;
const { Terminal } = require(headless);
const terminal = new Terminal({ cols: +columns, rows: +rows, scrollback: 20000, allowProposedApi: true });
let title = "";
let bells = 0;
const tell = (value) => process.stdout.write(JSON.stringify(value) + "\n");

terminal.onData((text) => tell({ reply: text }));
terminal.onTitleChange((text) => { title = text; });
terminal.onBell(() => { bells += 1; });

function look() {
  const buffer = terminal.buffer.active;
  const seen = [];
  const all = [];
  for (let y = 0; y < buffer.length; y += 1) {
    const line = buffer.getLine(y);
    const wrapped = y + 1 < buffer.length && buffer.getLine(y + 1).isWrapped;
    const text = line.translateToString(!wrapped);
    if (y >= buffer.baseY) seen.push(line.translateToString(true));
    if (line.isWrapped && all.length) all[all.length - 1] += text;
    else all.push(text);
  }
  tell({ rows: seen, all, title, bells, kind: buffer.type, modes: terminal.modes });
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const asked = JSON.parse(line);
  if (asked.write !== undefined) terminal.write(Buffer.from(asked.write, "base64"));
  if (asked.resize) terminal.write("", () => terminal.resize(...asked.resize));
  if (asked.look) terminal.write("", look);
});
