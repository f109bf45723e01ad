// Figures, not a test: memory of idle streams, and chats a second with the time to their first byte. Run it with
// tests/serve/run WORK_DIR load REEVE; REEVE_STREAMS and REEVE_CHATS say how many (1,000 and 2,000).
import {randomUUID} from 'node:crypto'
import {readFileSync} from 'node:fs'
import {Agent, request} from 'node:http'
import {agents, check, file, finish, serve} from './kit.mjs'

const streams = Number(process.env.REEVE_STREAMS ?? 1000)
const chats = Number(process.env.REEVE_CHATS ?? 2000)
const script = file('load.yaml', 'models:\n  boss:\n    - {contains: idle, chunks: [One, {text: " two", delay_ms: 5000}, {text: " three", delay_ms: 5000}]}\n    - {contains: hello, chunks: [Good, " morning"]}\ntools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n')
const server = await serve('load.db', ['--schema-dir', agents(), '--script', script])
const {hostname, port} = new URL(server.url)
const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1])
const cpu = () => {
  const f = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(f[11]) + Number(f[12])) * 10 // ms, of ticks of 10 ms
}
const pool = new Agent({keepAlive: true, maxSockets: 8})
function chat(text, options, on_first = () => {}) {
  const body = JSON.stringify({threadId: randomUUID(), runId: randomUUID(), protocolVersion: '1.0', messages: [{id: 'm', role: 'user', content: text}]})
  return new Promise((resolve) => {
    const req = request({hostname, port, method: 'POST', path: `/chat/${JSON.parse(body).threadId}`, headers: {'x-agent-schema-name': 'boss', 'content-length': Buffer.byteLength(body)}, ...options})
    let got = ''
    req.on('response', (res) => {
      res.on('data', (part) => (got || on_first(), (got += part)))
      res.on('end', () => resolve(got))
      res.on('error', () => resolve(got))
    })
    req.on('error', () => resolve(''))
    req.end(body)
  })
}

for (let i = 0; i < 50; i++) await chat('hello', {agent: pool})
const first = []
const began = performance.now()
const cpu0 = cpu()
let left = chats
const worker = async () => {
  while (left-- > 0) {
    const t = performance.now()
    await chat('hello', {agent: pool}, () => first.push(performance.now() - t))
  }
}
await Promise.all(Array.from({length: 8}, worker))
const took = (performance.now() - began) / 1000
first.sort((a, b) => a - b)
check(first.length === chats, 'each chat is answered', String(first.length))
console.log(`chats: ${(chats / took).toFixed(0)} a second, 8 at once; first byte ${first[chats >> 1].toFixed(1)} ms, 99 % ${first[Math.floor(chats * 0.99)].toFixed(1)} ms; ${((cpu() - cpu0) / chats).toFixed(2)} ms of processor time each`)

const before = rss()
const cpu1 = cpu()
let open = 0
let all
const opened = new Promise((done) => (all = done))
const ends = Array.from({length: streams}, (_, i) => chat('idle', {agent: false, localAddress: `127.0.${1 + ((i / 5000) | 0)}.${1 + ((i / 50) | 0) % 100}`}, () => ++open === streams && all()))
await Promise.race([opened, Promise.all(ends)])
const during = rss()
const got = await Promise.all(ends)
const whole = got.filter((text) => text.includes('" three"') && text.includes('RUN_FINISHED')).length
check(whole === streams, 'no event of a stream is lost', `${whole} of ${streams}`)
console.log(`streams: ${streams} open, ${((during - before) / streams).toFixed(1)} KB each, ${((cpu() - cpu1) / streams).toFixed(2)} ms of processor time each for a turn of 3 texts 5 s apart, ${whole} whole`)
await server.stop()
finish('load')
