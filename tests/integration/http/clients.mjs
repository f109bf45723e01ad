// Clients that others have made, against the server: Node's http and https, fetch (undici), curl.
// clients.mjs SERVER
import assert from 'node:assert';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const program = process.argv[2];
const dir = mkdtempSync(join(tmpdir(), 'reeve-http-'));
const cert = join(dir, 'cert.pem');
const key = join(dir, 'key.pem');
execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
  '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert],
{ stdio: 'ignore' });

function start(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdout.once('data', (text) => resolve({ child, port: Number(text) }));
    child.once('exit', (code) => reject(new Error(`the server has ended: ${code}`)));
  });
}

function stop(server) {
  return new Promise((resolve) => {
    server.child.removeAllListeners('exit');
    server.child.once('exit', (code) => resolve(code));
    server.child.stdin.end();
  });
}

// --- Node ---

function ask(lib, options, body) {
  return new Promise((resolve, reject) => {
    const req = lib.request(options, (res) => {
      const parts = [];
      res.on('data', (part) => parts.push(part));
      res.on('end', () => resolve({ res, text: Buffer.concat(parts).toString('latin1'), reused: req.reusedSocket }));
    });
    req.on('error', reject);
    for (const part of body ?? []) req.write(part);
    req.end();
  });
}

async function node(lib, port, more) {
  const agent = new lib.Agent({ keepAlive: true, maxSockets: 1, ...more });
  const at = (path, rest) => ({ host: 'localhost', port, path, agent, ...rest });
  let got = await ask(lib, at('/x'));
  assert.equal(got.res.statusCode, 200);
  assert.match(got.res.headers['x-request-id'], /^req_[0-9a-f]{16}$/);
  got = await ask(lib, at('/x', { method: 'PUT', headers: { 'Content-Length': 5 } }), ['hello']);
  assert.equal(got.text, 'hello');
  assert(got.reused, 'the connection was not kept');
  const large = 'x'.repeat(3000000);
  got = await ask(lib, at('/x', { method: 'POST' }), ['a', large, 'b']); // chunked
  assert.equal(got.text, `a${large}b`);
  got = await ask(lib, at('/x', { method: 'POST', headers: { Expect: '100-continue' } }), ['hello']);
  assert.equal(got.text, 'hello');
  got = await ask(lib, at('/x', { method: 'HEAD' }));
  assert.equal(got.text, '');
  got = await ask(lib, at('/none'));
  assert.equal(got.res.statusCode, 204);
  got = await ask(lib, at('/segment/a%2Fb'));
  assert.equal(got.text, 'a/b');
  got = await ask(lib, at('/events'));
  assert.equal(got.text.match(/^data: /gm).length, 10);
  assert(got.res.complete);
  got = await ask(lib, at('/events'));
  assert(got.reused, 'the connection was not kept behind a stream');
  got = await ask(lib, at('/x', { headers: { Host: 'evil.example' } }));
  assert.equal(got.res.statusCode, 421);
  agent.destroy();
}

// Many clients at once that leave in the middle of their streams.
async function leave(port) {
  await Promise.all(Array.from({ length: 30 }, () => new Promise((resolve) => {
    const req = http.get({ host: 'localhost', port, path: '/events' }, (res) => {
      res.once('data', () => {
        res.destroy();
        resolve();
      });
    });
    req.on('error', resolve);
  })));
}

// --- undici ---

async function undici(port) {
  const url = `http://localhost:${port}`;
  let res = await fetch(`${url}/x`, { method: 'POST', body: 'hello' });
  assert.equal(await res.text(), 'hello');
  res = await fetch(`${url}/stream`, { method: 'POST', body: 'hello' });
  assert.equal(await res.text(), 'hello-');
  res = await fetch(`${url}/events`, { headers: { Accept: 'text/event-stream' } });
  assert.equal(res.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  assert.equal((await res.text()).match(/^id: /gm).length, 10);
  const many = await Promise.all(Array.from({ length: 50 }, (_, i) =>
    fetch(`${url}/x`, { method: 'PUT', body: `body ${i}` }).then((r) => r.text())));
  many.forEach((text, i) => assert.equal(text, `body ${i}`));
  const stop = new AbortController();
  res = await fetch(`${url}/events`, { signal: stop.signal });
  stop.abort();
  await assert.rejects(res.text());
}

// --- curl ---

function curl(...args) {
  return execFileSync('curl', ['-sS', '--max-time', '20', '--noproxy', '*', ...args], { encoding: 'latin1', maxBuffer: 64 << 20 });
}

function curls(url, more) {
  const file = join(dir, 'body');
  writeFileSync(file, 'y'.repeat(2000000));
  assert.equal(curl(...more, '-d', 'hello', `${url}/x`), 'hello');
  assert.equal(curl(...more, '-d', 'hello', '--http1.0', `${url}/stream`), 'hello-');
  assert.equal(curl(...more, '-T', file, `${url}/x`).length === 2000000, true); // asks with Expect
  assert.equal(curl(...more, '-T', file, '-H', 'Transfer-Encoding: chunked', `${url}/x`).length === 2000000, true);
  assert.equal(curl(...more, '-N', `${url}/events`).match(/^data: /gm).length, 10);
  assert.match(curl(...more, '-I', `${url}/x`), /^HTTP\/1\.1 200 OK\r\n/);
  assert.match(curl(...more, '-i', '-d', `@${file}`, '-d', `@${file}`, '-d', `@${file}`, '-d', `@${file}`, '-d',
    `@${file}`, '-d', `@${file}`, `${url}/x`), /^HTTP\/1\.1 (100 Continue\r\n\r\nHTTP\/1\.1 )?413 /);
  assert.match(curl(...more, '-i', '--path-as-is', `${url}/a/../b`), /^HTTP\/1\.1 400 /);
  assert.match(curl(...more, '-w', '%{num_connects}', `${url}/none`, `${url}/none`), /10$/); // one connection for both
}

try {
  const plain = await start([]);
  await node(http, plain.port, {});
  await leave(plain.port);
  await undici(plain.port);
  curls(`http://localhost:${plain.port}`, ['-4']);
  assert.equal(await stop(plain), 0);
  const secret = await start([cert, key]);
  await node(https, secret.port, { ca: readFileSync(cert), servername: 'localhost' });
  curls(`https://localhost:${secret.port}`, ['-4', '--cacert', cert]);
  assert.match(curl('-4', '--cacert', cert, '-d', 'x', '--http2', '-w', ' %{http_version}',
    `https://localhost:${secret.port}/x`), /^x 1\.1$/);
  assert.equal(await stop(secret), 0);
  console.log('ok');
} finally {
  rmSync(dir, { recursive: true });
}
process.exit(0);
