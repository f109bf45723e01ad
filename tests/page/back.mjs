// The server is killed in mid-turn: the page says so, comes back when another one is there, and the answer goes on. The
// other one takes the run over when the lease of the dead process has ended.
import {agents, browser, call, check, clean, equal, file, finish, has, idle, open, press, say, serve, text} from './kit.mjs'

const dir = agents('agents', 'helper')
const tools = 'tools:\n  wipe: {risk: destructive, calls: [{result: {wiped: true}}]}\n  search: [{result: {}}]\n'
const first = file('first.yaml', `models:\n  helper:\n    - {chunks: ["This will be", {text: " long.", delay_ms: 3000}]}\n${tools}`)
const then = file('then.yaml', `models:\n  helper:\n    - {text: I will wipe it., tool_calls: [{name: wipe, arguments: {path: /tmp/x}}]}\n    - {text: It is gone.}\n${tools}`)
const args = (script) => ['--schema-dir', dir, '--script', script]
let server = await serve('back.db', args(first))
const port = Number(new URL(server.url).port)
const page = await open(server, '', {expected: ['ERR_CONNECTION_REFUSED', 'ERR_INCOMPLETE_CHUNKED_ENCODING', 'ERR_CONNECTION_RESET', 'ERR_EMPTY_RESPONSE']})
await page.waitForSelector('#message')
await page.select('#agent', 'helper')
await say(page, 'Tell me')
await has(page, '.answer .md', 'This will be')
await server.kill()
await has(page, '.status', 'Trying again')
server = await serve('back.db', args(then), {}, port)
await has(page, '.answer .md', 'This will be long.')
await idle(page)
equal(await text(page, '.answer .md'), ['This will be long.'], 'the answer is there once')
const id = await page.evaluate(() => location.hash.split('/').at(-1))
const rows = (await call(server, 'GET', `/sessions/${id}/messages`)).json.map((m) => m.content)
equal(rows, ['Tell me', 'This will be long.'], 'and kept once')

// a turn that waits for an answer: the page is loaded anew, another server has the question
await say(page, 'Wipe it')
await has(page, '.question', 'may it run')
await idle(page)
await server.kill()
server = await serve('back.db', args(then), {}, port)
await page.goto('about:blank')
await page.goto(`${server.url}/#/chat/${id}`)
await has(page, '.question', 'may it run')
check((await text(page, '.bubble')).at(-1) === 'Wipe it', 'what the user said is shown, though the turn is not over')
await press(page, 'Approve')
await has(page, '.answer', 'It is gone.')
await idle(page)
clean(page, 'coming back')
await page.own.close()

// a session that is longer than the page shows: it has the last rows. The server says that there are more than there are.
const long = await open(server)
const session = (await call(server, 'GET', `/sessions/${id}`)).json
await long.setRequestInterception(true)
long.on('request', (r) => {
  if (r.url() !== `${server.url}/sessions/${id}`) return r.continue()
  return r.respond({contentType: 'application/json', body: JSON.stringify({...session, messages: 5002})})
})
await long.evaluate((to) => (location.hash = to), `#/chat/${id}`)
await has(long, '.answer', 'It is gone.')
equal(await text(long, '.bubble'), ['Wipe it'], 'the last messages are shown')
await has(long, '.log', 'Earlier messages are not shown.')
clean(long, 'a long session')
await long.own.close()
equal(await server.stop(), 0, 'it ends as it should')
await browser.close()
finish('page back')
