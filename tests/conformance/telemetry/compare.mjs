// node compare.mjs MODULES JUDGE: runs as events; what ours writes against what OpenTelemetry's writer makes of the same
// data, and what a parser of Prometheus' text reads.
import assert from 'node:assert/strict'
import {spawnSync} from 'node:child_process'
import {createRequire} from 'node:module'
import {isDeepStrictEqual} from 'node:util'

const [modules, judge] = process.argv.slice(2)
const require = createRequire(modules + '/x')
const {JsonTraceSerializer, JsonMetricsSerializer} = require('@opentelemetry/otlp-transformer')
const parsed = require('parse-prometheus-text-format')
const parse = parsed.default || parsed

const time = (ms) => new Date(1_700_000_000_000 + ms).toISOString().replace('Z', '123Z')
let at = 0
const event = (type, more) => JSON.stringify({seq: 1, type, time: time((at += 7)), ...more})
const visit = {stage: 'answer', visit: 1}
const child = {...visit, agent: 'helper', depth: 1, parent_tool_call_id: 'call_1'}
const run = [
  event('pipeline_started', {pipeline: 'assistant', session_id: 'sess_1'}),
  event('stage_started', visit),
  event('llm_call_start', {...visit, call_id: 1, role: 'default', model: 'openai:gpt-x', attempt: 1}),
  event('retry', {...visit, attempt: 1, wait_ms: 5, error: 'secret words'}),
  event('llm_call_start', {...visit, call_id: 1, role: 'default', model: 'openai:gpt-x', attempt: 2}),
  event('llm_result', {...visit, call_id: 1, status: 'success', preview: 'secret words', finish_reason: 'tool_calls', input_tokens: 380, output_tokens: 40,
    cached_tokens: 300, cache_write_tokens: 7, reasoning_tokens: 9, latency_ms: 1234, first_token_ms: 99, attempts: 2}),
  event('tool_call_start', {...visit, call_id: 2, tool: 'ask_agent', step_id: 'call_1', arguments: {x: 'secret words'}}),
  event('agent_started', child),
  event('llm_call_start', {...child, call_id: 3, role: 'small', model: null, attempt: 1}),
  event('llm_result', {...child, call_id: 3, status: 'error', error_kind: 'rate_limited', error: 'secret words', latency_ms: 20}),
  event('agent_completed', {...child, status: 'error', code: 'MODEL_FAILED', error: 'secret words', duration_ms: 66}),
  event('tool_result', {...visit, tool: 'ask_agent', step_id: 'call_1', status: 'error', error_type: 'tool_error', error: 'secret words', execution_time_ms: 70}),
  event('tool_call_start', {...visit, call_id: 4, tool: 'slow "tool"\n\\é', step_id: 'call_2', arguments: {}}),
  event('stage_completed', {...visit, status: 'success', outcome: 'success', output: {response: 'secret words'}, duration_ms: 500, usage: {input_tokens: 380, output_tokens: 40}}),
  event('done', {stage: '__end__', status: 'completed', terminal_reason: 'completed', usage: {input_tokens: 380, output_tokens: 40}}),
]
const rows = [
  {events: run, draft: false, parent: null},
  {events: run, draft: true, parent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'},
  {events: [...run.slice(0, 4), 'not json', '{"type":"done"}', run.at(-1)], draft: false, parent: 'bad'},
  {events: [], draft: false, parent: null},
]
const ran = spawnSync(judge, [], {input: rows.map((r) => JSON.stringify(r)).join('\n') + '\n', encoding: 'utf8', maxBuffer: 1 << 28})
assert.equal(ran.status, 0, ran.stderr)
const answers = ran.stdout.trimEnd().split('\n').map((line) => JSON.parse(line))
assert.equal(answers.length, rows.length)

// Their writer has 64-bit integers as numbers, and receivers take both.
function normal(v, key) {
  if (Array.isArray(v)) return v.map((x) => normal(x, key))
  if (v && typeof v === 'object') return Object.fromEntries(Object.entries(v).filter(([, x]) => x !== undefined).map(([k, x]) => [k, normal(x, k)]))
  return ['intValue', 'count', 'bucketCounts'].includes(key) ? String(v) : v
}
const sorted = (v) => (Array.isArray(v) ? v.map(sorted) : v && typeof v === 'object' ? Object.fromEntries(Object.keys(v).sort().map((k) => [k, sorted(v[k])])) : v)
const hr = (nanos) => [Number(BigInt(nanos) / 1_000_000_000n), Number(BigInt(nanos) % 1_000_000_000n)]
const value = (v) => 'intValue' in v ? Number(v.intValue) : 'arrayValue' in v ? v.arrayValue.values.map(value) : Object.values(v)[0]
const attributes = (list) => Object.fromEntries(list.map((a) => [a.key, value(a.value)]))
const resource = (r) => ({attributes: attributes(r.attributes)})
const theirs = (bytes) => JSON.parse(Buffer.from(bytes).toString())
const extra = new Set(['droppedAttributesCount', 'droppedEventsCount', 'droppedLinksCount', 'events', 'links', 'message', 'traceState'])
const trim = (v) => Array.isArray(v) ? v.map(trim) : v && typeof v === 'object'
  ? Object.fromEntries(Object.entries(v).filter(([k, x]) => !(extra.has(k) && (x === 0 || x === '' || x == null || (Array.isArray(x) && !x.length)))).map(([k, x]) => [k, trim(x)])) : v

function check_spans(body) {
  const {resource: r, scopeSpans: [{scope, spans}]} = body.resourceSpans[0]
  for (const s of spans) {
    assert.match(s.traceId, /^[0-9a-f]{32}$/)
    assert.match(s.spanId, /^[0-9a-f]{16}$/)
    assert.match(s.startTimeUnixNano, /^\d+$/)
  }
  const shared = resource(r)
  const again = theirs(JsonTraceSerializer.serializeRequest(spans.map((s) => ({
    name: s.name, kind: s.kind - 1, // the interface of the library counts from 0
    spanContext: () => ({traceId: s.traceId, spanId: s.spanId, traceFlags: s.flags & 0xff}),
    parentSpanContext: s.parentSpanId && {traceId: s.traceId, spanId: s.parentSpanId, isRemote: Boolean(s.flags & 0x200)},
    startTime: hr(s.startTimeUnixNano), endTime: hr(s.endTimeUnixNano), attributes: attributes(s.attributes), status: s.status,
    events: [], links: [], resource: shared, instrumentationScope: scope, droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0,
  }))))
  if (spans.length === 0) return spans
  assert.deepEqual(sorted(trim(normal(body))), sorted(trim(normal(again))))
  return spans
}

function check_metrics(body) {
  const {resource: r, scopeMetrics: [{scope, metrics}]} = body.resourceMetrics[0]
  const again = theirs(JsonMetricsSerializer.serializeRequest({resource: resource(r), scopeMetrics: [{scope, metrics: metrics.map((m) => ({
    descriptor: {name: m.name, description: m.description, unit: m.unit, valueType: 1},
    aggregationTemporality: 1, dataPointType: m.histogram ? 0 : 3, isMonotonic: Boolean(m.sum?.isMonotonic),
    dataPoints: (m.histogram || m.sum).dataPoints.map((p) => ({
      startTime: hr(p.startTimeUnixNano), endTime: hr(p.timeUnixNano), attributes: attributes(p.attributes),
      value: m.sum ? p.asDouble : {count: Number(p.count), sum: p.sum, buckets: {boundaries: p.explicitBounds, counts: p.bucketCounts.map(Number)}},
    })),
  }))}]}))
  assert.deepEqual(sorted(trim(normal(body))), sorted(trim(normal(again))))
  return metrics
}

function check_text(text, metrics) {
  assert(text === '' || text.endsWith('\n'))
  assert(!text.includes('\r'))
  const families = new Map(parse(text).map((f) => [f.name, f]))
  // This parser knows no histograms with labels: their series are read as those of families without a type.
  const plain = new Map()
  for (const f of parse(text.replace(/^# .*\n/gm, '')))
    plain.set(f.name, [...(plain.get(f.name) || []), ...f.metrics])
  assert.equal(families.size, metrics.length)
  for (const m of metrics) {
    const name = m.name.replaceAll('.', '_') + (m.unit === 's' ? '_seconds' : '')
    const family = families.get(m.sum ? name + '_total' : name)
    assert(family, `no family for ${m.name}`)
    assert.equal(family.type, m.sum ? 'COUNTER' : 'HISTOGRAM')
    assert.equal(family.help, m.description)
    const points = (m.sum || m.histogram).dataPoints
    const series = (suffix, p, more = {}) => {
      const wanted = sorted({...Object.fromEntries(p.attributes.map((x) => [x.key.replaceAll('.', '_'), x.value.stringValue])), ...more})
      const without_empty = (labels) => sorted(Object.fromEntries(Object.entries(labels || {}).filter(([, v]) => v !== '')))
      const found = (plain.get(name + suffix) || []).filter((x) => isDeepStrictEqual(without_empty(x.labels), wanted))
      assert.equal(found.length, 1, `${name}${suffix} ${JSON.stringify(wanted)}`)
      return Number(found[0].value)
    }
    for (const p of points) {
      if (m.sum) {
        assert.equal(series('_total', p), p.asDouble)
        continue
      }
      assert.equal(series('_count', p), Number(p.count))
      assert.equal(series('_sum', p), p.sum)
      let sum = 0
      for (const [k, n] of p.bucketCounts.entries())
        assert.equal(series('_bucket', p, {le: k === p.explicitBounds.length ? '+Inf' : String(p.explicitBounds[k])}), sum += Number(n))
    }
  }
}

for (const [i, a] of answers.entries()) {
  const spans = check_spans(a.spans)
  const metrics = check_metrics(a.metrics)
  check_text(a.text, metrics)
  assert(a.open.endsWith('# EOF\n'))
  assert(!JSON.stringify(a).includes('secret words'), 'words of models are told')
  console.log(`run ${i}: ${spans.length} spans, ${metrics.length} metrics, ${a.dropped} lines not read`)
}

// The tree of the first run.
const spans = answers[0].spans.resourceSpans[0].scopeSpans[0].spans
const name = new Map(spans.map((s) => [s.spanId, s.name]))
assert.deepEqual(spans.map((s) => [s.name, name.get(s.parentSpanId) || '', s.kind, s.status.code]), [
  ['chat gpt-x', 'reeve.stage answer', 3, 0],
  ['chat small', 'invoke_agent helper', 3, 2],
  ['invoke_agent helper', 'execute_tool ask_agent', 1, 2],
  ['execute_tool ask_agent', 'reeve.stage answer', 1, 2],
  ['reeve.stage answer', 'invoke_workflow assistant', 1, 0],
  ['execute_tool slow "tool"\n\\é', 'reeve.stage answer', 1, 2], // cut off by the end
  ['invoke_workflow assistant', '', 1, 0],
])
assert.equal(new Set(spans.map((s) => s.traceId)).size, 1)
const remote = answers[1].spans.resourceSpans[0].scopeSpans[0].spans.at(-1)
assert.equal(remote.traceId, '0af7651916cd43dd8448eb211c80319c')
assert.equal(remote.parentSpanId, 'b7ad6b7169203331')
assert.equal(remote.flags, 0x301)
const keys = (answer) => answer.spans.resourceSpans[0].scopeSpans[0].spans[0].attributes.map((x) => x.key)
assert(keys(answers[0]).includes('gen_ai.usage.cache_creation.input_tokens') && keys(answers[1]).includes('gen_ai.usage.cache_write.input_tokens'))
