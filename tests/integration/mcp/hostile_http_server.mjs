// An MCP server over HTTP that breaks every rule: each of its tools is one of them. The folder of its address
// says what is wrong from the start: /modern/, /legacy/, /session-.../, /auth-.../. What is endless is made as it is read.
import { createServer } from 'node:http';
import { deflateSync, gzipSync } from 'node:zlib';

const piece = Buffer.alloc(1 << 16, 'x');
const json = { 'content-type': 'application/json' };
const events = { 'content-type': 'text/event-stream' };
const message = (m) => JSON.stringify({ jsonrpc: '2.0', ...m });
const event = (m, id) => `${id === undefined ? '' : `id: ${id}\n`}data: ${message(m)}\n\n`;
const words = (id, text) => ({ id, result: { resultType: 'complete', content: [{ type: 'text', text }] } });

// Writes for as long as the client reads.
function endless(res, what = piece) {
    const more = () => {
        while (!res.destroyed && res.write(what));
    };
    res.on('drain', more);
    res.on('error', () => {});
    more();
}
// Faster than a client reads them.
const notices = Buffer.from(event({ method: 'notifications/message', params: {} }).repeat(16384));
const asks = Array.from({ length: 5000 }, (_, id) => event({ id, method: 'roots/list' })).join('');
const silence = gzipSync(Buffer.alloc(1 << 26, notices), { level: 1 });
const bomb = gzipSync(Buffer.concat([
    Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"'), Buffer.alloc(64 << 20, 'y'), Buffer.from('"}]}}')]), { level: 1 });

// What a call is answered with: {id of the request, the server's state}.
export const faults = {
    none: (res, id) => res.writeHead(200, json).end(message(words(id, 'fine'))),
    // --- more than a client can keep ---
    'endless-body': (res) => endless(res.writeHead(200, json)),
    'huge-message': (res, id) => {
        res.writeHead(200, json).write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`);
        endless(res);
    },
    'endless-line': (res) => {
        res.writeHead(200, events).write('data: ');
        endless(res);
    },
    'endless-event': (res) => endless(res.writeHead(200, events), Buffer.from('data: x\n'.repeat(8192))),
    'endless-comments': (res) => endless(res.writeHead(200, events), Buffer.from(`: ${'c'.repeat(65530)}\n\n`)),
    'endless-notifications': (res) =>
        endless(res.writeHead(200, events), notices),
    'gzip-bomb': (res) => res.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(bomb),
    'gzip-bomb-error': (res) => res.writeHead(500, { ...json, 'content-encoding': 'gzip' }).end(bomb),
    'gzip-bomb-events': (res) => res.writeHead(200, { ...events, 'content-encoding': 'gzip' }).end(silence),
    'gzip-of-gzip': (res) =>
        res.writeHead(200, { ...json, 'content-encoding': Array(20).fill('gzip').join(', ') }).end(bomb),
    'gzip-broken': (res) => res.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end('this is not gzip'),
    'deflate-cut': (res) => res.writeHead(200, { ...json, 'content-encoding': 'deflate' }).end(deflateSync(piece).subarray(0, 20)),
    'endless-head': (res) => {
        const { socket } = res.req;
        socket.write('HTTP/1.1 200 OK\r\n');
        endless(socket, Buffer.from(`X-More: ${'h'.repeat(4000)}\r\n`));
    },
    'many-headers': (res) => res.req.socket.end(`HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(20000)}\r\n`),
    'early-hints': (res) => endless(res.req.socket, Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100))),
    // --- what is not a message, or not the response ---
    'invalid-utf8': (res, id) => res.writeHead(200, json).end(Buffer.concat([
        Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`),
        Buffer.from([0xff, 0xfe, 0xc0]), Buffer.from('"}]}}')])),
    'invalid-utf8-event': (res, id) => res.writeHead(200, events).end(Buffer.concat([
        Buffer.from(`data: {"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`),
        Buffer.from([0xff, 0xfe, 0xc0]), Buffer.from('"}]}}\n\n')])),
    deep: (res, id) => res.writeHead(200, json).end(`{"jsonrpc":"2.0","id":${id},"result":${'['.repeat(5000)}${']'.repeat(5000)}}`),
    nul: (res, id) => res.writeHead(200, json).end(`\0${message(words(id, 'x'))}`),
    'empty-body': (res) => res.writeHead(200, json).end(),
    batch: (res, id) => res.writeHead(200, json).end(`[${message(words(id, 'in a list'))}]`),
    'two-values': (res, id) => res.writeHead(200, json).end(message(words(id, 'first')) + message(words(id, 'second'))),
    'wrong-id': (res, id) => res.writeHead(200, json).end(message(words(id + 1000, 'wrong'))),
    'text-id': (res, id) => res.writeHead(200, json).end(message(words(String(id), 'wrong'))),
    'id-of-another': (res, id) => res.writeHead(200, json).end(message(words(1, 'wrong'))),
    'wrong-ids-then-right': (res, id) => {
        res.writeHead(200, events);
        for (const wrong of [id + 1000, String(id), -1, 0, 1.5, null, { a: 1 }, [id]]) res.write(event(words(wrong, 'wrong')));
        res.end(event(words(id, 'right')));
    },
    twice: (res, id) => res.writeHead(200, events).end(event(words(id, 'first')) + event(words(id, 'second')) +
                                                       event({ id, error: { code: 1, message: 'third' } })),
    'answers-and-stays': (res, id) => res.writeHead(200, events).write(event(words(id, 'answered'))),
    html: (res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<h1>welcome</h1>'),
    'endless-html': (res) => endless(res.writeHead(200, { 'content-type': 'text/html' })),
    'no-type': (res, id) => res.writeHead(200).end(message(words(id, 'x'))),
    'hostile-type': (res, id) => res.writeHead(200, { 'content-type': `application/json${'x'.repeat(5000)}` }).end(message(words(id, 'x'))),
    accepted: (res) => res.writeHead(202).end(),
    'no-content': (res) => res.writeHead(204).end(),
    'not-http': (res) => res.req.socket.end('SSH-2.0-OpenSSH_9.2\r\n'),
    'http-0.9': (res) => res.req.socket.end('welcome'),
    // --- while other things are said ---
    'notifications': (res, id) => {
        res.writeHead(200, events);
        for (let i = 0; i < 20000; i++)
            res.write(event({ method: 'notifications/message', params: { level: 'info', data: 'n'.repeat(100) } }));
        res.end(event(words(id, 'after the flood')));
    },
    progress: (res, id, params) => {
        res.writeHead(200, events);
        for (let i = 0; i < 20000; i++)
            res.write(event({ method: 'notifications/progress',
                              params: { progressToken: params._meta?.progressToken, progress: i % 7, message: 'p' } }));
        res.end(event(words(id, 'after the progress')));
    },
    requests: (res, id) => {
        res.writeHead(200, events);
        for (const method of ['sampling/createMessage', 'roots/list', 'tasks/get', 'no/such'])
            for (let i = 0; i < 250; i++) res.write(event({ id: `${method}${i}`, method, params: {} }));
        res.end(event(words(id, 'asked')));
    },
    changes: (res, id, params, state) => {
        state.isChanged = true;
        res.writeHead(200, events).end(event({ method: 'notifications/tools/list_changed' }) + event(words(id, 'changed')));
    },
    // --- elsewhere ---
    'redirect-private': (res) => res.writeHead(307, { location: 'http://10.0.0.1/' }).end(),
    'redirect-metadata': (res) => res.writeHead(308, { location: 'http://169.254.169.254/latest/meta-data' }).end(),
    'redirect-port': (res, id, params, state) => res.writeHead(307, { location: state.elsewhere }).end(),
    'redirect-user': (res, id, params, state) => res.writeHead(307, { location: state.own.replace('//', '//user:word@') }).end(),
    'redirect-file': (res) => res.writeHead(307, { location: 'file:///etc/passwd' }).end(),
    'redirect-garbage': (res) => res.writeHead(307, { location: '//['.repeat(3000) }).end(),
    'redirect-loop': (res, id, params, state) => res.writeHead(307, { location: state.own }).end(),
    'redirect-get': (res, id, params, state) => res.writeHead(302, { location: state.own }).end(),
    // --- silence, and ends ---
    'no-head': () => {},
    'no-body': (res) => res.writeHead(200, json).flushHeaders(),
    'stalled-stream': (res) => res.writeHead(200, events).flushHeaders(),
    'stalled-event': (res, id) => res.writeHead(200, events).write(event(words(id, 'never complete')).slice(0, -1)),
    reset: (res) => res.req.socket.resetAndDestroy(),
    closed: (res) => res.req.socket.destroy(),
    'reset-in-head': (res) => { res.req.socket.write('HTTP/1.1 200 O'); setTimeout(() => res.req.socket.destroy(), 5); },
    'reset-in-body': (res, id) => {
        res.writeHead(200, json).write(message(words(id, 'x')).slice(0, 30), () => res.req.socket.resetAndDestroy());
    },
    'short-body': (res, id) => {
        res.writeHead(200, { ...json, 'content-length': 5000 }).write(message(words(id, 'x')), () => res.req.socket.destroy());
    },
    'cut-in-event': (res, id) => {
        res.writeHead(200, events).write(event(words(id, 'x')).slice(0, 40), () => res.req.socket.destroy());
    },
    'ended-in-event': (res, id) => res.writeHead(200, events).end(event(words(id, 'x')).slice(0, -1)),
    'ended-empty': (res) => res.writeHead(200, events).end(),
    // with ids a legacy stream continues by a GET, which `streams` answers
    'continues': (res, id) => {
        res.writeHead(200, events).write(`retry: 1\nid: continues/${id}\ndata:\n\ndata: {"jsonrpc`, () => res.req.socket.destroy());
    },
    'continues-never': (res, id) => res.writeHead(200, events).end(`retry: 0\nid: never/${id}\ndata:\n\n`),
    'continues-always': (res, id) => res.writeHead(200, events).end(`retry: 0\nid: always/${id}\ndata:\n\n`),
    'continues-late': (res, id) => res.writeHead(200, events).end(`retry: 99999999999999999999\nid: never/${id}\ndata:\n\n`),
    'continues-with-hostile-id': (res) => res.writeHead(200, events).end(`retry: 1\nid: a\rid: b\0c\nid: ${'i'.repeat(3000)}\ndata:\n\n`),
    // --- error statuses ---
    'status-400': (res) => res.writeHead(400).end('bad'),
    'endless-404': (res) => endless(res.writeHead(404, json)),
    'endless-500': (res) => endless(res.writeHead(500, json)),
    'endless-400-event-stream': (res) => endless(res.writeHead(400, events)),
    'status-429': (res) => res.writeHead(429, { 'retry-after': '99999999' }).end(),
    'error-in-500': (res, id) => res.writeHead(500, json).end(message({ id, error: { code: -32602, message: 'no such argument' } })),
    'hostile-500': (res) => res.writeHead(500, json).end(Buffer.from([0xff, 0x00, 0x1b, 0x5b, 0x32, 0x4a])),
    'hostile-status': (res) => res.req.socket.end('HTTP/1.1 999 \x1b[2J\r\nContent-Length: 0\r\n\r\n'),
};

// What a client gets that continues a stream, by the id that it names.
function streams(req, res) {
    const [kind, id] = (req.headers['last-event-id'] ?? '').split('/');
    if (kind === 'continues') return res.writeHead(200, events).end(event(words(Number(id), 'continued'), 'x'));
    if (kind === 'never') return res.writeHead(200, events).end();
    if (kind === 'always')
        return res.writeHead(200, events).end(event({ method: 'notifications/message', params: {} }, `always/${id}`));
    res.writeHead(405).end();
}

const tool = (name) => ({ name, description: 'Break a rule.', inputSchema: { type: 'object' } });

export const sessions = {
    'session-long': 'x'.repeat(1025), 'session-blank': 'a b', 'session-byte': 'caf\u00e9', 'session-empty': '',
    'session-tab': 'a\tb', 'session-usual': '0123456789abcdef',
};
const deep = (n) => '{"a":'.repeat(n) + '1' + '}'.repeat(n);
// What is wrong about tokens, by the folder: the answers to /.well-known/... and /token.
export const tokens = {
    'auth-good': {},
    'auth-challenge-private': { challenge: () => 'Bearer resource_metadata="http://169.254.169.254/x"' },
    'auth-challenge-scheme': { challenge: () => 'Bearer resource_metadata="file:///etc/passwd"' },
    'auth-challenge-garbage': { challenge: () => `Bearer ${'a="'.repeat(2000)}` },
    'auth-challenge-many': { challenge: () => 'Basic x, '.repeat(700) },
    'auth-resource-endless': { resource: (res) => endless(res.writeHead(200, json)) },
    'auth-resource-private': { resource: (res, base) => res.writeHead(302, { location: 'http://10.0.0.1/' }).end() },
    'auth-resource-other': { resource: (res, base, own) => res.end(JSON.stringify({ resource: 'https://example.com/', authorization_servers: [base] })) },
    'auth-resource-deep': { resource: (res) => res.end(deep(20000)) },
    'auth-resource-list': { resource: (res) => res.end('[]') },
    'auth-resource-numbers': { resource: (res) => res.end('{"resource": 1, "authorization_servers": [7]}') },
    'auth-servers-private': { resource: (res, base, own) => res.end(JSON.stringify({ resource: own, authorization_servers: ['https://10.0.0.1'] })) },
    'auth-servers-plain': { resource: (res, base, own) => res.end(JSON.stringify({ resource: own, authorization_servers: ['http://example.com'] })) },
    'auth-servers-scheme': { resource: (res, base, own) => res.end(JSON.stringify({ resource: own, authorization_servers: ['javascript:1'] })) },
    'auth-issuer-wrong': { issuer: { issuer: 'https://example.com' } },
    'auth-issuer-none': { issuer: { issuer: undefined } },
    'auth-issuer-number': { issuer: { issuer: 7 } },
    'auth-issuer-endless': { issuerRaw: (res) => endless(res.writeHead(200, json)) },
    'auth-issuer-stalls': { issuerRaw: () => {}, limit: 700 },
    'auth-token-private': { issuer: { token_endpoint: 'https://192.168.0.1/token' } },
    'auth-token-plain': { issuer: { token_endpoint: 'http://example.com/token' } },
    'auth-token-number': { issuer: { token_endpoint: 5 } },
    'auth-token-none': { issuer: { token_endpoint: undefined } },
    'auth-token-endless': { token: (res) => endless(res.writeHead(200, json)) },
    'auth-token-redirect': { token: (res) => res.writeHead(307, { location: 'http://10.0.0.1/' }).end() },
    'auth-token-line': { token: (res) => res.end(JSON.stringify({ access_token: 'a\r\nX-Evil: 1', token_type: 'Bearer' })) },
    'auth-token-long': { token: (res) => res.end(JSON.stringify({ access_token: 't'.repeat(7000), token_type: 'Bearer' })) },
    'auth-token-empty': { token: (res) => res.end(JSON.stringify({ access_token: '', token_type: 'Bearer' })) },
    'auth-token-object': { token: (res) => res.end(JSON.stringify({ access_token: {}, token_type: 'Bearer' })) },
    'auth-token-mac': { token: (res) => res.end(JSON.stringify({ access_token: 'good', token_type: 'mac' })) },
    'auth-token-html': { token: (res) => res.end('<html>') },
    'auth-token-deep': { token: (res) => res.end(deep(20000)) },
    'auth-token-error': { token: (res) => res.writeHead(400, json).end(JSON.stringify({ error: `${'\u001b[2J'.repeat(50)}${'e'.repeat(100000)}` })) },
    'auth-token-refused': { token: (res) => res.end(JSON.stringify({ access_token: 'bad', token_type: 'Bearer' })) },
    'auth-token-life': { works: true, token: (res) => res.end(
        '{"access_token": "good", "token_type": "Bearer", "expires_in": 1e300, "scope": 7, "refresh_token": ["x"]}') },
};

// {url(folder), state, close()}; state.seen: what was asked for, and what of it must not be.
export async function start() {
    const state = { isChanged: false, seen: [], sessions: [], streams: 0, hits: 0 };
    const other = createServer((req, res) => { state.hits++; res.end(); });
    const server = createServer((req, res) => {
        let text = '';
        req.on('data', (bytes) => (text += bytes));
        req.on('error', () => {});
        res.on('error', () => {});
        req.socket.setMaxListeners(0);
        req.on('end', () => handle(req, res, text));
    });
    server.on('clientError', () => {});
    const listen = (s) => new Promise((ready) => s.listen(0, '127.0.0.1', () => ready(`http://127.0.0.1:${s.address().port}`)));
    const base = await listen(server);
    state.elsewhere = `${await listen(other)}/`;

    function list(id, folder, params, res) {
        const page = (tools, more = {}) => res.writeHead(200, json).end(message({ id, result: { resultType: 'complete', tools, ...more } }));
        if (folder === 'list-loop') return page([], { nextCursor: 'again' });
        if (folder === 'list-endless') return page([], { nextCursor: `page${state.seen.length}` });
        if (folder === 'list-huge') return endless(res.writeHead(200, json));
        if (folder === 'list-stalls') return res.writeHead(200, events).flushHeaders();
        if (state.isChanged) return page([tool('other')]);
        page(Object.keys(faults).map(tool));
    }
    function authorize(req, res, folder, path) {
        const wrong = tokens[folder];
        const own = `${base}/${folder}/`;
        if (path.startsWith('/.well-known/oauth-protected-resource'))
            return wrong.resource ? wrong.resource(res, `${base}/${folder}`, own)
                                  : res.end(JSON.stringify({ resource: own, authorization_servers: [`${base}/${folder}`] }));
        if (path.startsWith('/.well-known/'))
            return wrong.issuerRaw ? wrong.issuerRaw(res) : res.end(JSON.stringify({
                issuer: `${base}/${folder}`, authorization_endpoint: `${own}authorize`, token_endpoint: `${own}token`,
                grant_types_supported: ['client_credentials'], token_endpoint_auth_methods_supported: ['client_secret_post'],
                code_challenge_methods_supported: ['S256'], ...wrong.issuer }));
        if (path === '/token')
            return wrong.token ? wrong.token(res) : res.end(JSON.stringify({ access_token: 'good', token_type: 'Bearer' }));
        if (req.headers.authorization === 'Bearer good') return false;
        res.writeHead(401, { 'www-authenticate': wrong.challenge?.() ??
            `Bearer resource_metadata="${own}.well-known/oauth-protected-resource"` }).end();
    }
    function handle(req, res, text) {
        const at = /^\/(.well-known\/[\w-]+\/)?([\w-]+)(\/.*)?$/.exec(req.url);
        const folder = at?.[2] ?? '';
        const path = at?.[1] ? `/${at[1]}` : at?.[3] ?? '/';
        state.seen.push(`${req.method} ${req.url}`);
        state.own = `${base}/${folder}/`;
        if (tokens[folder] && authorize(req, res, folder, path) !== false) return;
        if (req.headers['mcp-session-id'] !== undefined) state.sessions.push(req.headers['mcp-session-id']);
        if (req.method === 'DELETE') return folder === 'end-stalls' ? undefined : res.writeHead(200).end();
        if (req.method === 'GET') {
            state.streams++;
            if (folder === 'stream-endless') return endless(res.writeHead(200, events), notices);
            if (folder === 'stream-requests') return res.writeHead(200, events).write(asks);
            if (folder === 'stream-huge') return endless(res.writeHead(200, events));
            if (folder === 'stream-redirect') return res.writeHead(307, { location: 'http://10.0.0.1/' }).end();
            if (folder === 'stream-ends') return res.writeHead(200, events).end('retry: 0\ndata: {"jsonrpc":"2.0","method":"notifications/x"}\n\n');
            return streams(req, res);
        }
        let call;
        try {
            call = JSON.parse(text);
        } catch {
            return res.writeHead(404).end(); // a request for a token, at an address that a client made up
        }
        const { id, method, params } = call;
        if (method === 'server/discover')
            return folder === 'modern'
                ? res.writeHead(200, json).end(message({ id, result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } }))
                : res.writeHead(400).end();
        if (id === undefined || method === undefined) return res.writeHead(202).end();
        if (method === 'initialize') {
            if (folder === 'begins-endless') return endless(res.writeHead(200, json));
            if (folder === 'begins-redirect') return res.writeHead(307, { location: 'http://192.168.1.1/' }).end();
            if (folder === 'begins-html') return res.writeHead(200, { 'content-type': 'text/html' }).end('hello');
            if (folder === 'begins-reset') return req.socket.resetAndDestroy();
            const session = sessions[folder] ?? 'usual';
            const version = folder === 'begins-version' ? '1999-01-01' : params.protocolVersion;
            if (folder === 'begins-stalls') return;
            return res.writeHead(200, folder === 'modern' ? json : { ...json, 'mcp-session-id': session })
                .end(message({ id, result: { protocolVersion: version, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } }));
        }
        if (method === 'tools/list') return list(id, folder, params, res);
        faults[params.name](res, id, params, state);
    }
    const close = () => [server, other].forEach((s) => { s.close(); s.closeAllConnections(); });
    return { url: (folder) => `${base}/${folder}/`, state, close };
}
