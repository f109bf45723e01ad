// An MCP server on a pipe that counts what the process that started it has open: descriptors, threads, children.
import { readdirSync, readFileSync } from 'node:fs';

const count = (folder) => readdirSync(`/proc/${process.ppid}/${folder}`).length;
const children = () => readdirSync(`/proc/${process.ppid}/task`)
    .flatMap((t) => readFileSync(`/proc/${process.ppid}/task/${t}/children`, 'utf8').split(' ').filter((pid) => pid)).length;
const peak = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${process.ppid}/status`, 'utf8'))[1]);
const put = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\n');
let rest = '';
process.stdin.on('data', (bytes) => {
    const lines = (rest + bytes).split('\n');
    rest = lines.pop();
    for (const { id, method, params } of lines.map((line) => JSON.parse(line))) {
        if (method === 'initialize')
            put(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'c', version: '1' } });
        else if (method === 'tools/list')
            put(id, { tools: [{ name: 'open', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }] });
        else if (method === 'tools/call')
            put(id, { content: [], structuredContent: { descriptors: count('fd'), threads: count('task'), children: children(), peak_kb: peak() } });
        else if (id !== undefined)
            process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }) + '\n');
    }
});
process.stdin.on('end', () => process.exit(0));
