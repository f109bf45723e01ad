// Each key of mcp_servers changes what is seen: two variants of it that differ in that key alone. A key without a row
// fails the suite.
import { createServer } from 'node:http';
import { mkdirSync, rmSync } from 'node:fs';
import { assert, env, place, run, script, server, write } from './kit.mjs';

// A server over HTTP that says which headers it got. Below /guarded it wants a token, which /token gives.
const http = createServer((req, res) => {
    let text = '';
    const base = () => `http://127.0.0.1:${http.address().port}`;
    const json = (status, value, headers = {}) =>
        res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
    req.on('data', (bytes) => (text += bytes));
    req.on('end', () => {
        if (req.url.startsWith('/.well-known/oauth-protected-resource'))
            return json(200, { resource: `${base()}/guarded`, authorization_servers: [base()] });
        if (req.url.startsWith('/.well-known/'))
            return json(200, { issuer: base(), authorization_endpoint: `${base()}/authorize`, token_endpoint: `${base()}/token`,
                               grant_types_supported: ['client_credentials'], response_types_supported: ['code'],
                               token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
                               code_challenge_methods_supported: ['S256'] });
        if (req.url === '/token') return json(200, { access_token: 'good', token_type: 'Bearer', expires_in: 600 });
        if (req.url === '/guarded' && req.headers.authorization !== 'Bearer good')
            return json(401, {}, { 'www-authenticate':
                `Bearer resource_metadata="${base()}/.well-known/oauth-protected-resource"` });
        if (req.method !== 'POST') return res.writeHead(405).end();
        const { id, method, params } = JSON.parse(text);
        if (method === 'server/discover') return json(400, { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } });
        if (id === undefined) return res.writeHead(202).end();
        const result = method === 'initialize'
            ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
            : method === 'tools/list'
              ? { tools: [{ name: 'headers', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }] }
              : { content: [{ type: 'text', text: JSON.stringify(Object.keys(req.headers).filter((k) => k.startsWith('x-')).sort()) }] };
        json(200, { jsonrpc: '2.0', id, result });
    });
});
await new Promise((ready) => http.listen(0, '127.0.0.1', ready));
env.REEVE_ALLOW_NET = '127.0.0.1';

const stub = (...args) => `command: ${JSON.stringify(['node', server, ...args])}`;
const web = (path) => `url: "http://127.0.0.1:${http.address().port}${path}"`;
const file = (keys) => write('p.yaml', `name: t
mcp_servers:
  stub:
${keys.map((k) => `    ${k}`).join('\n')}
models: {default: "scripted:any"}
agents:
  - {name: plan, has_llm: true, model_role: default, prompt_key: p, output_key: plan, default_next: work}
  - {name: work, has_tools: true, tool_access: all, allowed_tools: [headers], default_next: end}
prompts: {p: plan it}
`);
const tools = ['mcp', 'tools'];
const call = (tool, args = {}) => ['mcp', 'call', tool, '--args', JSON.stringify(args)];
const runs = ['run', '--script', script([{ tool: 'headers', parameters: {} }]), '--input', 'x', '--state'];

mkdirSync(place('here'));
mkdirSync(place('empty'));
write('here/s.mjs', `import ${JSON.stringify(server)};\n`); // which has modules beside it
file([stub('--tools', '1'), 'catalog: kept.json']);
assert.equal((await run('mcp', 'tools', place('p.yaml'), '--write')).status, 0);

// key: [what to type, what else the server has, before, after]
const rows = {
    'mcp_server.command': [tools, [], stub(), stub('--tools', '2')],
    'mcp_server.url': [tools, [], web('/'), web('/guarded')],
    'mcp_server.openapi': [[...tools, '--offline'], ['url: http://127.0.0.1:9', 'catalog: kept.json'], 'openapi: api.json',
                           'openapi: ""'],
    'mcp_server.env': [call('environment'), [stub('--fault', 'environment')], 'env: {}', 'env: {OWN_WORD: x}'],
    'mcp_server.cwd': [tools, ['command: [node, s.mjs]'], 'cwd: here', 'cwd: empty'],
    'mcp_server.headers': [call('headers'), [web('/')], 'headers: {}', 'headers: {X-Own: a}'],
    'mcp_server.auth': [tools, [web('/guarded')], 'auth: {grant: client_credentials, client_id: me, client_secret: s}',
                        'auth: {client_id: me}'],
    'mcp_server.trusted': [tools, [stub()], 'trusted: true', 'trusted: false'],
    'mcp_server.own': [runs, [web('/')], 'own: true', 'own: false'],
    'mcp_server.pin': [tools, [stub('--mark', 'pin')], 'pin: strict', 'pin: first'],
    'mcp_server.required': [runs, [stub('--fault', 'exit-at-start')], 'required: true', 'required: false'],
    'mcp_server.timeout_ms': [call('slow', { ms: 1500 }), [stub()], 'timeout_ms: 700', 'timeout_ms: 20000'],
    'mcp_server.allow': [tools, [stub()], 'allow: [echo]', 'allow: [add]'],
    'mcp_server.deny': [tools, [stub()], 'deny: [echo]', 'deny: [add]'],
    'mcp_server.resources': [tools, [stub()], 'resources: true', 'resources: false'],
    'mcp_server.prompts': [tools, [stub()], 'prompts: true', 'prompts: false'],
    'mcp_server.elicitation': [call('form', { ask: ['colour'] }), [stub('--era', 'modern')], 'elicitation: true',
                               'elicitation: false'],
    'mcp_server.sampling': [call('form', { ask: ['say:a'] }), [stub('--era', 'modern')], 'sampling: "scripted:any"', 'prompts: false'],
    'mcp_server.max_samplings': [call('form', { ask: ['say:a', 'say:b'] }), [stub('--era', 'modern'), 'sampling: "scripted:any"'],
                                 'max_samplings: 1', 'max_samplings: 2'],
    'mcp_server.roots': [call('form', { ask: ['roots'] }), [stub('--era', 'modern')], 'roots: [here]', 'roots: [empty]'],
    'mcp_server.confirm': [tools, [stub()], 'confirm: never', 'confirm: always'],
    'mcp_server.output_validation': [call('wrong_output'), [stub()], 'output_validation: strict', 'output_validation: off'],
    'mcp_server.catalog': [[...tools, '--offline'], [stub()], 'catalog: kept.json', 'catalog: none.json'],
    'mcp_server.tools': [tools, [stub()], 'tools: {}', 'tools: {echo: {confirm: always}}'],
    'mcp_tool.read_only': [tools, [stub()], 'tools: {count: {read_only: true}}', 'tools: {count: {read_only: false}}'],
    'mcp_tool.destructive': [tools, [stub()], 'tools: {count: {destructive: true}}', 'tools: {count: {destructive: false}}'],
    'mcp_tool.idempotent': [tools, [stub()], 'tools: {count: {idempotent: true}}', 'tools: {count: {idempotent: false}}'],
    'mcp_tool.confirm': [tools, [stub()], 'tools: {echo: {confirm: always}}', 'tools: {echo: {confirm: never}}'],
    'mcp_tool.timeout_ms': [call('slow', { ms: 1500 }), [stub()], 'tools: {slow: {timeout_ms: 700}}',
                            'tools: {slow: {timeout_ms: 20000}}'],
};

// every key of the schema has a row
const { $defs } = JSON.parse((await run('schema', 'pipeline')).out);
for (const table of ['mcp_server', 'mcp_tool'])
    for (const key of Object.keys($defs[table].allOf[0].properties))
        assert.ok(rows[`${table}.${key}`], `no row tries ${table}.${key}`);

const told = async ([verb, ...args], keys) => {
    rmSync(place('state'), { recursive: true, force: true }); // tokens and pins of other variants
    const path = file(keys);
    const at = verb === 'mcp' ? [verb, args[0], path, ...args.slice(1)] : [verb, path, ...args];
    const r = await run(...at);
    return `${r.status}\n${r.out.replace(/"([a-z_]*_ms|[a-z_]*_at|[a-z_]*_id|timestamp)":("[^"]*"|\d+)/g, '')}` +
        `${r.status === 0 ? '' : r.err.replace(/env_\w+/g, '')}`;
};
for (const [key, [args, rest, before, after]] of Object.entries(rows)) {
    const one = await told(args, [...rest, before]);
    const other = await told(args, [...rest, after]);
    assert.notEqual(one, other, `${key}: "${before}" and "${after}" are the same:\n${one}`);
    assert.equal(await told(args, [...rest, before]), one, `${key}: the same twice`);
}
http.close();
http.closeAllConnections();
console.log(`mcp_client_keys: ${Object.keys(rows).length} keys`);
