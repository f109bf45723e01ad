// A login ends with the answer of the browser, whatever else connects to its port meanwhile.
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { assert, place, start, until, write } from './kit.mjs';

// A server that is its own authorization server, with the usual paths.
const server = createServer((request, response) => {
    request.resume();
    const say = (status, head, body = '') => response.writeHead(status, { connection: 'close', ...head }).end(body);
    if (request.url === '/token')
        return say(200, { 'content-type': 'application/json' }, '{"access_token":"t1","token_type":"Bearer"}');
    say(request.url === '/mcp' ? 401 : 404, { 'content-type': 'text/plain' });
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const at = `127.0.0.1:${server.address().port}`;
process.env.REEVE_ALLOW_NET = '127.0.0.1/32';
write('p.yaml', `name: t
mcp_servers: {wiki: {url: "http://${at}/mcp", auth: {client_id: me}}}
models: {default: "scripted:any"}
prompts: {p: say}
agents: [{name: a, has_llm: true, model_role: default, prompt_key: p}]
`);

const login = start('mcp', 'login', 'p.yaml', 'wiki');
let said = '', status;
for (const out of [login.stdout, login.stderr])
    out.on('data', (text) => { said += text; });
login.on('exit', (code) => { status = code; });
await until(() => /http:\S+authorize\?\S+\s/.test(said) || status !== undefined, login.stdout, login.stderr, login);
assert.equal(status, undefined, said);
const asked = new URL(said.match(/http:\S+authorize\?\S+/)[0]).searchParams;
const back = new URL(asked.get('redirect_uri'));

// More connections than it holds, which send nothing: the oldest give way.
const sockets = [];
let closed = 0;
for (let i = 0; i < 40; i++) {
    const socket = connect(Number(back.port), back.hostname);
    socket.on('error', () => {});
    socket.on('close', () => { closed++; });
    await new Promise((resolve) => socket.on('connect', resolve));
    sockets.push(socket);
}
const answer = await fetch(`${back}?code=c1&state=${encodeURIComponent(asked.get('state'))}`);
assert.equal(answer.status, 200);
await until(() => status !== undefined, login);
assert.equal(status, 0, said);
await until(() => closed === sockets.length, ...sockets);
server.close();
