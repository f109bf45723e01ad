// Pipelines and runs as pages show them: drawings, times, journals, what a replay says, where two runs part.
import {call, check, equal, finish, serve} from './kit.mjs'

const server = await serve('look.db', ['--pipelines', 'pipelines', '--scripts', 'pipelines/scripts'])
const get = async (path) => (await call(server, 'GET', path)).json
const status = async (method, path) => (await call(server, method, path)).status

// a pipeline
const loop = await get('/pipelines/loop')
equal([loop.valid, loop.name, loop.mode], [true, 'loop', 'sequential'], 'a pipeline by its name')
equal(loop.stages.map((s) => s.name), ['writer', 'critic'], 'its stages')
check(loop.bounds.max_visits > 0 && loop.limits.max_iterations > 0, 'its limits and bounds', loop.limits, loop.bounds)
const {nodes, edges, width, height} = loop.graph
equal(nodes.map((n) => n.stage ?? n.name), ['writer', 'critic', 'end'], 'boxes of a drawing')
check(nodes.every((n) => n.x >= 0 && n.x + n.width <= width && n.y + n.height <= height), 'they are inside of it')
check(edges.some((e) => e.from === 1 && e.to === 0 && e.label.includes('verdict')), 'a line that leads back', edges)
check(edges.every((e) => /^M[-0-9 LCVhlz.M]+$/.test(e.line) && /^M[-0-9 lhz.]+$/.test(e.tip)), 'lines are paths', edges)
equal(await status('GET', '/pipelines/none'), 404, 'a pipeline that is not there')
equal(await status('GET', '/pipelines/..%2Fx'), 404, 'nor elsewhere')

// a run that is over
const start = async (pipeline, input = 'hi') => (await call(server, 'POST', '/runs', {pipeline, input, wait: true})).json.id
const id = await start('loop')
const graph = await get(`/runs/${id}/graph`)
equal(graph.stages, [
  {stage: 'writer', state: 'completed', visits: 2},
  {stage: 'critic', state: 'completed', visits: 2},
], 'the state of each stage')
equal(graph.moves.map((m) => `${m.from}>${m.to}`), ['writer>critic', 'critic>writer', 'writer>critic', 'critic>end'], 'where it went')
equal(graph.graph, loop.graph, 'the drawing of its pipeline')
const events = (await (await fetch(`${server.url}/runs/${id}/events`, {headers: {accept: 'application/x-ndjson'}})).text()).trim().split('\n')
equal(graph.next_event, events.length + 1, 'the number of the event that comes next')
const times = await get(`/runs/${id}/timeline`)
equal(times.steps.map((s) => [s.step, s.stage, s.visit, s.status, s.can_fork]), [
  [1, 'writer', 1, 'success', true],
  [2, 'critic', 1, 'success', true],
  [3, 'writer', 2, 'success', true],
  [4, 'critic', 2, 'success', true],
], 'its steps')
check(times.steps.every((s) => s.ended && s.start_ms >= 0 && s.start_ms + s.duration_ms <= times.duration_ms + 1), 'when they were', times)
equal(times.usage, {calls: 1, input_tokens: 40, output_tokens: 21}, 'what it took')
equal(times.steps[2].calls.map((c) => [c.kind, c.name, c.outcome, c.usage.input_tokens]), [['model', 'default', 'finished', 40]], 'and a call')
const part = await get(`/runs/${id}/timeline?from=2&limit=2`)
equal([part.steps.map((s) => s.step), part.steps_left_out], [[2, 3], 2], 'a part of them')

// its journal
const all = await get(`/runs/${id}/journal`)
equal([all.records.length, all.records[0].record, all.next], [all.of, 'begin', null], 'its journal')
const pages = []
for (let next = 1; next; ) {
  const page = await get(`/runs/${id}/journal?from=${next}&limit=3`)
  pages.push(...page.records)
  next = page.next
}
equal(pages, all.records, 'page by page')
equal(await status('GET', `/runs/${id}/journal?limit=0`), 400, 'a page of nothing')
equal((await get(`/runs/${id}/journal?from=1000`)).records, [], 'behind its end')

// replay, difference
const verdict = (await call(server, 'POST', `/runs/${id}/replay`)).json
equal([verdict.identical, verdict.records, verdict.status], [true, all.of, 'completed'], 'a replay')
const again = await start('loop')
equal((await get(`/runs/${id}/diff?with=${again}`)).equal, true, 'the same twice')
const other = await start('loop', 'another')
const diff = await get(`/runs/${id}/diff?with=${other}`)
equal([diff.equal, diff.same_records, diff.a_seq, diff.path], [false, 0, 1, 'value.raw_input'], 'where another input parts')
equal(await status('GET', `/runs/${id}/diff`), 400, 'with which one')
equal(await status('GET', `/runs/${id}/diff?with=last`), 404, 'whole ids only')
for (const [method, path] of [['GET', 'graph'], ['GET', 'timeline'], ['GET', 'journal'], ['POST', 'replay'], ['GET', 'diff?with=x']])
  equal(await status(method, `/runs/none/${path}`), 404, `${path} of a run that is not there`)
equal(await status('GET', '/runs/last/graph'), 404, 'a word is no id')

// one that waits, one with lists and failures
const asks = await get(`/runs/${await start('clarify', 'x')}/graph`)
check(asks.status === 'interrupted' && asks.stages.some((s) => s.state === 'waits'), 'a stage that waits', asks.stages)
const left = await start('confirm', 'clean up')
equal((await get(`/runs/${left}/graph`)).stages.map((s) => s.state), ['completed', 'waits'], 'a stage whose tool waits for a yes')
await call(server, 'POST', `/runs/${left}/cancel`)
await call(server, 'GET', `/runs/${left}/events`) // comes when the run has ended
equal((await get(`/runs/${left}/graph`)).stages.map((s) => s.state), ['completed', 'cancelled'], 'it was not skipped')
const failed = await get(`/runs/${await start('error-route')}/graph`)
check(failed.stages.some((s) => s.state === 'failed'), 'a stage that failed', failed.stages)
for (const name of await get('/pipelines')) equal((await get(`/pipelines/${name}`)).valid, true, `${name} is drawn`)
equal(await server.stop(), 0, 'it ends as it should')
finish('look')
