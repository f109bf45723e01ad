// What the suites about MCP servers share: a folder of their own, runs of reeve, waiting for facts.
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync, existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { strict as assert } from 'node:assert';
import { until as untilTold } from '../../kit/until.mjs';

export const here = dirname(fileURLToPath(import.meta.url));
export const server = join(here, 'server.mjs');
export const folder = mkdtempSync(join(tmpdir(), 'reeve-mcp.'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
export const reeve = process.argv[2];
export const place = (name) => join(folder, name);

export function write(name, text) {
    writeFileSync(place(name), text);
    return place(name);
}

export const env = { ...process.env, XDG_STATE_HOME: place('state'), XDG_CONFIG_HOME: place('config'),
                     SECRET_OF_OURS: 'do-not-pass-on' };

// {status, out, err} of a run of reeve.
export function run(...args) {
    return new Promise((resolve) =>
        execFile(reeve, args, { env, cwd: folder, maxBuffer: 1 << 26 }, (error, out, err) =>
            resolve({ status: error ? error.code ?? error.signal : 0, out, err })));
}

export const start = (...args) => spawn(reeve, args, { env, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });

// Waits for a fact: of files of the folder, unless other sources are named.
export const until = (fact, ...sources) => untilTold(fact, ...(sources.length ? sources : [folder]));

// Until all processes whose command line has that text have ended.
export async function gone(text) {
    for (let pids; (pids = processes(text)).length;) {
        const watcher = spawn(join(dirname(reeve), '../tests/kit/changes'), ['600', ...pids]);
        await until(() => processes(text).length < pids.length || watcher.exitCode !== null, watcher.stdout, watcher);
        watcher.kill();
    }
}

export const lines = (name) => existsSync(place(name))
    ? readFileSync(place(name), 'utf8').split('\n').filter((line) => line)
    : [];

// Processes whose command line has that text.
export const processes = (text) => readdirSync('/proc').filter((pid) => {
    try {
        return /^\d+$/.test(pid) && Number(pid) !== process.pid &&
            readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(text);
    } catch {
        return false; // it has ended meanwhile
    }
});

// A pipeline whose stages call tools of the stub server.
export function pipeline(name, serverArgs, more = '', tools = 'echo') {
    return write(name, `name: t
mcp_servers:
  stub:
    command: ${JSON.stringify(['node', server, ...serverArgs])}
    timeout_ms: 60000
${more}
models: {default: "scripted:any"}
agents:
  - {name: plan, has_llm: true, model_role: default, prompt_key: p, output_key: plan, default_next: work}
  - {name: work, has_tools: true, allowed_tools: [${tools}], default_next: end}
prompts: {p: plan it}
`);
}

export const script = (steps) => write('script.yaml', `models:\n  plan: [{json: {steps: ${JSON.stringify(steps)}}}]\n`);

// The results of the stage `work` of a run.
export const results = (state) => JSON.parse(state).outputs.work.results;
export { assert };
