// Plays one neutral conversation on a wire: the n-th request gets the n-th reply, its bytes cut at random places. What
// was asked is kept, with whatever the vendor would have refused it for.
import {once} from 'node:events'
import {createServer} from 'node:http'
import {setImmediate as turn} from 'node:timers/promises'
import {byteCuts, random} from './random.mjs'
import {wires} from './wires/wires.mjs'

export async function readBody(request) {
  const parts = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts)
}

export class ReplayServer {
  constructor(wireName, seed = 1) {
    this.wire = wires[wireName]
    this.next = random(seed)
    this.server = createServer((request, response) =>
      this.#answer(request, response).catch((e) => this.complaints.push(String(e))),
    )
    this.server.on('connection', () => this.connections++)
    this.play([])
  }

  play(replies) {
    this.replies = replies
    this.requests = []
    this.complaints = []
    this.connections = 0
  }

  async start() {
    this.server.listen(0, '127.0.0.1')
    await once(this.server, 'listening')
    this.url = `http://127.0.0.1:${this.server.address().port}`
    this.baseUrl = this.url + this.wire.basePath
    return this
  }

  async stop() {
    this.server.closeAllConnections()
    this.server.close()
    await once(this.server, 'close')
  }

  async #answer(request, response) {
    const body = JSON.parse((await readBody(request)).toString('utf8'))
    const n = this.requests.push(body)
    const reply = this.replies[n - 1]

    if (request.url !== this.wire.path) this.complaints.push(`asked for ${request.url}`)
    if (!/^application\/json/.test(request.headers['content-type']))
      this.complaints.push(`content-type ${request.headers['content-type']}`)
    if (request.headers.expect) this.complaints.push(`waits for us: expect ${request.headers.expect}`)
    this.complaints.push(...this.wire.complaints(body, request.headers))
    if (!reply) {
      this.complaints.push(`request ${n}, of ${this.replies.length} replies`)
      response.writeHead(400, {'content-type': 'application/json'})
      response.end(JSON.stringify(this.wire.error('invalid_request_error', 'the conversation is over')))
      return
    }
    const streams = this.wire.name === 'ollama' ? body.stream !== false : body.stream === true
    response.writeHead(200, {'content-type': streams ? this.wire.contentType : 'application/json'})
    if (!streams) {
      response.end(JSON.stringify(this.wire.whole(reply, n)))
      return
    }
    request.socket.setNoDelay(true)
    for (const part of byteCuts(Buffer.from(this.wire.stream(reply, this.next, n, body)), 97, this.next)) {
      if (!response.write(part)) await once(response, 'drain')
      await turn() // each cut is a packet of its own
    }
    response.end()
  }
}
