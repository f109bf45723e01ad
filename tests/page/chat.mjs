// Talking to agents on the page: streaming, cards of tools and of agents that were asked, questions, stopping, sessions,
// the keyboard alone, logging in, and a server that is killed meanwhile.
import {
  accessible, agents, browser, button, call, check, clean, command, equal, file, finish, has, idle, open, press, say, scratch, serve, shot, soak, text,
} from './kit.mjs'

const dir = agents('agents', 'helper', 'finder')
const script = file(
  'talk.yaml',
  `models:
  helper:
    - {chunks: ["Good **morning**", ", Ada.\\n\\n", "| key | value |\\n| --- | --- |\\n| a | 1 |\\n\\n", "\`\`\`python\\ndef f(x):\\n    return x + 1  # one more\\n\`\`\`\\n\\nThat is all."]}
    - {text: I ask., tool_calls: [{name: ask_agent, arguments: {agent_name: finder, input_text: find it}}]}
    - {text: The finder found it.}
    - {text: I will wipe it., tool_calls: [{name: wipe, arguments: {path: /tmp/x}}]}
    - {text: It is gone.}
    - {text: Once more., tool_calls: [{name: wipe, arguments: {path: /tmp/z}}]}
    - {chunks: ["This will be", {text: " long", delay_ms: 600000}]}
    - {text: Fine., tool_calls: [{name: action, arguments: {type: observation, payload: {confidence: 0.83, sources: [handbook], session_name: A good name}}}]}
    - {text: You are welcome.}
    - {chunks: ["Slow", {text: " again", delay_ms: 600000}]}
  finder:
    - {text: Let me look., tool_calls: [{name: search, arguments: {query: LOOKUP x}}]}
    - {chunks: ["Found: ", "forty-two."]}
tools:
  wipe: {risk: destructive, calls: [{result: {wiped: true}}, {result: {wiped: true}}]}
  search: [{result: {hits: [1, 2]}}]
`,
)
const server = await serve('page.db', ['--schema-dir', dir, '--script', script])
const rows = async (id, children = '') => (await call(server, 'GET', `/sessions/${id}/messages${children}`)).json
const idOf = (page) => page.evaluate(() => location.hash.split('/').at(-1))

// --- a turn: pieces become Markdown
const page = await open(server)
await page.waitForSelector('#message')
await page.select('#agent', 'helper')
await has(page, '.hello', 'Answers as helper.')
if (soak) await accessible(page, 'a new chat')
await say(page, 'Hello')
await has(page, '.answer p', 'That is all.')
await idle(page)
equal(await text(page, '.answer .md strong'), ['morning'], 'emphasis')
equal(await text(page, '.answer .md td'), ['a', '1'], 'a table')
await page.waitForSelector('.answer code.language-python .hljs-keyword')
equal(await page.$eval('.answer code.language-python', (e) => e.textContent), 'def f(x):\n    return x + 1  # one more', 'highlighted code is the same code')
equal((await page.evaluate(() => location.hash)).slice(0, 7), '#/chat/', 'the address names the session')
const id = await idOf(page)
await has(page, '.head h1', 'Hello')
await shot(page, 'chat-light')
if (soak) await accessible(page, 'a chat')

// --- an agent that is asked has its words and calls within the card of the call
await say(page, 'Find it')
await has(page, '.answer', 'The finder found it.')
await idle(page)
const asked = await page.$eval('.tool.asks', (e) => ({
  name: e.querySelector('.tool-name').textContent,
  state: e.querySelector('.tool-state').textContent,
  inner: [...e.querySelectorAll('.tool-agents .tool-name')].map((n) => n.textContent),
  says: e.querySelector('.tool-agents').textContent,
}))
equal([asked.name, asked.state, asked.inner], ['finder', 'done', ['search']], 'a card within a card')
check(asked.says.includes('Let me look.') && asked.says.includes('Found: forty-two.'), 'what it said is within', asked.says)
await page.$$eval('.tool', (all) => all.forEach((d) => (d.open = true)))
check((await text(page, '.tool .tool .tool-part')).some((t) => t.includes('"hits"')), 'arguments and result of its call')

// --- a question: approve with other arguments, then deny
await say(page, 'Wipe it')
await button(page, 'Approve')
await idle(page)
equal(await text(page, '.question h3'), ['tool "wipe" is destructive: may it run with these parameters?'], 'the question is asked')
equal((await text(page, '.tool-state')).at(-1), 'waits for you', 'its card says that it waits')
await shot(page, 'question-light')
await accessible(page, 'a question')
await press(page, 'Edit')
const area = await page.waitForSelector('textarea.json')
await area.evaluate((e) => (e.value = '{"path": '))
await press(page, 'Approve')
await has(page, '.question .error', 'Arguments:')
await area.evaluate((e) => (e.value = '{"path": "/tmp/y"}'))
await press(page, 'Approve')
await has(page, '.answer', 'It is gone.')
await idle(page)
check((await text(page, '.tool .tool-part')).some((t) => t.includes('/tmp/y')), 'it ran with the arguments that were edited')
equal((await text(page, '.question .said')).at(-1), 'approved', 'the card says what was answered')
await say(page, 'Again')
await press(page, 'Deny')
await has(page, '.note', 'the user denied the confirmation')
await idle(page)
equal((await text(page, '.answer')).at(-1).split('Once more.').length, 2, 'what was said before the question is said once')

// --- stop: what was said until then stays
await say(page, 'Tell me all')
await has(page, '.answer', 'This will be')
await press(page, 'Stop')
await has(page, '.status', 'Stopped.')
await idle(page)
equal((await rows(id)).at(-1)?.status, 'cancelled', 'the turn was cancelled, and is kept as such')
await button(page, 'Try again')

// --- what an agent says about its answer; a name that it gives the session; feedback
await say(page, 'Thanks')
await has(page, '.answer', 'You are welcome.')
await idle(page)
equal(await text(page, '.chips li'), ['confidence 83 %', 'handbook'], 'facts about the answer')
await has(page, '.head h1', 'A good name')
const thumbs = await page.$$('[aria-label="A good answer"]')
await thumbs.at(-1).click()
await page.waitForSelector('dialog[open]')
await page.select('#rate-label', 'Clear')
await page.type('#rate-comment', 'Well said')
await accessible(page, 'a dialog')
await press(page, 'Send')
await has(page, '.toast', 'feedback was kept')
const feedback = (await call(server, 'GET', '/entities/feedback')).json[0]
equal([feedback?.session_id, feedback?.comment], [id, 'Well said'], 'feedback is kept')
equal(feedback?.message_id, (await rows(id)).at(-1).id, 'and names the answer')

// --- the session again: the same cards from what was kept
const before = await page.$$eval('.turn', (all) => all.map((t) => [t.querySelector('.bubble')?.textContent, [...t.querySelectorAll('.tool-name')].map((n) => n.textContent)]))
const again = await open(server, `#/chat/${id}`, {dark: true})
await has(again, '.answer', 'You are welcome.')
const after = await again.$$eval('.turn', (all) => all.map((t) => [t.querySelector('.bubble')?.textContent, [...t.querySelectorAll('.tool-name')].map((n) => n.textContent)]))
equal(after, before, 'turns and cards are the same after a reload')
equal(await text(again, '.chips li'), ['confidence 83 %', 'handbook'], 'facts about an answer, too')
equal(await again.$eval('#agent', (e) => e.value), 'helper', 'its agent, too')
await again.$eval('.scroller', (e) => (e.scrollTop = 0))
await shot(again, 'chat-dark')
await accessible(again, 'a chat in the dark')
clean(again, 'a chat in the dark')
await again.own.close()

// --- what went with a message that another client sent
const png = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const pdf = {type: 'file', file: {filename: 'note.pdf', file_data: `data:application/pdf;base64,${btoa('%PDF-1.4')}`}}
const asks = [{type: 'text', text: 'What is it?'}, {type: 'image_url', image_url: {url: png}}, pdf]
await call(server, 'POST', '/v1/chat/completions', {model: 'finder', messages: [{role: 'user', content: asks}]}, {'x-session-id': 'pictures'})
const pictures = await open(server, '#/chat/pictures')
await has(pictures, '.answer', 'Found: forty-two.')
const shown = await pictures.$$eval('.bubble .attached img', (all) => Promise.all(all.map(async (i) => (await i.decode(), [i.src, i.naturalWidth]))))
equal(shown, [[png, 1]], 'a picture of an earlier message is shown')
equal(await text(pictures, '.bubble .attached span'), ['note.pdf, application/pdf'], 'and a file is named')
clean(pictures, 'a message with a picture')
await pictures.own.close()

// --- sessions: find, rename, copy, delete
await call(server, 'POST', `/sessions/${id}/clone`, {new_name: 'About ports'})
await page.goto(`${server.url}/#/sessions`)
await has(page, '.row-title', 'A good name')
await has(page, '.row-title', 'About ports')
await accessible(page, 'sessions')
await shot(page, 'sessions-light')
await page.type('#search', 'about')
await page.waitForFunction(() => document.querySelectorAll('.row').length === 1, {polling: 'raf'})
equal(await text(page, '.row-title'), ['About ports'], 'a search by a name')
await page.$eval('#search', (e) => {
  e.value = 'you are welcome'
  e.dispatchEvent(new Event('input'))
})
await page.waitForFunction(() => document.querySelectorAll('.row').length === 2, {polling: 'raf'})
check((await text(page, '.row-title')).includes('A good name'), 'a search by the words of an answer')
await press(page, 'Rename A good name')
await page.waitForSelector('#new-name')
await page.$eval('#new-name', (e) => (e.value = 'A better name'))
await press(page, 'Rename')
await page.$eval('#search', (e) => {
  e.value = 'better'
  e.dispatchEvent(new Event('input'))
})
await has(page, '.row-title', 'A better name')
equal((await call(server, 'GET', `/sessions/${id}`)).json.name, 'A better name', 'renamed')
await page.$eval('#search', (e) => {
  e.value = 'ports'
  e.dispatchEvent(new Event('input'))
})
await press(page, 'Delete About ports')
await press(page, 'Delete')
await has(page, 'p', 'No session has')
equal((await call(server, 'GET', '/sessions?search=ports')).json, [], 'deleted')

// --- the keyboard alone: from the address bar to an answer that is stopped, and to another view
await page.goto('about:blank')
await page.goto(server.url)
await page.waitForSelector('#message')
await page.evaluate(() => document.activeElement.blur())
const focus = () => page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute('aria-label') || document.activeElement.textContent.trim())
const tabTo = async (wanted) => {
  const passed = []
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press('Tab')
    passed.push(await focus())
    if (passed.at(-1) === wanted) return true
  }
  return check(false, `Tab reaches ${wanted}`, passed)
}
await tabTo('Skip to the content')
await page.keyboard.press('Enter')
equal(await page.evaluate(() => document.activeElement.id), 'main', 'the skip link skips')
await tabTo('agent')
await page.keyboard.type('helper')
await tabTo('message')
await page.keyboard.type('Slowly')
await page.keyboard.press('Enter')
await has(page, '.answer', 'Slow')
await page.keyboard.press('Escape')
await has(page, '.status', 'Stopped.')
await idle(page)
await page.keyboard.down('Shift')
for (let i = 0; i < 40 && (await focus()) !== 'Sessions'; i++) await page.keyboard.press('Tab')
await page.keyboard.up('Shift')
await page.keyboard.press('Enter')
await has(page, '.row-title', 'Slowly')
clean(page, 'talking')
await page.own.close()

// --- a phone
const phone = await open(server, `#/chat/${id}`, {phone: true})
await has(phone, '.answer', 'You are welcome.')
check(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is wider than a phone')
await shot(phone, 'chat-phone')
if (soak) await accessible(phone, 'a chat on a phone')
clean(phone, 'a phone')
await phone.own.close()
equal(await server.stop(), 0, 'it ends as it should')

// --- a key: nothing is shown without one, its cookie is not for scripts, other pages cannot use it
const store = `${scratch}/keys.db`
const key = JSON.parse(command('keys', 'create', '--json', '--store', store, '--user', 'ada').out).key
const locked = await serve('keys.db', ['--schema-dir', dir, '--script', script])
const login = await open(locked, '', {expected: ['401', '403']})
await login.waitForSelector('#key')
await shot(login, 'login-light')
await accessible(login, 'the login')
await login.type('#key', 'rv_0123456789abcdef_wrong')
await press(login, 'Log in')
await has(login, '.error', 'This key is not valid')
await login.$eval('#key', (e) => (e.value = ''))
await login.type('#key', key)
await login.keyboard.press('Enter')
await login.waitForSelector('#message')
equal(await text(login, '.who'), ['ada'], 'who is logged in')
const cookies = await login.own.cookies()
equal(cookies.map((c) => [c.name, c.httpOnly, c.secure, c.sameSite]), [['__Host-reeve', true, true, 'Strict']], 'the cookie')
equal(await login.evaluate(() => document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)), '{}{}', 'scripts see neither cookie nor key')
const cookie = {cookie: `${cookies[0]?.name}=${cookies[0]?.value}`}
const sent = {name: 'x'}
for (const [what, headers, status] of [
  ['its own pages', {origin: locked.url}, 404],
  ['its own pages, of a browser without Origin', {'sec-fetch-site': 'same-origin'}, 404],
  ['another origin', {origin: 'https://evil.example.com'}, 403],
  ['an origin that is null', {origin: 'null'}, 403],
  ['another site', {'sec-fetch-site': 'cross-site'}, 403],
  ['a sibling', {'sec-fetch-site': 'same-site'}, 403],
  ['nowhere', {}, 403],
])
  equal((await call(locked, 'PATCH', '/sessions/none', sent, {...cookie, ...headers})).status, status, `a change with the cookie, from ${what}`)
equal((await call(locked, 'POST', '/login', {key}, {origin: 'https://evil.example.com'})).status, 403, 'another page logs nobody in')
await press(login, 'Log out')
await login.waitForSelector('#key')
equal((await call(locked, 'GET', '/sessions', undefined, cookie)).status, 401, 'the cookie is worth nothing then')
clean(login, 'logging in')
await login.own.close()
equal(await locked.stop(), 0, 'it ends as it should')
await browser.close()
finish('page chat')
