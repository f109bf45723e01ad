// The time to the first byte at a fixed rate of chats, whether `reeve serve` keeps up with it or not:
// node rate.js REEVE [CHATS_A_SECOND [SECONDS]]; prints a line of JSON. The model is a script that answers at once; each
// chat has a session of its own and stores its turn. A chat begins at its time by the clock, and its time is counted
// from then on, also when this process was late to send it.
import { Agent, request } from "node:http";
import { residentKb, serve, sleep, spentNs } from "./served.js";

const [reeve, ...numbers] = process.argv.slice(2);
const [aSecond, seconds] = [200, 30].map((usual, i) => Number(numbers[i] ?? usual));
if (!reeve || !(aSecond > 0) || !(seconds > 0)) {
  console.error("usage: rate.js REEVE [CHATS_A_SECOND [SECONDS]]");
  process.exit(2);
}
const WARM = 100;
const PEERS = 20; // addresses that the chats come from: one may have 100 connections, and a machine that is busy with
// something else needs more
const server = await serve(reeve, { script: "models:\n  mock:\n    - {chunks: [Good, ' morning', ' to all.']}\n" });
const agent = new Agent({ keepAlive: true });
const body = JSON.stringify({ model: "mock", stream: true, messages: [{ role: "user", content: "Good morning." }] });
const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
// Milliseconds to the first byte of the body, and to its end.
let n = 0;
function chat(begunMs) {
  const localAddress = `127.0.0.${1 + (n++ % PEERS)}`;
  return new Promise((resolve, reject) => {
    const at = { host: "127.0.0.1", port: server.port, localAddress, agent };
    const options = { ...at, method: "POST", path: "/v1/chat/completions", headers };
    const req = request(options, (res) => {
      let text = "";
      let first = 0;
      res.on("data", (part) => {
        first ||= performance.now() - begunMs;
        text += part;
      });
      res.on("error", reject);
      res.on("end", () => {
        if (text.includes("[DONE]")) resolve([first, performance.now() - begunMs]);
        else reject(new Error(`${res.statusCode}, no end: ${text.slice(-300)}`));
      });
    });
    req.on("error", reject);
    req.end(body);
  });
}

for (let i = 0; i < WARM; i++) await chat(performance.now());
const total = aSecond * seconds;
const begun = performance.now();
const cpu = spentNs(server);
const own = process.cpuUsage();
const chats = [];
const late = []; // milliseconds that this process was behind
while (chats.length < total) {
  const now = performance.now();
  while (chats.length < total && begun + (chats.length * 1000) / aSecond <= now) {
    const due = begun + (chats.length * 1000) / aSecond;
    late.push(now - due);
    chats.push(chat(due));
  }
  await sleep(1);
}
const times = await Promise.all(chats);
const took = (performance.now() - begun) / 1000;
const { user, system } = process.cpuUsage(own);
const at = (list, part) => Number(list.toSorted((a, b) => a - b)[Math.floor(list.length * part)].toFixed(1));
const firsts = times.map(([first]) => first);
const ends = times.map(([, end]) => end);
console.log(
  JSON.stringify({
    asked_a_second: aSecond,
    chats: total,
    done_a_second: Number((total / took).toFixed(1)),
    first_ms: at(firsts, 0.5),
    first_ms_99: at(firsts, 0.99),
    end_ms: at(ends, 0.5),
    end_ms_99: at(ends, 0.99),
    client_late_ms_99: at(late, 0.99),
    cpu_ms_per_chat: Number(((spentNs(server) - cpu) / 1e6 / total).toFixed(2)),
    client_cpu_ms_per_chat: Number(((user + system) / 1000 / total).toFixed(2)),
    resident_mb: Math.round(residentKb(server) / 1024),
  }),
);
process.exit(0);
