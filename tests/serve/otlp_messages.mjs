// The messages of OTLP as OpenTelemetry's protobuf has them (package otlp-transformer, made from opentelemetry-proto).
import {load} from './kit.mjs'

const {collector} = load('@opentelemetry/otlp-transformer/build/src/generated/root.js').opentelemetry.proto
const messages = {'/v1/traces': collector.trace.v1.ExportTraceServiceRequest, '/v1/metrics': collector.metrics.v1.ExportMetricsServiceRequest}

// Ids are hex in the JSON of OTLP and base64 in that of protobuf.
const ids = new Set(['traceId', 'spanId', 'parentSpanId'])
const recoded = (v, from, to) =>
  Array.isArray(v)
    ? v.map((x) => recoded(x, from, to))
    : v && typeof v === 'object'
      ? Object.fromEntries(Object.entries(v).map(([k, x]) => [k, ids.has(k) ? Buffer.from(x, from).toString(to) : recoded(x, from, to)]))
      : v

// The body as a receiver has it that read it into the message of that path and wrote it in binary: a field that the message
// does not have is lost, and a value of another type is changed.
export function received(path, body) {
  const message = messages[path]
  const bytes = message.encode(message.fromObject(recoded(body, 'hex', 'base64'))).finish()
  return recoded(message.toObject(message.decode(bytes), {longs: String, bytes: String}), 'base64', 'hex')
}
