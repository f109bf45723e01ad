// Two servers with one store: messages of one session that come to both at the same instant become turns one after the
// other. The one that is refused can be sent again, and its turn is told the one before.
import {randomUUID} from 'node:crypto'
import {agents, call, check, equal, file, finish, serve} from './kit.mjs'

const times = process.env.REEVE_SOAK ? 300 : 6
const answer = '{chunks: [{text: "I ", delay_ms: 30}, {text: "answer.", delay_ms: 30}]}'
const script = file('apart.yaml', `models:\n  boss: [${Array(2 * times + 2).fill(answer).join(", ")}]\ntools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n`)
const args = ['--schema-dir', agents(), '--script', script]
const servers = [await serve('apart.db', args), await serve('apart.db', args)]

async function say(server, session, text) {
  const body = {threadId: session, runId: randomUUID(), messages: [{id: randomUUID(), role: 'user', content: text}]}
  const r = await call(server, 'POST', `/chat/${session}`, body, {'x-agent-schema-name': 'boss'})
  return {status: r.status === 200 && /RUN_ERROR/.test(r.text) ? 'an error in the stream' : r.status, text: r.text}
}

for (let n = 0; n < times; n++) {
  const session = randomUUID()
  if (n % 2) equal((await say(servers[0], session, 'before')).status, 200, `${n}: a session that is there`)
  const said = await Promise.all(servers.map((server, i) => say(server, session, `from ${i}`)))
  equal(said.map((s) => s.status).sort(), [200, 409], `${n}: one turn begins`)
  const refused = said.findIndex((s) => s.status === 409)
  check(/turn under way/.test(said[refused]?.text), `${n}: why`, said[refused]?.text ?? '')
  equal((await say(servers[refused] ?? servers[0], session, 'again')).status, 200, `${n}: it begins behind the other`)
  const rows = (await call(servers[0], 'GET', `/sessions/${session}/messages`)).json
  const want = Array(n % 2 ? 3 : 2).fill(['user', 'assistant']).flat()
  equal((rows.items ?? rows.messages ?? rows).map((m) => m.message_type), want, `${n}: turns stand one behind the other`)
}
for (const server of servers) equal(await server.stop(), 0, 'a server ends')
finish('apart')
