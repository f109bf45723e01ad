// What open streams of `reeve serve` cost while nothing begins or ends:
// node crowd.js REEVE MOCK_LLM [STREAMS [EVERY_MS [SECONDS]]]; prints a line of JSON. Each stream is a chat whose model
// sends a piece every EVERY_MS, at most 8,191; all of them are open before the measuring begins. The limit of open files
// has to be above twice STREAMS.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [reeve, mock, ...numbers] = process.argv.slice(2);
const [nStreams, everyMs, seconds] = [1000, 1000, 10].map((usual, i) => Number(numbers[i] ?? usual));
if (!mock || !(nStreams > 0) || !(everyMs > 0) || !(seconds > 0)) {
  console.error("usage: crowd.js REEVE MOCK_LLM [STREAMS [EVERY_MS [SECONDS]]]");
  process.exit(2);
}
const AT_ONCE = 10; // chats that begin at once, and then:
const PAUSE_MS = 40;
const SETTLE_MS = 2000;
const PIECES = 1000000; // of a stream, which ends with the program

const work = mkdtempSync(join(tmpdir(), "reeve-crowd-"));
const children = [];
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(work, { recursive: true, force: true });
});
const sleep = (ms) => new Promise((resume) => setTimeout(resume, ms));

const portFile = join(work, "port");
writeFileSync(portFile, "");
children.push(spawn(mock, [portFile], { stdio: "inherit" }));
let modelPort = 0;
while (!(modelPort = Number(readFileSync(portFile, "utf8")))) await sleep(5);
writeFileSync(join(work, "mock.yaml"), "kind: agent\nname: mock\ndescription: Answer.\nmodel: openai:mock\n");
const base = `http://127.0.0.1:${modelPort}/${PIECES}/${everyMs}/v1`;
const args = ["serve", "--listen", "127.0.0.1:0", "--store", join(work, "crowd.db"), "--schema-dir", work];
const server = spawn(reeve, args, {
  stdio: ["ignore", "ignore", "pipe"],
  env: { PATH: process.env.PATH, HOME: work, OPENAI_API_KEY: "none", OPENAI_BASE_URL: base },
});
children.push(server);
let said = "";
const port = await new Promise((resume) => {
  server.stderr.on("data", (part) => {
    said += part;
    const found = /127\.0\.0\.1:(\d+)\s/.exec(said);
    if (found) resume(Number(found[1]));
  });
});

const resident = () => Number(readFileSync(`/proc/${server.pid}/statm`, "utf8").split(" ")[1]) * 4;
// Nanoseconds of processor time of all threads that are there.
const spent = () => {
  let sum = 0;
  for (const thread of readdirSync(`/proc/${server.pid}/task`))
    sum += Number(readFileSync(`/proc/${server.pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  return sum;
};

const body = JSON.stringify({ model: "mock", stream: true, messages: [{ role: "user", content: "Good morning." }] });
const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n`;
const ask = `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
let late = null; // milliseconds from the model to the client, while they are measured
let nEvents = 0;
function open(i) {
  let hasBegun = false;
  return new Promise((resolve, reject) => {
    const localAddress = `127.0.${1 + Math.floor(i / 5000)}.${1 + (i % 200)}`;
    const socket = connect({ host: "127.0.0.1", port, localAddress }, () => socket.write(ask));
    socket.on("data", (part) => {
      for (const [, , sent] of part.toString("latin1").matchAll(/(\d{19}) (\d{19})/g)) {
        nEvents++;
        hasBegun = true;
        if (late) late.push(Number(process.hrtime.bigint() - BigInt(sent)) / 1e6);
      }
      if (hasBegun) resolve();
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("a stream ended")));
  });
}

await open(0);
const before = resident();
const opened = [];
for (let i = 1; i <= nStreams; i++) {
  opened.push(open(i));
  if (i % AT_ONCE === 0) await sleep(PAUSE_MS);
}
await Promise.all(opened);
await sleep(everyMs + SETTLE_MS);
const during = resident();
late = [];
const [cpu, events] = [spent(), nEvents];
await sleep(seconds * 1000);
const [ns, n] = [spent() - cpu, nEvents - events];
late.sort((a, b) => a - b);
console.log(
  JSON.stringify({
    streams: nStreams,
    every_ms: everyMs,
    kb_per_stream: Number(((during - before) / nStreams).toFixed(1)),
    events: n,
    expected: Math.round(((nStreams + 1) * seconds * 1000) / everyMs),
    cpu_us_per_event: Number((ns / 1000 / n).toFixed(1)),
    late_ms: Number(late[Math.floor(n / 2)].toFixed(1)),
    late_ms_99: Number(late[Math.floor(n * 0.99)].toFixed(1)),
  }),
);
process.exit(0);
