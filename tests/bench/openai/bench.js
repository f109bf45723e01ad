// The streams of bench_stream through the `openai` package: node bench.js PORT STREAMS PIECES EVERY_MS
//
// Counts what bench_tally.c counts, in the same way: streams begin five at a time with a pace and all at once without
// one; every piece says when it was asked for and when it was sent, by the
// monotonic clock that process.hrtime has too. WARM streams are read first, one after the other, so that Node.js has
// compiled what it needs. Prints one line of JSON.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";

const WARM = 20;
const BATCH = 5;
const BATCH_MS = 5;
const [port, ...numbers] = process.argv.slice(2);
const [nStreams, nPieces, everyMs] = numbers.map(Number);
if (numbers.length !== 3 || !(nStreams >= 1) || !(nPieces >= 1) || !(everyMs >= 0)) {
  console.error("usage: bench.js PORT STREAMS PIECES EVERY_MS");
  process.exit(2);
}

const clientOf = (ms) =>
  new OpenAI({ apiKey: "none", baseURL: `http://127.0.0.1:${port}/${nPieces}/${ms}/v1`, maxRetries: 0 });
const client = clientOf(everyMs);
const late = new Float64Array(nStreams * nPieces).fill(1);
const first = [];
let nTaken = 0;

// Nanoseconds as a number are whole up to 2^53: the clock counts from when the machine was started.
const now = () => Number(process.hrtime.bigint());
const resident = () => Number(readFileSync("/proc/self/statm", "utf8").split(" ")[1]) * 4096;

async function readOne(from) {
  const asked = now();
  let n = 0;
  const stream = await from.chat.completions.create({
    model: "mock",
    messages: [{ role: "user", content: "Answer how are errors made? in a few words." }],
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) {
    const text = chunk.choices[0]?.delta?.content;
    if (!text) continue;
    const taken = now();
    const [seen, sent] = text.trim().split(" ").map(Number);
    if (n++ === 0) first.push(taken - asked - (sent - seen));
    late[nTaken++] = taken - sent;
  }
  if (n !== nPieces) throw new Error(`${n} pieces of ${nPieces} came`);
}

for (let i = 0; i < WARM; i++) {
  nTaken = 0;
  await readOne(clientOf(0));
}
nTaken = first.length = 0;
const bytes = resident();
const cpu = process.cpuUsage();
const begun = now();
const streams = [];
for (let i = 0; i < nStreams; i++) {
  if (everyMs > 0) {
    const wait = begun / 1e6 + Math.floor(i / BATCH) * BATCH_MS - now() / 1e6;
    if (wait > 0) await sleep(wait);
  }
  streams.push(readOne(client));
}
await Promise.all(streams);
const took = now() - begun;
const used = process.cpuUsage(cpu);
const peak = process.resourceUsage().maxRSS * 1024;
const us = (values, q) => Math.round(values.sort((a, b) => a - b)[Math.floor(q * values.length)] / 1000);
console.log(
  JSON.stringify({
    who: "openai",
    mode: "node",
    streams: nStreams,
    pieces: nPieces,
    cpu_ns: Math.round(((used.user + used.system) * 1000) / nTaken),
    bytes: Math.round((peak - bytes) / nStreams),
    first_p50_us: us(first, 0.5),
    first_p99_us: us(first, 0.99),
    late_p50_us: us(late, 0.5),
    late_p99_us: us(late, 0.99),
    per_s: Math.round((nTaken * 1e9) / took),
  }),
);
