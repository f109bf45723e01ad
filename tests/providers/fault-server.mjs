// A server that misbehaves on demand: each row of rows/rows.mjs has a path of its own, and says what becomes of the socket.
import {spawn, spawnSync} from 'node:child_process'
import {EventEmitter, once} from 'node:events'
import {readFileSync} from 'node:fs'
import {createServer} from 'node:http'
import {createSecureServer} from 'node:http2'
import {createServer as createTlsServer} from 'node:https'
import {connect} from 'node:net'
import {join} from 'node:path'
import {setTimeout as sleep} from 'node:timers/promises'
import {until} from '../kit/until.mjs'
import {readBody} from './replay-server.mjs'

// What a client that hangs up leaves behind; many rows want it to.
const HANGS_UP = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_DESTROYED'])

// What a row's `serve` is handed. Writes to a client that is gone end quietly: that is what many rows want.
class Exchange {
  constructor(request, response, row, attempt, body) {
    Object.assign(this, {request, response, row, attempt, body, wire: row.wire ?? 'openai'})
    this.key = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1] ?? request.headers['x-api-key']
    this.closed = request.socket.closing
  }

  get isGone() {
    return this.request.socket.destroyed
  }

  head(status, headers) {
    this.response.writeHead(status, headers)
    this.response.flushHeaders()
  }

  async write(bytes) {
    if (this.isGone || !bytes.length) return
    if (!this.response.write(bytes)) await Promise.race([once(this.response, 'drain'), this.closed])
  }

  send(status, headers, bytes) {
    this.response.writeHead(status, headers)
    this.response.end(bytes)
  }

  async flood(status, headers, bytes, times) {
    this.head(status, headers)
    for (let i = 0; i < times && !this.isGone; i++) await this.write(bytes)
    this.response.end()
  }

  // Bytes past HTTP: whatever they are.
  async raw(bytes, {repeat = 1} = {}) {
    for (let i = 0; i < repeat && !this.isGone; i++)
      if (!this.request.socket.write(bytes)) await Promise.race([once(this.request.socket, 'drain'), this.closed])
    this.request.socket.end()
  }

  cut() {
    this.request.socket.destroy()
  }

  wait(ms) {
    return sleep(ms)
  }

  untilClosed() {
    return this.closed
  }

  async everyWhile(ms, bytes) {
    while (!this.isGone) {
      await this.write(bytes)
      await sleep(ms)
    }
  }
}

function certificate(folder, name, subject) {
  const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)]
  const made = spawnSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-keyout',
      key,
      '-out',
      cert,
      '-subj',
      '/CN=peer',
      '-addext',
      `subjectAltName=${subject}`,
    ],
    {encoding: 'utf8'},
  )
  if (made.status !== 0) throw new Error(`openssl: ${made.stderr}`)
  return {key: readFileSync(key), cert: readFileSync(cert), path: cert}
}

const portOf = (server) => server.address().port
async function listen(server, backlog) {
  server.listen({port: 0, host: '127.0.0.1', backlog})
  await once(server, 'listening')
  return server
}

export class FaultServer {
  // rows: by name, as in rows/rows.mjs. folder: for the certificates.
  constructor(rows, folder) {
    this.rows = new Map(rows.map((row) => [row.name, row]))
    this.folder = folder
    this.requests = new Map()
    this.heard = new EventEmitter() // of each request
    this.troubles = []
  }

  async start() {
    const handle = (request, response) =>
      this.#answer(request, response).catch((e) => {
        if (!HANGS_UP.has(e.code)) this.troubles.push(String(e.stack))
      })
    const welcome = (socket) => {
      socket.on('error', () => {})
      socket.closing = new Promise((resolve) => socket.once('close', resolve))
    }
    this.local = certificate(this.folder, 'local', 'IP:127.0.0.1')
    this.other = certificate(this.folder, 'other', 'DNS:other.example')
    this.plain = await listen(createServer(handle))
    this.tls = await listen(createTlsServer(this.local, handle))
    this.otherTls = await listen(createTlsServer(this.other, handle))
    this.http2 = await listen(createSecureServer({...this.local, allowHTTP1: false}, handle))
    this.plain.on('connection', welcome)
    for (const server of [this.tls, this.otherTls, this.http2]) server.on('secureConnection', welcome)
    return this
  }

  async stop() {
    this.http2.close()
    for (const server of [this.plain, this.tls, this.otherTls]) {
      server.closeAllConnections()
      server.close()
    }
    this.full?.child.kill('SIGKILL')
    this.full?.sockets.forEach((s) => s.destroy())
  }

  // Where the model of a row is said to be.
  async baseUrl(row) {
    const tail = `/${row.name}` + ((row.wire ?? 'openai') === 'openai' ? '/v1' : '')
    switch (row.address) {
      case undefined:
        return this.plainUrl + tail
      case 'refused':
        return `http://127.0.0.1:1${tail}` // nobody listens there
      case 'unknown':
        return `http://${'peer-'.repeat(13)}peer${tail}` // no name may be as long: nobody is asked
      case 'http2':
        return `https://127.0.0.1:${portOf(this.http2)}${tail}`
      case 'behind-a-proxy': // which is asked for it; nobody else knows that name
        return `http://model.invalid${tail}`
      case 'tls':
        return `https://127.0.0.1:${portOf(this.tls)}${tail}`
      case 'tls-wrong-host':
        return `https://127.0.0.1:${portOf(this.otherTls)}${tail}`
      case 'tls-on-plain-port':
        return `https://127.0.0.1:${portOf(this.plain)}${tail}`
      case 'full':
        return `http://127.0.0.1:${await this.#fullPort()}${tail}`
    }
    throw new Error(`row ${row.name}: no address ${row.address}`)
  }

  get plainUrl() {
    return `http://127.0.0.1:${portOf(this.plain)}`
  }

  caFile(which) {
    return this[which].path
  }

  requestsOf(row) {
    return this.requests.get(row.name) ?? []
  }

  // Its first request has come.
  async asked(row) {
    await until(() => this.requestsOf(row).length, this.heard)
  }

  // A port whose queue is full: its process is stopped and has as many connections waiting as it asked for.
  async #fullPort() {
    if (!this.full) {
      const child = spawn(
        process.execPath,
        [
          '-e',
          `const s = require('net').createServer().listen({port: 0, host: '127.0.0.1', backlog: 1},
        () => { console.log(s.address().port); setTimeout(() => {}, 600000) })`,
        ],
        {stdio: ['ignore', 'pipe', 'inherit']},
      )
      const [line] = await once(child.stdout, 'data')
      child.kill('SIGSTOP')
      const port = Number(line)
      const sockets = Array.from({length: 4}, () => connect(port, '127.0.0.1').on('error', () => {}))
      await Promise.all(sockets.slice(0, 2).map((s) => once(s, 'connect'))) // one more than it asked for
      this.full = {child, sockets, port}
    }
    return this.full.port
  }

  async #answer(request, response) {
    const name = new URL(request.url, this.plainUrl).pathname.split('/')[1] // a proxy is sent the whole address
    const row = this.rows.get(name)
    const bytes = await readBody(request)
    if (!row) {
      this.troubles.push(`a request for ${request.url}`)
      response.writeHead(404).end()
      return
    }
    response.on('error', () => {})
    const seen = this.requestsOf(row)
    this.requests.set(name, seen)
    seen.push(JSON.parse(bytes.toString('utf8')))
    this.heard.emit('data')
    await row.serve(new Exchange(request, response, row, seen.length, seen.at(-1)))
  }
}
