// The builder of agents: a form, what is wrong with it, and an agent that changes the draft.
import {accessible, call, check, clean, click, equal, file, finish, has, open, press, scratch, serve, shot, text} from './kit.mjs'
import {readFileSync} from 'node:fs'

const patch = (patches) => `{name: action, arguments: {type: patch_schema, payload: {patches: ${JSON.stringify(patches)}}}}`
const script = file(
  'talk.yaml',
  `models:
  agent-builder:
    - tool_calls:
        - ${patch([
          {op: 'replace', path: '/description', value: 'You answer questions about parcels.\n\nLook a parcel up first.'},
          {op: 'replace', path: '/metadata/name', value: 'parcel-agent'},
          {op: 'add', path: '/tools/-', value: {name: 'search', description: 'Look up the parcel'}},
          {op: 'add', path: '/properties/parcel', value: {type: 'string', description: 'Its number'}},
        ])}
        - {name: action, arguments: {type: schema_focus, payload: {section: tools, message: it can look parcels up}}}
    - {text: It answers about parcels now.}
    - tool_calls:
        - ${patch([{op: 'replace', path: '/version', value: '2.0.0'}, {op: 'remove', path: '/properties/none'}])}
        - ${patch([{op: 'add', path: '/__proto__/polluted', value: 1}])}
    - {text: I tried.}
    - {tool_calls: [{name: action, arguments: {type: trigger_save}}]}
    - {text: Saved.}
`,
)
file('agents/helper.yaml', 'kind: agent\nname: helper\ndescription: Answers as helper.\n')
const server = await serve('agents.db', ['--schema-dir', `${scratch}/agents`, '--script', script])
const get = async (path) => (await call(server, 'GET', path)).json
const say = async (page, words) => {
  await page.type('#builder-message', words)
  await page.keyboard.press('Enter')
}
const value = (page, selector) => page.$eval(selector, (e) => e.value)
const is = (page, selector, want) => page.waitForFunction((s, w) => document.querySelector(s)?.value === w, {polling: 'raf'}, selector, want)

// --- the list
const page = await open(server, '#/agents')
await has(page, '.agent-card h2', 'helper')
await has(page, '.agent-card h2', 'agent-builder')
await accessible(page, 'agents')
await page.type('input[type=search]', 'Answers as')
await page.waitForFunction(() => document.querySelectorAll('.agent-card').length === 1, {polling: 'raf'})

// --- an agent changes the draft
await page.evaluate(() => (location.hash = '#/agents/new'))
await has(page, '[role=status]', 'valid, not saved')
await accessible(page, 'a new agent')
await say(page, 'Make an agent for parcels')
await has(page, '.answer', 'It answers about parcels now.')
await is(page, '#agent-name', 'parcel-agent')
equal(await value(page, '#agent-prompt'), 'You answer questions about parcels.\n\nLook a parcel up first.', 'the prompt')
equal(await text(page, '.tool-list code'), ['search'], 'a tool')
equal(await text(page, '.tree code'), ['parcel'], 'a field')
equal(await text(page, '.user'), ['Make an agent for parcels'], 'the person sees what was said, without the draft')
const session = (await get('/sessions'))[0].id
const sent = (await get(`/sessions/${session}/messages`))[0].content
check(sent.startsWith('<draft>\n{') && sent.endsWith('</draft>\n\nMake an agent for parcels'), 'and the agent saw the draft', sent)
await shot(page, 'builder')
await accessible(page, 'the builder')

// --- changes that do not fit change nothing
await say(page, 'Break it')
await has(page, '.toast', 'did not fit: operation 2')
await has(page, '.answer', 'I tried.')
equal(await value(page, '#agent-version'), '1.0.0', 'all operations or none')
equal(await page.evaluate(() => ({}).polluted), undefined, 'no path leads out of the draft')

// --- what a person changes is checked while they type
await click(page, '#agent-name', {count: 3})
await page.type('#agent-name', 'not a name')
await has(page, '.findings .error', 'name')
check(await page.$eval('.head .primary', (e) => e.disabled), 'what is wrong cannot be saved')
await click(page, '#agent-name', {count: 3})
await page.type('#agent-name', 'parcel-agent')
await has(page, '[role=status]', 'valid, not saved')
await click(page, '[data-section=tools] summary')
await page.type('#tool-filter', 'remind')
await page.waitForFunction(() => [...document.querySelectorAll('.choices li')].every((e) => /remind/.test(e.textContent)), {polling: 'raf'})
await press(page, 'Add remind_me')
equal(await text(page, '.tool-list code'), ['search', 'remind_me'], 'a tool from the registry')
await press(page, 'Remove search')
equal(await text(page, '.tool-list code'), ['remind_me'], 'and one less')
await page.type('#field-name', 'depot')
await page.keyboard.press('Enter')
await click(page, '[data-property=depot] input[type=checkbox]')
await press(page, 'Remove parcel')
equal(await text(page, '.tree code'), ['depot'], 'fields')

// --- the agent asks to save; the server has the document, and what it was before
await say(page, 'Keep it')
await has(page, '.toast', 'Saved parcel-agent')
await page.waitForFunction(() => location.hash === '#/agents/parcel-agent', {polling: 'raf'})
const kept = await get('/agents/parcel-agent')
equal([kept.tools, kept.required, Object.keys(kept.properties)], [[{name: 'remind_me'}], ['depot'], ['depot']], 'what was saved')
await has(page, '.head [role=status]', 'saved')
await click(page, '#agent-short')
await page.type('#agent-short', 'Parcels')
await page.keyboard.down('Control')
await page.keyboard.press('Enter')
await page.keyboard.up('Control')
await page.waitForFunction(() => document.querySelector('.head [role=status]').textContent === 'saved', {polling: 'raf'})
equal((await get('/agents/parcel-agent')).short_description, 'Parcels', 'saved by the keyboard')
await press(page, 'Undo the last change')
await press(page, 'Earlier versions')
await has(page, 'dialog', '1.0.0')
await page.keyboard.press('Escape')

// --- as YAML, which the server reads as the same
const yaml = await page.evaluate(async () => {
  const {toYaml} = await import('/page/yaml.js')
  return toYaml({name: 'a', description: 'You.\n\n  - yes: no\n', short_description: 'true', tags: ['1.0', '- x', "it's", ''], properties: {a: {type: 'object', properties: {}, enum: ['on', null, 1.5]}}, tools: [{name: 'search', description: 'a: b # c'}, {name: 'action'}]})
})
const put = await call(server, 'PUT', '/agents', yaml)
equal(put.status, 200, 'YAML of the page is read', put.text)
const read = await get('/agents/a')
equal([read.description, read.short_description, read.tags, read.properties.a.enum, read.tools], ['You.\n\n  - yes: no\n', 'true', ['1.0', '- x', "it's", ''], ['on', null, 1.5], [{name: 'search', description: 'a: b # c'}, {name: 'action'}]], 'as it was')

// --- scenarios and collections
await page.evaluate((id) => (location.hash = `#/scenarios?session=${id}&name=Parcels`), session)
await page.waitForSelector('dialog #row-name')
equal([await value(page, '#row-name'), await value(page, '#row-session')], ['Parcels', session], 'a session becomes a scenario')
await page.type('#row-tags', 'post, boxes')
await accessible(page, 'a new scenario')
await press(page, 'Keep')
await has(page, '.agent-card h2', 'Parcels')
await press(page, 'New collection')
await page.waitForSelector('dialog #row-name')
await page.type('#row-name', 'Best')
await press(page, 'Keep')
await has(page, '.agent-card h2', 'Best')
await press(page, 'Sessions')
await page.waitForSelector('dialog .add-field input')
await page.type('dialog .add-field input', session)
await press(page, 'Put in')
await page.waitForFunction(() => document.querySelector('dialog .tree a'), {polling: 'raf'})
equal((await get(`/collections/${(await get('/collections'))[0].id}/sessions`)).map((s) => s.id), [session], 'a session in a collection')
await page.keyboard.press('Escape')
await page.type('[aria-label="Search scenarios"]', '#nothing')
await has(page, '[aria-label="Scenarios"]', 'There is none.')
await click(page, '[aria-label="Search scenarios"]', {count: 3})
await page.type('[aria-label="Search scenarios"]', '#post')
await has(page, '.agent-card h2', 'Parcels')
await press(page, 'Change Parcels')
await page.waitForSelector('dialog #row-status')
await page.select('#row-status', 'done')
await press(page, 'Keep')
await has(page, '.badge', 'done')
await page.evaluate(() => (location.hash = '#/agents/parcel-agent'))
await has(page, '.head [role=status]', 'valid, not saved')
equal([await value(page, '#agent-short'), (await get('/agents/parcel-agent')).short_description], ['Parcel', 'Parcels'], 'a draft that was left is there again')
await page.evaluate(() => (location.hash = '#/scenarios'))
await has(page, '.agent-card h2', 'Parcels')
await shot(page, 'scenarios')
await accessible(page, 'scenarios')
clean(page, 'agents')
equal(await server.stop(), 0, 'it ends as it should')
finish('page of agents')
