// `reeve serve` and a server of Node.js as wrk loads them, the load generator of Debian's package of that name:
// node wrk.js REEVE MOCK_LLM [CONNECTIONS [SECONDS]]; prints a line of JSON for each. Both have the same model behind
// them; each chat streams and is read to its end. `reeve` stores each of them, the other one nothing.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { serve, spentNs, startModel } from "./served.js";

const [reeve, mock, ...numbers] = process.argv.slice(2);
const [connections, seconds] = [8, 20].map((usual, i) => Number(numbers[i] ?? usual));
if (!mock || !(connections > 0) || !(seconds > 0)) {
  console.error("usage: wrk.js REEVE MOCK_LLM [CONNECTIONS [SECONDS]]");
  process.exit(2);
}
const newModel = async () => `http://127.0.0.1:${await startModel(mock)}/10/0/v1`; // the end of a server may be its end

function load({ port }, s) {
  const how = ["-t1", `-c${connections}`, `-d${s}s`, "--timeout", "30s", "-s", join(import.meta.dirname, "chat.lua")];
  const ran = spawnSync("wrk", [...how, `http://127.0.0.1:${port}/v1/chat/completions`], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (ran.status !== 0) throw new Error(`wrk (Debian's package wrk): ${ran.error ?? ran.status}`);
  return JSON.parse(ran.stdout.split("\n").find((line) => line.startsWith("{")));
}
function report(name, server) {
  load(server, 2);
  const cpu = spentNs(server);
  const { chats, seconds: took, ...more } = load(server, seconds);
  const figures = { connections, chats, chats_per_second: Math.round(chats / took), ...more };
  console.log(JSON.stringify({ server: name, ...figures, cpu_ms_per_chat: (spentNs(server) - cpu) / 1e6 / chats }));
  if (more.not_whole || more.failed) process.exitCode = 1;
}

const ours = await serve(reeve, { modelUrl: await newModel() });
report("reeve", ours);
process.kill(ours.pid);
const peer = spawn(process.execPath, [join(import.meta.dirname, "peer.js"), await newModel()], {
  stdio: ["ignore", "pipe", "inherit"],
});
process.on("exit", () => peer.kill("SIGKILL"));
report("node", { port: Number(String((await once(peer.stdout, "data"))[0])), pid: peer.pid });
process.exit();
