// Runs on the page: started, watched while they go on, asked and answered, cancelled, replayed, forked, compared.
import {accessible, call, check, clean, click, equal, file, finish, has, open, press, scratch, serve, shot, text} from './kit.mjs'
import {readFileSync} from 'node:fs'
import {root} from '../serve/kit.mjs'

for (const name of ['loop', 'confirm', 'clarify', 'error-route']) {
  file(`lines/${name}.yaml`, readFileSync(`${root}/pipelines/${name}.yaml`, 'utf8'))
  file(`scripts/${name}.yaml`, readFileSync(`${root}/pipelines/scripts/${name}.yaml`, 'utf8'))
}
file(
  'lines/slow.yaml',
  `name: slow
description: One quick stage, one that takes long.
models: {default: "scripted:any"}
agents:
  - {name: quick, has_llm: true, model_role: default, output_mode: text, default_next: long}
  - {name: long, has_llm: true, model_role: default, output_mode: text}
`,
)
file('scripts/slow.yaml', 'models:\n  quick: [{text: "<img src=x onerror=alert(1)>"}]\n  long: [{chunks: ["a", {text: b, delay_ms: 600000}]}]\n')
file(
  'lines/release.yaml',
  `name: release
models: {default: "scripted:any"}
agents:
  - name: plan
    has_llm: true
    model_role: default
    ask: {question: "Release {{outputs.plan.version}}?", show: outputs.plan.steps, options: [yes, no, later]}
    on_answer: {yes: build}
  - {name: build, output_key: done}
`,
)
file('scripts/release.yaml', 'models: {plan: [{json: {version: "1.2", steps: [tag, upload]}}]}\nstages: {build: [{output: {text: released}}]}\n')

const server = await serve('runs.db', ['--pipelines', `${scratch}/lines`, '--scripts', `${scratch}/scripts`])
const idOf = (page) => page.evaluate(() => location.hash.split('/').at(-1))
const state = (page, stage, want) => page.waitForFunction((s, w) => document.querySelector(`.node[data-state="${w}"][data-stage="${s}"]`), {polling: 'raf'}, stage, want)
const status = (page, word) => has(page, '.head .badge', word)
const at = (page, part) => page.waitForFunction((p) => location.hash.startsWith(p), {polling: 'raf'}, part)
const get = async (path) => (await call(server, 'GET', path)).json

// --- a run is started on the page, and watched
const page = await open(server, '#/runs')
await has(page, '.empty', 'No run is like that')
await accessible(page, 'no runs')
await page.evaluate(() => (location.hash = '#/runs/new/loop'))
await has(page, 'h2', 'loop')
equal(await text(page, '.graph .node .name'), ['writer', 'critic', 'end'], 'a pipeline is drawn')
check((await text(page, '.facts')).join().includes('at most'), 'with its bounds')
await accessible(page, 'a new run')
await page.type('#run-input', 'a poem')
await press(page, 'Start')
await at(page, '#/runs/env_')
await status(page, 'completed')
await state(page, 'writer', 'completed')
await state(page, 'critic', 'completed')
await page.waitForFunction(() => document.querySelectorAll('.edge.taken').length === 3, {polling: 'raf'})
await page.waitForFunction(() => document.querySelectorAll('tr.step').length === 4, {polling: 'raf'})
const first = await idOf(page)
equal(await page.$$eval('.sign', (all) => all.map((e) => e.textContent).filter(Boolean)), ['2× ✓', '2× ✓'], 'visits and states on the boxes')
await has(page, '.facts', '61')
await shot(page, 'run')
await accessible(page, 'a run')

// --- its steps, outputs, journal
await press(page, 'writer')
await has(page, 'tr.call', 'model default')
await has(page, 'tr.call pre', 'rope on the wet deck')
await click(page, '#tab-outputs')
await has(page, '.output .md', 'rope on the wet deck')
await page.focus('#tab-outputs')
await page.keyboard.press('ArrowRight')
await page.waitForFunction(() => document.activeElement.id === 'tab-journal', {polling: 'raf'})
await has(page, '.events summary', 'begin')
equal((await text(page, '.events li')).length, (await get(`/runs/${first}`)).records, 'the records of the journal')
await click(page, '.node[data-stage=critic]')
await page.waitForFunction(() => document.querySelectorAll('tr.step').length === 2, {polling: 'raf'})
await press(page, 'Show all')

// --- a replay, and a fork from a step
await press(page, 'Replay')
await has(page, '#verdict', 'The replay is identical')
await press(page, 'Fork behind step 1')
await has(page, 'dialog', 'behind step 1')
await click(page, 'dialog .danger')
await page.waitForFunction((id) => location.hash.startsWith('#/runs/env_') && !location.hash.endsWith(id), {polling: 'raf'}, first)
const fork = await idOf(page)
await status(page, 'completed')
await has(page, 'main', `Forked from ${first}`)
equal((await get(`/runs/${fork}`)).parent, first, 'a fork knows where it is from')

// --- two runs compared
await press(page, 'Compare')
await page.waitForSelector('dialog .list button')
await click(page, 'dialog .list button')
await at(page, `#/runs/${fork}/diff/${first}`)
await has(page, '#verdict', 'They part at their beginning, at continues')
check((await text(page, 'pre.diff mark')).length > 0, 'what differs is marked')
await has(page, 'table', 'critic')
await shot(page, 'diff')
await accessible(page, 'two runs')

// --- a confirmation: the view goes on by itself after a yes
const asked = (await call(server, 'POST', '/runs', {pipeline: 'confirm', input: 'clean up', wait: true})).json.id
await page.evaluate((id) => (location.hash = `#/runs/${id}`), asked)
await status(page, 'waits')
await state(page, 'executor', 'waits')
await has(page, '.run-question h2', 'delete_file')
await click(page, '.edit-arguments summary')
await page.type('.edit-arguments textarea', 'no JSON')
await press(page, 'Approve')
await has(page, '.run-question .error', 'are not JSON')
await page.$eval('.edit-arguments textarea', (e) => (e.value = '{"path": "older.txt"}'))
await shot(page, 'question')
await accessible(page, 'a question')
await press(page, 'Approve')
await status(page, 'completed')
await state(page, 'executor', 'completed')
equal(await page.$('.run-question'), null, 'the question is gone')
const answer = (await get(`/runs/${asked}/journal?limit=100`)).records.find((r) => r.event === 'answer')
check(JSON.stringify(answer).includes('older.txt'), 'the call had the arguments that a person gave', answer)
const denied = (await call(server, 'POST', '/runs', {pipeline: 'confirm', input: 'clean up', wait: true})).json.id
await page.evaluate((id) => (location.hash = `#/runs/${id}`), denied)
await page.waitForFunction((id) => document.querySelector('.head')?.textContent.includes(id), {polling: 'raf'}, denied)
await press(page, 'Deny')
await status(page, 'terminated')

// --- a question that wants a text, and one with choices
const clarify = (await call(server, 'POST', '/runs', {pipeline: 'clarify', input: 'x', wait: true})).json.id
await page.evaluate((id) => (location.hash = `#/runs/${id}`), clarify)
await has(page, '.run-question h2', 'Which database?')
await page.type('.run-question textarea', 'PostgreSQL')
await press(page, 'Answer')
await status(page, 'completed')
const release = (await call(server, 'POST', '/runs', {pipeline: 'release', input: 'x', wait: true})).json.id
await page.evaluate((id) => (location.hash = `#/runs/${id}`), release)
await has(page, '.run-question h2', 'Release 1.2?')
await press(page, 'yes')
await status(page, 'completed')
await state(page, 'build', 'completed')

// --- one that goes on until it is cancelled; what a model wrote stays text
const slow = (await call(server, 'POST', '/runs', {pipeline: 'slow', input: 'x'})).json.id
await page.evaluate((id) => (location.hash = `#/runs/${id}`), slow)
await status(page, 'running')
await state(page, 'quick', 'completed')
await state(page, 'long', 'running')
await click(page, '#tab-outputs')
await has(page, '.output', 'onerror')
equal(await page.$('.output img'), null, 'no element of a model')
await press(page, 'Cancel')
await click(page, 'dialog .danger')
await status(page, 'cancelled')
await page.waitForSelector(':is(.node[data-state=failed], .node[data-state=cancelled])[data-stage=long]')

// --- one that fails; the list, by its filters; the phone
const failed = (await call(server, 'POST', '/runs', {pipeline: 'error-route', input: 'x', wait: true})).json.id
await page.evaluate((id) => (location.hash = `#/runs/${id}`), failed)
await page.waitForSelector('.node[data-state="failed"]')
await page.evaluate(() => (location.hash = '#/runs?pipeline=confirm'))
await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 2, {polling: 'raf'})
await page.select('select', 'terminated')
await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1, {polling: 'raf'})
await accessible(page, 'runs')
clean(page, 'runs')
await page.own.close()
const phone = await open(server, `#/runs/${first}`, {phone: true, dark: true})
await status(phone, 'completed')
await phone.waitForSelector('tr.step')
check(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'a phone shows it without scrolling sideways')
check(await phone.evaluate(() => [document.documentElement, document.querySelector('main')].every((e) => e.scrollWidth <= e.clientWidth && (e.tagName === 'MAIN' || e.scrollHeight <= e.clientHeight))), 'only its wide table does, and only its middle scrolls down')
await shot(phone, 'run-phone')
await accessible(phone, 'a run on a phone')
clean(phone, 'a phone')
equal(await server.stop(), 0, 'it ends as it should')
finish('page of runs')
