// Webhooks: signed, told once and again until they are taken, with the same id; where they may go; a server that is killed.
import {createHmac} from 'node:crypto'
import {createServer} from 'node:http'
import {call, check, command, equal, file, finish, scratch, serve} from './kit.mjs'

// A receiver: what it got, and what it does next with a request ("slow": it waits for go()). Nothing said: 204.
const got = []
const plans = []
const waiting = []
let arrived = () => {}
const receiver = createServer((req, res) => {
  let text = ''
  req.on('data', (part) => (text += part))
  req.on('end', () => {
    const plan = plans.shift() ?? 204
    got.push({path: req.url, headers: req.headers, text, json: JSON.parse(text), plan})
    const answer = () => res.writeHead(plan === 'slow' ? 204 : plan, plan === 302 ? {location: '/elsewhere'} : {}).end()
    if (plan === 'slow') waiting.push(answer)
    else answer()
    arrived()
  })
})
await new Promise((done) => receiver.listen(0, '127.0.0.1', done))
const port = receiver.address().port
const url = `http://127.0.0.1:${port}/hook`
const count = (n) =>
  new Promise((resolve) => {
    arrived = () => got.length >= n && resolve()
    arrived()
  })
const secret = 'whsec_' + Buffer.from('a secret of thirty-two bytes, yes').toString('base64')
const signed = (g, by) => {
  const key = by.startsWith('whsec_') ? Buffer.from(by.slice(6), 'base64') : by
  const mac = createHmac('sha256', key).update(`${g.headers['webhook-id']}.${g.headers['webhook-timestamp']}.${g.text}`).digest('base64')
  return g.headers['webhook-signature'] === `v1,${mac}` && Math.abs(Date.now() / 1000 - Number(g.headers['webhook-timestamp'])) < 600
}
const args = ['--pipelines', 'pipelines', '--scripts', 'pipelines/scripts']
const open = {REEVE_ALLOW_NET: `127.0.0.1:${port}`}
const settled = async (server, id, wanted) => {
  for (;;) {
    const task = (await call(server, 'GET', `/tasks/${id}`)).json
    if (wanted.includes(task.status)) return task
  }
}

// --- a run that ends, one that asks and then ends
let server = await serve('hooks.db', args, open)
const start = (body) => call(server, 'POST', '/runs', body)
const done = (await start({pipeline: 'hooks', input: 'hi', wait: true, webhook: {url, secret}})).json
await count(1)
equal([got[0].path, got[0].json.type, got[0].json.data.run_id, got[0].json.data.status], ['/hook', 'run.ended', done.envelope_id ?? done.id, 'completed'], 'the end is told', got[0])
check(signed(got[0], secret), 'it is signed', got[0].headers)
check(got[0].json.data.result && typeof got[0].json.timestamp === 'string', 'with the result', got[0].json)
equal(got[0].headers['content-type'], 'application/json', 'as JSON')
equal((await settled(server, got[0].headers['webhook-id'], ['completed'])).result.http_status, 204, 'its id is that of a task')
const asks = (await start({pipeline: 'clarify', input: 'x', wait: true, webhook: {url, secret}})).json
await count(2)
equal([got[1].json.type, got[1].json.data.interrupts.map((i) => i.text)], ['run.interrupted', ['Which database?']], 'a question is told')
equal((await call(server, 'POST', `/runs/${asks.id}/answer`, {text: 'PostgreSQL'})).status, 202, 'it is answered')
await count(3)
equal([got[2].json.type, got[2].json.data.run_id], ['run.ended', asks.id], 'then its end')
check(got[1].headers['webhook-id'] !== got[2].headers['webhook-id'], 'which is another message')
await start({pipeline: 'clarify', input: 'x', wait: true, webhook: {url, secret, events: ['run.ended']}})
await start({pipeline: 'hooks', input: 'x', wait: true, webhook: {url, secret: 'a plain secret of ours'}})
await count(4)
check(got[3].json.type === 'run.ended' && signed(got[3], 'a plain secret of ours'), 'only what was asked for, and a secret that is a text')

// --- a receiver that fails: the queue has it again, and its id is the same
plans.push(500, 302)
await start({pipeline: 'hooks', input: 'x', wait: true, webhook: {url, secret}})
await count(5)
const id = got[4].headers['webhook-id']
let task = await settled(server, id, ['waiting'])
check(task.retry_count === 1 && task.error.includes('500') && Date.parse(task.scheduled_at) > Date.now(), 'it is tried again later', task)
const again = async () => {
  equal((await call(server, 'POST', `/tasks/${id}/cancel`)).status, 200, 'not then')
  equal((await call(server, 'POST', `/tasks/${id}/retry`)).status, 200, 'but now')
}
await again()
await count(6)
check((await settled(server, id, ['waiting'])).error.includes('302'), 'a redirect is not followed')
equal(got.filter((g) => g.path === '/elsewhere').length, 0, 'nobody went there')
await again()
await count(7)
equal((await settled(server, id, ['completed'])).status, 'completed', 'then it is taken')
equal(got.slice(4, 7).map((g) => [g.headers['webhook-id'], g.text]), Array(3).fill([id, got[4].text]), 'each time the same')
plans.push(410)
await start({pipeline: 'hooks', input: 'x', wait: true, webhook: {url, secret}})
await count(8)
equal((await settled(server, got[7].headers['webhook-id'], ['failed'])).retry_count, 0, 'one that is gone is not asked again')

// --- a receiver that is slow keeps no run back
plans.push('slow')
await start({pipeline: 'hooks', input: 'slow', wait: true, webhook: {url, secret}})
await count(9)
equal((await start({pipeline: 'hooks', input: 'quick', wait: true})).json.status, 'completed', 'another run goes on meanwhile')
waiting.shift()()
await settled(server, got[8].headers['webhook-id'], ['completed'])

// --- what is no webhook
for (const hook of [1, {}, {url: 'ftp://x', secret}, {url}, {url, secret: 'short'}, {url: 'http://u:p@host/', secret}, {url: 'http://a b', secret}, {url, secret, events: []}, {url, secret, events: ['run.begun']}])
  equal((await start({pipeline: 'hooks', input: 'x', webhook: hook})).status, 400, `no webhook: ${JSON.stringify(hook)}`)
const forged = (await call(server, 'POST', '/tasks', {type: 'webhook', payload: {run: done.id, n: 0, event: 'run.ended'}})).json
equal((await settled(server, forged.id, ['failed'])).status, 'failed', 'nobody else queues one')
equal(got.length, 9, 'and nothing was sent')
equal(await server.stop(), 0, 'it ends as it should')

// --- addresses that are not public
server = await serve('hooks.db', args)
const refused = (await start({pipeline: 'hooks', input: 'x', wait: true, webhook: {url, secret}})).json
let tasks = []
while (!tasks.some((t) => t.payload?.run === refused.id && t.status === 'failed')) tasks = (await call(server, 'GET', '/tasks?type=webhook&status=failed')).json
check(tasks[0].error.includes('REEVE_ALLOW_NET'), 'a private address is refused, with what allows it', tasks[0])
equal(got.length, 9, 'nothing was sent there')
equal(await server.stop(), 0, 'it ends as it should')

// --- one for all runs; a server that is killed while the receiver thinks
server = await serve('killed.db', [...args, '--webhook', url, '--webhook-secret-file', file('secret', `${secret}\n`)], open)
plans.push('slow')
const last = (await start({pipeline: 'hooks', input: 'x', wait: true})).json
await count(10)
check(got[9].json.data.run_id === last.id && signed(got[9], secret), 'the server tells of every run')
await server.kill()
waiting.shift()()
server = await serve('killed.db', args, open)
await count(11)
equal([got[10].headers['webhook-id'], got[10].text], [got[9].headers['webhook-id'], got[9].text], 'the next server tells it again, under the same id')
await settled(server, got[10].headers['webhook-id'], ['completed'])
equal(await server.stop(), 0, 'it ends as it should')
const bad = command('serve', '--store', `${scratch}/bad.db`, '--webhook', url)
equal([bad.status, bad.err.includes('secret')], [2, true], 'an address without a secret', bad.err)
receiver.close()
receiver.closeAllConnections()
finish('webhooks')
