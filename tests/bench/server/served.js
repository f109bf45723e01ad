// A `reeve serve` to measure, whose model is a script, or another one at an address; and what it has used so far.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const sleep = (ms) => new Promise((resume) => setTimeout(resume, ms));

const work = mkdtempSync(join(tmpdir(), "reeve-served-"));
const children = [];
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(work, { recursive: true, force: true });
});

// The port of the model that tests/bench/mock_llm.c plays.
export async function startModel(mock) {
  const file = join(work, "port");
  writeFileSync(file, "");
  children.push(spawn(mock, [file], { stdio: "inherit" }));
  let port = 0;
  while (!(port = Number(readFileSync(file, "utf8")))) await sleep(5);
  return port;
}

// Chats with the model "mock", as `script` says it (YAML) or the Chat Completions below `modelUrl`: {port, pid}.
export async function serve(reeve, { script, modelUrl }) {
  const agent = `kind: agent\nname: mock\ndescription: Answer.\nmodel: ${script ? "scripted:any" : "openai:mock"}\n`;
  writeFileSync(join(work, "mock.yaml"), agent);
  const args = ["serve", "--listen", "127.0.0.1:0", "--store", join(work, "served.db"), "--schema-dir", work];
  if (script) {
    writeFileSync(join(work, "script.txt"), script);
    args.push("--script", join(work, "script.txt"));
  }
  const env = { PATH: process.env.PATH, HOME: work };
  if (modelUrl) Object.assign(env, { OPENAI_API_KEY: "none", OPENAI_BASE_URL: modelUrl });
  const child = spawn(reeve, args, { stdio: ["ignore", "ignore", "pipe"], env });
  children.push(child);
  let said = "";
  const port = await new Promise((resume, refuse) => {
    child.stderr.on("data", (part) => {
      said += part;
      const found = /127\.0\.0\.1:(\d+)\s/.exec(said);
      if (found) resume(Number(found[1]));
    });
    child.on("exit", () => refuse(new Error(`it does not listen: ${said}`)));
  });
  return { port, pid: child.pid };
}

export const residentKb = ({ pid }) => Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4;
// Nanoseconds of processor time of all threads that are there.
export const spentNs = ({ pid }) =>
  readdirSync(`/proc/${pid}/task`)
    .map((thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]))
    .reduce((sum, ns) => sum + ns, 0);

// The bytes of a request for a chat that streams.
export function chatRequest(port) {
  const body = JSON.stringify({ model: "mock", stream: true, messages: [{ role: "user", content: "Good morning." }] });
  const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n`;
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
