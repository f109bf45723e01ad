// What a judge starts as the client: reeve, and what a person at its command line does. The address of the judge's
// server is the last argument. As `judged.mjs browse ADDRESS` it is the browser of a login.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const self = fileURLToPath(import.meta.url);
const address = process.argv.at(-1);

if (process.argv[2] === 'browse') {
    // The judge's authorization server approves at once: its redirect leads to the port at which reeve waits.
    const answer = await fetch(address, { redirect: 'manual' });
    await fetch(answer.headers.get('location'));
    process.exit(0);
}

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const folder = mkdtempSync(join(tmpdir(), 'reeve-judged.'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const env = { ...process.env, XDG_STATE_HOME: join(folder, 'state'), XDG_CONFIG_HOME: join(folder, 'config'),
              REEVE_ALLOW_NET: '127.0.0.1,[::1]' };

function reeve(...args) {
    const r = spawnSync(process.env.REEVE, args, { env, cwd: folder, encoding: 'utf8', maxBuffer: 1 << 26 });
    process.stdout.write(`$ reeve ${args.join(' ')}\n${r.stdout}`);
    process.stderr.write(r.stderr);
    return { status: r.status, out: r.stdout, err: r.stderr };
}

const auth = {};
if (context.client_id)
    auth.client_id = context.client_id;
if (context.client_secret)
    auth.client_secret = context.client_secret;
if (scenario === 'auth/basic-cimd')
    auth.client_metadata = 'https://conformance-test.local/client-metadata.json';
if (scenario.startsWith('auth/client-credentials'))
    auth.grant = 'client_credentials';
if (context.private_key_pem)
    auth.private_key = context.private_key_pem;
if (scenario === 'auth/wif-jwt-bearer')
    Object.assign(auth, { grant: 'jwt_bearer', assertion: context.valid_jwt });
if (context.idp_id_token)
    Object.assign(auth, { grant: 'token_exchange', id_token: context.idp_id_token,
                          idp_token_endpoint: context.idp_token_endpoint, idp_client_id: context.idp_client_id });
writeFileSync(join(folder, 'p.yaml'), JSON.stringify({
    name: 'judged',
    mcp_servers: { judge: { url: address, ...(Object.keys(auth).length ? { auth } : {}) } },
    models: { default: 'scripted:any' },
    agents: [{ name: 'a', has_llm: true, model_role: 'default', prompt_key: 'p', output_key: 'o', default_next: 'end' }],
    prompts: { p: 'x' },
}));

// A person who is told to log in does so, and tries again; after the third time no more.
function signed(...args) {
    let r = reeve(...args);
    for (let i = 0; i < 3 && /reeve mcp login PIPELINE/.test(r.err); i++) {
        const login = reeve('mcp', 'login', 'p.yaml', 'judge', '--browser', `${process.execPath} ${self} browse`);
        if (login.status !== 0)
            return login;
        r = reeve(...args);
    }
    return r;
}

const definition = (tool) => JSON.parse(reeve('mcp', 'inspect', 'p.yaml', `judge.${tool}`).out).definition;

// What is called with which arguments; any other tool of the judge takes none.
const calls = {
    tools_call: () => [['add_numbers', { a: 5, b: 3 }]],
    'http-invalid-tool-headers': () => [['valid_tool', { region: 'us-west1' }]],
    // reeve refuses a null that the schema does not allow before it asks the server: a person leaves the argument out
    'http-custom-headers': () => context.toolCalls.map(({ name, arguments: all }) =>
        [name, Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null))]),
    'json-schema-2020-12-preservation': () =>
        [['json_schema_echo', { schema: definition('json_schema_2020_12_tool').inputSchema }]],
}[scenario] ?? ((tools) => tools.map((tool) => [tool, {}]));

// Tools that ask a person are called by a run, which waits; the person accepts each form as it is.
function answered(tools) {
    const stage = { has_tools: true, allowed_tools: tools, default_next: 'end' };
    writeFileSync(join(folder, 'run.yaml'), JSON.stringify({
        name: 'judged',
        mcp_servers: { judge: { url: address, elicitation: true, confirm: 'never', // such tools may be repeated
                                tools: Object.fromEntries(tools.map((tool) => [tool, { idempotent: true }])) } },
        models: { default: 'scripted:any' },
        agents: [{ name: 'plan', has_llm: true, model_role: 'default', prompt_key: 'p', output_key: 'plan', default_next: 'work' },
                 { name: 'work', ...stage }],
        prompts: { p: 'x' },
    }));
    writeFileSync(join(folder, 'script.yaml'), JSON.stringify({ models: { plan: [{
        json: { steps: tools.map((tool) => ({ tool, parameters: {} })) } }] } }));
    let r = reeve('run', 'run.yaml', '--script', 'script.yaml', '--input', 'x');
    for (let i = 0; i < 10 && r.status === 3; i++)
        r = reeve('resume', 'last', '--decision', 'accept');
    return r.status;
}

const listed = signed('mcp', 'tools', 'p.yaml', '--json');
let status = listed.status;
if (status === 0 && scenario === 'sep-2322-client-request-state')
    status = answered(JSON.parse(listed.out).map((t) => t.short_name));
else if (status === 0)
    for (const [tool, args] of calls(JSON.parse(listed.out).map((t) => t.short_name)))
        status ||= signed('mcp', 'call', 'p.yaml', `judge.${tool}`, '--args', JSON.stringify(args)).status;
process.exit(status);
