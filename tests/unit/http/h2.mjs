// node h2.mjs KEY CERTIFICATE: an HTTP/2 server on a free port, which it prints. It answers with how many connections
// it has seen, the body it was sent and 20 more bytes, one every few milliseconds; a path /silent gets a head only.
import { readFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';

let sessions = 0;
const [key, cert] = process.argv.slice(2).map((path) => readFileSync(path));
const server = createSecureServer({ key, cert }, (request, response) => {
  const body = [];
  request.on('data', (part) => body.push(part));
  request.on('end', () => {
    response.writeHead(200, { 'X-Version': request.httpVersion, 'X-Sessions': String(sessions) });
    response.write(Buffer.concat(body));
    if (request.url === '/silent') return;
    let left = 20;
    const timer = setInterval(() => {
      if (response.destroyed) return clearInterval(timer);
      response.write('.');
      if (--left === 0) {
        clearInterval(timer);
        response.end();
      }
    }, 5);
  });
});
server.on('session', () => sessions++);
server.listen(0, '127.0.0.1', () => console.log(`listening:${server.address().port}`));
