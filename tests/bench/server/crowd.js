// What open streams of `reeve serve` cost while nothing begins or ends:
// node crowd.js REEVE MOCK_LLM [STREAMS [EVERY_MS [SECONDS]]]; prints a line of JSON. Each stream is a chat whose model
// sends a piece every EVERY_MS, at most 8,191; all of them are open before the measuring begins. MOCK_LLM "script": the
// server plays the model itself, and each client sees that it gets all pieces in their order. The limit of open files
// has to be above STREAMS, with MOCK_LLM above twice as many.
import { connect } from "node:net";
import { chatRequest, residentKb, serve, sleep, spentNs, startModel } from "./served.js";

const [reeve, mock, ...numbers] = process.argv.slice(2);
const [nStreams, everyMs, seconds] = [1000, 1000, 10].map((usual, i) => Number(numbers[i] ?? usual));
if (!mock || !(nStreams > 0) || !(everyMs > 0) || !(seconds > 0)) {
  console.error('usage: crowd.js REEVE MOCK_LLM|script [STREAMS [EVERY_MS [SECONDS]]]');
  process.exit(2);
}
const AT_ONCE = 10; // chats that begin at once, and then:
const PAUSE_MS = 40;
const SETTLE_MS = 2000;
const PIECES = 1000000; // of a stream, which ends with the program
const isScripted = mock === "script";

// A stream of the script has pieces until all others are open, and for the time of measuring.
function script() {
  const ms = (nStreams / AT_ONCE) * PAUSE_MS * 3 + 2 * SETTLE_MS + seconds * 1000;
  const pieces = Array.from({ length: Math.ceil(ms / everyMs) + 3 }, (_, i) => {
    const text = `<${String(i).padStart(5, "0")}> a piece of usual length. `;
    return `{text: "${text}", delay_ms: ${everyMs}}`;
  });
  return `models:\n  mock:\n    - {chunks: [${pieces.join(", ")}]}\n`;
}

const server = isScripted
  ? await serve(reeve, { script: script() })
  : await serve(reeve, { modelUrl: `http://127.0.0.1:${await startModel(mock)}/${PIECES}/${everyMs}/v1` });
const ask = chatRequest(server.port);
let late = null; // milliseconds from the model to the client, while they are measured
let nEvents = 0;
let nLost = 0;
function open(i) {
  let hasBegun = false;
  let next = 0;
  return new Promise((resolve, reject) => {
    const localAddress = `127.0.${1 + Math.floor(i / 5000)}.${1 + (i % 200)}`;
    const socket = connect({ host: "127.0.0.1", port: server.port, localAddress }, () => socket.write(ask));
    socket.on("data", (part) => {
      for (const [, , sent, number] of part.toString("latin1").matchAll(/(\d{19}) (\d{19})|<(\d{5})>/g)) {
        nEvents++;
        hasBegun = true;
        if (number && Number(number) !== next++) nLost++;
        if (sent && late) late.push(Number(process.hrtime.bigint() - BigInt(sent)) / 1e6);
      }
      if (hasBegun) resolve();
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("a stream ended")));
  });
}

await open(0);
const before = residentKb(server);
const opened = [];
for (let i = 1; i <= nStreams; i++) {
  opened.push(open(i));
  if (i % AT_ONCE === 0) await sleep(PAUSE_MS);
}
await Promise.all(opened);
await sleep(everyMs + SETTLE_MS);
const during = residentKb(server);
late = [];
const [cpu, events] = [spentNs(server), nEvents];
await sleep(seconds * 1000);
const [ns, n] = [spentNs(server) - cpu, nEvents - events];
late.sort((a, b) => a - b);
console.log(
  JSON.stringify({
    streams: nStreams,
    every_ms: everyMs,
    model: isScripted ? "script" : "mock_llm",
    kb_per_stream: Number(((during - before) / nStreams).toFixed(1)),
    events: n,
    expected: Math.round(((nStreams + 1) * seconds * 1000) / everyMs),
    cpu_us_per_event: Number((ns / 1000 / n).toFixed(1)),
    ...(isScripted
      ? { lost: nLost }
      : { late_ms: Number(late[Math.floor(n / 2)].toFixed(1)), late_ms_99: Number(late[Math.floor(n * 0.99)].toFixed(1)) }),
  }),
);
process.exit(0);
