// No text becomes a script: a hundred texts that try to, in every place that a model, a tool, a person or a store can fill.
// First the modules of the page are told each of them, in the browser and under the content policy of the server; then
// some (with REEVE_SOAK all) take the whole way: through a server with a script in the place of models.
import {agents, browser, call, check, clean, equal, file, finish, has, idle, open, say, serve, soak} from './kit.mjs'
import {payloads} from './payloads.mjs'

const SAMPLE = [12, 57] // of the texts: those that take the whole way by default
equal([payloads.length, new Set(payloads).size], [100, 100], 'a hundred texts')

// --- in the browser: what may be in the page, and what was found
function arm() {
  const TAGS = new Set(
    `a article aside b blockquote br button code del details div em h1 h2 h3 h4 h5 h6 hr i img input ins kbd label li mark ol option p path
    pre q s samp section select small span strong sub summary sup svg table tbody td textarea th thead time tr u ul var form`.split(/\s+/),
  )
  window.inspect = (el, what) => {
    const bad = []
    for (const e of el.querySelectorAll('*')) {
      if (!TAGS.has(e.localName)) bad.push(`<${e.localName}>`)
      for (const a of e.attributes) {
        if (/^on/i.test(a.name) || ['style', 'srcdoc', 'formaction', 'action', 'name', 'srcset'].includes(a.name)) bad.push(`${e.localName} ${a.name}`)
        if (['href', 'src', 'xlink:href'].includes(a.name) && !/^(https?:\/\/|mailto:|#|data:image\/(png|jpeg|gif|webp);base64,)/.test(a.value)) bad.push(`${a.name}=${a.value.slice(0, 60)}`)
        if (a.name === 'target' && e.getAttribute('rel')?.includes('noopener') !== true) bad.push('target without noopener')
      }
      if (e.localName === 'img' && !e.src.startsWith('data:image/')) bad.push(`picture ${e.src.slice(0, 60)}`)
      if (e.localName === 'svg' && e.getAttribute('class') !== 'icon') bad.push('svg of a text')
      if (e.id && !/^(question-|rate-)/.test(e.id)) bad.push(`id ${e.id}`)
      if (e.localName === 'form' && e.hasAttribute('action')) bad.push('form')
    }
    return bad.map((b) => `${what}: ${b}`)
  }
}

// Each place that can be filled, as a function of a text that gives elements.
function places(at) {
  const modules = Promise.all(['md', 'turn', 'cards', 'questions', 'dom', 'app'].map((m) => import(`${at}page/${m}.js`)))
  return modules.then(([md, {Turn}, {actionEl}, {questionCard}, dom, app]) => {
    const turnOf = (...events) => {
      const t = new Turn({agent: 'a', text: 'x'})
      for (const e of events) t.on(e)
      t.over({outcome: {type: 'success'}})
      return t.el
    }
    const call = (more, name = 'tool') => [{type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: name}, ...more]
    const asks = (q) => questionCard({id: 'q', ...q}, () => {})
    const row = (m) => {
      const t = new Turn({text: ''})
      t.row({message_type: 'assistant', run_id: 'r', ...m})
      return t.el
    }
    const text = (p) => md.markdown(p)
    const json = (p) => JSON.stringify({[p]: p, list: [p]})
    const grown = (p) => {
      const el = dom.h('div')
      const live = new md.LiveMarkdown(el)
      for (let i = 0; i < p.length; i += 3) {
        live.push(p.slice(i, i + 3))
        live.draw()
      }
      return el
    }
    return {
      text,
      'text in an emphasis': (p) => text(`**a ${p} b**`),
      'text in a list': (p) => text(`- one\n- ${p}\n  - ${p}\n\n1. ${p}`),
      'text in a table': (p) => text(`| a | b |\n| --- | --- |\n| ${p} | ${p.replaceAll('\n', ' ')} |`),
      'text in a quotation': (p) => text(`> ${p}`),
      'text in a heading': (p) => text(`# ${p}`),
      'language of code': (p) => text('```' + p + '\nx\n```'),
      'code in a line': (p) => text('a ``' + p + '`` b'),
      'name of a link': (p) => text(`[${p}](https://example.com)`),
      'address of a link': (p) => text(`[x](${p})`),
      'address of a link in brackets': (p) => text(`[x](<${p}>)`),
      'title of a link': (p) => text(`[x](https://example.com "${p}")`),
      'reference of a link': (p) => text(`[x][y]\n\n[y]: ${p}`),
      'words of a picture': (p) => text(`![${p}](${p})`),
      'text within tags': (p) => text(`<b>${p}</b> <kbd>${p} <br> <sub ${p}>`),
      'text of characters by number': (p) => text([...p].map((c) => `&#${c.codePointAt(0)};`).join('')),
      'a text that grows': grown,
      'a message of the user': (p) => new Turn({agent: p, text: p}).el,
      'an answer': (p) => turnOf({type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: p}, {type: 'TEXT_MESSAGE_END', messageId: 'm'}),
      thoughts: (p) => turnOf({type: 'REASONING_MESSAGE_CONTENT', messageId: 'm', delta: p}),
      'name of a tool': (p) => turnOf(...call([], p)),
      'arguments of a tool': (p) => turnOf(...call([{type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: json(p)}, {type: 'TOOL_CALL_END', toolCallId: 'c'}])),
      'arguments that are no JSON': (p) => turnOf(...call([{type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: p}, {type: 'TOOL_CALL_END', toolCallId: 'c'}])),
      'result of a tool': (p) => turnOf(...call([{type: 'TOOL_CALL_RESULT', toolCallId: 'c', content: json(p)}])),
      'result that is text': (p) => turnOf(...call([{type: 'TOOL_CALL_RESULT', toolCallId: 'c', content: p}])),
      'name of an asked agent': (p) => turnOf(...call([{type: 'SUBAGENT_STARTED', subagentRunId: 's', parentToolCallId: 'c', name: p}])),
      'asked agent in arguments': (p) =>
        turnOf(...call([{type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: JSON.stringify({agent_name: p, input_text: p})}, {type: 'TOOL_CALL_END', toolCallId: 'c'}], 'ask_agent')),
      'words of an asked agent': (p) =>
        turnOf(
          ...call([
            {type: 'SUBAGENT_STARTED', subagentRunId: 's', parentToolCallId: 'c', name: 'b'},
            {type: 'TEXT_MESSAGE_CONTENT', messageId: 'n', delta: p, subagentRunId: 's'},
            {type: 'SUBAGENT_ERROR', subagentRunId: 's', message: p},
          ]),
        ),
      'object of an asked agent': (p) =>
        turnOf(...call([{type: 'SUBAGENT_STARTED', subagentRunId: 's', parentToolCallId: 'c', name: 'b'}, {type: 'SUBAGENT_FINISHED', subagentRunId: 's', result: {[p]: p}}])),
      'an error': (p) => turnOf({type: 'RUN_ERROR', message: p, code: p}),
      'an action': (p) => actionEl({action_type: p, payload: {[p]: p}}, () => {}),
      'an observation': (p) => actionEl({action_type: 'observation', payload: {sources: [p, {[p]: p}], flags: [p], risk_level: p, confidence: 1}}, () => {}),
      'a question of an agent': (p) => actionEl({action_type: 'elicit', payload: {question: p, options: [p, {[p]: p}]}}, () => {}),
      'a confirmation': (p) => asks({reason: 'confirmation', message: p, expiresAt: p, metadata: {data: {tool: p, parameters: {[p]: p}}}}),
      'a choice': (p) => asks({reason: p, message: p, responseSchema: {properties: {choice: {enum: [p, p]}}}}),
      'a decision': (p) => asks({reason: 'agent_review', message: p, responseSchema: {properties: {decision: {enum: [p, 'modify']}}}, metadata: {data: {output: {[p]: p}}}}),
      'a clarification': (p) => asks({reason: 'clarification', message: p}),
      'a pending question': (p) => asks({kind: 'confirmation', message: p, expires_at: p, data: {parameters: p}}),
      'a row': (p) => row({content: p, agent_name: p, status: p}),
      'a row of another kind': (p) => row({message_type: p, content: p}),
      'a row with a call': (p) => row({message_type: 'tool_call', tool_calls: {id: p, name: p, arguments: {[p]: p}}, parent_call_id: p, agent_name: p}),
      'a failure': (p) => app.failure({detail: p, hint: p, status: 404}),
      'a message at the edge': (p) => {
        dom.toast(p)
        return document.getElementById('toasts').lastChild
      },
      'a time': (p) => dom.timeEl(p),
      'an address of an element': (p) => dom.h('a', {href: p, title: p, 'aria-label': p}, p),
    }
  })
}

const plain = await serve('plain.db', [])
const page = await open(plain)
await page.waitForSelector('#message')
await page.evaluate(arm)
await page.evaluate(`window.placesOf = ${places}`)
const result = await page.evaluate(
  async (all, at) => {
    const found = []
    const lost = []
    const where = await window.placesOf(at)
    const room = document.createElement('div')
    document.getElementById('main').append(room)
    for (const [n, p] of all.entries())
      for (const [name, make] of Object.entries(where)) {
        try {
          const made = make(p)
          if (made) room.append(made)
          found.push(...window.inspect(room, `text ${n}, ${name}`))
        } catch (e) {
          lost.push(`text ${n}, ${name}: ${e.message}`)
        }
        room.replaceChildren()
      }
    await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))
    return {found, lost, places: Object.keys(where).length}
  },
  payloads,
  `${plain.url}/`,
)
equal(result.found.slice(0, 10), [], `elements of all ${payloads.length} texts in ${result.places} places`)
equal(result.lost.slice(0, 10), [], 'each place shows each text')
check(result.places > 40, 'many places', String(result.places))
clean(page, 'the modules of the page')

// the test can fail: a page that took texts for HTML would be seen
const naive = await open(plain)
await naive.setBypassCSP(true)
await naive.goto(`${plain.url}/`)
await naive.waitForSelector('#message')
await naive.evaluate(arm)
const caught = await naive.evaluate((all) => {
  let n = 0
  window.alert = () => {}
  for (const p of all) {
    const el = document.createElement('div')
    el.innerHTML = p
    n += window.inspect(el, '').length > 0
  }
  return n
}, payloads)
check(caught > 55, 'a page that takes texts for HTML would be found out', String(caught))
await naive.own.close()
await page.own.close()
equal(await plain.stop(), 0, 'it ends as it should')

// --- the whole way
// documents of agents and texts of models have no such characters
const printable = (p) => p.replaceAll(/[\u0000-\u0008]/g, '')
const chosen = (soak ? payloads : SAMPLE.map((n) => payloads[n])).map(printable)
const dir = agents('agents', 'finder')
file('agents/helper.yaml', JSON.stringify({kind: 'agent', name: 'helper', description: chosen.join(' '), model: 'test:model', tools: ['wipe', 'search', 'action', 'ask_agent'].map((name) => ({name}))}))
const models = {helper: [], finder: []}
const results = []
for (const p of chosen) {
  models.helper.push(
    {chunks: [...p].reduce((parts, c, i) => (i % 5 ? (parts[parts.length - 1] += c) : parts.push(c), parts), [])},
    {text: p, tool_calls: [{name: 'ask_agent', arguments: {agent_name: 'finder', input_text: p}}, {name: 'action', arguments: {type: 'elicit', payload: {question: p, options: [p]}}}]},
    {text: p},
    {text: p, tool_calls: [{name: 'wipe', arguments: {[p]: p}}]},
  )
  models.finder.push({text: p, tool_calls: [{name: 'search', arguments: {query: p}}]}, {text: p})
  results.push({result: {[p]: p}})
}
const script = file('texts.yaml', JSON.stringify({models, tools: {wipe: {risk: 'destructive', calls: [{result: {}}]}, search: results}}))
const server = await serve('texts.db', ['--schema-dir', dir, '--script', script])
for (const [n, p] of chosen.entries()) {
  const chat = await open(server)
  await chat.waitForSelector('#message')
  await chat.select('#agent', 'helper')
  const words = p.replaceAll(/\s+/g, ' ')
  for (const wanted of ['.answer .block > .md', '.tool.asks', '.question']) {
    await chat.$eval('#message', (e, text) => (e.value = text), words)
    await chat.focus('#message')
    await chat.keyboard.press('Enter')
    await chat.waitForSelector(wanted)
    await idle(chat)
  }
  const id = await chat.evaluate(() => location.hash.split('/').at(-1))
  equal((await call(server, 'PATCH', `/sessions/${id}`, {name: p.slice(0, 200)})).status, 200, 'the text is the name of the session')
  await chat.goto(`${server.url}/#/sessions?q=${encodeURIComponent(words.slice(0, 20))}`)
  await chat.waitForSelector('#search')
  await chat.goto(`${server.url}/#/sessions`)
  await has(chat, '.row-title', p.slice(0, 200))
  await chat.goto('about:blank')
  await chat.goto(`${server.url}/#/chat/${id}?agent=${encodeURIComponent(p)}`)
  await chat.waitForSelector('.question')
  await chat.evaluate(arm)
  equal(await chat.evaluate(() => window.inspect(document.querySelector('.log'), '')), [], `text ${n} on the whole way`)
  await chat.evaluate((text) => (location.hash = `#/${text}`), words)
  await chat.waitForSelector('#message')
  clean(chat, `text ${n} on the whole way`)
  await chat.own.close()
}
equal(await server.stop(), 0, 'it ends as it should')
await browser.close()
finish('page scripts')
