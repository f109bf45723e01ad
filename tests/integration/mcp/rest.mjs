// REST servers: operations of a document as tools, from outside. What is sent for a call, what comes of each answer,
// documents that are hostile, addresses that are not allowed, and a change of the document that needs approval.
import { createServer } from 'node:http';
import { assert, env, place, run, script, write } from './kit.mjs';

const seen = [];
let document;
let before; // of an answer; false: it is given
const http = createServer((req, res) => {
    let body = '';
    const json = (status, value, more = {}) =>
        res.writeHead(status, { 'content-type': 'application/json', ...more }).end(JSON.stringify(value));
    req.on('data', (bytes) => (body += bytes));
    req.on('end', () => {
        const { pathname } = new URL(req.url, 'http://x');
        seen.push({ method: req.method, url: req.url, headers: req.headers, body });
        if (before && before(req, res)) return;
        if (pathname === '/openapi.json') return json(200, document);
        if (pathname === '/moved.json') return res.writeHead(302, { location: '/openapi.json' }).end();
        if (pathname === '/away.json') return res.writeHead(302, { location: 'http://localhost:1/openapi.json' }).end();
        if (pathname === '/v1/notes' && req.method === 'GET') return json(200, { notes: ['a'], url: req.url });
        if (pathname === '/v1/notes') return json(201, JSON.parse(body));
        if (pathname === '/v1/text') return res.writeHead(200, { 'content-type': 'text/plain' }).end('plain words');
        if (pathname === '/v1/wrong') return json(200, { notes: 'not a list' });
        if (pathname === '/v1/slow') return; // no answer
        if (pathname === '/v1/busy') return res.writeHead(503).end('later');
        if (pathname === '/v1/endless') {
            res.writeHead(200, { 'content-type': 'application/json' });
            const more = () => res.write('x'.repeat(1 << 20), (error) => error || more());
            return more();
        }
        if (pathname === '/v1/elsewhere') return res.writeHead(307, { location: 'http://localhost:1/v1/text' }).end();
        json(404, { why: 'no such path' });
    });
});
await new Promise((ready) => http.listen(0, '127.0.0.1', ready));
const base = `http://127.0.0.1:${http.address().port}`;

const notes = { type: 'object', required: ['notes'], properties: { notes: { type: 'array', items: { type: 'string' } } } };
const ok = (schema) => ({ responses: { 200: { description: 'ok', content: { 'application/json': { schema } } } } });
const make = () => ({
    openapi: '3.1.0', info: { title: 't', version: '1' }, servers: [{ url: '/v1' }],
    paths: {
        '/notes': {
            get: { operationId: 'find', summary: 'Find notes', ...ok({ $ref: '#/components/schemas/Notes' }),
                   parameters: [{ name: 'text', in: 'query', required: true, schema: { type: 'string' } },
                                { name: 'X-Secret', in: 'header', schema: { type: 'string' } }] },
            post: { operationId: 'add', responses: {},
                    requestBody: { required: true, content: { 'application/json': { schema: { type: 'object' } } } } },
        },
        '/notes/{id}': { delete: { operationId: 'drop', responses: {},
                                   parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }] } },
        '/text': { get: { operationId: 'text', responses: {},
                          parameters: [{ name: 'X-User-Id', in: 'header', schema: { type: 'string' } }] } },
        '/wrong': { get: { operationId: 'wrong', ...ok({ $ref: '#/components/schemas/Notes' }) } },
        '/slow': { get: { operationId: 'slow', responses: {} } },
        '/busy': { get: { operationId: 'busy', responses: {} } },
        '/endless': { get: { operationId: 'endless', responses: {} } },
        '/elsewhere': { get: { operationId: 'elsewhere', responses: {} } },
        '/bad': { get: { operationId: 'bad', parameters: [{ $ref: 'http://evil.test/p.json' }], responses: {} } },
    },
    components: { schemas: { Notes: notes } },
});
document = make();

const file = (keys, more = '') => write('p.yaml', `name: t
mcp_servers:
  api:
${keys.map((key) => `    ${key}`).join('\n')}
models: {default: "scripted:any"}
agents:
  - {name: plan, has_llm: true, model_role: default, prompt_key: p, output_key: plan, default_next: work}
  - {name: work, has_tools: true, tool_access: all, allowed_tools: [find, add], default_next: end}
prompts: {p: plan it}
${more}`);
const call = async (tool, args = {}) => {
    const r = await run('mcp', 'call', place('p.yaml'), tool, '--args', JSON.stringify(args));
    return r.status === 0 ? JSON.parse(r.out).data : r.err;
};
const tools = async () => (await run('mcp', 'tools', place('p.yaml'), '--json'));

// A document that is a file, in YAML or JSON: url says where the server is.
write('api.json', JSON.stringify(document));
env.THE_KEY = 'k-123';
file(['openapi: api.json', `url: ${base}/v1`, 'headers: {X-Secret: "${env:THE_KEY}"}', 'timeout_ms: 60000',
      'tools: {slow: {timeout_ms: 300}}']);
const listed = await tools();
assert.equal(listed.status, 0, listed.err);
assert.deepEqual(JSON.parse(listed.out).map((t) => [t.name, t.effect, t.risk, t.confirmed]).slice(0, 3),
    [['api.find', 'safe', 'read_only', false], ['api.add', 'non_idempotent', 'write', false],
     ['api.drop', 'idempotent', 'destructive', true]]);
assert.match(listed.err, /REST server "api": tool "bad" is left out: GET \/bad: the reference "http:\/\/evil.test\/p.json" leads out/);
assert.equal(seen.length, 0, 'a file is read without a request');
const inspected = JSON.parse((await run('mcp', 'inspect', place('p.yaml'), 'find')).out);
assert.deepEqual(Object.keys(inspected.definition.inputSchema.properties), ['text'], 'a configured header is no argument');

assert.deepEqual(await call('find', { text: 'a&b=c' }), { notes: ['a'], url: '/v1/notes?text=a%26b%3Dc' });
assert.equal(seen.at(-1).headers['x-secret'], 'k-123');
assert.deepEqual(await call('add', { body: { n: 1 } }), { n: 1 });
assert.equal(seen.at(-1).headers['content-type'], 'application/json');
assert.equal(await call('text').then((d) => d.value ?? d), 'plain words');
assert.match(await call('drop', { id: '7' }), /HTTP status 404: \{"why":"no such path"\}/);
const n = seen.length;
assert.match(await call('drop', { id: '..' }), /would lead to another path/);
assert.match(await call('find', {}), /text/);
assert.equal(seen.length, n, 'nothing was sent');
assert.match(await call('wrong'), /notes/);
assert.match(await call('slow'), /timed_out/);
assert.match(await call('busy'), /HTTP status 503: later/);
assert.match(await call('endless'), /larger than 8388608 bytes/);
assert.match(await call('elsewhere'), /another origin/);

// In a run: what changes something has a key, which a repeated call would have, too; the run replays without a server.
script([{ tool: 'find', parameters: { text: 'a' } }, { tool: 'add', parameters: { body: { x: [1.1] } } }]);
const done = await run('run', place('p.yaml'), '--script', 'script.yaml', '--input', 'x', '--state');
assert.equal(done.status, 0, done.err);
assert.equal(JSON.parse(done.out).outputs.work.results[1].status, 'success');
assert.equal(seen.at(-1).body, '{"x":[1.1]}');
assert.match(seen.at(-1).headers['idempotency-key'], /.+/);
assert.equal(seen.at(-2).headers['idempotency-key'], undefined);
assert.equal((await run('replay', 'last')).status, 0);

// Lists that are kept stand in for the document.
file(['openapi: api.json', `url: ${base}/v1`, 'catalog: kept.json']);
assert.equal((await run('mcp', 'tools', place('p.yaml'), '--write')).status, 0);
file(['openapi: gone.json', `url: ${base}/v1`, 'catalog: kept.json']);
const kept = await run('mcp', 'call', place('p.yaml'), 'find', '--args', '{"text":"k"}');
assert.equal(JSON.parse(kept.out).data.url, '/v1/notes?text=k', kept.err);
assert.match(kept.err, /gone.json.*no_connection|no_connection/s);

// Who asks is said by the engine alone to a server that is the author's own, also where a kept list has that argument.
assert.equal(await call('text', { 'X-User-Id': 'root' }).then((d) => d.value ?? d), 'plain words');
assert.equal(seen.at(-1).headers['x-user-id'], 'root', 'an argument like any other');
file(['openapi: gone.json', `url: ${base}/v1`, 'catalog: kept.json', 'own: true']);
await call('text', { 'X-User-Id': 'root' });
assert.equal(seen.at(-1).url, '/v1/text');
assert.equal(seen.at(-1).headers['x-user-id'], undefined);
file(['openapi: api.json', `url: ${base}/v1`, 'own: true']);
const own = JSON.parse((await run('mcp', 'inspect', place('p.yaml'), 'text')).out);
assert.equal(own.definition.inputSchema.properties?.['X-User-Id'], undefined);

// A document with an address: it says where the server is, on its own origin only; a redirect stays there.
for (const at of ['/openapi.json', '/moved.json']) {
    file([`openapi: ${base}${at}`]);
    assert.deepEqual(await call('find', { text: 'x' }), { notes: ['a'], url: '/v1/notes?text=x' });
}
file([`openapi: ${base}/away.json`]);
assert.match((await tools()).err, /another origin/);
document.servers = [{ url: 'http://localhost:1/v1' }];
file([`openapi: ${base}/openapi.json`]);
assert.match((await tools()).err, /not at the document's own address.*url: http:\/\/localhost:1\/v1/s);

// The headers of the server are not for a document that is elsewhere.
file([`openapi: ${base}/openapi.json`, 'url: http://localhost:1/v1', 'headers: {X-Secret: "${env:THE_KEY}"}']);
await tools();
assert.equal(seen.at(-1).headers['x-secret'], undefined);

// A private address that is not written as a number has to be allowed.
file([`openapi: http://private.localhost:${http.address().port}/openapi.json`]);
assert.match((await tools()).err, /\[not_allowed\]/);

// A change of a fetched document needs approval: also one that a model does not see.
document = make();
file([`openapi: ${base}/openapi.json`]);
assert.equal((await tools()).err.includes('mcp approve'), false);
document.paths['/text'].get.operationId = 'find';
delete document.paths['/notes'].get;
const moved = await tools();
assert.match(moved.err, /find/);
assert.equal(JSON.parse(moved.out).some((t) => t.name === 'api.find'), false);

// Documents that are not one, and declarations that mean nothing.
for (const [value, words] of [[[], 'not a document'], [{ swagger: '2.0' }, 'Swagger 2'], [{ openapi: '3.0.0' }, 'no paths']]) {
    document = value;
    file([`openapi: ${base}/openapi.json`]);
    assert.match((await tools()).err, new RegExp(words));
    file([`openapi: ${base}/openapi.json`, 'required: true']);
    assert.notEqual((await tools()).status, 0);
}
for (const [keys, words] of [[['openapi: a', 'command: [x]'], 'exclude each other'], [['openapi: ""'], 'must be a path'],
                             [['openapi: a', 'trusted: true'], '"trusted" has no meaning'],
                             [['openapi: a', 'roots: [x]'], '"roots" has no meaning'], [['timeout_ms: 1'], 'is required']]) {
    const path = file(keys);
    const r = await run('lint', path);
    assert.ok(r.status === 2 && (r.out + r.err).includes(words), r.out + r.err);
}
http.close();
http.closeAllConnections();
console.log('mcp_client_rest: documents, calls, answers');
