// `reeve serve` and a server of Node.js as clients of Chat Completions see them, with the same model behind both:
// node bench.js REEVE MOCK_LLM [CHATS [STREAMS]]; prints a line of JSON for each. `reeve` stores each turn and its pieces
// in a file of SQLite, the other one stores nothing.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [reeve, mock, ...numbers] = process.argv.slice(2);
const [nChats, nStreams] = [Number(numbers[0] ?? 2000), Number(numbers[1] ?? 1000)];
if (!mock || !(nChats > 0) || !(nStreams > 0)) {
  console.error("usage: bench.js REEVE MOCK_LLM [CHATS [STREAMS]]");
  process.exit(2);
}
const PIECES = 10;
const PIECE = 40; // bytes of text
const EVERY_MS = 1000; // of an open stream
const AT_ONCE = 8;
const WARM = 100;

const work = mkdtempSync(join(tmpdir(), "reeve-bench-"));
const children = [];
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(work, { recursive: true, force: true });
});
const start = (program, args, env = {}) => {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } });
  children.push(child);
  return child;
};
const stop = async (child) => {
  child.kill("SIGTERM");
  await once(child, "close");
};

const portFile = join(work, "port");
writeFileSync(portFile, "");
start(mock, [portFile]);
let modelPort = 0;
while (!modelPort) {
  modelPort = Number(readFileSync(portFile, "utf8"));
  await new Promise((resume) => setImmediate(resume));
}
const modelUrl = (everyMs) => `http://127.0.0.1:${modelPort}/${PIECES}/${everyMs}/v1`;

// The server begins to listen: {child, port}.
async function serveWithReeve(everyMs) {
  writeFileSync(join(work, "mock.yaml"), "kind: agent\nname: mock\ndescription: Answer.\nmodel: openai:mock\n");
  const store = join(work, `${everyMs}.db`);
  const args = ["serve", "--listen", "127.0.0.1:0", "--store", store, "--schema-dir", work];
  const child = spawn(reeve, args, {
    stdio: ["ignore", "ignore", "pipe"],
    env: { PATH: process.env.PATH, HOME: work, OPENAI_API_KEY: "none", OPENAI_BASE_URL: modelUrl(everyMs) },
  });
  children.push(child);
  let said = "";
  for await (const part of child.stderr) {
    said += part;
    const port = /127\.0\.0\.1:(\d+)/.exec(said)?.[1];
    if (port && said.includes("\n")) {
      child.stderr.resume();
      return { child, port };
    }
  }
  throw new Error(`it does not listen: ${said}`);
}
async function serveWithNode(everyMs) {
  const child = start(process.execPath, [join(import.meta.dirname, "peer.js"), modelUrl(everyMs)]);
  const [line] = await once(child.stdout, "data");
  return { child, port: String(line).trim() };
}

const resident = (pid) => Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096;
// Milliseconds of processor time; the kernel counts ticks of ten.
const spent = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
};

const pool = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
const body = JSON.stringify({ model: "mock", stream: true, messages: [{ role: "user", content: "Good morning." }] });
const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
function chat(port, options, onFirst) {
  return new Promise((resolve, reject) => {
    const req = request({ host: "127.0.0.1", port, method: "POST", path: "/v1/chat/completions", headers, ...options });
    req.on("error", reject);
    req.on("response", (res) => {
      let text = "";
      res.on("data", (part) => {
        text += part;
        if (onFirst && text.includes('"content":"')) {
          onFirst();
          onFirst = null;
        }
      });
      res.on("error", reject);
      res.on("end", () => {
        // Pieces that came together may be sent on as one; white space at the end of an answer is left out by `reeve`.
        const lines = text.split("\n").filter((line) => line.startsWith("data: {"));
        const said = lines.map((line) => JSON.parse(line.slice(6)).choices?.[0]?.delta?.content ?? "").join("");
        const whole = said.trimEnd().length === PIECES * PIECE - 1 && text.includes("[DONE]");
        if (whole) resolve();
        else reject(new Error(`${said.length} bytes: ${text.slice(-300)}`));
      });
    });
    req.end(body);
  });
}

const at = (sorted, part) => Number(sorted[Math.floor(sorted.length * part)].toFixed(2));
async function chats({ child, port }) {
  for (let i = 0; i < WARM; i++) await chat(port, { agent: pool });
  const first = [];
  let left = nChats;
  const cpu = spent(child.pid);
  const began = performance.now();
  const loop = async () => {
    while (left-- > 0) {
      const asked = performance.now();
      await chat(port, { agent: pool }, () => first.push(performance.now() - asked));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, loop));
  const seconds = (performance.now() - began) / 1000;
  first.sort((a, b) => a - b);
  return {
    chats_per_second: Math.round(nChats / seconds),
    first_ms: at(first, 0.5),
    first_ms_99: at(first, 0.99),
    cpu_ms_per_chat: Number(((spent(child.pid) - cpu) / nChats).toFixed(2)),
  };
}
async function streams({ child, port }) {
  await chat(port, { agent: false });
  const before = resident(child.pid);
  const cpu = spent(child.pid);
  let open = 0;
  let opened;
  const all = new Promise((resume) => (opened = resume));
  const ends = Array.from({ length: nStreams }, (_, i) =>
    chat(port, { agent: false, localAddress: `127.0.1.${1 + (i % 200)}` }, () => ++open === nStreams && opened()),
  );
  await Promise.race([all, Promise.all(ends)]);
  const during = resident(child.pid);
  await Promise.all(ends);
  return {
    streams: nStreams,
    kb_per_stream: Number(((during - before) / 1024 / nStreams).toFixed(1)),
    cpu_us_per_event: Math.round(((spent(child.pid) - cpu) * 1000) / (nStreams * PIECES)),
  };
}

for (const [name, serve] of [["reeve", serveWithReeve], ["node", serveWithNode]]) {
  let server = await serve(0);
  const one = await chats(server);
  await stop(server.child);
  server = await serve(EVERY_MS);
  const many = await streams(server);
  await stop(server.child);
  console.log(JSON.stringify({ server: name, ...one, ...many }));
}
process.exit(0);
