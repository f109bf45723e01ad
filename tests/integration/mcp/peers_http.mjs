// The everything server of the protocol's authors over streamable HTTP: it is listed, its tools are called, also while it
// tells of its progress, and with the session that it gives.
import { execFileSync, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { connect } from 'node:net';
import { join } from 'node:path';
import { assert, here, results, run, script, until, write } from './kit.mjs';

let packages;
try {
    packages = execFileSync(join(here, '../../kit/packages'), [here], { encoding: 'utf8' }).trim();
} catch (error) {
    process.exit(error.status); // 77: left out on purpose
}
// It takes a port by number only: one that was free a moment ago.
const port = await new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
        const { port: found } = probe.address();
        probe.close(() => resolve(found));
    });
});
const program = join(packages, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const peer = spawn(process.execPath, [program, 'streamableHttp'], { env: { ...process.env, PORT: String(port) }, stdio: ['ignore', 'ignore', 'pipe'] });
process.on('exit', () => peer.kill('SIGKILL'));
const answers = () => new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); });
    socket.on('error', () => resolve(false));
});
await until(async () => (await answers()) || peer.exitCode !== null, peer.stderr, peer); // it says that it listens
assert.equal(peer.exitCode, null, 'the server ended');

write('peers.yaml', `name: peers
mcp_servers:
  everything: {url: "http://127.0.0.1:${port}/mcp", required: true, trusted: true, resources: true, prompts: true}
models: {default: "scripted:any"}
agents:
  - {name: plan, has_llm: true, model_role: default, prompt_key: p, output_key: plan, default_next: work}
  - {name: work, has_tools: true, tool_access: all, default_next: end}
prompts: {p: plan it}
`);
const [listed] = JSON.parse((await run('mcp', 'list', 'peers.yaml', '--json')).out);
assert.ok(listed.status === 'ready' && listed.transport === 'http' && listed.tools > 5, JSON.stringify(listed));
const step = (tool, parameters) => ({ tool: `everything.${tool}`, parameters });
script([step('echo', { message: 'über HTTP' }), step('get-sum', { a: 2, b: 3 }),
        step('trigger-long-running-operation', { duration: 0.2, steps: 4 }), step('get-structured-content', { location: 'Chicago' }),
        step('list_resources', {}), step('echo', {})]);
const { out, err, status } = await run('run', 'peers.yaml', '--script', 'script.yaml', '--input', 'x', '--state', '--no-store');
assert.equal(status, 0, err);
const [echo, sum, long, structured, resources, wrong] = results(out);
assert.equal(echo.data?.value, 'Echo: über HTTP', JSON.stringify(echo));
assert.match(String(sum.data?.value), /\b5\b/, JSON.stringify(sum));
assert.match(String(long.data?.value), /completed/i, JSON.stringify(long));
assert.equal(typeof structured.data?.temperature, 'number', JSON.stringify(structured));
assert.ok(resources.data?.items?.length > 0, JSON.stringify(resources));
assert.equal(wrong.status, 'error', JSON.stringify(wrong));
console.log(`everything ${listed.version} over HTTP, ${listed.tools} tools`);
process.exit(0);
