// Servers of the old era over HTTP that ask a person on the stream of their own (GET), where the question is lost when no
// one listens yet: one that opens the stream late, one that has none, one that never answers, and the protocol's own SDK.
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { assert, here, run, script, write } from './kit.mjs';

const form = { message: 'What is your name?', requestedSchema: { type: 'object', required: ['name'],
               properties: { name: { type: 'string' } } } };

async function body(request) {
    let text = '';
    for await (const piece of request)
        text += piece;
    return text ? JSON.parse(text) : null;
}

// stream: (response, open) of a GET, which calls open with what writes to the stream.
function stub(stream) {
    let write = null, waits = null;
    const seen = [];
    const answer = (response, id, result) => {
        response.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 's1' });
        response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    };
    const serve = async (request, response) => {
        if (request.method === 'GET')
            return stream(response, (to) => { write = to; });
        if (request.method === 'DELETE')
            return response.writeHead(200).end();
        const m = await body(request);
        seen.push(m.method ?? 'answer');
        if (!m.method) {
            waits?.(m.result);
            return response.writeHead(202).end();
        }
        if (m.method === 'server/discover')
            return response.writeHead(400).end();
        if (m.method === 'initialize')
            return answer(response, m.id, { protocolVersion: '2025-06-18', capabilities: { tools: {} },
                                            serverInfo: { name: 'stub', version: '1' } });
        if (m.method === 'tools/list')
            return answer(response, m.id, { tools: [{ name: 'ask', inputSchema: { type: 'object' } }] });
        if (m.id === undefined)
            return response.writeHead(202).end();
        if (!write) // the question is lost, as that of the SDK is; here the test is told
            return answer(response, m.id, { content: [{ type: 'text', text: 'no stream' }] });
        waits = (result) => answer(response, m.id, { content: [{ type: 'text', text: JSON.stringify(result) }] });
        write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 'q' + seen.length, method: 'elicitation/create', params: form })}\n\n`);
    };
    return { seen, serve };
}

async function begin(serve) {
    const host = createServer((request, response) => void serve(request, response));
    await new Promise((resolve) => host.listen(0, '127.0.0.1', resolve));
    write('http.yaml', `name: t
mcp_servers:
  stub: {url: "http://127.0.0.1:${host.address().port}/mcp", elicitation: true, timeout_ms: 20000, tools: {ask: {idempotent: true}}}
models: {default: "scripted:any"}
agents:
  - {name: plan, has_llm: true, model_role: default, prompt_key: p, output_key: plan, default_next: work}
  - {name: work, has_tools: true, allowed_tools: [ask], default_next: end}
prompts: {p: plan it}
`);
    script([{ tool: 'ask', parameters: {} }]);
    const first = await run('run', 'http.yaml', '--script', 'script.yaml', '--input', 'x', '--state');
    const data = (out) => JSON.parse(out).outputs.work.results[0].data;
    return { host, first, data };
}
const accept = () => run('resume', 'last', '--decision', 'accept', '--data', '{"name": "Anna"}', '--state');
const head = { 'Content-Type': 'text/event-stream' };

// The stream opens late: the call waits for it, in the process that begins and in the one that brings the answer.
{
    const { seen, serve } = stub((response, open) => setTimeout(() => {
        response.writeHead(200, head).flushHeaders();
        open((text) => response.write(text));
    }, 300));
    const { host, first, data } = await begin(serve);
    assert.equal(first.status, 3, first.err + first.out);
    const done = await accept();
    assert.equal(done.status, 0, done.err);
    assert.deepEqual(data(done.out), { action: 'accept', content: { name: 'Anna' } });
    assert.ok(seen.includes('answer'), seen.join());
    host.closeAllConnections();
    host.close();
}

// No stream, or one that says nothing: calls go on without it.
for (const stream of [(response) => response.writeHead(405).end(), () => {}]) {
    const { host, first, data } = await begin(stub(stream).serve);
    assert.equal(first.status, 0, first.err);
    assert.deepEqual(data(first.out), { value: 'no stream' });
    host.closeAllConnections();
    host.close();
}

// The SDK of the protocol's authors sends what is not tied to a call on the stream of the server's own.
let packages;
try {
    packages = execFileSync(join(here, '../../kit/packages'), [here], { encoding: 'utf8' }).trim();
} catch (error) {
    process.exit(error.status); // 77: left out on purpose
}
const from = createRequire(join(packages, 'x.js'));
const { McpServer } = from('@modelcontextprotocol/sdk/server/mcp.js');
const { StreamableHTTPServerTransport } = from('@modelcontextprotocol/sdk/server/streamableHttp.js');
const sessions = new Map();
const { host, first, data } = await begin(async (request, response) => {
    const given = request.method === 'POST' ? await body(request) : undefined;
    let transport = sessions.get(request.headers['mcp-session-id']);
    if (!transport) {
        const server = new McpServer({ name: 'sdk', version: '1' });
        server.registerTool('ask', { description: 'Ask.', inputSchema: {} }, async () => {
            const said = await server.server.elicitInput(form);
            return { content: [{ type: 'text', text: JSON.stringify(said) }] };
        });
        transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => 's' + sessions.size,
                                                        onsessioninitialized: (id) => sessions.set(id, transport) });
        await server.connect(transport);
    }
    await transport.handleRequest(request, response, given);
});
assert.equal(first.status, 3, first.err + first.out);
const done = await accept();
assert.equal(done.status, 0, done.err);
assert.deepEqual(data(done.out), { action: 'accept', content: { name: 'Anna' } });
console.log('questions on the stream of the server');
process.exit(0);
